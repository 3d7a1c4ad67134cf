"""Reads everything that one plan is made from, page by page.

The order matters: the record comes first, then claims, then pods. So every pod that a claim lists
and that existed at that time is among the pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from claimctl.kube.client import Client
from claimctl.kube.discovery import server_version
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import list_if_served
from claimctl.reservation.kinds.shipped import catalog
from claimctl.wire import resources
from claimctl.wire.coordination import PREPARE_FAILED, Event
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import Resource, kind_of, read_as
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from claimctl_reschedule.plan.kubelet import deferred
from claimctl_reschedule.plan.observed import ActingController, Gate, Observed
from claimctl_reschedule.plan.policy import DeferredResizes, Policy, UnplaceablePods
from claimctl_reschedule.run import rounds
from claimctl_reschedule.run.memory import settle
from claimctl_reschedule.run.neighbors import read_controller, resize_gate
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.shapes import devices, scheduling
from claimctl_reschedule.shapes.records import Record, RescheduleRecordStatus, record_of
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod

T = TypeVar("T")

SYSTEM_NAMESPACE = "kube-system"
ADMISSION_POLICY = "claimctl-avoidance"
_ADMISSION = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
ADMISSION_VERSIONS = ("v1", "v1beta1")
"""Of MutatingAdmissionPolicies. v1alpha1 (1.32) cannot read variables in a JSON patch."""

CLAIMS = read_as(resources.RESOURCECLAIMS, devices.SchedulingClaim)
TEMPLATES = read_as(resources.RESOURCECLAIMTEMPLATES, devices.ClaimTemplate)
SLICES = read_as(resources.RESOURCESLICES, devices.SchedulingSlice)
TAINT_RULES = kind_of("resource.k8s.io/v1beta2", devices.DeviceTaintRule, namespaced=False)
ALL_NODES = read_as(resources.NODES, scheduling.SchedulingNode)
GROUPS = read_as(resources.PODGROUPS, scheduling.SchedulingPodGroup)
BUDGETS = kind_of("policy/v1", scheduling.PodDisruptionBudget)
PRIORITY_CLASSES = kind_of("scheduling.k8s.io/v1", scheduling.PriorityClass, namespaced=False)
VOLUME_CLAIMS = kind_of("v1", scheduling.PersistentVolumeClaim)
VOLUMES = kind_of("v1", scheduling.PersistentVolume, namespaced=False)
OWNERS = tuple(read_as(kind, ObjectHeader) for kind in (resources.REPLICASETS, resources.JOBS))


@dataclass(slots=True)
class Observation:
    """Reads once. ``status`` is the record with the outcomes of earlier moves, as of now."""

    client: Client
    clock: Clock
    records: Records
    policy: Policy = field(default_factory=Policy)
    lease_namespace: str = "claimctl-system"
    """Where the controller has its Lease."""
    status: RescheduleRecordStatus = field(default_factory=RescheduleRecordStatus)
    over: frozenset[str] = frozenset()
    """The UIDs of pods whose rounds of resizes are over."""
    _unreadable: list[Unreadable] = field(default_factory=list)

    async def read(self) -> Observed:
        """Everything; what only some strategies need, only where the policy has them."""
        resizes = self.policy.names(DeferredResizes)
        places = self.policy.names(UnplaceablePods)
        record = await self.records.read()
        # claims before pods; budgets after pods, so that they know of the pods' readiness
        claims = await self._list(CLAIMS)
        slices = await self._list(SLICES)
        reservations = await self._list(resources.CLAIMRESERVATIONS)
        groups = await self._list(GROUPS)
        pods = await self._list(SCHEDULING_PODS)
        now = self.clock.now()
        server = await server_version(self.client)
        if record is not None:
            self.over = rounds.finished(record.status, pods)
            self.status = rounds.without(settle(record.status, pods, now), self.over)
        return Observed(
            now=now,
            cluster_uid=await cluster_uid(self.client),
            controller=(
                await read_controller(self.client, self.lease_namespace, now)
                if reservations
                else ActingController()
            ),
            resize_gate=(
                await resize_gate(self.client, server)
                if resizes and any(deferred(pod) is not None for pod in pods)
                else Gate.OFF
            ),
            claims=claims,
            slices=slices,
            reservations=reservations,
            pod_groups=groups,
            pods=pods,
            nodes=await self._list(ALL_NODES),
            namespaces=await self._list(resources.NAMESPACES),
            owners=tuple([owner for kind in OWNERS for owner in await self._list(kind)]),
            budgets=await self._list(BUDGETS),
            priority_classes=await self._list(PRIORITY_CLASSES),
            volume_claims=await self._list(VOLUME_CLAIMS),
            volumes=await self._list(VOLUMES),
            claim_templates=await self._list(TEMPLATES),
            device_classes=await self._list(resources.DEVICECLASSES),
            taint_rules=await self._list(TAINT_RULES, TAINT_RULES.version) if slices else (),
            downgrade_plans=await self._list(resources.DOWNGRADEPLANS),
            replacing_kinds=await self._replacing_kinds(),
            record=record_of(self.status) if record is not None else Record(),
            admission=places and await keeps_off(self.client),
            unprepared=await self._unprepared(pods) if places else {},
            unreadable=tuple(self._unreadable),
        )

    async def read_pods(self, before: Observed) -> Observed:
        """The same picture with the claims and pods of now."""
        claims = await self._list(CLAIMS) if before.claims else ()
        pods = await self._list(SCHEDULING_PODS)
        return replace(before, claims=claims, pods=pods, unreadable=tuple(self._unreadable))

    async def _replacing_kinds(self) -> frozenset[tuple[str, str]] | None:
        try:
            kinds = await self._list(resources.WORKLOADKINDS)
        except Forbidden:
            return None
        unread = {problem.name for problem in self._unreadable}
        shipped = (kind for kind in catalog() if kind.metadata.name not in unread)
        # a WorkloadKind of the cluster replaces the shipped one
        specs = {(kind.spec.group, kind.spec.kind): kind.spec for kind in (*shipped, *kinds)}
        return frozenset(kind for kind, spec in specs.items() if spec.replaces_pods)

    async def _unprepared(self, pods: Iterable[SchedulingPod]) -> dict[str, str]:
        """What Events say about devices that a kubelet cannot prepare, by the pod's UID. Only an
        Event in the pod's own namespace counts: others may have written those elsewhere."""
        known = {pod.metadata.uid: pod.metadata for pod in pods}
        chosen = f"reason={PREPARE_FAILED}"
        listing = await self.client.list(resources.EVENTS, field_selector=chosen, partial=True)
        events = sorted(listing.items, key=_last_seen)
        return {
            event.regarding.uid: event.note
            for event in events
            if event.reason == PREPARE_FAILED
            and (meta := known.get(event.regarding.uid)) is not None
            and event.is_about(meta)
        }

    async def _list(self, resource: Resource[T], version: str = "") -> tuple[T, ...]:
        """All objects of a kind; none if the cluster does not serve it. ``version``: the only one
        that has the kind, whichever the client uses for its group."""
        client = self.client.in_version(resource.group, version) if version else self.client
        listing = await list_if_served(client, resource)
        self._unreadable += listing.unreadable
        return listing.items


