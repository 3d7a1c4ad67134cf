"""claimctl.io/v1alpha1 RescheduleRecord: what ``claimctl reschedule`` remembers from run to run.

The schema in the CRD comes from ``claimctl.api.reschedulerecord``; a test checks that these structs
match it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectMeta


class RecordedMove(Wire, frozen=True, kw_only=True):
    strategy: str = ""
    at: datetime | None = None
    source: str = ""
    predicted: str = ""
    landed: str = ""
    outcome: str = ""


class RecordedWorkload(Wire, frozen=True, kw_only=True):
    uid: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    revision: str = ""
    moves: tuple[RecordedMove, ...] = ()


class RecordedTaint(Wire, frozen=True, kw_only=True):
    node: str
    node_uid: str = msgspec.field(name="nodeUID", default="")
    key: str
    value: str = ""
    pod_namespace: str = ""
    pod_name: str = ""
    pod_uid: str = msgspec.field(name="podUID", default="")
    since: datetime | None = None
    deadline: datetime | None = None


class RecordedAttempts(Wire, frozen=True, kw_only=True):
    pod_uid: str = msgspec.field(name="podUID")
    count: int = 0
    last: datetime | None = None


class RecordedResize(Wire, frozen=True, kw_only=True):
    pod_uid: str = msgspec.field(name="podUID")
    namespace: str = ""
    name: str = ""
    generation: int = 0
    since: datetime | None = None
    victims: tuple[str, ...] = ()
    free_cpu: int = msgspec.field(name="freeCPU", default=0)
    free_memory: int = 0


class RecordedRefusal(Wire, frozen=True, kw_only=True):
    pod_uid: str = msgspec.field(name="podUID")
    node: str = ""
    at: datetime | None = None


class RecordedAvoidedNode(Wire, frozen=True, kw_only=True):
    node: str
    seen: str = ""
    times: int = 0
    since: datetime | None = None
    until: datetime | None = None


class RecordedBrake(Wire, frozen=True, kw_only=True):
    since: datetime | None = None
    probes: int = 0
    next_probe: datetime | None = None


class RecordedAvoidance(Wire, frozen=True, kw_only=True):
    owner_uid: str = msgspec.field(name="ownerUID")
    kind: str = ""
    namespace: str = ""
    name: str = ""
    nodes: tuple[str, ...] = ()
    braked: bool = False
    refusals: tuple[RecordedRefusal, ...] = ()
    avoided: tuple[RecordedAvoidedNode, ...] = ()
    brake: RecordedBrake | None = None


class RecordedRun(Wire, frozen=True, kw_only=True):
    ended: datetime | None = None
    digest: str = ""
    planned: int = 0
    evicted: int = 0
    skipped: tuple[str, ...] = ()


class RescheduleRecordStatus(Wire, frozen=True, kw_only=True):
    workloads: tuple[RecordedWorkload, ...] = ()
    taints: tuple[RecordedTaint, ...] = ()
    attempts: tuple[RecordedAttempts, ...] = ()
    resizes: tuple[RecordedResize, ...] = ()
    avoidances: tuple[RecordedAvoidance, ...] = ()
    last_run: RecordedRun | None = None


class RescheduleRecord(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: RescheduleRecordStatus = RescheduleRecordStatus()
