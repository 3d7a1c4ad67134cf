"""Judge by the calls that a DRA driver got whether a device was given away while in use.

A device is in use from the moment when its driver begins to prepare it until the driver has
unprepared it. Nothing else says that for certain: a pod's object may be gone while its containers
run.

Rules:

- ``DeallocatedInUse``: a claim lost its allocation, or was removed, while it was prepared.
- ``PreparedTwice``: a device was prepared for two claims at once.
- ``AllocatedTwice``: the same, and the scheduler had allocated the device to both at once.
- ``PreparedUnallocated``: a claim was prepared that was not allocated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from kube_in_process.storage.store import Revision

FOREVER = float("inf")
ALLOCATED_TWICE = "AllocatedTwice"
"""The rule that only a scheduler can break."""
_CLAIMS = ("resource.k8s.io", "resourceclaims")


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A call of a kubelet for one claim, as answered. Times are seconds of one clock.

    Attributes:
        kind: prepare or unprepare.
        claim: the claim's UID.
        name: its namespace and name, ``namespace/name``.
        devices: what was prepared, as ``pool/device``.
        version: the claim's resourceVersion when the driver read the devices to prepare.
        error: what the driver answered; '' for success.
    """

    kind: str
    node: str
    claim: str
    name: str
    devices: tuple[str, ...]
    began: float
    ended: float
    error: str = ""
    version: int = 0

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> NodeCall:
        return cls(**{**written, "devices": tuple(written["devices"])})


@dataclass(frozen=True, slots=True)
class Use:
    """A claim that was prepared on a node from ``since`` until ``until``, as of ``version``."""

    claim: str
    name: str
    node: str
    devices: tuple[str, ...]
    version: int
    since: float
    until: float = FOREVER


@dataclass(frozen=True, slots=True)
class _Span:
    """The revisions from ``first`` until before ``end``, in which a claim was allocated."""

    first: int
    end: float = FOREVER
    ended_at: float = FOREVER

    def __contains__(self, version: int) -> bool:
        return self.first <= version < self.end

    def overlaps(self, other: _Span) -> bool:
        return max(self.first, other.first) < min(self.end, other.end)


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """A device that was given away, or used without being given."""

    rule: str
    claim: str
    device: str
    since: float
    seconds: float
    """How long it lasted; infinite if it had not ended."""

    def __str__(self) -> str:
        lasted = f"for {self.seconds:.1f} s" if self.seconds < FOREVER else "to the end"
        return f"{self.rule}: {self.device} of {self.claim}, {lasted}"


def uses_of(calls: Iterable[NodeCall]) -> list[Use]:
    """When which claim was prepared on which node.

    A kubelet may ask twice to prepare a claim, and to unprepare one that is not prepared.
    """
    done: list[Use] = []
    open_: dict[tuple[str, str], Use] = {}
    for call in sorted(calls, key=lambda each: each.ended):
        key = (call.claim, call.node)
        if call.error:
            continue
        if call.kind == "prepare" and key not in open_:
            open_[key] = Use(
                call.claim, call.name, call.node, call.devices, call.version, call.began
            )
        elif call.kind == "unprepare" and (use := open_.pop(key, None)) is not None:
            done.append(replace(use, until=call.ended))
    return [*done, *open_.values()]


def judge(calls: Sequence[NodeCall], history: Iterable[Revision]) -> list[DeviceFault]:
    """The faults, in the order of time.

    Args:
        history: the revisions of claims in order, with the times (``at``) of the calls' clock. A
            watch may report them late; whether a claim was allocated is judged by their numbers.
    """
    uses = uses_of(calls)
    allocated = _allocated(history)
    found = [
        *_given_away(uses, allocated),
        *_prepared_twice(uses, allocated),
        *_unallocated(uses, allocated),
    ]
    return sorted(found, key=lambda each: each.since)


_Spans = Mapping[str, Sequence[_Span]]


def _allocated(history: Iterable[Revision]) -> _Spans:
    """By UID of each claim, when it was allocated."""
    spans: defaultdict[str, list[_Span]] = defaultdict(list)
    begun: dict[str, _Span] = {}
    for revision in history:
        if (revision.group, revision.plural) != _CLAIMS:
            continue
        claim = revision.object()
        uid = str(claim["metadata"]["uid"])
        if revision.type != "DELETED" and claim.get("status", {}).get("allocation") is not None:
            begun.setdefault(uid, _Span(revision.number))
        elif uid in begun:
            span = replace(begun.pop(uid), end=revision.number, ended_at=revision.at)
            spans[uid].append(span)
    for uid, span in begun.items():
        spans[uid].append(span)
    return spans


def _given_away(uses: Sequence[Use], allocated: _Spans) -> Iterable[DeviceFault]:
    for use in uses:
        for span in _spans_of(use, allocated):
            if span.ended_at < use.until:
                yield _fault("DeallocatedInUse", use, span.ended_at, use.until - span.ended_at)


def _prepared_twice(uses: Sequence[Use], allocated: _Spans) -> Iterable[DeviceFault]:
    for one, two in combinations(sorted(uses, key=lambda each: each.since), 2):
        shared = set(one.devices) & set(two.devices)
        if one.claim != two.claim and shared and two.since < one.until:
            lasted = min(one.until, two.until) - two.since
            names = f"{one.name} and {two.name}"
            at_once = any(
                this.overlaps(that)
                for this in _spans_of(one, allocated)
                for that in _spans_of(two, allocated)
            )
            rule = ALLOCATED_TWICE if at_once else "PreparedTwice"
            yield DeviceFault(rule, names, min(shared), two.since, lasted)


def _spans_of(use: Use, allocated: _Spans) -> list[_Span]:
    """When the claim was allocated, as its driver saw it; at most one span."""
    return [span for span in allocated.get(use.claim, ()) if use.version in span]


def _unallocated(uses: Sequence[Use], allocated: _Spans) -> Iterable[DeviceFault]:
    for use in uses:
        if not _spans_of(use, allocated):
            yield _fault("PreparedUnallocated", use, use.since, use.until - use.since)


def _fault(rule: str, use: Use, since: float, seconds: float) -> DeviceFault:
    return DeviceFault(rule, use.name, ", ".join(use.devices), since, seconds)
