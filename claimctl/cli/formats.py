"""The formats of ``-o``, the same for every command.

``table`` and ``wide`` are for people, also where a command prints text; ``name`` is for pipes; the
others are for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

_EXPRESSIONS = {"jsonpath": "PATH", "custom-columns": "TITLE:PATH[,...]"}
"""The formats that have an expression behind '='."""
DATA = ("json", "yaml", *_EXPRESSIONS)
_FOR_PEOPLE = ("table", "wide")
_OTHER_NAMES = {"text": "table"}


@dataclass(frozen=True, slots=True)
class Output:
    """The value of ``-o``. ``expression`` is the part behind '='."""

    form: str
    expression: str = ""

    TABLE: ClassVar[Output]
    WIDE: ClassVar[Output]
    JSON: ClassVar[Output]
    YAML: ClassVar[Output]
    NAME: ClassVar[Output]

    @property
    def for_people(self) -> bool:
        return self.form in _FOR_PEOPLE

    @property
    def is_data(self) -> bool:
        """Whether the format shows a document."""
        return self.form in DATA

    def __str__(self) -> str:
        return f"{self.form}={self.expression}" if self.expression else self.form


Output.TABLE, Output.WIDE = Output("table"), Output("wide")
Output.JSON, Output.YAML, Output.NAME = Output("json"), Output("yaml"), Output("name")


def output_option(*forms: str) -> Any:
    """The option ``-o`` of a command that knows these formats, and those for data."""
    known = (*forms, *DATA)

    def parsed(value: Output | str) -> Output:
        return value if isinstance(value, Output) else _parsed(value, known)

    def complete(incomplete: str) -> list[str]:
        shown = (f"{each}=" if each in _EXPRESSIONS else each for each in known)
        return [each for each in shown if each.startswith(incomplete)]

    return typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help=f"Output format: {', '.join(map(_shown, known))}.",
        parser=parsed,
        autocompletion=complete,
    )


def _shown(form: str) -> str:
    return f"{form}={_EXPRESSIONS[form]}" if form in _EXPRESSIONS else form


def _parsed(value: str, known: Sequence[str]) -> Output:
    """The format that a user gave. Expressions are checked here, before anything is done."""
    form, equals, expression = value.partition("=")
    form = _OTHER_NAMES.get(form, form)
    if form not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(_shown, known))}")
    if form not in _EXPRESSIONS:
        if equals:
            raise typer.BadParameter(f"{value!r}: {form} takes nothing behind '='")
        return Output(form)
    if not expression:
        raise typer.BadParameter(f"{form} needs an expression: {_shown(form)}")
    from claimctl.cli.expressions import BadExpression, check

    try:
        check(form, expression)
    except BadExpression as error:
        raise typer.BadParameter(str(error)) from None
    return Output(form, expression)


OutputOption = Annotated[Output, output_option("table", "wide", "name")]
"""Of commands that show objects."""
FactsOption = Annotated[Output, output_option("table", "wide")]
"""Of commands whose rows are no objects."""
