"""Everything that one run has read of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from claimctl.wire.device_classes import DeviceClass
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.reservations import ClaimReservation, DowngradePlan
from claimctl.wire.unreadable import Unreadable
from claimctl_reschedule.shapes import devices, scheduling
from claimctl_reschedule.shapes.records import Record


class Gate(StrEnum):
    """Whether the API server has the gate by which the scheduler makes room for resizes."""

    OFF = "Off"
    ON = "On"
    UNKNOWN = "Unknown"
    """The server may have it, and claimctl may not ask."""


@dataclass(frozen=True, slots=True)
class ActingController:
    """What the Lease of claimctl's controller says, also in words (``detail``)."""

    since: datetime | None = None
    """When its holder became the leader, which has watched claims and pods since before; None if no
    controller acts."""
    detail: str = "there is no Lease of claimctl's controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One picture of the cluster. The order of objects in a field has no meaning.

    Claims are read before pods: every pod that a claim lists and that existed is in ``pods``.
    """

    now: datetime
    """The time of the decision, UTC."""
    cluster_uid: str = ""
    """The UID of the namespace kube-system."""
    pods: tuple[scheduling.SchedulingPod, ...] = ()
    """All pods, in every phase."""
    nodes: tuple[scheduling.SchedulingNode, ...] = ()
    namespaces: tuple[ObjectHeader, ...] = ()
    owners: tuple[ObjectHeader, ...] = ()
    """ReplicaSets and Jobs, to find the workload above a pod's controller: metadata alone, as of
    namespaces."""
    budgets: tuple[scheduling.PodDisruptionBudget, ...] = ()
    priority_classes: tuple[scheduling.PriorityClass, ...] = ()
    volume_claims: tuple[scheduling.PersistentVolumeClaim, ...] = ()
    volumes: tuple[scheduling.PersistentVolume, ...] = ()
    claims: tuple[devices.SchedulingClaim, ...] = ()
    claim_templates: tuple[devices.ClaimTemplate, ...] = ()
    slices: tuple[devices.SchedulingSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[devices.DeviceTaintRule, ...] = ()
    pod_groups: tuple[scheduling.SchedulingPodGroup, ...] = ()
    reservations: tuple[ClaimReservation, ...] = ()
    downgrade_plans: tuple[DowngradePlan, ...] = ()
    replacing_kinds: frozenset[tuple[str, str]] | None = frozenset()
    """Group and kind of the owners whose WorkloadKinds say that they replace their pods; None if
    claimctl may not list them."""
    record: Record = field(default_factory=Record)
    controller: ActingController = ActingController()
    """Asked for only where a held claim may be given up."""
    resize_gate: Gate = Gate.OFF
    """Asked for only where a policy makes room for resizes."""
    admission: bool = False
    """Whether the policy claimctl-avoidance and its binding are in the cluster."""
    unprepared: Mapping[str, str] = field(default_factory=dict)
    """What kubelets reported with FailedPrepareDynamicResources, by the pod's UID."""
    unreadable: tuple[Unreadable, ...] = ()
    """Objects that could not be decoded. What they concern is not moved."""
