"""The fields of pods that concern claims."""

from __future__ import annotations

from claimctl.wire.base import Present, Wire
from claimctl.wire.claims import Reference
from claimctl.wire.meta import Condition, ObjectHeader, ObjectMeta
from claimctl.wire.nodes import Toleration
from claimctl.wire.times import Span


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class Volume(Wire, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: Present | None = None
    ephemeral: Present | None = None

    @property
    def may_be_unbound(self) -> bool:
        """Whether the scheduler may have to wait for the volume before it binds the pod."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None


class PodSpec(Wire, frozen=True, kw_only=True):
    node_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: Present | None = None
    """The reference to a group in Kubernetes 1.35, where groups share no claims."""
    tolerations: tuple[Toleration, ...] = ()
    scheduler_name: str = ""
    scheduling_gates: tuple[Present, ...] = ()
    """Schedulers leave a pod alone that has a gate."""
    volumes: tuple[Volume, ...] = ()
    termination_grace_period_seconds: Span | None = None

    @property
    def group_name(self) -> str:
        """The PodGroup that a pod or a pod template names, or ''."""
        group = self.scheduling_group
        return (group.pod_group_name or "") if group is not None else ""


class ContainerState(Wire, frozen=True, kw_only=True):
    running: Present | None = None
    terminated: Present | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Wire, frozen=True, kw_only=True):
    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True, kw_only=True):
    phase: str = ""
    nominated_node_name: str = ""
    """Set while the pod is being bound (Kubernetes 1.35), or while it waits for preempted pods."""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ObjectHeader, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def reference(self) -> Reference:
        """The pod's own entry in the list of a claim."""
        return Reference(resource="pods", name=self.metadata.name, uid=self.metadata.uid)


class PodTemplateSpec(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
