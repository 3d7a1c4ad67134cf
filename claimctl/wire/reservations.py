"""claimctl.io/v1alpha1: ClaimReservation and DowngradePlan.

The schemas in the CRDs come from the pydantic models in ``claimctl.api``; a test checks that these
structs match the models.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from claimctl.wire.base import Wire
from claimctl.wire.claims import Reference
from claimctl.wire.meta import Condition, ObjectMeta

RESERVE_ANNOTATION = "claimctl.io/reserve"
RELEASE_ANNOTATION = "claimctl.io/release"
"""On a ClaimReservation: the UID of the claim that ``claimctl release`` asks to release.
On a claim: its own UID, written by ``claimctl orphans`` just before it deallocates the claim."""
REALLOCATE_ANNOTATION = "claimctl.io/reallocate"
"""On a ClaimReservation: the UID of the claim whose devices are to be given up, so that its waiting
pods get others. The controller removes it when it has done so."""
REALLOCATE_FOR_ANNOTATION = "claimctl.io/reallocate-for"
"""On a ClaimReservation, beside ``REALLOCATE_ANNOTATION``: the value of the taint for which a run
of ``claimctl reschedule`` made the request."""
RELEASE_REQUESTS = (RELEASE_ANNOTATION, REALLOCATE_ANNOTATION)
"""The annotations of a ClaimReservation that ask for a release of its claim."""
FINALIZER = "claimctl.io/release"
POD_GROUP_ANNOTATION = "claimctl.io/pod-group"
"""On a workload: ``inject`` asks claimctl to add a PodGroup to its pod template."""
MANAGED_LABEL = "app.kubernetes.io/managed-by"
TOMBSTONE_GROUP = "claimctl.io"
TOMBSTONE_RESOURCE = "finishedpods"
DOWNGRADE_PLAN_NAME = "claimctl"
"""The only valid name of a DowngradePlan, so that there is at most one."""


class WorkloadRef(Wire, frozen=True, kw_only=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class ClaimReservationSpec(Wire, frozen=True, kw_only=True):
    resource_claim_name: str = ""
    resource_claim_template_name: str | None = None
    workload_ref: WorkloadRef = WorkloadRef()
    retention_policy: str = "WhileRunning"
    idle_timeout_seconds: int = 60
    force_deleted_pod_grace_seconds: int = 300
    reallocate_timeout_seconds: int | None = 60


class ReferenceCounts(Wire, frozen=True, kw_only=True):
    pods: int = 0
    workloads: int = 0
    limit: int = 256


class ForceDeletedPod(Wire, frozen=True, kw_only=True):
    """A ghost: a pod that vanished while its containers may have been running."""

    uid: str
    name: str = ""
    node_name: str = ""
    boot_id: str = msgspec.field(name="bootID", default="")
    since: datetime | None = None


class ReleaseProgress(Wire, frozen=True, kw_only=True):
    """A release in progress, so that any controller can continue it."""

    step: str = ""
    reason: str = ""
    since: datetime | None = None
    claim_uid: str = msgspec.field(name="claimUID", default="")
    resource_version: str = ""
    """The claim's resourceVersion after the fence; empty before the fence."""


class ClaimReservationStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    dialect: str = ""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    reserved_for: Reference | None = None
    pod_group_name: str = ""
    """The PodGroup through which the workload's pods share the claim."""
    references: ReferenceCounts | None = None
    consumers: int = 0
    nodes: tuple[str, ...] = ()
    allocation_time: datetime | None = None
    last_consumer_time: datetime | None = None
    idle_since: datetime | None = None
    force_deleted_pods: tuple[ForceDeletedPod, ...] = ()
    release: ReleaseProgress | None = None
    conditions: tuple[Condition, ...] = ()


class ClaimReservation(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimReservationSpec = ClaimReservationSpec()
    status: ClaimReservationStatus = ClaimReservationStatus()


PREPARE, RESTORE = "Prepare", "Restore"
"""What a DowngradePlan asks for."""


class ClaimName(Wire, frozen=True, kw_only=True):
    namespace: str
    name: str


class DowngradePlanSpec(Wire, frozen=True, kw_only=True):
    action: str = PREPARE
    namespaces: tuple[str, ...] = ()
    """Namespaces whose claims are expanded. Empty means all."""
    claim_selector: str = ""
    """A label selector of the claims that are expanded. Empty means all."""
    skip: tuple[ClaimName, ...] = ()
    """Claims that stay as they are."""
    parallelism: int | None = None
    """How many claims are written at a time."""


class DowngradedClaim(Wire, frozen=True, kw_only=True):
    """The result for one claim, with what is needed to undo it."""

    namespace: str
    name: str
    uid: str = ""
    state: str = ""
    """Pending, Expanded, Unchanged, Refused, Failed, Skipped, Restored, NotRestored."""
    reason: str = ""
    message: str = ""
    pods: int = 0
    workload_references: tuple[Reference, ...] = ()
    replaced_references: tuple[Reference, ...] = ()
    """References that a write replaces; recorded before that write."""
    resource_version: str = ""
    """The claim's resourceVersion that this write carries."""


class DowngradePlanStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    phase: str = ""
    """Frozen, Expanding, Prepared, Blocked, Failed, Restoring, Restored, PartlyRestored."""
    total: int = 0
    done: int = 0
    claims: tuple[DowngradedClaim, ...] = ()
    conditions: tuple[Condition, ...] = ()


class DowngradePlan(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DowngradePlanSpec = DowngradePlanSpec()
    status: DowngradePlanStatus = DowngradePlanStatus()
