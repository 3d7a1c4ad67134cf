"""When a running PodGroup may keep a claim whose reservations are withdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.withdrawal import is_left_to_group, withdraws_beside_group
from claimctl.wire.reservations import FINALIZER
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    reservation,
    running,
)

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1, pod_group="train")
GROUP, WORKLOAD = group_ref(), deployment_ref()
WITHDRAWN = Held(reservation(deleting=True), ACTIVE)


def seen(**facts: Any) -> Snapshot:
    """A claim whose one reservation is withdrawn, beside a running pod of the group."""
    usual: dict[str, Any] = {
        "claim": claim(GROUP, WORKLOAD),
        "reservations": (WITHDRAWN,),
        "pods": (running("a", group="train"),),
        "groups": (pod_group(made_by_claimctl=True),),
        "rules": Rules("podgroup"),
    }
    return Snapshot(now=NOW, namespace=NAMESPACE, name=CLAIM, **{**usual, **facts})


def test_a_running_group_keeps_the_claim() -> None:
    assert withdraws_beside_group(seen())
    assert is_left_to_group(seen())


def test_the_finalizer_of_a_listed_group_that_claimctl_made_has_to_go_first() -> None:
    guarded = seen(groups=(pod_group(made_by_claimctl=True, finalizers=(FINALIZER,)),))
    assert withdraws_beside_group(guarded)
    assert not is_left_to_group(guarded)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"reservations": ()}, id="no reservation"),
        pytest.param(
            {"reservations": (WITHDRAWN, Held(reservation("other"), ACTIVE))},
            id="another reservation is not withdrawn",
        ),
        pytest.param({"claim": claim(WORKLOAD)}, id="the group is not listed"),
        pytest.param({"claim": claim(GROUP, WORKLOAD, deleting=True)}, id="the claim is deleted"),
        pytest.param({"claim": claim(allocated=False)}, id="the claim is not allocated"),
        pytest.param({"claim": None}, id="no claim"),
        pytest.param({"groups": ()}, id="the group is gone"),
        pytest.param({"groups": (pod_group(uid="uid-other"),)}, id="a group of the same name"),
        pytest.param({"pods": (pending("a", group="train"),)}, id="its pod is pending"),
        pytest.param({"pods": (finished("a", group="train"),)}, id="its pod has finished"),
        pytest.param({"pods": (running("a", group="other"),)}, id="a pod of another group"),
        pytest.param({"rules": Rules("hold")}, id="a cluster without PodGroups"),
    ],
)
def test_nothing_less_keeps_the_claim(facts: dict[str, Any]) -> None:
    assert not withdraws_beside_group(seen(**facts))
