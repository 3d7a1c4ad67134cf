"""The formats of ``-o``, the same for every command.

``table`` and ``wide`` are for people, also where a command prints text; ``name`` is for pipes;
``json`` and ``yaml`` are for programs; the others are pictures.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Output(StrEnum):
    """The value of ``-o``."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    HTML = "html"

    @property
    def for_people(self) -> bool:
        return self in (Output.TABLE, Output.WIDE)

    @property
    def is_data(self) -> bool:
        """Whether the format shows a document."""
        return self in (Output.JSON, Output.YAML)


def output_option(*forms: str) -> Any:
    """The option ``-o`` of a command that knows these formats, and those for data."""
    known = (*forms, "json", "yaml")

    def parsed(value: str) -> Output:
        if value not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}")
        return Output(value)

    def complete(incomplete: str) -> list[str]:
        return [form for form in known if form.startswith(incomplete)]

    return typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help=f"Output format: {', '.join(known)}.",
        parser=parsed,
        autocompletion=complete,
    )


OutputOption = Annotated[Output, output_option("table", "wide", "name")]
"""Of commands that show objects."""
FactsOption = Annotated[Output, output_option("table", "wide")]
"""Of commands whose rows are no objects."""
