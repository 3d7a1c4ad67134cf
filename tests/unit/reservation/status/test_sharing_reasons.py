"""Why pods are listed one by one although the cluster serves PodGroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.status.sharing import why_one_by_one
from claimctl.wire.podgroups import MAX_CLAIMS
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    pod_group,
    reservation,
)
from tests.support.claim_cases import GONE, held_status
from tests.support.group_cases import NAMES, NO_GROUP, PODGROUP, seen


def job(*, workload: WorkloadState = NO_GROUP, status: Any = None, **facts: Any) -> Snapshot:
    fixed = replace(workload, fixed_template=True)
    held = Held(reservation(kind="Job", status=status), fixed)
    known = {"rules": PODGROUP, **facts}
    return Snapshot(NOW, NAMESPACE, CLAIM, claim(), (held,), **known)


FULL = pod_group("train", *(f"claim-{number}" for number in range(MAX_CLAIMS)))


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(seen(workload=NAMES, groups=(pod_group(),)), None, id="they share the claim"),
        pytest.param(seen(workload=GONE), None, id="the workload is gone"),
        pytest.param(
            seen(workload=WorkloadState(WorkloadPhase.ENDED, "uid-train")), None, id="it has ended"
        ),
        pytest.param(seen(), Reason.NO_SCHEDULING_GROUP, id="the template names no group"),
        pytest.param(
            job(), Reason.NO_SCHEDULING_GROUP, id="the Job's template and pods name no group"
        ),
        pytest.param(
            job(workload=NAMES, groups=(pod_group(),)), None, id="the Job's pods share the claim"
        ),
        pytest.param(
            job(status=held_status(pod_group_name="train"), groups=(pod_group(),)),
            None,
            id="the Job's pods shared the claim, and will again",
        ),
        pytest.param(
            seen(status=held_status(pod_group_name="train"), groups=(pod_group(),)),
            Reason.NO_SCHEDULING_GROUP,
            id="the Deployment's template named a group before",
        ),
        pytest.param(
            seen(workload=NAMES), Reason.POD_GROUP_PENDING, id="the group does not exist yet"
        ),
        pytest.param(
            seen(workload=NAMES, groups=(pod_group("train", "another-claim"),)),
            Reason.CLAIM_NOT_IN_POD_GROUP,
            id="the group does not share the claim",
        ),
        pytest.param(
            seen(workload=NAMES, groups=(FULL,)),
            Reason.TOO_MANY_CLAIMS_FOR_POD_GROUP,
            id="the group has as many claims as it may have",
        ),
    ],
)
def test_why_pods_are_listed_one_by_one(snapshot: Snapshot, reason: Reason | None) -> None:
    (held,) = snapshot.reservations
    found = why_one_by_one(snapshot, held)
    assert (found[0] if found else None) == reason
