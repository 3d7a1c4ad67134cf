"""Durations in flags, the same in every command: 30, 30s, 500ms, 5m, 1h30m. A number is seconds."""

from __future__ import annotations

import re
from typing import Any

import typer

from claimctl.text import duration

_UNITS = {"s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class Seconds(float):
    """The default of a flag, which its help shows as a duration."""

    def __str__(self) -> str:
        return duration(self)


def seconds(value: str) -> float:
    """A duration as kubectl takes it, in seconds."""
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise typer.BadParameter(f"{value!r} is not a duration like 30s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration_option(
    flag: str, help_: str, *, least: float = 0.0, most: float | None = None, hidden: bool = False
) -> Any:
    """An option that takes a duration between two numbers of seconds."""

    def parsed(value: str | float) -> float:
        # a default is a number already
        number = seconds(value) if isinstance(value, str) else float(value)
        if number < least:
            raise typer.BadParameter(f"{value!r} is too short: {least:g}s or more is expected")
        if most is not None and number > most:
            raise typer.BadParameter(f"{value!r} is too long: {most:g}s or less is expected")
        return number

    return typer.Option(flag, metavar="DURATION", parser=parsed, help=help_, hidden=hidden)
