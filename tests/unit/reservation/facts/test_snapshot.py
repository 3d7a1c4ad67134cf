"""Which PodGroups belong to a claim's workloads, and which pods need no entry of their own."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from tests.support.builders import (
    group_ref,
    pending,
    pod_group,
)
from tests.support.claim_cases import GONE, held_status
from tests.support.group_cases import NAMES, OTHER, OWNER, seen


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
    assert snapshot.group_names == names


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
    assert snapshot.own_groups == own


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
    assert snapshot.gone_groups == gone


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


def test_no_claim_is_made_from_a_template_that_is_missing_or_refused() -> None:
    assert not seen().no_template
    assert seen(template_missing=True).no_template
    assert seen(template_refused="spec: Invalid").no_template
