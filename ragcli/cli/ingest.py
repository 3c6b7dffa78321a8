"""`ragcli ingest`: files into the index, and what became of each."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from ragcli.cli import inert, streams
from ragcli.cli.common import Common, ConfigFile, Debug, Index, Offline, Quiet, Session, Verbose, as_text, begin, given
from ragcli.cli.wording import counted
from ragcli.errors import UsageError
from ragcli.options import ChunkingSettings, IngestSettings, ModelsSettings, ParentsSettings
from ragcli.types import IngestOptions, IngestReport, Problem

READING, DOCUMENTS, CHUNKS = "What is read", "Documents", "Chunking"
VECTORS, OUTPUT = "Vectors", "Output"
FAILED, PARTLY_DONE = 1, 4
CHUNKING, INGEST, MODELS, PARENTS = ChunkingSettings(), IngestSettings(), ModelsSettings(), ParentsSettings()
EXAMPLES = """
Examples:
  ragcli ingest docs/ notes.md       folders, files, globs
  ragcli ingest docs/ --tag lang=de --tag 'year:=2024'
  ragcli ingest docs/ --include '*.md' --exclude 'drafts/*'
  ragcli ingest docs/ --dry-run      what would happen, file by file
  ragcli ingest docs/ --prune        forget files that are gone
  ragcli ingest corpus.jsonl         a document a line: _id, text, title
  pdftotext report.pdf - | ragcli ingest - --name report.pdf
  ragcli ingest --delete docs/old.md
  ragcli ingest docs/ --no-embed     keywords only: no model is needed
  ragcli ingest --re-embed --embedder fast
  ragcli ingest --parents            cut parents of all that is stored
