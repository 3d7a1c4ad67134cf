"""Cases about a claim whose pods may share it by a PodGroup."""

from __future__ import annotations

from typing import Any

from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import OwnerReference
from tests.support.builders import CLAIM, NAMESPACE, NOW, claim, reservation

OWNER = OwnerReference(api_version="apps/v1", kind="Deployment", name="train", uid="uid-train")
OTHER = OwnerReference(api_version="apps/v1", kind="Deployment", name="eval", uid="uid-eval")
NAMES = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1, pod_group="train")
NO_GROUP = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
PODGROUP = Rules("podgroup")


def seen(*listed: Reference, workload: WorkloadState = NO_GROUP, **facts: Any) -> Snapshot:
    held = Held(reservation(status=facts.pop("status", None)), workload)
    known = {"rules": PODGROUP, **facts}
    return Snapshot(NOW, NAMESPACE, CLAIM, claim(*listed), (held,), **known)
