"""How scheduler, KCM and kubelet treat a claim, by dialect; one small object each."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from claimctl.reservation.facts.snapshot import Rules
from labs.model.state import LISTED, Claim, Devices, ListEntry, World, put

DRIVER = "gpu.example.com"
OTHER_NODE = 3
"""Where a claim is allocated while the first node is closed; see ``Claim.allocated``."""


class Conditions(StrEnum):
    """Whose devices have binding conditions, for which a scheduler waits longer than claimctl's
    binding time, whatever becomes of the claim's allocation meanwhile."""

    NONE = ""
    OWN = "the claim's"
    OTHER = "another claim's"


class ModelDialect(Protocol):
    def __hash__(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def shared(self) -> bool:
        """Whether allocations serve any pod (reservedForAnyPod)."""
        ...

    @property
    def groups(self) -> bool:
        """Whether the pods share the claim through a PodGroup."""
        ...

    @property
    def kcm_keeps_unknown(self) -> bool:
        """Whether KCM cleans pods beside entries it does not know (from 1.36)."""
        ...

    @property
    def ahead(self) -> bool:
        """Whether claimctl lists pending pods before the scheduler does."""
        ...

    @property
    def late(self) -> bool:
        """Whether the driver wants one pod in the list, so that a hold stands there only while the
        last pod leaves."""
        ...

    @property
    def others(self) -> int:
        """How many pods, the last ones, are of another owner and of no group. They need a node of
        their own: another than that of a claim which was allocated for pods of the workload."""
        ...

    @property
    def conditions(self) -> Conditions: ...

    def is_other(self, pods: Sized, pod: int) -> bool: ...

    def frees(self, claim: Claim, pod: int) -> bool:
        """Whether the scheduler that sees the claim so binds the pod without writing to it."""
        ...

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        """What the scheduler puts into the list before it binds the pod.

        ``group`` is the incarnation of the pod's group that its cache shows, or -1.
        """
        ...

    def may_start(self, claim: Claim, pod: int) -> bool:
        """Whether the kubelet starts the pod."""
        ...


def finds_no_node(world: World, pod: int, dialect: ModelDialect) -> bool:
    """Whether no node takes the pod because of the claim's allocation."""
    misplaced = world.claim.allocated == 1 and dialect.is_other(world.pods, pod)
    closed = world.devices == Devices.CLOSED and world.claim.allocated != OTHER_NODE
    away = world.devices == Devices.AWAY
    return bool(world.claim.allocated and (away or misplaced or closed))


def list_pod(claim: Claim, pod: int) -> Claim:
    return claim._replace(entries=put(claim.entries, pod, ListEntry.POD))


@dataclass(frozen=True, kw_only=True)
class _Pods:
    """What pods are there."""

    others: int = 0
    conditions: Conditions = Conditions.NONE

    def is_other(self, pods: Sized, pod: int) -> bool:
        return pod >= len(pods) - self.others


@dataclass(frozen=True, kw_only=True)
class Hold(_Pods):
    """Every pod is listed before it is bound; the workload's reference stands beside them."""

    kcm_keeps_unknown: bool = True
    shared: bool = False
    groups: bool = False
    ahead: bool = False
    gates: bool = False
    """Whether the cluster serves PodGroups, which no pod uses."""
    late: bool = False

    @property
    def name(self) -> str:
        kcm = "hold" if self.kcm_keeps_unknown else "hold (KCM 1.34)"
        kcm += ", PodGroups served" if self.gates else ""
        kcm += ", one pod in the list" if self.late else ""
        return f"{kcm}, listing ahead" if self.ahead else kcm

    @property
    def rules(self) -> Rules:
        return Rules(
            "podgroup" if self.gates else "hold",
            kcm_cleans_mixed_lists=self.kcm_keeps_unknown,
            fight_limit=1_000_000,
            list_ahead=self.ahead,
            crowd=0,
            one_pod_drivers=frozenset({DRIVER} if self.late else ()),
        )

    def frees(self, claim: Claim, pod: int) -> bool:
        return claim.usable and claim.entries[pod] in LISTED

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        return list_pod(claim, pod)

    def may_start(self, claim: Claim, pod: int) -> bool:
        """A driver that wants one pod in the list is asked again and again until it finds that.

        Beside another pod it is not asked: the claim is prepared on the node. Where it is not, both
        wait for each other, with claimctl or without.
        """
        listed = claim.allocated and claim.entries[pod] in LISTED
        alone = claim.beside == (0, 0) and ListEntry.TOMBSTONE not in claim.entries
        return bool(listed and (alone or not self.late))


@dataclass(frozen=True, kw_only=True)
class Native(_Pods):
    """KEP-5194: the scheduler copies ``spec.reservedFor`` and lists no pods beside it."""

    name: str = "native"
    shared: bool = True
    groups: bool = False
    kcm_keeps_unknown: bool = True
    ahead: bool = False
    late: bool = False

    @property
    def rules(self) -> Rules:
        return Rules("native", fight_limit=1_000_000, crowd=0)

    def frees(self, claim: Claim, pod: int) -> bool:
        listed = claim.entries[pod] == ListEntry.POD or ListEntry.TOMBSTONE in claim.entries
        return claim.usable and bool(claim.holders or listed)

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        """The claim was made for the workload's first incarnation."""
        if any(claim.entries):
            return list_pod(claim, pod)
        return claim._replace(holders=1)

    def may_start(self, claim: Claim, pod: int) -> bool:
        return bool(claim.allocated)


@dataclass(frozen=True, kw_only=True)
class Grouped(_Pods):
    """KEP-5729: every pod of the workload is of one PodGroup, which schedulers and kubelets know by
    its name."""

    name: str = "podgroup"
    shared: bool = False
    groups: bool = True
    kcm_keeps_unknown: bool = True
    ahead: bool = False
    late: bool = False

    @property
    def rules(self) -> Rules:
        return Rules("podgroup", fight_limit=1_000_000, crowd=0)

    def frees(self, claim: Claim, pod: int) -> bool:
        return claim.usable and self._lists(claim, pod)

    def _lists(self, claim: Claim, pod: int) -> bool:
        alone = self.is_other(claim.entries, pod)
        return claim.entries[pod] in LISTED if alone else bool(claim.groups)

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        if self.is_other(claim.entries, pod):
            return list_pod(claim, pod)
        return claim if claim.groups else claim._replace(groups=1 << group)

    def may_start(self, claim: Claim, pod: int) -> bool:
        return bool(claim.allocated) and self._lists(claim, pod)