"""


def command(
    context: typer.Context,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Files, folders, globs, JSONL corpora; - reads one document.", show_default=False
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="GLOB", help="Only files that match. Repeatable.", rich_help_panel=READING),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="GLOB", help="No files that match. Repeatable.", rich_help_panel=READING),
    ] = None,
    hidden: Annotated[
        bool | None,
        typer.Option(
            "--hidden/--no-hidden", help="Read hidden files too.", show_default="no-hidden", rich_help_panel=READING
        ),
    ] = None,
    gitignore: Annotated[
        bool | None,
        typer.Option(
            "--gitignore/--no-gitignore",
            help="Obey .gitignore and .ragignore.",
            show_default="gitignore",
            rich_help_panel=READING,
        ),
    ] = None,
    checksum: Annotated[
        bool,
        typer.Option(
            "--checksum", help="Compare contents, not size and time, to see what changed.", rich_help_panel=READING
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            help="Processes that parse; 0 is one a core.",
            show_default=str(INGEST.workers),
            rich_help_panel=READING,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="ID",
            help="Document id of what - reads; its ending tells the format.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            metavar="KEY=VALUE",
            help="Metadata for every document of this call; key:=json for a number, true, a date. Repeatable.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove documents whose files are gone from PATH.", rich_help_panel=DOCUMENTS),
    ] = False,
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="ID", help="Remove this document. Repeatable.", rich_help_panel=DOCUMENTS),
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Empty the index first; asks.", rich_help_panel=DOCUMENTS)
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.", rich_help_panel=DOCUMENTS)] = False,
    chunk_strategy: Annotated[
        str | None,
        typer.Option(
            "--chunk-strategy",
            metavar="NAME",
            help="How documents are cut.",
            show_default=CHUNKING.strategy,
            rich_help_panel=CHUNKS,
        ),
    ] = None,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            "--chunk-size",
            metavar="N",
            help="Largest chunk, in characters or tokens (chunking.unit).",
            show_default=str(CHUNKING.size),
            rich_help_panel=CHUNKS,
        ),
    ] = None,
    chunk_overlap: Annotated[
        int | None,
        typer.Option(
            "--chunk-overlap",
            metavar="N",
            help="How much of a chunk the next one repeats, at most.",
            show_default=str(CHUNKING.overlap),
            rich_help_panel=CHUNKS,
        ),
    ] = None,
    parents: Annotated[
        bool | None,
        typer.Option(
            "--parents/--no-parents",
            help=f"Keep parents: larger chunks ({PARENTS.size} characters) that queries show around what they find. "
            "Of stored documents they are cut from the stored text; --no-parents removes them.",
            show_default="as the index has it",
            rich_help_panel=CHUNKS,
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="NAME",
            help="What makes vectors of a new index: minilm, fast, a folder, hub:ORG/NAME, openai:MODEL, none.",
            show_default=MODELS.embedder,
            rich_help_panel=VECTORS,
        ),
    ] = None,
    no_embed: Annotated[
        bool,
        typer.Option(
            "--no-embed",
            help="No vectors: a new index is for keywords only; in another they wait for the next ingest.",
            rich_help_panel=VECTORS,
        ),
    ] = False,
    re_embed: Annotated[
        bool,
        typer.Option(
            "--re-embed",
            help="Make all vectors anew, from the stored text, with the embedder in force.",
            rich_help_panel=VECTORS,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="List what is new, changed, unchanged, removed, and the rules of what is skipped; write nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    output: Annotated[
        Literal["text", "json"],
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="The report: text on standard error, or json.",
            rich_help_panel=OUTPUT,
        ),
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.", rich_help_panel=OUTPUT)] = False,
    index: Index = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
    offline: Offline = False,
) -> int:
    """Read files into the index.

    Run again, an unchanged file costs nothing, a changed one is replaced whole, and one that is gone stays in the index
    until --prune or --delete removes it.

    Hidden files, binaries, files over ingest.max_file_bytes and what .gitignore or .ragignore names are skipped by rule
    (-v lists them). A file that can't be read never ends the run: it is named, and the exit code is 4,
    or 1 when nothing else was there to take in.
    """
    if not (paths or delete or reset or re_embed or parents is not None):
        raise UsageError("no path: nothing to read", "name files or folders, for example: ragcli ingest .")
    if no_embed and embedder not in {None, "none"}:
        raise UsageError(f"--no-embed and --embedder {embedder}", "choose one")
    flags = {
        "models.embedder": "none" if no_embed else embedder,
        "ingest.include": given(include),
        "ingest.exclude": given(exclude),
        "ingest.hidden": hidden,
        "ingest.gitignore": gitignore,
        "ingest.workers": workers,
        "chunking.strategy": chunk_strategy,
        "chunking.size": chunk_size,
        "chunking.overlap": chunk_overlap,
        "parents.enabled": parents,
    }
    common = Common(index_file=index, settings_file=config, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    options = IngestOptions(
        tags=_tags(tags),
        name=name,
        prune=prune,
        checksum=checksum,
        dry_run=dry_run,
        delete=given(delete) or (),
        reset=reset,
        re_embed=re_embed,
    )
    session = begin(context, common, flags)
    if reset and not dry_run and not yes:
        _confirm_reset(session.index_file)
    report = _run(session, tuple(paths or ()), options)
    _tell(session, report, dry_run=dry_run, as_json=as_json or output == "json")
    return _exit_code(report)


def _exit_code(report: IngestReport) -> int:
    """0 when nothing failed; else 4 when something was done or is there, 1 when nothing is (spec C9)."""
    if not report.failed:
        return 0
    return PARTLY_DONE if report.added or report.changed or report.unchanged or report.removed else FAILED


def _tags(texts: list[str] | None) -> Mapping[str, Any]:
    if not texts:
        return {}
    from ragcli.filters import parse_tag

    return dict(parse_tag(as_text(text)) for text in texts)


def _confirm_reset(index: Path) -> None:
    """Ask before an index is emptied.

    Raises: UsageError where nobody can be asked; KeyboardInterrupt when the answer is no.
    """
    if not index.exists():
        return
    if not streams.input_is_terminal():
        raise UsageError(f"--reset would empty {index}, and nobody is here to ask", "add --yes if that is meant")
    sys.stderr.write(f"Empty the index {inert.line(str(index))}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("not confirmed: the index is as it was")


def _run(session: Session, paths: tuple[str, ...], options: IngestOptions) -> IngestReport:
    from ragcli.cli import progress
    from ragcli.ingest import ingest_paths

    stdin = streams.standard_input() if "-" in paths else None
    with progress.shown(quiet=session.common.quiet) as listen:
        return ingest_paths(
            paths,
            session.settings,
            session.index_file,
            options,
            explicit=session.explicit,
            stdin=stdin,
            listen=listen,
            tokenizer=session.tokenizer,
            models=session.model_place(listen),
        )


def _tell(session: Session, report: IngestReport, *, dry_run: bool, as_json: bool) -> None:
    """The report: JSON on standard output, or lines on standard error (a dry run's listing on standard output)."""
    for warning in report.warnings:
        session.common.warn(warning)
    for problem in report.skipped if session.common.verbose else ():
        session.common.tell(f"skipped {problem.path}: {problem.reason}")
    for problem in report.failed:
        streams.say("warning", f"{problem.path}: {problem.reason}")
    if as_json:
        streams.write(msgspec.json.encode({"schema": 1, **msgspec.to_builtins(report)}) + b"\n")
    elif dry_run:
        _list_plan(session, report)
    streams.flush()
    session.common.tell(_summary(report, dry_run=dry_run))


def _list_plan(session: Session, report: IngestReport) -> None:
    """What each file would become, one a line; the rules that skip, on standard error."""
    for state, path in report.plan:
        streams.write(f"{state:<9}  {inert.line(path)}\n")
    for problem in report.skipped:
        streams.write(f"{'skipped':<9}  {inert.line(problem.path)}  ({inert.line(problem.reason)})\n")
    for problem in report.failed:
        streams.write(f"{'failed':<9}  {inert.line(problem.path)}  ({inert.line(problem.reason)})\n")
    for rule in _rules(session.settings.ingest):
        session.common.tell(rule)


def _rules(settings: IngestSettings) -> list[str]:
    """What is skipped by rule under these settings, in words."""
    ignored = ".gitignore and .ragignore" if settings.gitignore else "nothing (.gitignore and .ragignore are off)"
    hidden = "hidden files are read" if settings.hidden else "hidden files are skipped"
    lines = [
        f"rules: {hidden}; obeyed: {ignored}",
        f"rules: skipped too: binaries, circular links, devices, files over {settings.max_file_bytes:,} bytes",
    ]
    if settings.include:
        lines.append(f"rules: only {', '.join(settings.include)}")
    if settings.exclude:
        lines.append(f"rules: never {', '.join(settings.exclude)}")
    return lines


def _summary(report: IngestReport, *, dry_run: bool) -> str:
    changes = ", ".join(
        f"{name} {count:,}"
        for name, count in (
            ("added", report.added),
            ("changed", report.changed),
            ("unchanged", report.unchanged),
            ("removed", report.removed),
        )
    )
    parts = [changes, *_counted("skipped", report.skipped), *_counted("failed", report.failed)]
    if dry_run:
        waiting = [f"{report.unembedded:,} stored chunks to embed"] if report.unembedded else []
        if report.unparented:
            waiting.append(f"parents of {counted(report.unparented, 'stored document')} to cut")
        return "; ".join(["dry run, nothing written: files " + parts[0], *parts[1:], *waiting])
    made = f"{counted(report.chunks, 'chunk')}{_vectors(report)}{_parents(report)}"
    parts.append(f"{made} in {report.seconds:.1f} s")
    return f"{'; '.join(parts)} -> {report.index}"


def _vectors(report: IngestReport) -> str:
    """`, 12 embedded, 3 reused, 4 without a vector`: what there is of these."""
    facts = (("embedded", report.embedded), ("reused", report.reused), ("without a vector", report.unembedded))
    return "".join(f", {count:,} {what}" for what, count in facts if count)


def _parents(report: IngestReport) -> str:
    """`, 12 parents, 20 parents removed`: what there is of these."""
    facts = ((report.parents, ""), (report.parents_removed, " removed"))
    return "".join(f", {counted(count, 'parent')}{what}" for count, what in facts if count)


def _counted(word: str, problems: tuple[Problem, ...]) -> list[str]:
    """`3 skipped (2 ignored, 1 binary)`, most frequent kind first; nothing when there are none."""
    if not problems:
        return []
    kinds = Counter(problem.kind for problem in problems)
    return [f"{len(problems):,} {word} ({', '.join(f'{count:,} {kind}' for kind, count in kinds.most_common())})"]
