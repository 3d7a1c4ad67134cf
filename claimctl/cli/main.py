"""The entry point of ``claimctl`` and of ``kubectl-claim`` (``kubectl claim``)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from types import ModuleType
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from claimctl.cli.color import VARIABLE as COLOR_VARIABLE
from claimctl.cli.color import When
from claimctl.cli.completion import VARIABLE
from claimctl.cli.errors import DEBUG_VARIABLE, UsageError, guarded
from claimctl.cli.registry import BY_NAME, COMMANDS, Entry

SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(typer.core.TyperGroup):
    """A group of commands. Each is a placeholder with name and help until it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        entry = BY_NAME.get(args[0])
        if entry is not None:
            command = load(entry)
            if ctx.resilient_parsing:  # a shell asks for completions
                from claimctl.cli.completing import attach

                attach(command)
            self.add_command(command, entry.name)
        return super().resolve_command(ctx, args)


def load(entry: Entry) -> Any:
    """Import a command's module and turn its function ``command`` into a click command."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    module = importlib.import_module(entry.module)
    single.command(entry.name, context_settings=SETTINGS, epilog=_epilog(module))(module.command)
    return typer.main.get_command(single)


def _epilog(module: ModuleType) -> str:
    """The end of a command's help: its examples, and the flags that are not listed."""
    examples = "\n".join(f"  {line}" for line in getattr(module, "EXAMPLES", ()))
    parts = (
        f"\b\nExamples:\n{examples}" if examples else "",
        getattr(module.command, "epilog", ""),
    )
    return "\n\n".join(filter(None, parts))


def _placeholder() -> None:
    raise NotImplementedError


def _root(
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help=f"Print tracebacks of errors, as {DEBUG_VARIABLE}=1 does. [default: off]",
        ),
    ] = False,
    color: Annotated[
        When, typer.Option("--color", help="When to print colors; NO_COLOR=1 means never.")
    ] = When.AUTO,
) -> None:
    """Reserve DRA claims for workloads, and release them when the workloads have ended."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    if color is not When.AUTO:
        os.environ[COLOR_VARIABLE] = color.value


def build() -> Callable[..., object]:
    """The command line as one callable. It imports no command."""
    app = typer.Typer(
        cls=LazyGroup, add_completion=False, rich_markup_mode=None, context_settings=SETTINGS
    )
    app.callback()(_root)
    for entry in COMMANDS:
        app.command(entry.name, help=entry.help)(_placeholder)
    return typer.main.get_command(app)


def run(arguments: Sequence[str], program: str = "claimctl") -> int:
    """Run one command line and return its exit code. No arguments mean ``--help``."""
    if VARIABLE in os.environ:
        _teach_shells()
    return guarded(
        lambda: build()(
            args=_in_order(_with_dry_run(list(arguments))) or ["--help"],
            prog_name=program,
            complete_var=VARIABLE,
            standalone_mode=False,
        )
    )


def _with_dry_run(arguments: list[str]) -> list[str]:
    """Take ``reschedule --dry-run`` for ``--dry-run=client``, as kubectl once did."""
    if "reschedule" not in arguments[:2]:
        return arguments
    return ["--dry-run=client" if each == "--dry-run" else each for each in arguments]


def _in_order(arguments: list[str]) -> list[str]:
    """Take common words where people type them.

    ``--color`` and ``--debug`` may stand after the command. ``--version`` and ``help COMMAND`` are
    other words for ``version --client`` and ``COMMAND --help``.
    """
    if arguments[:1] == ["--version"]:
        return ["version", "--client", *arguments[1:]]
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    if arguments[:1] and arguments[0] in _FLAGS_OF_COMMANDS:
        flag = arguments[0]
        raise UsageError(f"{flag}: put it after the command, as in `claimctl get {flag} ...`")
    first: list[str] = []
    rest = list(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    for index in reversed(range(end)):
        if rest[index] == "--debug" or rest[index].startswith("--color="):
            first = [rest.pop(index), *first]
        elif rest[index] == "--color":
            first = [*rest[index : index + 2], *first]
            del rest[index : index + 2]
    return first + rest


_FLAGS_OF_COMMANDS = ("-n", "--namespace", "-A", "--context", "--kubeconfig", "-o", "--output")


def _teach_shells() -> None:
    """Do what ``add_completion`` does, without its two flags: claimctl has ``completion``."""
    from typer._completion_classes import completion_init

    completion_init()


def main() -> None:
    program = PurePath(sys.argv[0]).name
    sys.exit(run(sys.argv[1:], program.replace("kubectl-", "kubectl ")))


if __name__ == "__main__":
    main()
