"""Short constructors of Kubernetes objects, for tables of cases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from claimctl.wire.base import Present
from claimctl.wire.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Reference,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from claimctl.wire.meta import (
    Condition,
    ManagedFieldsEntry,
    ManagedObjectMeta,
    ObjectMeta,
    OwnerReference,
)
from claimctl.wire.nodes import Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint
from claimctl.wire.podgroups import PodGroup, PodGroupSpec, SchedulingPolicy
from claimctl.wire.pods import (
    ContainerState,
    ContainerStatus,
    Pod,
    PodResourceClaim,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    Volume,
)
from claimctl.wire.reservations import (
    FINALIZER,
    MANAGED_LABEL,
    ClaimReservation,
    ClaimReservationSpec,
    ClaimReservationStatus,
    WorkloadRef,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NAMESPACE = "train"
CLAIM = "slice"


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def pod(  # noqa: PLR0913 - each says one thing about a pod
    name: str,
    *,
    node: str = "",
    phase: str = "",
    running: bool = False,
    deleting: bool = False,
    unschedulable_at: datetime | None = None,
    claim: str = CLAIM,
    group: str = "",
) -> Pod:
    conditions: tuple[Condition, ...] = ()
    if unschedulable_at is not None:
        conditions = (
            Condition(
                type="PodScheduled",
                status="False",
                reason="Unschedulable",
                last_transition_time=unschedulable_at,
            ),
        )
    state = ContainerState(running=Present() if running else None)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"uid-{name}",
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=PodSpec(
            node_name=node,
            scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
            resource_claims=(PodResourceClaim(name="c", resource_claim_name=claim),),
        ),
        status=PodStatus(
            phase=phase or ("Running" if running else "Pending"),
            conditions=conditions,
            container_statuses=(ContainerStatus(name="c", state=state),) if node else (),
        ),
    )


def running(name: str, node: str = "node-0", *, deleting: bool = False, group: str = "") -> Pod:
    return pod(name, node=node, running=True, deleting=deleting, group=group)


def pending(name: str, *, unschedulable_at: datetime | None = None, group: str = "") -> Pod:
    return pod(name, unschedulable_at=unschedulable_at, group=group)


def gated(made: Pod) -> Pod:
    """The pod with a scheduling gate."""
    return replace(made, spec=replace(made.spec, scheduling_gates=(Present(),)))


def failed(made: Pod) -> Pod:
    """The pod after an error of the scheduler, such as a conflict with another writer."""
    condition = Condition(type="PodScheduled", status="False", reason="SchedulerError")
    return replace(made, status=replace(made.status, conditions=(condition,)))


def owned(made: Pod, uid: str = "uid-set") -> Pod:
    """The pod with a ReplicaSet, or another object of this UID, as its controller."""
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name="set", uid=uid, controller=True
    )
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def slow(made: Pod, *, scheduler: str = "", volume: bool = False) -> Pod:
    """The pod with another scheduler, or with a PersistentVolumeClaim."""
    source = Present()
    volumes = (Volume(name="data", persistent_volume_claim=source),) if volume else ()
    return replace(made, spec=replace(made.spec, scheduler_name=scheduler, volumes=volumes))


def finished(name: str, node: str = "node-0", *, deleting: bool = False, group: str = "") -> Pod:
    return pod(name, node=node, phase="Succeeded", deleting=deleting, group=group)


def pod_ref(name: str) -> Reference:
    return Reference(resource="pods", name=name, uid=f"uid-{name}")


def tomb(name: str) -> Reference:
    return Reference(api_group="claimctl.io", resource="finishedpods", name=name, uid=f"uid-{name}")


def deployment_ref(name: str = "train", uid: str = "uid-train") -> Reference:
    return Reference(api_group="apps", resource="deployments", name=name, uid=uid)


def group_ref(name: str = "train", uid: str = "uid-group") -> Reference:
    return Reference(api_group="scheduling.k8s.io", resource="podgroups", name=name, uid=uid)


def pod_group(
    name: str = "train",
    *claims: str,
    uid: str = "uid-group",
    owner: OwnerReference | None = None,
    made_by_claimctl: bool = False,
    finalizers: tuple[str, ...] = (),
    deleting: bool = False,
    gang: bool = False,
) -> PodGroup:
    """A PodGroup that shares the claims; the default is ``CLAIM``."""
    return PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=uid,
            resource_version="7",
            labels={MANAGED_LABEL: "claimctl"} if made_by_claimctl else None,
            owner_references=(owner,) if owner else (),
            finalizers=finalizers,
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=PodGroupSpec(
            scheduling_policy=SchedulingPolicy(gang=Present() if gang else None),
            resource_claims=tuple(
                PodResourceClaim(name="c", resource_claim_name=claim)
                for claim in claims or (CLAIM,)
            ),
        ),
    )


def allocation(*, shared: bool = False, node: str = "node-0") -> AllocationResult:
    rule = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=(
                DeviceRequestAllocationResult(
                    request="gpu", driver="gpu.example.com", pool=node, device="gpu-0"
                ),
            )
        ),
        node_selector=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(rule,)),)),
        reserved_for_any_pod=shared,
    )


def claim(
    *reserved_for: Reference,
    allocated: bool = True,
    shared: bool = False,
    created_for: Reference | None = None,
    deleting: bool = False,
    finalizer: bool = True,
    version: str = "10",
) -> ResourceClaim:
    protected = ("resource.kubernetes.io/delete-protection",) if finalizer else ()
    return ResourceClaim(
        metadata=ManagedObjectMeta(
            name=CLAIM,
            namespace=NAMESPACE,
            uid="uid-slice",
            resource_version=version,
            finalizers=protected,
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=ResourceClaimSpec(reserved_for=created_for),
        status=ResourceClaimStatus(
            allocation=allocation(shared=shared) if allocated else None,
            reserved_for=reserved_for,
        ),
    )


def written_by_claimctl(made: ResourceClaim, uids: Iterable[str]) -> ResourceClaim:
    """The claim with managedFields that name claimctl as the writer of these entries."""
    return written_by("claimctl", made, uids)


def written_by(
    manager: str, made: ResourceClaim, uids: Iterable[str], when: datetime | None = None
) -> ResourceClaim:
    """The claim with managedFields that also name this manager as the writer of these entries."""
    keys: dict[str, dict[str, str]] = {"k:" + json.dumps({"uid": uid}): {} for uid in sorted(uids)}
    fields = msgspec.Raw(json.dumps({"f:status": {"f:reservedFor": keys}}).encode())
    entry = ManagedFieldsEntry(manager=manager, subresource="status", fields_v1=fields, time=when)
    known = made.metadata.managed_fields
    return replace(made, metadata=replace(made.metadata, managed_fields=(*known, entry)))


def reservation(
    name: str = "train-slice",
    *,
    workload: str = "train",
    kind: str = "Deployment",
    deleting: bool = False,
    status: ClaimReservationStatus | None = None,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> ClaimReservation:
    group = "batch" if kind == "Job" else "apps"
    base = ClaimReservationSpec(
        resource_claim_name=CLAIM,
        workload_ref=WorkloadRef(api_group=group, kind=kind, name=workload),
    )
    return ClaimReservation(
        metadata=ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"uid-{name}",
            resource_version="5",
            generation=1,
            finalizers=(FINALIZER,),
            deletion_timestamp=NOW if deleting else None,
            annotations=annotations,
        ),
        spec=replace(base, **spec),
        status=status or ClaimReservationStatus(),
    )


def node(
    name: str = "node-0",
    *,
    cordoned: bool = False,
    boot: str = "boot-1",
    machine: str = "machine-1",
    version: str = "",
    taints: tuple[Taint, ...] = (),
) -> Node:
    """A node that is not known to be Ready or not."""
    return Node(
        metadata=ObjectMeta(name=name, resource_version=version),
        spec=NodeSpec(unschedulable=cordoned, taints=taints),
        status=NodeStatus(node_info=NodeSystemInfo(machine_id=machine, boot_id=boot)),
    )
