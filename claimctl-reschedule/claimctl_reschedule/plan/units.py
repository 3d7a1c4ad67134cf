"""Units: pods that move together or not at all.

Pods belong together if a claim ties them to one node, if their PodGroup is disrupted as a whole, or
if their gang would have fewer pods than it needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from claimctl.reservation.facts.pods import is_bound, is_done
from claimctl.text import counted
from claimctl.wire.claims import NodeSelector
from claimctl.wire.placement import selects
from claimctl.wire.reservations import NEVER_REALLOCATED, RESTORE
from claimctl_reschedule.plan.claims import (
    LASTING,
    AfterEviction,
    ClaimKey,
    Claims,
    KnownClaim,
    after_eviction,
    shares_group,
)
from claimctl_reschedule.plan.facts import by_name
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.observed import ActingController, Observed
from claimctl_reschedule.plan.plan import Reallocation
from claimctl_reschedule.plan.policy import Evictor, MoveHeldClaims
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.scheduling import SchedulingPod

Pods = dict[str, SchedulingPod]
"""Pods by UID."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that move together or not at all, sorted by namespace and name.

    ``id`` is empty for a pod alone. With ``close_source``, the node must be closed before the
    evictions, and ``reallocate`` names the held claims that the controller is to give up.
    """

    pods: tuple[SchedulingPod, ...]
    id: str = ""
    """Never empty if the unit closes its node or asks for claims to be given up."""
    close_source: bool = False
    reallocate: tuple[Reallocation, ...] = ()
    obstacle: Obstacle | None = None
    """Why the unit cannot be moved to any node."""
    paced: frozenset[str] = frozenset()
    """The UIDs of pods that only have the node in common with the others."""


class ClaimUnits:
    def __init__(self, observed: Observed, claims: Claims, inventory: Inventory) -> None:
        self._claims, self._inventory = claims, inventory
        self._controller, self._now = observed.controller, observed.now
        self._nodes = {node.metadata.name: node for node in observed.nodes}
        plans = (plan for plan in observed.downgrade_plans if not plan.metadata.deleting)
        self._plans = [plan for plan in plans if plan.spec.action != RESTORE]
        self._groups = {group.metadata.key: group for group in observed.pod_groups}
        self._members: dict[ClaimKey, list[SchedulingPod]] = defaultdict(list)
        for pod in sorted(observed.pods, key=by_name):
            group = shares_group(pod)
            if group is not None and is_bound(pod) and not is_done(pod):
                self._members[group].append(pod)
        self._reached = lru_cache(maxsize=None)(self._nodes_of)

    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        """The unit of a bound pod."""
        whole = evictor.move_held_claims is MoveHeldClaims.WHOLE_UNIT
        members = self._link(pod, whole=whole)
        pods = tuple(sorted(members.values(), key=by_name))
        pinned = self._pinned(members)
        obstacle = self._against(members, pinned, whole=whole)
        name = f"{pods[0].metadata.namespace}/{pods[0].metadata.name}"
        if obstacle is not None or not pinned:
            return Unit(pods, name if len(pods) > 1 else "", obstacle=obstacle)
        asked = (
            Reallocation(
                namespace=claim.key[0],
                reservation=reservation.metadata.name,
                claim=claim.name,
                claim_uid=claim.uid,
                unit=name,
                leader_since=self._controller.since,
            )
            for claim in pinned
            for reservation in claim.reservations
        )
        return Unit(pods, name, True, tuple(asked))

    # members

    def _link(self, pod: SchedulingPod, *, whole: bool) -> Pods:
        """The pods that have to leave if this one leaves. ``whole``: pods may leave with the claim
        that pins them. Otherwise one such pod is enough to keep all of them."""
        linked: Pods = {}
        waiting = [pod]
        while waiting:
            member = waiting.pop()
            if member.metadata.uid in linked:
                continue
            linked[member.metadata.uid] = member
            waiting += self._comrades(member)
            if whole:
                for claim in self._claims.of(member):
                    if self._is_pinned(claim, member, frozenset(linked)):
                        waiting += self._claims.users(claim)
        return linked

    def _comrades(self, pod: SchedulingPod) -> list[SchedulingPod]:
        """The pods of a group that cannot do without this one. Of a gang with more pods than it
        needs, the last ones by name can leave one by one."""
        key = shares_group(pod)
        group = self._groups.get(key) if key else None
        if key is None or group is None:
            return []
        members, policy = self._members[key], group.spec.scheduling_policy
        if group.spec.disrupted_as_a_whole:
            return members
        needed = members[: policy.gang.min_count] if policy and policy.gang else ()
        return members if any(member.metadata.uid == pod.metadata.uid for member in needed) else []

    # claims

    def _pinned(self, members: Pods) -> tuple[KnownClaim, ...]:
        """The claims that keep members on their node, by name."""
        uids = frozenset(members)
        pinned = {
            claim.key: claim
            for pod in members.values()
            for claim in self._claims.of(pod)
            if self._is_pinned(claim, pod, uids)
        }
        return tuple(pinned[key] for key in sorted(pinned))

    def _is_pinned(self, claim: KnownClaim, pod: SchedulingPod, leaving: frozenset[str]) -> bool:
        if after_eviction(claim, leaving, _owner_kind(pod)) not in LASTING:
            return False
        return self._reached(claim.node_selector) <= {pod.spec.node_name}

    def _nodes_of(self, selector: NodeSelector | None) -> frozenset[str]:
        """The nodes that can reach an allocation. Most selectors name one node."""
        names, known = set(_named_nodes(selector)), self._nodes
        candidates = names & known.keys() if names else known.keys()
        return frozenset(name for name in candidates if selects(selector, known[name]))

    # obstacles

    def _against(
        self, members: Pods, pinned: tuple[KnownClaim, ...], *, whole: bool
    ) -> Obstacle | None:
        """The first reason why the unit cannot move, or None."""
        for pod in sorted(members.values(), key=by_name):
            for claim in self._claims.of(pod):
                if obstacle := self._against_moving(claim):
                    return obstacle
        if not pinned:
            return None
        if not whole:
            return self._pinning(members, pinned)
        return next(filter(None, self._against_whole(members, pinned)), None)

    def _against_moving(self, claim: KnownClaim) -> Obstacle | None:
        if not claim.allocated:
            return None
        if lost := self._inventory.lost(claim):
            return Obstacle(Ground.CLAIM_UNREACHABLE, f"{lost}; the controller reallocates it")
        namespace = claim.key[0]
        scopes = (plan.spec.namespaces for plan in self._plans)
        if claim.held and any(not names or namespace in names for names in scopes):
            text = f"claim {claim.name} is held, and a DowngradePlan is active"
            return Obstacle(Ground.DOWNGRADE, text)
        return None

    def _pinning(self, members: Pods, pinned: tuple[KnownClaim, ...]) -> Obstacle:
        """Why the replacement would come back, or wait. The firmest reason wins."""
        uids = frozenset(members)
        kinds = {
            claim.name: after_eviction(claim, uids, _owner_kind(pod))
            for claim in pinned
            for pod in members.values()
            if claim in self._claims.of(pod)
        }
        firm = (item for item in kinds.items() if item[1] is not AfterEviction.MAY_RETURN)
        name, kind = next(firm, next(iter(kinds.items())))
        ground = Ground.MAY_RETURN if kind is AfterEviction.MAY_RETURN else Ground.PINNED
        return Obstacle(ground, f"claim {name} {_WHY[kind]}")

    def _against_whole(
        self, members: Pods, pinned: tuple[KnownClaim, ...]
    ) -> Iterator[Obstacle | None]:
        nodes = sorted({pod.spec.node_name for pod in members.values()})
        if len(nodes) > 1:
            text = f"its unit is on {counted(len(nodes), 'node')}: {', '.join(nodes[:3])}"
            yield Obstacle(Ground.PINNED, text)
        uids = frozenset(members)
        for claim in pinned:
            kind = after_eviction(claim, uids, "")
            if kind in (AfterEviction.GHOST, AfterEviction.FOREIGN, AfterEviction.IN_USE):
                yield Obstacle(Ground.PINNED, f"claim {claim.name} {_WHY[kind]}")
            for reservation in claim.reservations:
                if reservation.spec.reallocate_after_seconds is None:
                    name = reservation.metadata.name
                    text = f"ClaimReservation {name}: {NEVER_REALLOCATED}"
                    yield Obstacle(Ground.NEVER_REALLOCATED, text)
            if claim.reservations:
                yield against_controller(self._controller, claim, self._now)


def against_controller(
    controller: ActingController, claim: KnownClaim, now: datetime
) -> Obstacle | None:
    """Why the controller would not give a held claim up as soon as its pods are gone. Pods of the
    claim may have vanished before a new leader watched. Then it waits for the grace."""
    if controller.since is None:
        return Obstacle(Ground.CONTROLLER_AWAY, controller.detail)
    seconds = max(reservation.spec.fixed_grace_seconds for reservation in claim.reservations)
    end, created = (
        controller.since + timedelta(seconds=seconds),
        claim.claim.metadata.creation_timestamp,
    )
    if now >= end or (created is not None and created > controller.since):
        return None
    until = end.isoformat(timespec="seconds")
    text = f"the controller leads since a moment, and gives claim {claim.name} up only at {until}"
    return Obstacle(Ground.CONTROLLER_IS_NEW, text)


_WHY = {
    AfterEviction.IN_USE: "is used by other pods on this node",
    AfterEviction.GHOST: "may be used by a pod that vanished",
    AfterEviction.HELD: "is held, and its devices are on this node",
    AfterEviction.FOREIGN: "is held by something that claimctl cannot ask to give it up",
    AfterEviction.WHILE_OPEN: "is still allocated when the replacement is made, so it comes back",
    AfterEviction.MAY_RETURN: "may still be allocated when the replacement is made",
}


def _owner_kind(pod: SchedulingPod) -> str:
    owner = pod.metadata.controller()
    return owner.kind if owner else ""


def _named_nodes(selector: NodeSelector | None) -> Iterator[str]:
    """The names that the selector demands; nothing if it demands none, or not in each term."""
    terms = (selector.node_selector_terms if selector else None) or ()
    demands = [
        [f for f in term.match_fields or () if f.key == "metadata.name" and f.operator == "In"][:1]
        for term in terms
    ]
    if all(demands):
        yield from (name for (demand,) in demands for name in demand.values or ())
