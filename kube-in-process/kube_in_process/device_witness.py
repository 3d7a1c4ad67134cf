"""The witness of devices: it judges by the calls that a DRA driver got, and by the history.

A device is in use from the moment when its driver begins to prepare it until the driver has
unprepared it. Nothing else says that for certain: a pod's object may be gone while its containers
run.

Rules:

- ``DeallocatedInUse``: a claim lost its allocation, or was removed, while it was prepared.
- ``PreparedTwice``: a device was prepared for two claims at once.
- ``AllocatedTwice``: the same, and the scheduler had allocated the device to both at once.
- ``PreparedUnallocated``: a claim was prepared that was not allocated.
- ``RanUnprepared``: a container ran on a node while a claim of its pod was not prepared there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

import msgspec

from kube_in_process.cluster import Cluster
from kube_in_process.containers import FOREVER, PODS, ContainerRun, runs_of
from kube_in_process.habits.call import Call
from kube_in_process.habits.habit import PREPARE, UNPREPARE
from kube_in_process.storage.store import Revision

ALLOCATED_TWICE = "AllocatedTwice"
DEALLOCATED_IN_USE = "DeallocatedInUse"
RAN_UNPREPARED = "RanUnprepared"
OF_KUBERNETES = {ALLOCATED_TWICE: "the scheduler's", RAN_UNPREPARED: "the kubelet's"}
"""The rules that no user of claims can break, with whose faults they are."""
_CLAIMS = ("resource.k8s.io", "resourceclaims")


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


Deaths = Mapping[str, Sequence[float]]
"""By node: when it lost power, so that all of its containers were gone at once."""
NONE: Deaths = MappingProxyType({})


def uses_of(calls: Iterable[Call], deaths: Deaths = NONE) -> list[Use]:
    """When which claim was prepared on which node.

    A kubelet may ask twice to prepare a claim, and to unprepare one that is not prepared. Nothing
    is in use on a node that has died, until it is prepared again.
    """
    done: list[Use] = []
    open_: dict[tuple[str, str], Use] = {}
    died = sorted((at, node) for node, times in deaths.items() for at in times)
    for call in sorted(calls, key=lambda call: call.time):
        while died and died[0][0] <= call.asked:
            done += _ended(open_, *died.pop(0))
        key = (call.uid, call.node)
        if call.error:
            continue
        if call.verb == PREPARE and key not in open_:
            open_[key] = Use(
                call.uid, call.claim, call.node, call.devices, call.version, call.asked
            )
        elif call.verb == UNPREPARE and (use := open_.pop(key, None)) is not None:
            done.append(replace(use, until=call.time))
    for at, node in died:
        done += _ended(open_, at, node)
    return [*done, *open_.values()]


def _ended(open_: dict[tuple[str, str], Use], at: float, node: str) -> list[Use]:
    """Take out the uses that end with a node."""
    keys = [key for key, use in open_.items() if use.node == node and use.since < at]
    return [replace(open_.pop(key), until=at) for key in keys]


def judge(
    calls: Sequence[Call],
    history: Iterable[Revision],
    deaths: Deaths = NONE,
    driver: str = "",
) -> list[DeviceFault]:
    """The faults, in the order of time.

    Args:
        calls: what one driver was asked, in seconds of the clock on the wall.
        history: the revisions of claims and pods in order, with the times (``at``) of the same
            clock. A watch may report them late; whether a claim was allocated is judged by their
            numbers.
        driver: the name of the driver; '' if the cluster has no other one. Two drivers may have
            pools and devices of the same names, and a claim may have devices of both.
    """
    uses, revisions = uses_of(calls, deaths), list(history)
    allocated = _allocated(revisions)
    faults = [
        *_given_away(uses, allocated),
        *_prepared_twice(uses, allocated),
        *_unallocated(uses, allocated),
        *_unprepared(uses, runs_of(revisions, deaths), _with_devices(revisions, driver)),
    ]
    return sorted(faults, key=lambda fault: fault.since)


def judge_cluster(cluster: Cluster) -> list[DeviceFault]:
    """The faults in the history of a cluster in a process, by the calls of each of its drivers."""
    shift = cluster.clock.now().timestamp() - cluster.clock.monotonic()
    history = [
        msgspec.structs.replace(revision, at=revision.at + shift)
        for revision in cluster.history()
        if (revision.group, revision.plural) in (_CLAIMS, PODS)
    ]
    deaths = {
        node: [time + shift for time in times] for node, times in cluster.kubelet.deaths.items()
    }
    faults: list[DeviceFault] = []
    for driver in cluster.drivers.values():
        calls = [
            replace(call, asked=call.asked + shift, time=call.time + shift) for call in driver.calls
        ]
        faults += judge(calls, history, deaths, driver.name)
    return sorted(faults, key=lambda fault: fault.since)


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
                yield _fault(DEALLOCATED_IN_USE, use, span.ended_at, use.until - span.ended_at)


def _prepared_twice(uses: Sequence[Use], allocated: _Spans) -> Iterable[DeviceFault]:
    for one, two in combinations(sorted(uses, key=lambda use: use.since), 2):
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


def _with_devices(history: Iterable[Revision], driver: str) -> set[str]:
    """The claims that ever had a device of the driver, as namespace/name. It prepares no others."""
    claims = set()
    for revision in history:
        if (revision.group, revision.plural) == _CLAIMS:
            allocation = (revision.object().get("status") or {}).get("allocation") or {}
            results = (allocation.get("devices") or {}).get("results") or ()
            if any(not driver or result["driver"] == driver for result in results):
                claims.add(f"{revision.namespace}/{revision.name}")
    return claims


def _unprepared(
    uses: Sequence[Use], runs: Iterable[ContainerRun], devices: Collection[str]
) -> Iterable[DeviceFault]:
    """The containers that ran beside a claim while it was not prepared."""
    for run in runs:
        for claim in run.claims:
            if claim not in devices:
                continue
            mine = [use for use in uses if (use.name, use.node) == (claim, run.node)]
            for since, until in _gaps(run, mine):
                device = next((", ".join(use.devices) for use in mine[:1]), "a device")
                yield DeviceFault(
                    RAN_UNPREPARED, f"{claim} in {run.pod}", device, since, until - since
                )


def _gaps(run: ContainerRun, uses: Iterable[Use]) -> Iterable[tuple[float, float]]:
    """The times of a run that no use covers."""
    begin = run.since
    for use in sorted(uses, key=lambda use: use.since):
        if use.until <= begin:
            continue
        if use.since > begin and begin < run.until:
            yield begin, min(use.since, run.until)
        begin = use.until
    if begin < run.until:
        yield begin, run.until


def _fault(rule: str, use: Use, since: float, seconds: float) -> DeviceFault:
    return DeviceFault(rule, use.name, ", ".join(use.devices), since, seconds)
