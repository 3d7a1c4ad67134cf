"""One module uses what typer does not promise to keep."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

import claimctl
from claimctl.cli.durations import duration_option
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.typer_internals import PlainCommand

PRIVATE = re.compile(r"\btyper\._|from typer import _|_custom_shell_complete")


def test_no_other_module_uses_a_private_name_of_typer() -> None:
    folder = Path(claimctl.__file__).parent
    using = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if PRIVATE.search(path.read_text(encoding="utf-8"))
    }
    assert using == {"cli/typer_internals.py"}


class Fruit(StrEnum):
    APPLE = "apple"
    PEAR = "pear"


def taking(  # noqa: PLR0913 - one parameter per flag
    text: str = "none",
    maybe: str | None = None,
    many: Annotated[list[str] | None, typer.Option()] = None,
    switch: Annotated[bool, typer.Option("--switch/--no-switch")] = False,
    fruit: Fruit = Fruit.APPLE,
    fruits: Annotated[list[Fruit] | None, typer.Option()] = None,
    seconds: Annotated[float, duration_option("--seconds", "For how long.")] = 1.0,
    output: OutputOption = Output.TABLE,
    number: Annotated[int, typer.Option(max=3)] = 1,
) -> dict[str, Any]:
    return locals()


def outcome(cls: type | None, line: str) -> object:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=cls)(taking)
    command: Any = typer.main.get_command(app)
    try:
        return command(args=line.split(), standalone_mode=False)
    except typer.BadParameter as error:
        return error.format_message().replace("Value error, ", "")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--text a --maybe b --many c --many d --switch --fruit pear --seconds 2m -o json",
        "--no-switch --fruits pear --fruits apple --number 2",
        "--fruit plum",
        "--fruits plum",
        "--seconds soon",
        "--output name",
        "--output picture",
        "--number 4",
        "--number many",
    ],
)
def test_a_command_reads_what_typer_reads(line: str) -> None:
    plain = outcome(PlainCommand, line)
    assert plain == outcome(None, line)
    assert isinstance(plain, dict) == (not re.search("plum|soon|picture|number [4m]", line))
