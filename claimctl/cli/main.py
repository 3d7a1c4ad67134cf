"""The entry point of ``claimctl`` and of ``kubectl-claim`` (``kubectl claim``).

``run`` brings the arguments into the form that click reads (``_for_click``). ``LazyGroup`` finds
the command in the ``registry``, and only then imports its module (``load``).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from claimctl.cli import typer_internals
from claimctl.cli.access import connection_flags
from claimctl.cli.color import VARIABLE as COLOR_VARIABLE
from claimctl.cli.color import When
from claimctl.cli.completion import VARIABLE, complete_names
from claimctl.cli.errors import DEBUG_VARIABLE, UsageError, guarded
from claimctl.cli.extensions import extensions, required
from claimctl.cli.registry import (
    ALIASES,
    FAMILIES,
    Command,
    Group,
    entry_of,
    meant_by,
    parts_of,
    top_level,
)

SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(typer_internals.ReadsPlainly, typer.core.TyperGroup):
    """A group of commands. Each is a placeholder with name and help until it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        entry = entry_of(args)
        if entry is None:
            return self._without_command(ctx, args)
        completing = ctx.resilient_parsing  # a shell asks for completions
        # a command without a module is an extension's; one that is not installed completes nothing
        if completing and not (entry.module or entry.name.split()[0] in extensions()):
            return super().resolve_command(ctx, args)
        command = load(entry)
        if completing:
            complete_names(command)
        words = 1 if args[0] in ALIASES else len(entry.name.split())
        return entry.name, command, args[words:]

    def _without_command(self, ctx: Any, args: list[str]) -> Any:
        """What the first word stands for, if it begins no command."""
        word = args[0]
        if word in FAMILIES:
            return word, _family(word), args[1:]
        meant = meant_by(word)
        if meant and not ctx.resilient_parsing:
            ctx.fail(f"No such command {word!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """The commands in their groups, then the flags that most of them have."""
        for group in Group:
            rows = [(word, help_) for kind, word, help_ in top_level() if kind is group]
            with formatter.section(group.value):
                formatter.write_dl(rows)
        with formatter.section("Connection flags, as in kubectl, after the command"):
            formatter.write_dl(connection_flags())
        for alias, name in ALIASES.items():
            formatter.write(f"\nThe command `{alias}` is `{name}`.\n")


def _family(word: str) -> Any:
    """What stands for a first word alone: it lists the commands that begin with it."""
    app = typer.Typer(
        add_completion=False, rich_markup_mode=None, context_settings=SETTINGS, no_args_is_help=True
    )
    app.callback(help=FAMILIES[word])(lambda: None)
    for entry in parts_of(word):
        app.command(entry.name.split()[1], help=entry.help)(_placeholder)
    return typer.main.get_command(app)


def load(entry: Command) -> Any:
    """Import a command's module and turn its function into a click command."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = getattr(_module(entry), entry.function)
    single.command(entry.name, cls=typer_internals.PlainCommand, context_settings=SETTINGS)(
        function
    )
    command: Any = typer.main.get_command(single)
    examples = "\n".join(f"  {line}" for line in examples_of(entry))
    connects = any(flag.name == "kubeconfig" and flag.hidden for flag in command.params)
    hint = "\n\nConnection flags, as in kubectl: see `claimctl --help`." if connects else ""
    command.epilog = f"\b\nExamples:\n{examples}{hint}"
    return command


def examples_of(entry: Command) -> tuple[str, ...]:
    """The examples of a command, from those of all commands of its module."""
    lines = _module(entry).EXAMPLES
    return tuple(
        line for line in lines if entry_of(line.partition("claimctl ")[2].split()) is entry
    )


def _module(entry: Command) -> Any:
    """The module of a command; UsageError if an extension has it that is not installed."""
    name = entry.name
    return importlib.import_module(entry.module or required(name.split()[0]).commands[name])


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
    for _, word, help_ in top_level():
        app.command(word, help=help_)(_placeholder)
    return typer.main.get_command(app)


def run(arguments: Sequence[str], program: str = "claimctl") -> int:
    """Run one command line and return its exit code. No arguments mean ``--help``."""
    if VARIABLE in os.environ:
        typer_internals.answer_shells()
    return guarded(
        lambda: build()(
            args=_for_click(list(arguments)) or ["--help"],
            prog_name=program,
            complete_var=VARIABLE,
            standalone_mode=False,
        )
    )


def _for_click(arguments: list[str]) -> list[str]:
    """The arguments as click reads them; UsageError for flags that people know from kubectl."""
    arguments = _with_dry_run(arguments)
    if (usual := _in_usual_words(arguments)) is not None:
        return usual
    _refuse(arguments)
    return _with_global_flags_first(arguments)


def _with_dry_run(arguments: list[str]) -> list[str]:
    """Take ``reschedule --dry-run`` for ``--dry-run=client``, as kubectl once did."""
    if "reschedule" not in arguments[:2]:
        return arguments
    return ["--dry-run=client" if argument == "--dry-run" else argument for argument in arguments]


def _in_usual_words(arguments: list[str]) -> list[str] | None:
    """Take ``--version`` for ``version --client``, and ``help COMMAND`` for ``COMMAND --help``.

    The first word of a family of commands asks for help, if it stands alone. None for any other
    command line.
    """
    match arguments:
        case ["--version", *rest]:
            return ["version", "--client", *rest]
        case ["help", *rest]:
            return [*rest, "--help"]
        case [word] if word in FAMILIES:
            return [word, "--help"]
    return None


_VERBOSITY = re.compile(r"-v=?[0-9]+|--v=[0-9]+")
"""kubectl's flag for the level of its log."""
_FLAGS_OF_COMMANDS = ("-n", "--namespace", "-A", "--context", "--kubeconfig", "-o", "--output")


def _refuse(arguments: list[str]) -> None:
    """Raise UsageError for a flag of a command before it, and for kubectl's log levels."""
    if arguments and arguments[0] in _FLAGS_OF_COMMANDS:
        flag = arguments[0]
        raise UsageError(f"{flag}: put it after the command, as in `claimctl get {flag} ...`")
    verbose = next(filter(_VERBOSITY.fullmatch, arguments), "")
    if verbose:
        raise UsageError(f"{verbose}: there are no levels; --debug prints tracebacks of errors")


def _with_global_flags_first(arguments: list[str]) -> list[str]:
    """Let ``--color`` and ``--debug`` stand after the command, up to a ``--``."""
    first, rest = list[str](), list[str]()
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += (word, *words)
        elif word == "--debug" or word.startswith("--color="):
            first.append(word)
        elif word == "--color":
            first += (word, *islice(words, 1))
        else:
            rest.append(word)
    return first + rest


def main() -> None:
    program = PurePath(sys.argv[0]).name
    sys.exit(run(sys.argv[1:], program.replace("kubectl-", "kubectl ")))
