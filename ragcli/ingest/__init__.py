"""Files into the index: `plan` what to do, `prepare` it (in `workers`), `commit` it; `run` ties these together."""

from ragcli.ingest.run import ingest_paths

__all__ = ["ingest_paths"]
