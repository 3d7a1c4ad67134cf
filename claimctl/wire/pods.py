"""Pods, as far as claims are concerned."""

from __future__ import annotations

from claimctl.wire.base import Wire
from claimctl.wire.meta import Condition, ObjectMeta


class PodResourceClaim(Wire):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire):
    pod_group_name: str | None = None


class PodSpec(Wire):
    node_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


class ContainerRunning(Wire):
    """Present when the container runs; its times do not matter here."""


class ContainerState(Wire):
    running: ContainerRunning | None = None


class ContainerStatus(Wire):
    name: str = ""
    state: ContainerState = ContainerState()


class PodResourceClaimStatus(Wire):
    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Wire):
    resource_claim_name: str = ""


class PodStatus(Wire):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(Wire):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
