"""Mutations that change nothing which anybody can see, each with its reason (equivalent.yaml)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from labs.mutation.places import Place

FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A place without its line, and why its mutation changes nothing."""

    module: str
    function: str
    source: str
    change: str
    reason: str
    occurrence: int = 0

    def names(self, place: Place) -> bool:
        """Whether the entry is about this place."""
        return self._parts == (
            place.module,
            place.function,
            place.source,
            place.change,
            place.occurrence,
        )

    @property
    def _parts(self) -> tuple[str, str, str, str, int]:
        return self.module, self.function, self.source, self.change, self.occurrence


@cache
def equivalents() -> tuple[Equivalent, ...]:
    """All entries of the file."""
    return tuple(Equivalent(**entry) for entry in yaml.safe_load(FILE.read_text()) or ())


def reason(place: Place) -> str:
    """Why the mutation of this place changes nothing; "" if no entry says so."""
    return next((equivalent.reason for equivalent in equivalents() if equivalent.names(place)), "")
