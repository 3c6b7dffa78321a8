"""Files of the model hub at a pinned revision: address, token and session as huggingface_hub has them (its owner).

So HF_ENDPOINT, HF_TOKEN, a saved login and a session that a program has set are honoured. The bytes are streamed by
`download`, because huggingface_hub (2.4) begins anew after a killed download, and waits longer for a host that
does not answer than someone with other sources wants to. Only files are asked for; no code of a repository runs.
"""

from __future__ import annotations

from pathlib import Path

from ragcli.errors import RemoteError
from ragcli.models.catalogue import File, Hub
from ragcli.models.download import Remote, Report, download, opened


def fetch(source: Hub, file: File, partial: Path, endpoint: str | None, report: Report) -> None:
    """Bring a file of the repository into `partial`; one that was begun is gone on with.

    Raises: RemoteError, OSError.
    """
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, not in __all__

    path = source.paths.get(file.name, file.name)
    address = hf_hub_url(source.repository, path, revision=source.revision, endpoint=endpoint)
    remote = Remote(address, file.size, build_hf_headers(library_name="ragcli"))
    try:
        with opened(get_session) as session:  # the process's own: it stays open
            download(session, remote, partial, report)
    except OfflineModeIsEnabled as error:
        raise RemoteError("HF_HUB_OFFLINE is on") from error
