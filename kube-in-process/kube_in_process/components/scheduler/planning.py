"""Find a place for a pod: gates, claims, a node, and devices for unallocated claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kube_in_process.components.fit import node_matches, summary
from kube_in_process.components.objects import deleting, key_of, name, namespace, uid
from kube_in_process.components.pods import (
    PodClaim,
    allocation_of,
    ended,
    group_name,
    is_group,
    pod_claims,
    reserved_for,
)
from kube_in_process.components.rooms import Asked
from kube_in_process.components.scheduler.binding import Plan, PlannedClaim
from kube_in_process.components.scheduler.devices import Identity, Inventory
from kube_in_process.components.scheduler.filters import Filters, Refusal
from kube_in_process.components.scheduler.parking import (
    DEVICES,
    NODES,
    VOLUMES,
    claim_topic,
    group_topic,
)
from kube_in_process.components.scheduler.readiness import is_given_up
from kube_in_process.components.scheduler.rooms import Rooms, Scene
from kube_in_process.components.scheduler.scoring import scores
from kube_in_process.components.scheduler.volumes import PodVolumes
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.views import Views

Claims = tuple[PlannedClaim, ...]
NOT_REACHED = "resourceclaim not available on the node"
NO_DEVICES = "cannot allocate all claims"
MAPPED = "node allocatable resource claim {} has a mapped device and cannot be shared across pods"


class Wait(Exception):
    """A pod waits, without a condition or an Event, for a change of one of the topics."""

    def __init__(self, *topics: str) -> None:
        super().__init__(*topics)
        self.topics = topics


class Unschedulable(Exception):
    """No node fits. A change of one of ``topics`` might help.

    ``claims`` are the pod's claims, if nodes were looked at. ``unusable`` are those whose
    allocation some node cannot use. ``search`` is the search that
    found no node.
    """

    def __init__(
        self,
        why: str,
        topics: tuple[str, ...],
        claims: Claims = (),
        unusable: tuple[Object, ...] = (),
        search: Search | None = None,
    ) -> None:
        super().__init__(why)
        self.topics = topics
        self.claims = claims
        self.unusable = unusable
        self.search = search


@dataclass(frozen=True, slots=True)
class Search:
    """A search among nodes that found none: what preemption starts from."""

    filters: Filters
    refusals: Mapping[str, Refusal]


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
        for claim in plan.claims:
            if claim.allocation is None:
                continue
            self.allocating[uid(claim.seen)] = pod
            for result in claim.allocation["devices"]["results"]:
                self.promised[result["driver"], result["pool"], result["device"]] = pod

    def keep(self, pod: str) -> None:
        """Forget a pod whose binding has ended: the cluster shows its claims now."""
        self.allocating = {claim: by for claim, by in self.allocating.items() if by != pod}
        self.promised = {claim: by for claim, by in self.promised.items() if by != pod}


class Planner:
    """Decides on the views. It writes nothing."""

    def __init__(self, context: Context, views: Views, commitments: Commitments) -> None:
        self._context = context
        self._views = views
        self._commitments = commitments
        self._inventory = Inventory(views)
        self.rooms = Rooms(views["pods"])

    def plan(self, pod: Object) -> Plan:
        """Find a node and devices. Raises Wait, NoVolumes or Unschedulable."""
        group = self.gate(pod)
        claims = tuple(self._claims(pod, group))
        volumes = PodVolumes.of(pod, self._views)
        self._check_in_process(claims)
        missing = [claim.seen for claim in claims if allocation_of(claim.seen) is None]
        node, allocations = self._find_node(pod, claims, missing, volumes)
        by_claim = {
            uid(claim): allocation for claim, allocation in zip(missing, allocations, strict=True)
        }
        planned = tuple(
            PlannedClaim(claim.seen, claim.group, by_claim.get(uid(claim.seen))) for claim in claims
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
        if gang:
            members = self._views["pods"].by("group", f"{namespace(pod)}/{plain}")
            # a pod that is being deleted still belongs to the gang
            there = [member for member in members if not ended(member)]
            if len(there) < gang["minCount"]:
                raise Wait(topic)
        return group

    def _claims(self, pod: Object, group: Object | None) -> Iterator[PlannedClaim]:
        for pod_claim in pod_claims(pod, group):
            if pod_claim.claim is None:
                raise Wait
            if not pod_claim.claim:
                continue
            yield PlannedClaim(
                self._usable(pod, pod_claim), group if pod_claim.group else None, None
            )

    def _usable(self, pod: Object, wanted: PodClaim) -> Object:
        assert wanted.claim is not None
        claim = self._views["resourceclaims"].get(namespace(pod), wanted.claim)
        if claim is None or deleting(claim):
            raise Wait(claim_topic(namespace(pod), wanted.claim))
        return claim

    def _check_in_process(self, claims: Claims) -> None:
        for claim in claims:
            if uid(claim.seen) in self._commitments.allocating:
                shown = "/".join(key_of(claim.seen))
                why = f"resource claim {shown} is in the process of being allocated"
                raise Unschedulable(why, (claim_topic(*key_of(claim.seen)),))

    def _find_node(
        self, pod: Object, claims: Claims, missing: list[Object], volumes: PodVolumes | None
    ) -> tuple[str, list[Object]]:
        asked = Asked.of(pod)
        scene = self.rooms.scene(self._views["nodes"].items(), pod)
        version = self._context.features.version
        filters = Filters(asked, scene, self._views, version, volumes)
        refusals: dict[str, Refusal] = {}
        now = self._context.clock.now()
        given_up = [claim.seen for claim in claims if is_given_up(claim.seen, now)]
        unusable: dict[str, Object] = {}
        taken = [claim.seen for claim in claims if self._is_taken(pod, claim.seen)]
        fitting: list[Object] = []
        for node in scene.nodes:
            refusal = filters.check(node)
            if refusal is None:
                away = [claim.seen for claim in claims if not _reaches(claim.seen, node)]
                away += given_up
                unusable |= {uid(claim): claim for claim in away}
                refusal = Refusal((NOT_REACHED,)) if away else None
            if refusal is None and taken:
                refusal = Refusal((MAPPED.format(name(taken[0])),))
            if refusal is None:
                fitting.append(node)
            else:
                refusals[name(node)] = refusal
        for node in self._best_first(asked, fitting, scene):
            allocations = self._inventory.allocate(missing, node, self._commitments.promised)
            if allocations is not None:
                return name(node), allocations
            refusals[name(node)] = Refusal((NO_DEVICES,))
        search = Search(filters, refusals)
        why = summary(reason for refusal in refusals.values() for reason in refusal.reasons)
        topics = _topics(refusals.values(), claims)
        raise Unschedulable(why, topics, claims, tuple(unusable.values()), search)

    def _is_taken(self, pod: Object, claim: Object) -> bool:
        """Whether a claim that only one pod may use lists anything, and not this pod.

        An entry of any kind counts. So does a pod that is about to be listed.
        """
        features = self._context.features
        if not features.mapped_devices or not self._inventory.is_for_one_pod(claim):
            return False
        listed = reserved_for(claim)
        if any(_is_for(reference, pod, features) for reference in listed):
            return False
        return bool(listed or self._commitments.assumed.keys() - {uid(pod)})

    def _best_first(self, asked: Asked, fitting: list[Object], scene: Scene) -> list[Object]:
        """The nodes that fit, the best first; the nominated one is taken before all others.

        Of nodes with the same score kube-scheduler takes any. Here it is the one with the fewest
        pods.
        """
        nominated = (asked.pod.get("status") or {}).get("nominatedNodeName")
        version = self._context.features.version
        score_of = scores(asked, fitting, scene, self._views, version) if len(fitting) > 1 else {}
        assumed = list(self._commitments.assumed.values())
        pods = self._views["pods"]

        def rank(node: Object) -> tuple[bool, int, int]:
            plain = name(node)
            crowd = pods.count("node", plain) + assumed.count(plain)
            return plain != nominated, -score_of.get(plain, 0), crowd

        return sorted(fitting, key=rank)


def _topics(refusals: Iterable[Refusal], claims: Claims) -> tuple[str, ...]:
    of_pods = sorted({refusal.topic for refusal in refusals if refusal.topic})
    of_claims = (claim_topic(*key_of(claim.seen)) for claim in claims)
    return (NODES, DEVICES, VOLUMES, *of_pods, *of_claims)


def _is_for(reference: Object, pod: Object, features: Features) -> bool:
    if features.scheduler_pod_groups and is_group(reference):
        return bool(reference["name"] == group_name(pod))
    return bool(reference["uid"] == uid(pod))


def _reaches(claim: Object, node: Object) -> bool:
    allocation = allocation_of(claim)
    return allocation is None or node_matches(allocation.get("nodeSelector"), node)
