"""The manual pages, from the commands: ``claimctl.1``, ``claimctl-get.1``, ...

The wheel of a release carries them in ``share/man/man1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from claimctl import __version__
from claimctl.cli.access import connection_flags
from claimctl.cli.main import build, examples_of, load
from claimctl.cli.registry import COMMANDS, Command, Group

EXIT_CODES = (
    ("0", "Success."),
    ("1", "The cluster or a request failed."),
    ("2", "Bad input: a flag, a file, the kubeconfig."),
    ("3", "The command succeeded and found something that needs action."),
    ("130", "Ctrl-C."),
)
VARIABLES = (
    ("KUBECONFIG", "The kubeconfig, if --kubeconfig names none."),
    ("NO_COLOR", "Print no colors, whatever its value is."),
    ("CLAIMCTL_DEBUG", "Print tracebacks of errors, unless it is empty or 0."),
)


def pages() -> dict[str, str]:
    """The text of each page, by its file name."""
    commands = {f"{entry.page}.1": _command(entry) for entry in COMMANDS}
    return {"claimctl.1": _program(), **commands}


def _program() -> str:
    made: Any = build()
    context = made.make_context("claimctl", ["x"], resilient_parsing=True)
    parts = [
        *_head("claimctl", made.help.rstrip(".")),
        *_section("SYNOPSIS", ".B claimctl\n[options] command [arguments]"),
        *_commands(),
        *_options(made, context),
        *_ends(),
        *_section("CONNECTION OPTIONS", *(_item(*each) for each in connection_flags())),
        *_section("SEE ALSO", *_see_also([each.page for each in COMMANDS])),
    ]
    return "\n".join(parts) + "\n"


def _commands() -> Iterator[str]:
    yield from _section("COMMANDS")
    for group in Group:
        yield f".SS {group}"
        for entry in COMMANDS:
            if entry.group is group:
                yield _item(f"{entry.page}(1)", entry.help)


def _command(entry: Command) -> str:
    command = load(entry)
    context = command.make_context(f"claimctl {entry.name}", [], resilient_parsing=True)
    usage = " ".join(_escaped(each) for each in command.collect_usage_pieces(context))
    paragraphs = [_text(each) for each in command.help.split("\n\n")]
    examples = examples_of(entry)
    parts = [
        *_head(entry.page, entry.help.rstrip(".")),
        *_section("SYNOPSIS", f".B claimctl {_escaped(entry.name)}\n{usage}"),
        *_section("DESCRIPTION", "\n.PP\n".join(paragraphs)),
        *_options(command, context),
        *_section("EXAMPLES", ".nf", *map(_text, examples), ".fi"),
        *_ends(),
        *_section("SEE ALSO", *_see_also(["claimctl"])),
    ]
    return "\n".join(parts) + "\n"


def _head(name: str, what: str) -> Iterator[str]:
    yield '.\\" Generated from the commands by `make release`.'
    yield f'.TH {name.upper()} 1 "" "claimctl {__version__}" "claimctl"'
    yield ".SH NAME"
    yield f"{_escaped(name)} \\- {_escaped(what[0].lower() + what[1:])}"


def _section(title: str, *lines: str) -> Iterator[str]:
    yield f".SH {title}"
    yield from lines


def _options(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options. Those that --help leaves out have a name and no explanation."""
    records = [each.get_help_record(context) for each in command.params]
    shown = [_item(*record) for record in records if record]
    yield from _section("OPTIONS", *shown)
    hidden = [", ".join(each.opts) for each in command.params if getattr(each, "hidden", False)]
    if hidden:
        yield ".PP"
        yield _text(f"Also: {', '.join(hidden)}.")


def _ends() -> Iterator[str]:
    yield from _section("EXIT STATUS", *(_item(*each) for each in EXIT_CODES))
    yield from _section("ENVIRONMENT", *(_item(*each) for each in VARIABLES))


def _see_also(pages: Sequence[str]) -> Iterator[str]:
    last = len(pages) - 1
    for number, page in enumerate(pages):
        yield f".BR {_escaped(page)} (1){',' if number < last else ''}"


def _item(term: str, text: str) -> str:
    return f".TP\n.B {_escaped(' '.join(term.split()))}\n{_text(' '.join(text.split()))}"


def _text(line: str) -> str:
    """A line of text: no control line, whatever it begins with."""
    escaped = _escaped(line)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
