"""Find a place for a pod: gates, claims, a node, and devices for unallocated claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from claimctl.embedded.components.fit import node_matches, reason_against, summary
from claimctl.embedded.components.objects import deleting, key_of, name, namespace, uid
from claimctl.embedded.components.pods import (
    PodClaim,
    allocation_of,
    ended,
    group_name,
    pod_claims,
)
from claimctl.embedded.components.scheduler.binding import Plan, PlannedClaim
from claimctl.embedded.components.scheduler.devices import Identity, Inventory
from claimctl.embedded.components.scheduler.parking import DEVICES, NODES, claim_topic, group_topic
from claimctl.embedded.runtime.component import Context
from claimctl.embedded.runtime.views import Views
from claimctl.wire.base import Object

Claims = tuple[PlannedClaim, ...]


class Wait(Exception):
    """A pod waits, without a condition or an Event, for a change of one of the topics."""

    def __init__(self, *topics: str) -> None:
        super().__init__(*topics)
        self.topics = topics


class Unschedulable(Exception):
    """No node fits. A change of one of ``topics`` might help.

    ``claims`` are the pod's claims, if nodes were looked at. ``unusable`` are those whose
    allocation some node cannot use.
    """

    def __init__(
        self,
        why: str,
        topics: tuple[str, ...],
        claims: Claims = (),
        unusable: tuple[Object, ...] = (),
    ) -> None:
        super().__init__(why)
        self.topics = topics
        self.claims = claims
        self.unusable = unusable


@dataclass
class Commitments:
    """Decisions of the scheduler that the cluster does not show yet."""

    allocating: dict[str, str] = field(default_factory=dict)
    """UIDs of claims that are being allocated, each with the UID of the pod."""
    promised: dict[Identity, str] = field(default_factory=dict)
    """Devices of allocations that are not written yet, each with the UID of the pod."""
    assumed: dict[str, str] = field(default_factory=dict)
    """UIDs of pods that are being bound, each with its node."""

    def make(self, plan: Plan) -> None:
        pod = uid(plan.pod)
        self.assumed[pod] = plan.node
        for each in plan.claims:
            if each.allocation is None:
                continue
            self.allocating[uid(each.seen)] = pod
            for result in each.allocation["devices"]["results"]:
                self.promised[result["driver"], result["pool"], result["device"]] = pod

    def keep(self, pod: str) -> None:
        """Forget a pod whose binding has ended: the cluster shows its claims now."""
        self.allocating = {each: by for each, by in self.allocating.items() if by != pod}
        self.promised = {each: by for each, by in self.promised.items() if by != pod}


class Planner:
    """Decides on the views. It writes nothing."""

    def __init__(self, context: Context, views: Views, commitments: Commitments) -> None:
        self._context = context
        self._views = views
        self._commitments = commitments
        self._inventory = Inventory(views)

    def plan(self, pod: Object) -> Plan:
        """Find a node and devices. Raises Wait or Unschedulable."""
        group = self.gate(pod)
        claims = tuple(self._claims(pod, group))
        self._check_in_process(claims)
        missing = [each.seen for each in claims if allocation_of(each.seen) is None]
        node, allocations = self._find_node(pod, claims, missing)
        found = {uid(claim): each for claim, each in zip(missing, allocations, strict=True)}
        planned = tuple(
            PlannedClaim(each.seen, each.group, found.get(uid(each.seen))) for each in claims
        )
        return Plan(pod, node, planned)

    def gate(self, pod: Object) -> Object | None:
        """The pod's PodGroup; raises Wait until the group is complete."""
        if pod["spec"].get("schedulingGates"):
            raise Wait
        plain = group_name(pod)
        if not plain or not self._context.features.scheduler_pod_groups:
            return None
        topic = group_topic(namespace(pod), plain)
        group = self._views["podgroups"].get(namespace(pod), plain)
        if group is None:
            raise Wait(topic)
        gang = (group["spec"].get("schedulingPolicy") or {}).get("gang")
        members = self._views["pods"].by("group", f"{namespace(pod)}/{plain}")
        # a pod that is being deleted still belongs to the gang
        there = [each for each in members if not ended(each)]
        if gang and len(there) < gang["minCount"]:
            raise Wait(topic)
        return group

    def _claims(self, pod: Object, group: Object | None) -> Iterator[PlannedClaim]:
        for each in pod_claims(pod, group):
            if each.claim is None:
                raise Wait
            if not each.claim:
                continue
            yield PlannedClaim(self._usable(pod, each), group if each.group else None, None)

    def _usable(self, pod: Object, wanted: PodClaim) -> Object:
        assert wanted.claim is not None
        claim = self._views["resourceclaims"].get(namespace(pod), wanted.claim)
        if claim is None or deleting(claim):
            raise Wait(claim_topic(namespace(pod), wanted.claim))
        return claim

    def _check_in_process(self, claims: Claims) -> None:
        for each in claims:
            if uid(each.seen) in self._commitments.allocating:
                shown = "/".join(key_of(each.seen))
                why = f"resource claim {shown} is in the process of being allocated"
                raise Unschedulable(why, (claim_topic(*key_of(each.seen)),))

    def _find_node(
        self, pod: Object, claims: Claims, missing: list[Object]
    ) -> tuple[str, list[Object]]:
        reasons: list[str] = []
        unusable: dict[str, Object] = {}
        for node in self._nodes():
            reason = reason_against(pod, node, self._context.features.version)
            if not reason:
                away = [each.seen for each in claims if not _reaches(each.seen, node)]
                unusable |= {uid(claim): claim for claim in away}
                reason = "resourceclaim not available on the node" if away else ""
            if not reason:
                allocations = self._inventory.allocate(missing, node, self._commitments.promised)
                if allocations is not None:
                    return name(node), allocations
                reason = "cannot allocate all claims"
            reasons.append(reason)
        topics = (NODES, DEVICES, *(claim_topic(*key_of(each.seen)) for each in claims))
        raise Unschedulable(summary(reasons), topics, claims, tuple(unusable.values()))

    def _nodes(self) -> list[Object]:
        """The nodes, those with the fewest pods first."""
        assumed = list(self._commitments.assumed.values())
        pods = self._views["pods"]
        return sorted(
            self._views["nodes"].items(),
            key=lambda node: pods.count("node", name(node)) + assumed.count(name(node)),
        )


def _reaches(claim: Object, node: Object) -> bool:
    allocation = allocation_of(claim)
    return allocation is None or node_matches(allocation.get("nodeSelector"), node)
