"""Timelines from every change of a server's objects, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from claimctl.commands.timeline.model import (
    RUNNING,
    WAITING,
    Lane,
    Mark,
    Source,
    Timeline,
    TimelineSpan,
)
from claimctl.reservation.facts.pods import TERMINAL_PHASES, claim_names
from claimctl.reservation.facts.reasons import ConditionType, ReleaseStep
from claimctl.reservation.facts.references import is_workload
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One write. ``object`` is the state before the deletion if ``deleted``."""

    at: datetime
    object: ResourceClaim | Pod | ClaimReservation
    deleted: bool = False
    actor: str = ""
    """Who wrote it, as people name it; "" if not known."""


@dataclass(slots=True)
class _Book:
    """What is known about one claim so far."""

    spans: list[TimelineSpan] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    open: dict[tuple[Lane, str, str], datetime] = field(default_factory=dict)
    """The start of what lasts now, by lane, name and state."""

    def set(self, lane: Lane, wanted: Iterable[str], at: datetime, state: str = "") -> None:
        """Of this lane, exactly the names ``wanted`` last from now on."""
        names = dict.fromkeys(wanted)
        for key in [key for key in self.open if key[0] is lane and key[1] not in names]:
            self._close(key, at)
        for name in names:
            self.open.setdefault((lane, name, state), at)

    def pod(self, name: str, state: str, at: datetime) -> None:
        """The pod has this state from now on; "" means that it does not use the claim any more."""
        for other in (WAITING, RUNNING):
            if other != state and (Lane.POD, name, other) in self.open:
                self._close((Lane.POD, name, other), at)
        if state:
            self.open.setdefault((Lane.POD, name, state), at)

    def _close(self, key: tuple[Lane, str, str], at: datetime) -> None:
        lane, name, state = key
        self.spans.append(TimelineSpan(lane, name, self.open.pop(key), at, state))

    def everything(self) -> list[TimelineSpan]:
        still = [
            TimelineSpan(lane, name, at, None, state)
            for (lane, name, state), at in self.open.items()
        ]
        return sorted([*self.spans, *still], key=lambda span: (span.start, span.lane, span.name))


@dataclass(slots=True)
class Chronicle:
    """Reads changes in order and knows the timeline of each claim. A claim that is created again
    under the same name goes on in the same timeline."""

    _books: dict[Key, _Book] = field(default_factory=dict)
    _conditions: dict[tuple[Key, str], tuple[str, str]] = field(default_factory=dict)
    """By reservation and type of condition: its last status and reason."""
    _steps: dict[Key, str] = field(default_factory=dict)
    _known: set[Key] = field(default_factory=set)
    """The claims that were ever seen themselves."""

    def read(self, changes: Iterable[ObjectChange]) -> None:
        for change in changes:
            self.add(change)

    def add(self, change: ObjectChange) -> None:
        match change.object:
            case ResourceClaim():
                self._claim(change, change.object)
            case Pod():
                self._pod(change, change.object)
            case ClaimReservation():
                self._reservation(change, change.object)

    def timelines(self, end: datetime) -> list[Timeline]:
        """The timelines of all claims up to ``end``, in the order in which the claims appeared."""
        made = []
        for key, book in self._books.items():
            spans, marks = tuple(book.everything()), tuple(book.marks)
            times = [*(span.start for span in spans), *(mark.at for mark in marks)]
            begin = min(times, default=end)
            if key in self._known:
                made.append(Timeline(*key, begin, end, spans, marks, Source.HISTORY))
        return sorted(made, key=lambda life: (life.begin, life.namespace, life.claim))

    def _book(self, namespace: str, name: str) -> _Book:
        return self._books.setdefault((namespace, name), _Book())

    def _claim(self, change: ObjectChange, claim: ResourceClaim) -> None:
        meta, at = claim.metadata, change.at
        new = meta.key not in self._known
        self._known.add(meta.key)
        book = self._book(*meta.key)
        about, by = f"ResourceClaim/{meta.name}", f" by {change.actor}" if change.actor else ""
        had = {name for lane, name, _ in book.open if lane is Lane.DEVICE}
        allocated = [] if change.deleted else devices(claim)
        if new:
            book.marks.append(Mark(at, about, "Created", f"created{by}"))
        if not had and allocated:
            text = f"{', '.join(allocated)} allocated{by}"
            book.marks.append(Mark(at, about, "Allocated", text))
        if had and not allocated:
            text = f"{', '.join(sorted(had))} freed{by}"
            book.marks.append(Mark(at, about, "Deallocated", text))
        if change.deleted:
            book.marks.append(Mark(at, about, "Deleted", f"deleted{by}"))
        book.set(Lane.DEVICE, allocated, at)
        book.set(Lane.HOLDER, [] if change.deleted else holders(claim), at)

    def _pod(self, change: ObjectChange, pod: Pod) -> None:
        for claim in claim_names(pod):
            book = self._book(pod.metadata.namespace, claim)
            state = "" if change.deleted else state_of(pod)
            book.pod(pod.metadata.name, state, change.at)

    def _reservation(self, change: ObjectChange, made: ClaimReservation) -> None:
        meta = made.metadata
        key, about = meta.key, f"ClaimReservation/{meta.name}"
        marks = self._book(meta.namespace, made.spec.resource_claim_name).marks
        if change.deleted:
            marks.append(Mark(change.at, about, "Deleted", "deleted"))
            self._steps.pop(key, None)
            for known in [known for known in self._conditions if known[0] == key]:
                del self._conditions[known]
            return
        for condition in made.status.conditions:
            if condition.type == ConditionType.READY:
                continue
            was = self._conditions.get((key, condition.type))
            self._conditions[key, condition.type] = (condition.status, condition.reason)
            if was != (condition.status, condition.reason) and not (
                was is None and condition.status == "False"
            ):
                text = condition_line(condition.type, condition.status, condition.message)
                marks.append(Mark(change.at, about, condition.reason, text))
        step = made.status.release.step if made.status.release else ""
        if step and step != self._steps.get(key, ""):
            reason = made.status.release.reason if made.status.release else ""
            marks.append(Mark(change.at, about, f"Release{step}", release_line(step, reason)))
        self._steps[key] = step


def condition_line(type_: str, status: str, message: str) -> str:
    """A condition as one line. Its message is a sentence of its own, but where it says why a claim
    is not held."""
    if not message:
        return f"{type_} is {status}"
    not_held = "not held: "
    unheld = (type_, status) == (ConditionType.RESERVED, "False")
    return f"{not_held}{message}" if unheld and not message.startswith(not_held) else message


def release_line(step: str, reason: str) -> str:
    """A step of a release as one line."""
    return f"{_STEPS.get(step, f'the release is at {step}')} ({reason})"


_STEPS: dict[str, str] = {
    ReleaseStep.INTENT: "the release begins",
    ReleaseStep.FENCED: "the release has closed the claim to new pods",
}


def devices(claim: ResourceClaim) -> list[str]:
    """The devices that the claim has, as ``pool/device``."""
    return [f"{device.pool}/{device.device}" for device in claim.devices]


def holders(claim: ResourceClaim) -> list[str]:
    """The entries of the list that are neither pods nor tombstones, as ``resource/name``."""
    return [
        f"{entry.resource}/{entry.name}"
        for entry in claim.status.reserved_for
        if is_workload(entry)
    ]


def state_of(pod: Pod) -> str:
    """Waiting, Running, or "" for a pod that has finished."""
    if pod.status.phase in TERMINAL_PHASES:
        return ""
    return RUNNING if pod.status.phase == "Running" else WAITING
