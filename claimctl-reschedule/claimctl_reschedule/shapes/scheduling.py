"""What decides where a pod can run: pods, nodes, budgets, priorities and volumes.

``SchedulingPod``, ``SchedulingNode`` and their parts extend the structs of ``wire.pods`` and
``wire.nodes``, whose caches stay small because they lack these fields. Decode a document with
``base.from_plain(document, SchedulingPod)`` and bytes with ``base.decode``.

Quantities stay as the server sends them: ``reschedule.plan.requests`` computes with them.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from claimctl.label_selectors import LabelSelector
from claimctl.wire import pods
from claimctl.wire.base import EMPTY, Present, Wire, null_is_empty
from claimctl.wire.claims import NodeSelector, NodeSelectorTerm
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.nodes import Node, NodeSpec, NodeStatus
from claimctl.wire.podgroups import PodGroup, PodGroupSpec, SchedulingPolicy
from claimctl.wire.resources import PODS, read_as

Quantity = str | int | float
"""A number of a resource, such as ``"1500m"`` or ``"2Gi"``."""
ResourceList = dict[str, Quantity]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class PreferredSchedulingTerm(Wire, frozen=True, kw_only=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True, kw_only=True):
    required: NodeSelector | None = msgspec.field(name=_REQUIRED, default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(name=_PREFERRED, default=())


class PodAffinityTerm(Wire, frozen=True, kw_only=True):
    """Without ``namespaces`` and ``namespace_selector``, the pod's own namespace is meant. The API
    server has merged ``matchLabelKeys`` into the label selector."""

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(Wire, frozen=True, kw_only=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True, kw_only=True):
    """The shape of podAffinity and of podAntiAffinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(name=_REQUIRED, default=())
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(name=_PREFERRED, default=())


class Affinity(Wire, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True, kw_only=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ContainerPort(Wire, frozen=True, kw_only=True):
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class Resources(Wire, frozen=True, kw_only=True):
    """``limits`` are not read: the API server fills absent requests from them."""

    requests: ResourceList | None = None


class Container(Wire, frozen=True, kw_only=True):
    """A container or an init container. An init container that restarts always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class NamedVolumeClaim(Present, frozen=True, kw_only=True):
    claim_name: str = ""


class SchedulingVolume(pods.Volume, frozen=True, kw_only=True):
    persistent_volume_claim: NamedVolumeClaim | None = None
    host_path: Present | None = None
    empty_dir: Present | None = None


class NamedSchedulingGate(Present, frozen=True, kw_only=True):
    name: str = ""


class SchedulingPodSpec(pods.PodSpec, frozen=True, kw_only=True):
    scheduling_gates: tuple[NamedSchedulingGate, ...] = ()
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList | None = None
    resources: Resources | None = None
    """Pod-level resources."""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    volumes: tuple[SchedulingVolume, ...] = ()


class ContainerWaiting(Wire, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class SchedulingContainerState(pods.ContainerState, frozen=True, kw_only=True):
    waiting: ContainerWaiting | None = None


class SchedulingContainerStatus(pods.ContainerStatus, frozen=True, kw_only=True):
    state: SchedulingContainerState = SchedulingContainerState()
    allocated_resources: ResourceList | None = None
    """The requests that the kubelet has admitted."""
    resources: Resources | None = None
    """The requests in force."""


class SchedulingPodStatus(pods.PodStatus, frozen=True, kw_only=True):
    container_statuses: tuple[SchedulingContainerStatus, ...] = ()
    init_container_statuses: tuple[SchedulingContainerStatus, ...] = ()
    qos_class: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    reason: str = ""
    message: str = ""
    allocated_resources: ResourceList | None = None
    """Pod-level requests that the kubelet has admitted."""
    resources: Resources | None = None
    """Pod-level requests in force."""


class SchedulingPod(pods.Pod, frozen=True, kw_only=True):
    spec: SchedulingPodSpec = SchedulingPodSpec()
    status: SchedulingPodStatus = SchedulingPodStatus()


SCHEDULING_PODS = read_as(PODS, SchedulingPod)


class SchedulingNodeStatus(NodeStatus, frozen=True, kw_only=True):
    allocatable: ResourceList | None = None


class PodPreemptionPolicy(Wire, frozen=True, kw_only=True):
    """Kubernetes 1.37: ``disable_resize_preemption`` names who may not evict pods for resizes."""

    disable_resize_preemption: tuple[str, ...] = ()


class SchedulingNodeSpec(NodeSpec, frozen=True, kw_only=True):
    pod_preemption_policy: PodPreemptionPolicy | None = None


class SchedulingNode(Node, frozen=True, kw_only=True):
    spec: SchedulingNodeSpec = SchedulingNodeSpec()
    status: SchedulingNodeStatus = SchedulingNodeStatus()


class DisruptionBudgetSpec(Wire, frozen=True, kw_only=True):
    """claimctl relies on ``disruptionsAllowed``, so it does not read the numbers here."""

    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class DisruptionBudgetStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class PodDisruptionBudget(ObjectHeader, frozen=True, kw_only=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(ObjectHeader, frozen=True, kw_only=True):
    value: int = 0


class VolumeClaimSpec(Wire, frozen=True, kw_only=True):
    volume_name: str = ""
    storage_class_name: str | None = None


class PersistentVolumeClaim(ObjectHeader, frozen=True, kw_only=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()


class VolumeNodeAffinity(Wire, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True, kw_only=True):
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(ObjectHeader, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class MeasuredGang(Present, frozen=True, kw_only=True):
    min_count: int = 0


class MeasuredSchedulingPolicy(SchedulingPolicy, frozen=True, kw_only=True):
    gang: MeasuredGang | None = None


class SchedulingPodGroupSpec(PodGroupSpec, frozen=True, kw_only=True):
    scheduling_policy: MeasuredSchedulingPolicy | None = None
    disruption_mode: msgspec.Raw = EMPTY
    """A name in 1.36 (``Pod`` or ``PodGroup``), an object with the member ``all`` from 1.37 on."""

    def __post_init__(self) -> None:
        null_is_empty(self, "disruption_mode", self.disruption_mode)

    @property
    def disrupted_as_a_whole(self) -> bool:
        """Whether the pods of the group have to leave together."""
        mode = msgspec.json.decode(self.disruption_mode)
        return mode == "PodGroup" or (isinstance(mode, dict) and mode.get("all") is not None)


class SchedulingPodGroup(PodGroup, frozen=True, kw_only=True):
    spec: SchedulingPodGroupSpec = SchedulingPodGroupSpec()
