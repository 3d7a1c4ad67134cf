"""Finds the fewest requests that still lead to a difference."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from judges.differential.outcome import DifferentialFinding
from judges.differential.recorder import Sequence
from judges.differential.templates import Step

Look = Callable[[Sequence], Awaitable[DifferentialFinding | None]]
"""Plays a sequence on both servers; returns its first difference that is not allowed."""


@dataclass(slots=True)
class Shrinking:
    """Shortens a sequence until ``end`` (of ``time.monotonic``). Every try has its own
    namespace; names that begin with the sequence's name change with it."""

    look: Look
    end: float
    tries: int = 0

    async def smallest(
        self, sequence: Sequence, finding: DifferentialFinding
    ) -> DifferentialFinding:
        """The finding with as few requests before it as possible."""
        kept, best = sequence, finding
        index = len(sequence.steps) - 1
        while index > 0 and time.monotonic() < self.end:
            fewer = _without(kept, index)
            smaller = await self.look(self._renamed(fewer))
            if smaller is not None and smaller.kind == finding.kind:
                kept, best = fewer, smaller
            index -= 1
        return best

    def _renamed(self, sequence: Sequence) -> Sequence:
        self.tries += 1
        name = f"{sequence.name}x{self.tries}"
        steps = tuple(_renamed(step, sequence.name, name) for step in sequence.steps)
        return replace(sequence, name=name, steps=steps)


def _without(sequence: Sequence, index: int) -> Sequence:
    return replace(sequence, steps=(*sequence.steps[:index], *sequence.steps[index + 1 :]))


def _renamed(value: Step, old: str, new: str) -> Step:
    def walked(inner: object) -> object:
        if isinstance(inner, dict):
            return {walked(key): walked(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [walked(item) for item in inner]
        return inner.replace(old, new) if isinstance(inner, str) else inner

    renamed = walked(value)
    assert isinstance(renamed, dict)
    return renamed
