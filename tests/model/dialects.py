"""How scheduler, KCM and kubelet treat a claim, by dialect; one small object each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from claimctl.reservation.snapshot import Rules
from tests.model.state import LISTED, Claim, Entry, put


class Dialect(Protocol):
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


def list_pod(claim: Claim, pod: int) -> Claim:
    return claim._replace(entries=put(claim.entries, pod, Entry.POD))


@dataclass(frozen=True)
class Hold:
    """Every pod is listed before it is bound; the workload's reference stands beside them."""

    kcm_keeps_unknown: bool = True
    shared: bool = False
    groups: bool = False
    ahead: bool = False

    @property
    def name(self) -> str:
        kcm = "hold" if self.kcm_keeps_unknown else "hold (KCM 1.34)"
        return f"{kcm}, listing ahead" if self.ahead else kcm

    @property
    def rules(self) -> Rules:
        return Rules(
            "hold",
            kcm_cleans_mixed_lists=self.kcm_keeps_unknown,
            fight_limit=1_000_000,
            list_ahead=self.ahead,
        )

    def frees(self, claim: Claim, pod: int) -> bool:
        return claim.usable and claim.entries[pod] in LISTED

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        return list_pod(claim, pod)

    def may_start(self, claim: Claim, pod: int) -> bool:
        return bool(claim.allocated and claim.entries[pod] in LISTED)


@dataclass(frozen=True)
class Native:
    """KEP-5194: the scheduler copies ``spec.reservedFor`` and lists no pods beside it."""

    name: str = "native"
    shared: bool = True
    groups: bool = False
    kcm_keeps_unknown: bool = True
    ahead: bool = False

    @property
    def rules(self) -> Rules:
        return Rules("native", fight_limit=1_000_000)

    def frees(self, claim: Claim, pod: int) -> bool:
        listed = claim.entries[pod] == Entry.POD or Entry.TOMBSTONE in claim.entries
        return claim.usable and bool(claim.holders or listed)

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        """The claim was made for the workload's first incarnation."""
        if any(claim.entries):
            return list_pod(claim, pod)
        return claim._replace(holders=1)

    def may_start(self, claim: Claim, pod: int) -> bool:
        return bool(claim.allocated)


@dataclass(frozen=True)
class Grouped:
    """KEP-5729: every pod is of one PodGroup, which schedulers and kubelets know by its name."""

    name: str = "podgroup"
    shared: bool = False
    groups: bool = True
    kcm_keeps_unknown: bool = True
    ahead: bool = False

    @property
    def rules(self) -> Rules:
        return Rules("podgroup", fight_limit=1_000_000)

    def frees(self, claim: Claim, pod: int) -> bool:
        return claim.usable and bool(claim.groups)

    def reserve(self, claim: Claim, pod: int, group: int) -> Claim:
        return claim if claim.groups else claim._replace(groups=1 << group)

    def may_start(self, claim: Claim, pod: int) -> bool:
        return bool(claim.allocated and claim.groups)
