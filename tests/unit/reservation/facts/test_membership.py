"""Which PodGroups belong to a claim's workloads, and which pods need no entry of their own."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.reservation.facts.membership import (
    MAX_CLAIMS,
    gone_groups,
    group_names,
    own_groups,
    why_one_by_one,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    group_ref,
    pending,
    pod_group,
    reservation,
)
from tests.support.claim_cases import GONE, held_status

OWNER = OwnerReference(api_version="apps/v1", kind="Deployment", name="train", uid="uid-train")
OTHER = OwnerReference(api_version="apps/v1", kind="Deployment", name="eval", uid="uid-eval")
NAMES = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1, pod_group="train")
NO_GROUP = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
PODGROUP = Rules("podgroup")


def seen(*listed: Reference, workload: WorkloadState = NO_GROUP, **facts: Any) -> Snapshot:
    held = Held(reservation(status=facts.pop("status", None)), workload)
    known = {"rules": PODGROUP, **facts}
    return Snapshot(NOW, NAMESPACE, CLAIM, claim(*listed), (held,), **known)


@pytest.mark.parametrize(
    ("snapshot", "names"),
    [
        pytest.param(seen(groups=(pod_group(),)), set(), id="a group that nothing names"),
        pytest.param(seen(workload=NAMES), {"train"}, id="named by the pod template"),
        pytest.param(
            seen(workload=GONE, status=held_status(pod_group_name="before")),
            {"before"},
            id="recorded in the status",
        ),
        pytest.param(
            seen(groups=(pod_group(made_by_claimctl=True, owner=OWNER),)),
            {"train"},
            id="made by claimctl for the workload",
        ),
        pytest.param(
            seen(groups=(pod_group(made_by_claimctl=True, owner=OTHER),)),
            set(),
            id="made by claimctl for another workload",
        ),
        pytest.param(
            seen(groups=(pod_group(owner=OWNER),)), set(), id="of the workload, made by others"
        ),
    ],
)
def test_the_names_of_the_groups_of_a_claims_workloads(snapshot: Snapshot, names: set[str]) -> None:
    assert group_names(snapshot) == names


GROUP, FOREIGN = group_ref(), group_ref("other", "uid-other")


@pytest.mark.parametrize(
    ("snapshot", "own"),
    [
        pytest.param(seen(GROUP, FOREIGN, workload=NAMES), {"uid-group"}, id="by name"),
        pytest.param(seen(workload=NAMES), set(), id="not listed"),
        pytest.param(
            seen(FOREIGN, groups=(pod_group("other", uid="uid-other", made_by_claimctl=True),)),
            {"uid-other"},
            id="made by claimctl for a reservation that is gone",
        ),
        pytest.param(
            seen(FOREIGN, groups=(pod_group("other", uid="uid-new", made_by_claimctl=True),)),
            set(),
            id="made by claimctl under the name of another group",
        ),
    ],
)
def test_the_listed_groups_that_are_claimctls_own(snapshot: Snapshot, own: set[str]) -> None:
    assert own_groups(snapshot) == own


@pytest.mark.parametrize(
    ("snapshot", "gone"),
    [
        pytest.param(seen(GROUP, workload=NAMES), (GROUP,), id="its object is gone"),
        pytest.param(seen(GROUP, workload=NAMES, groups=(pod_group(),)), (), id="it exists"),
        pytest.param(
            seen(GROUP, workload=NAMES, groups=(pod_group(uid="uid-new"),)),
            (GROUP,),
            id="another group has its name",
        ),
        pytest.param(seen(FOREIGN, workload=NAMES), (), id="a group of somebody else"),
        pytest.param(
            seen(GROUP, workload=NAMES, rules=Rules("hold")), (), id="the cluster has no groups"
        ),
    ],
)
def test_listed_groups_that_are_gone(snapshot: Snapshot, gone: tuple[Reference, ...]) -> None:
    assert gone_groups(snapshot) == gone


@pytest.mark.parametrize(
    ("snapshot", "pod", "expected"),
    [
        pytest.param(seen(GROUP), pending("a"), False, id="a pod without a group"),
        pytest.param(seen(GROUP), pending("a", group="train"), True, id="its group is listed"),
        pytest.param(seen(FOREIGN), pending("a", group="train"), False, id="another is listed"),
        pytest.param(
            seen(groups=(pod_group(),)),
            pending("a", group="train"),
            True,
            id="its group shares the claim",
        ),
        pytest.param(
            seen(groups=(pod_group("train", "another-claim"),)),
            pending("a", group="train"),
            False,
            id="its group shares another claim",
        ),
    ],
)
def test_a_pod_needs_no_entry_of_its_own(snapshot: Snapshot, pod: Pod, expected: bool) -> None:
    assert (pod.spec.group_name in snapshot.listed_groups) is expected


def job(*, workload: WorkloadState = NO_GROUP, status: Any = None, **facts: Any) -> Snapshot:
    held = Held(reservation(kind="Job", status=status), workload)
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
