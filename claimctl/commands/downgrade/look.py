"""Read what ``status.judge`` needs: claims, their pods, reservations, the plan and refused pods.

Claims are read page by page, and many claims share one LIST of pods. Only the few facts that the
judgement needs stay in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from claimctl.commands.downgrade.sightings import Component, Sighting, newest, sightings
from claimctl.commands.downgrade.standing import (
    Standing,
    StandingClaim,
    bound_pods,
    concerns,
    stand,
    unlisted_pods,
)
from claimctl.commands.downgrade.status import ComponentName, Kubelet, Look
from claimctl.downgrade.crossing import OLD, read_old_objects
from claimctl.downgrade.expansion import claims_under, uids_on_record, workload_references
from claimctl.downgrade.plans import PlanRefused, find
from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.reservation.facts.references import is_pod_group
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import PREPARE_FAILED, Event
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan
from claimctl.wire.resources import CLAIMRESERVATIONS, EVENTS, PODGROUPS, RESOURCECLAIMS
from claimctl.wire.unreadable import Unreadable


async def look(
    client: Client, served: bool | None, why: str = "", believed_off: Collection[ComponentName] = ()
) -> Look:
    """Read the cluster. ``Look`` says what the arguments mean."""
    plan = None
    with suppress(PlanRefused):  # the cluster does not know DowngradePlans
        plan = await find(client)
    recorded = plan.status.claims if plan is not None else ()
    records = {record.uid: record for record in recorded}
    gathering = _Facts(plan, records)
    resource = RESOURCECLAIMS if plan is None else claims_under(plan.spec)
    seen = await client.collect(resource, lambda it: it if concerns(it, records) else None)
    reservations = (await list_if_served(client, CLAIMRESERVATIONS)).items
    claims = sorted(seen.items, key=lambda claim: claim.metadata.namespace)
    async for chunk, pods in with_pods(client, claims):
        for claim in chunk:
            on_record = uids_on_record(claim, reservations)
            gathering.add(claim, pods, on_record)
    gathering.add_unreadable(seen.unreadable)
    if gathering.waiting:
        events = await list_if_allowed(client, EVENTS, field_selector=f"reason={PREPARE_FAILED}")
        gathering.add_refused(events.items)
    upgrades = plan is not None and plan.spec.upgrade_to
    crosses = upgrades and client.served(PODGROUPS).version == OLD
    return Look(
        served=served,
        why=why,
        used=gathering.used,
        groups=gathering.groups,
        plan=plan,
        claims=tuple(gathering.claims),
        last=gathering.last,
        kubelets=gathering.kubelets,
        believed_off=believed_off,
        old=await read_old_objects(client) if crosses else None,
    )


@dataclass
class _Facts:
    """Collects the facts, claim by claim."""

    plan: DowngradePlan | None
    records: dict[str, DowngradedClaim]
    claims: list[StandingClaim] = field(default_factory=list)
    last: dict[Component, Sighting] = field(default_factory=dict)
    kubelets: dict[str, Kubelet] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    """The unlisted pods that are bound and do not run, by UID."""
    used: bool = False
    groups: bool = False

    def add(self, claim: ResourceClaim, pods: PodsOfClaims, on_record: Collection[str]) -> None:
        record = self.records.get(claim.metadata.uid)
        self.claims.append(stand(claim, pods, self.plan, record, on_record))
        replaced = record.replaced_references if record is not None else ()
        groups = any(map(is_pod_group, (*workload_references(claim), *replaced)))
        self.groups |= groups
        self.used |= groups or claim.is_open_to_any
        planned = self.plan.metadata.creation_timestamp if self.plan is not None else None
        seen = sightings(claim, pods.of(claim), replaced, planned)
        self.last = newest((*self.last.values(), *seen))
        bound = bound_pods(claim, pods)
        unlisted = unlisted_pods(claim, bound) if claim.status.allocation is not None else ()
        self.waiting |= {pod.metadata.uid: pod for pod in unlisted if not _runs(pod)}
        missing = {pod.metadata.uid for pod in unlisted}
        for pod in bound:
            self._count(pod, missing)

    def _count(self, pod: Pod, unlisted: Collection[str]) -> None:
        node = pod.spec.node_name
        known = self.kubelets.get(node, Kubelet())
        known = replace(known, pods=known.pods + 1)
        if pod.metadata.uid in unlisted:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            known = replace(
                known,
                unlisted=known.unlisted + 1,
                first=known.first or name,
                running=known.running or (name if _runs(pod) else ""),
            )
        self.kubelets[node] = known

    def add_unreadable(self, unreadable: Iterable[Unreadable]) -> None:
        """A workload may hold a claim that cannot be read, so it blocks the downgrade."""
        for unread in unreadable:
            namespace, name, problem = unread.namespace, unread.name, unread.describe()
            judged = (Standing.BLOCKED, "Unreadable", problem)
            command = f"kubectl get -n {namespace} resourceclaim {name} -o yaml"
            self.claims.append(StandingClaim(namespace, name, unread.uid, *judged, command, 0, 0))

    def add_refused(self, events: Iterable[Event]) -> None:
        for event in events:
            pod = self.waiting.get(event.regarding.uid)
            if pod is not None and event.is_about(pod.metadata):
                node = pod.spec.node_name
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                self.kubelets[node] = replace(self.kubelets[node], refused=name)


def _runs(pod: Pod) -> bool:
    """Whether the pod has started. A pod whose sandbox was lost keeps its phase Running."""
    containers = pod.status.container_statuses
    return pod.status.phase == "Running" and (
        not containers or any(container.state.running for container in containers)
    )
