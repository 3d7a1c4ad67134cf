"""Whose annotation counts: that of an object itself, or that of an object above it.

The controllers of some kinds copy the annotations of an object to the objects that they make for
it, and do not take all copies back when the annotation goes. So a copy must not make a hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An object above another: its controller, the controller of that, and so on.

    It is of a kind whose annotations claimctl looks at.
    """

    group: str
    kind: str
    name: str
    uid: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    copies: bool = False
    """Whether the controller of its kind copies annotations to what it makes."""
    seen: bool = True
    """Whether the object was found. A cache may show it a moment later than what it made."""
    problem: str = ""
    """Why objects of its kind cannot be read; '' if they can."""
    holds: bool = False
    """Whether a ClaimReservation that its annotation made is left."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def decides(self, annotation: str) -> bool:
        """Whether this annotation is of no effect on the objects below."""
        readable = self.seen and not self.problem
        return readable and (self.copies or annotation in self.annotations)


class AnnotationStanding(Enum):
    """Whether the annotation of an object counts."""

    OWN = auto()
    """It does."""
    ABOVE = auto()
    """It does not: an object above has the annotation, or had it when it was copied."""
    UNREAD = auto()
    """It does, although an object above may have it, too: that one cannot be read, and so it can
    hold nothing."""
    OPEN = auto()
    """It is not known yet. Whatever is held stays, and nothing else is held."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who decides about an object: it or ``ancestor``."""

    standing: AnnotationStanding = AnnotationStanding.OWN
    ancestor: Ancestor | None = None
    """The object that decides; or, for UNREAD, the one that cannot be read."""


OWN = Authority()


def who_decides(annotation: str, ancestors: Iterable[Ancestor]) -> Authority:
    """Whether an annotation counts on an object.

    Args:
        ancestors: the objects above, the nearest first.
    """
    above = tuple(ancestors)
    if not all(ancestor.seen for ancestor in above):
        return Authority(AnnotationStanding.OPEN)
    # the highest one: the annotations of those below it do not count either
    if deciding := [ancestor for ancestor in above if ancestor.decides(annotation)]:
        return Authority(AnnotationStanding.ABOVE, deciding[-1])
    unread = [ancestor for ancestor in above if ancestor.problem]
    if any(ancestor.holds for ancestor in unread):
        return Authority(AnnotationStanding.OPEN)
    return Authority(AnnotationStanding.UNREAD, unread[0]) if unread else OWN


def describe_authority(authority: Authority, annotation: str) -> str:
    """What becomes of the annotation of an object, as a sentence; '' if it simply counts."""
    ancestor = authority.ancestor
    if ancestor is None:
        return ""
    if authority.standing is AnnotationStanding.UNREAD:
        return f"{ancestor}, to which it belongs, may have {annotation}, too: {ancestor.problem}"
    if annotation in ancestor.annotations:
        return f"{annotation} does not count here: {ancestor}, to which it belongs, has it, too"
    text = f"{annotation} does not count here: it may be a copy, because the controller of "
    return f"{text}{ancestor}, to which it belongs, copies annotations"
