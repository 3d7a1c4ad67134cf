"""Random rules of a kind, and what each of them says, computed without CEL and without claimctl."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

Json = dict[str, Any]
EMPTY: Json = {"metadata": {}, "spec": {}, "status": {}}


class Says(StrEnum):
    """What a rule says about a workload."""

    WANTED = "wanted"
    IDLE = "idle"
    OVER = "over"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RandomExpression:
    """A CEL expression, and the same in Python.

    ``truth`` raises LookupError or TypeError where the expression fails.
    """

    source: str
    truth: Callable[[Json], object]
    reads_status: bool = True
    parses: bool = True
    uses_self: bool = True

    @property
    def is_valid(self) -> bool:
        return self.parses and self.uses_self

    def value(self, subject: Json) -> bool | None:
        """None if the expression fails or is not true or false."""
        try:
            value = self.truth(subject)
        except (LookupError, TypeError):
            return None
        return value if isinstance(value, bool) else None


def _is_done(conditions: list[Json]) -> bool:
    return any(each["type"] == "Done" and each["status"] == "True" for each in conditions)


NOTHING = RandomExpression("", lambda _: False, reads_status=False)
"""No expression."""
ATOMS = (
    RandomExpression(
        "has(self.status.phase) && self.status.phase == 'Done'",
        lambda it: it["status"].get("phase") == "Done",
    ),
    RandomExpression("self.status.phase == 'Done'", lambda it: it["status"]["phase"] == "Done"),
    RandomExpression(
        "self.status.phase != 'Running'", lambda it: it["status"]["phase"] != "Running"
    ),
    RandomExpression("self.status.phase", lambda it: it["status"]["phase"]),
    RandomExpression("self.status.done", lambda it: it["status"]["done"]),
    RandomExpression(
        "has(self.status.conditions) && "
        "self.status.conditions.exists(c, c.type == 'Done' && c.status == 'True')",
        lambda it: _is_done(it["status"].get("conditions", [])),
    ),
    RandomExpression(
        "self.status.conditions.exists(c, c.type == 'Done' && c.status == 'True')",
        lambda it: _is_done(it["status"]["conditions"]),
    ),
    RandomExpression("!has(self.status.phase)", lambda it: "phase" not in it["status"]),
    RandomExpression("self.status.nothing.at.all", lambda it: it["status"]["nothing"]["at"]["all"]),
    RandomExpression("self.spec.paused", lambda it: it["spec"]["paused"], reads_status=False),
    RandomExpression(
        "has(self.spec.paused) && self.spec.paused",
        lambda it: it["spec"].get("paused", False),
        reads_status=False,
    ),
    RandomExpression(
        "self.spec.replicas == 0", lambda it: it["spec"]["replicas"] == 0, reads_status=False
    ),
    RandomExpression(
        "has(self.metadata.deletionTimestamp)",
        lambda it: "deletionTimestamp" in it["metadata"],
        reads_status=False,
    ),
    RandomExpression("self.status.", lambda _: None, parses=False),
    RandomExpression("false", lambda _: False, reads_status=False, uses_self=False),
    RandomExpression(
        "size(self.status.conditions) > 0", lambda it: len(it["status"]["conditions"]) > 0
    ),
)


def _not(one: RandomExpression) -> RandomExpression:
    def truth(subject: Json) -> object:
        value = one.value(subject)
        return None if value is None else not value

    return RandomExpression(f"!({one.source})", truth, one.reads_status, one.parses, one.uses_self)


def _joined(one: RandomExpression, word: str, other: RandomExpression) -> RandomExpression:
    """``and`` or ``or`` of three values: an operand that decides counts whatever the other is."""
    decides = word == "||"

    def truth(subject: Json) -> object:
        values = (one.value(subject), other.value(subject))
        if decides in values:
            return decides
        return None if None in values else not decides

    return RandomExpression(
        f"({one.source}) {word} ({other.source})",
        truth,
        one.reads_status or other.reads_status,
        one.parses and other.parses,
        one.uses_self or other.uses_self,
    )


def draw(rng: Random) -> RandomExpression:
    """An expression: none, one that fails for no object, any, or seldom one that is not valid."""
    sure = [atom for atom in ATOMS if atom.value(EMPTY) is not None]
    valid = [atom for atom in ATOMS if atom.is_valid]
    atoms = rng.choices((sure, valid, list(ATOMS)), (12, 6, 1))[0]
    one, other = rng.choice(atoms), rng.choice(atoms)
    made = (NOTHING, one, one, one, _not(one), _joined(one, "||", other), _joined(one, "&&", other))
    return rng.choice(made)


@dataclass(frozen=True, slots=True)
class RandomRule:
    """A WorkloadKind of the schedule."""

    idle: RandomExpression = NOTHING
    ended: RandomExpression = NOTHING
    children: tuple[tuple[str, str], ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether both expressions may be used: an end that is true for nothing may not."""
        return self.idle.is_valid and self.ended.is_valid and not self.ended.value(EMPTY)

    def says(self, workload: Json) -> Says:
        """What the rule says about the workload."""
        subject = EMPTY | {key: workload[key] for key in EMPTY if workload.get(key)}
        if not self.is_valid:
            return Says.UNKNOWN
        observed = subject["status"].get("observedGeneration")
        generation = subject["metadata"].get("generation", 0)
        behind = isinstance(observed, int) and observed < generation
        ended, idle = (
            False if behind and each.reads_status else each.value(subject)
            for each in (self.ended, self.idle)
        )
        if ended:
            return Says.OVER
        if ended is None or idle is None:
            return Says.UNKNOWN
        return Says.IDLE if idle else Says.WANTED
