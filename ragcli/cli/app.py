"""The command tree, built lazily: a command's file is imported when it is called (owner of typer's classes).

Plain help without rich: rich takes longer to import than a keyword query takes to run. The order of `COMMANDS` is the
order of the help. A new command is one file with `command` and `EXAMPLES`, and one line here; a group of commands is
one file with `COMMANDS` and `EXAMPLES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ragcli.cli.common import Common, ConfigFile, Debug, Index, Offline, Quiet, Verbose
from ragcli.errors import UsageError, did_you_mean, shortened

COMMANDS = {
    "ingest": "Read files into the index; again: only what is new or changed.",
    "query": "Search the index.",
    "ask": "Answer a question from the index, citing the sources.",
    "inspect": "Look into the index: figures, documents, chunks, terms, settings.",
    "models": "Fetch, list and check the models that run here.",
}
EXAMPLES = """
Examples:
  ragcli ingest docs/                     read a folder into ./.ragcli/index.db
  ragcli query reset the torque sensor    the best five passages
  ragcli query gripper --json | jq .      the same as data
  ragcli inspect                          what is in the index

Exit codes: 0 done, 1 failure, 2 usage or config, 3 index missing or not
matching, 4 partly done, 5 a remote service failed, 130 interrupted.
"""
CONTEXT = {"help_option_names": ["-h", "--help"]}
GLOBAL = "Global options"
PROGRAM = "ragcli"
COMPLETE_VARIABLE = "_RAGCLI_COMPLETE"  # set by the shell's completion script, as click has it


def _write_options(command: Any, context: Any, formatter: Any) -> None:
    """Options under their panels, in the order of the signature; those without one are the global ones."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        panel = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
        if record := param.get_help_record(context):
            panels.setdefault(panel or GLOBAL, []).append((record[0], _without_parentheses(record[1])))
    general = panels.pop(GLOBAL, [])
    for panel, records in (*panels.items(), (GLOBAL, general)):
        if records:
            with formatter.section(panel):
                formatter.write_dl(records, col_max=28)


def _without_parentheses(text: str) -> str:
    """`[default: (5)]`, as click writes a default that stands in a settings file, as `[default: 5]`."""
    before, mark, default = text.rpartition("[default: (")
    return f"{before}[default: {default.removesuffix(')]')}]" if mark else text


class Command(TyperCommand):
    """A command whose help shows options by panel and its examples as they are written."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by panel."""
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """Write the examples without rewrapping them."""
        formatter.write(f"\n{(self.epilog or '').strip()}\n")


class _Group(TyperGroup):
    """A group whose help and whose message for a name that is no command are ours."""

    def summaries(self) -> Mapping[str, str]:
        """Each command with its line of help, in the order of the help."""
        return {name: command.short_help or "" for name, command in self.commands.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer's, with our message for a name that is no command."""
        name, known = args[0], self.summaries()
        if name in known or ctx.resilient_parsing or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise UsageError(
            f"no such command: {shortened(name)}{did_you_mean(name, known)}", f"commands: {', '.join(known)}"
        )

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries().items()))
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """Write the examples without rewrapping them."""
        formatter.write(f"\n{(self.epilog or '').strip()}\n")


class Commands(_Group):
    """The group of all commands, each built when asked for."""

    def summaries(self) -> Mapping[str, str]:
        """Every command there is."""
        return COMMANDS

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """The command of that name, its file imported now; None when there is none."""
        return _build(cmd_name) if cmd_name in COMMANDS else None


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    if wanted:
        from ragcli import __version__

        typer.echo(f"ragcli {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    *,
    index: Index = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
    offline: Offline = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Ingest a folder of documents and search it, from the shell."""
    context.obj = Common(
        index_file=index, settings_file=config, quiet=quiet, verbose=verbose, debug=debug, offline=offline
    )


def _new_typer(**options: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=CONTEXT, **options)


def _build(name: str) -> Any:
    """The command of that file, or the group of its `COMMANDS`: name to (function, line of help, examples)."""
    from importlib import import_module

    module = import_module(f"ragcli.cli.{name}")
    if commands := getattr(module, "COMMANDS", None):
        return _build_group(name, commands, module.EXAMPLES)
    single = _new_typer(add_completion=False)
    kind = getattr(module, "COMMAND_CLASS", Command)
    single.command(name, cls=kind, epilog=module.EXAMPLES, short_help=COMMANDS[name])(module.command)
    return typer.main.get_command(single)


def _build_group(name: str, commands: Mapping[str, tuple[Callable[..., int], str, str]], examples: str) -> Any:
    group = _new_typer(name=name, cls=_Group, epilog=examples, help=COMMANDS[name], add_completion=False)
    group.callback()(lambda: None)
    for each, (function, summary, epilog) in commands.items():
        group.command(each, cls=Command, epilog=epilog, short_help=summary)(function)
    return typer.main.get_command(group)


def build() -> Any:
    """The whole command tree, as a click group."""
    app = _new_typer(name=PROGRAM, cls=Commands, epilog=EXAMPLES)
    app.callback()(_root)
    return typer.main.get_command(app)


def _is_completion(environ: Mapping[str, str]) -> bool:
    """Whether the shell asks for completions, and not the user for a command."""
    return COMPLETE_VARIABLE in environ


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors of click become `UsageError`s.

    Raises: whatever the command raises.
    """
    group = build()
    try:
        if _is_completion(environ=os.environ):
            group.main(arguments, prog_name=PROGRAM)  # answers the shell and exits
        with group.make_context(PROGRAM, arguments) as context:
            return int(group.invoke(context) or 0)
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as done:  # how typer ends completion
        return int(done.code or 0)
    except typer.Abort as aborted:
        raise KeyboardInterrupt from aborted
    except typer.TyperException as error:
        from ragcli.cli import usage

        raise usage.translated(error) from error
