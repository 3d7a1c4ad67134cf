"""The memory of this process about a claim, as far as decisions use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from claimctl.reservation.facts.devices import DeviceKey
from claimctl.wire.reservations import ForceDeletedPod


@dataclass(frozen=True, slots=True)
class Openings:
    """How long the claim has been closed to pods (see ``users.blockers``), in seconds.

    Each age is the time since this process first saw a version of the claim without the entry. It
    is inf if this process saw all versions and none had the entry.
    """

    watched_age: float = inf
    """For how long this process has seen every version of the claim; inf if it saw the first."""
    group_age: float = inf
    """Age without an entry of any PodGroup."""
    group_ages: Mapping[str, float] = field(default_factory=dict)
    """By name of a PodGroup that was listed: age without its entry."""
    holder_age: float = inf
    """Age without an entry that is no pod."""
    entry_age: Mapping[str, float] = field(default_factory=dict)
    """By UID of a pod that was listed: age without the pod's own entry."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What listing ahead needs to know about pods and their entries. Ages are in seconds."""

    claim_age: float = 0.0
    """For how long this process has seen every version of the claim; inf if it saw the first."""
    pod_age: Mapping[str, float] = field(default_factory=dict)
    """By UID of a pending pod: the time since a watch event showed it as one that a scheduler may
    schedule. Pods that a LIST showed first are not here."""
    entry_age: Mapping[str, float] = field(default_factory=dict)
    """By UID of a pod: the time since its own entry was first seen in the list. A removed entry
    stays known."""


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """What is known of the kubelet of a ghost's node, by this process. Ages are seconds."""

    renewals: tuple[float, ...] = ()
    """The last two renewals of the node's Lease, the earlier first. Each age counts from a read
    that did not show the renewal yet, so the renewal is no older than that."""
    start_age: float | None = None
    """Time since the kubelet may have been started, after the pod vanished; None if it was not."""
    ended: bool = False
    """Whether the signs have shown once that the kubelet has ended the pod."""
    renewal_seconds: float = 10.0
    """How often the kubelet renews the Lease."""
    missing_age: float | None = None
    """Time for which the node has had no Lease that can be read; None if it has one."""
    away: tuple[str, ...] = ()
    """The drivers of the claim's devices that have no ResourceSlice on the node any more."""
    stood: tuple[float, float] | None = None
    """The first and the last look of those, one after the other, that showed slices of all these
    drivers on the node. None if no device of the claim belongs to the node."""
    returned: bool = False
    """Whether an earlier look showed no slices of one of them. A kubelet that was started while it
    was away deleted none."""


@dataclass(frozen=True, slots=True)
class SeenGhost:
    """A ghost, and what this process knows of it."""

    pod: ForceDeletedPod
    age: float = 0.0
    """Seconds since this process first knew of it."""
    signs: SignsOfLife | None = None
    """The signs of life of its kubelet; None if its node was not looked at."""
    gone_by: str = ""
    """A version of the cluster at which its pods were gone; '' if unknown."""
    once_recorded: bool = False
    """Whether this process has seen it in a status."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of this process. Ages are seconds on its monotonic clock."""

    version_age: float = 0.0
    """Time since this process first saw the claim's present resourceVersion."""
    allocated_age: float = inf
    """Time since this process first saw the claim's present allocation."""
    deleting_age: float = 0.0
    """Time since this process first saw the claim's deletionTimestamp."""
    openings: Openings = Openings()
    arrivals: Arrivals = Arrivals()
    blind_age: float | None = None
    """Time since the last LIST of all pods, if the present allocation may be older: a pod may have
    used it and have vanished before that, and nothing tells whether the pod was done. None if none
    can have vanished so, or if an earlier leader has put all that did on record."""
    unnoticed_age: float = 0.0
    """For a claim whose pods are listed one by one: time since a pod may last have been listed and
    have vanished unnoticed. inf if this process noted every pod that the allocation listed."""
    dead_age: Mapping[str, float] = field(default_factory=dict)
    """By UID of a listed pod: time since it was first seen gone or done."""
    unstarted_age: Mapping[str, float] = field(default_factory=dict)
    """By UID of a bound pod that has not started: time since it was first seen so."""
    suspicion_left: float | None = None
    """Seconds until the driver counts as one that refuses a claim with a hold, because the claim's
    only pod does not start beside it; None if no pod waits so."""
    evicting: bool = False
    """Whether a pod was evicted because of a taint of a device of the present allocation."""
    gone_age: Mapping[DeviceKey, float] = field(default_factory=dict)
    """By device of the present allocation: time since its pool was first seen without it."""
    history_complete: bool = False
    """Whether this process has watched the claim without a gap since it was allocated, so it knows
    every pod ever listed."""
    done_pods: frozenset[str] = frozenset()
    """UIDs of listed pods that are gone and that this process saw done before."""
    deallocated: bool = False
    """Whether this process deallocated the claim, by the write of its present version."""
    unchangeable_left: float = 0.0
    """Time for which the claim is not written: the API server refuses every change of it."""
    repeated_writes: int = 0
    """How often the same list was written lately and undone."""