def _last_seen(event: Event) -> tuple[str, str]:
    last = event.series.last_observed_time if event.series else ""
    created = event.metadata.creation_timestamp
    return last or event.event_time or (created.isoformat() if created else ""), event.note


async def keeps_off(client: Client) -> bool:
    """Whether the policy claimctl-avoidance and its binding are in the cluster."""
    group = "admissionregistration.k8s.io"
    for version in ADMISSION_VERSIONS:
        for kind, plural in _ADMISSION.items():
            resource = Resource(group, version, plural, kind, ObjectHeader, namespaced=False)
            if await client.find(resource, ADMISSION_POLICY) is None:
                break
        else:
            return True
    return False


async def cluster_uid(client: Client) -> str:
    """What tells clusters apart: the UID of the namespace kube-system."""
    return (await client.get(resources.NAMESPACES, SYSTEM_NAMESPACE)).metadata.uid


def kept_outcomes(
    before: RescheduleRecordStatus, judged: RescheduleRecordStatus
) -> RescheduleRecordStatus:
    """The status on the server with the outcomes that were judged since it was read."""
    outcomes = {
        (workload.uid, move.at, move.source): move
        for workload in judged.workloads
        for move in workload.moves
    }
    workloads = tuple(
        msgspec.structs.replace(
            workload,
            moves=tuple(
                outcomes.get((workload.uid, move.at, move.source), move) for move in workload.moves
            ),
        )
        for workload in before.workloads
    )
    return msgspec.structs.replace(before, workloads=workloads)
