"""Clusters whose parts disagree about PodGroups."""

from __future__ import annotations

from dataclasses import replace as replace_state

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.status.sharing import START_SECONDS, disagreement, look_again
from claimctl.wire.claims import Reference
from claimctl.wire.meta import Condition
from claimctl.wire.nodes import Node, NodeStatus, NodeSystemInfo
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import (
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    group_ref,
    node,
    pod,
    pod_group,
    pod_ref,
    reservation,
    running,
    written_by_claimctl,
)


def old(name: str, version: str) -> Node:
    return replace(node(name), status=NodeStatus(node_info=NodeSystemInfo(kubelet_version=version)))


BOUND = pod("a", node="node-0", group="train")


def seen(
    *pods: Pod,
    dialect: str = "podgroup",
    nodes: tuple[Node, ...] = (),
    listed: tuple[Reference, ...] = (),
    bound_for: float = 0.0,
) -> Snapshot:
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name="slice",
        claim=claim(group_ref(), deployment_ref(), *listed),
        pods=pods,
        nodes={each.metadata.name: each for each in nodes},
        groups=(pod_group(),),
        rules=Rules(dialect),
        memory=Memory(unstarted_age={each.metadata.uid: bound_for for each in pods}),
    )


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(seen(running("a", group="train")), None, id="all agree"),
        pytest.param(
            seen(running("a", group="train"), listed=(pod_ref("a"),)),
            Reason.SCHEDULER_IGNORES_GROUPS,
            id="a pod of the group is listed",
        ),
        pytest.param(
            seen(running("a"), listed=(pod_ref("a"),)), None, id="a pod outside the group is listed"
        ),
        pytest.param(
            seen(BOUND, bound_for=31.0), Reason.KUBELETS_REFUSE, id="bound and not started"
        ),
        pytest.param(seen(BOUND, bound_for=29.0), None, id="bound just now"),
        pytest.param(
            seen(nodes=(old("node-0", "v1.35.4"),)), Reason.OLD_KUBELETS, id="an old kubelet"
        ),
        pytest.param(
            seen(nodes=(old("node-1", "v1.35.4"),)), None, id="an old kubelet out of reach"
        ),
        pytest.param(seen(nodes=(old("node-0", "v1.36.0"),)), None, id="a kubelet that may know"),
        pytest.param(
            seen(nodes=(old("node-0", "v1.35.4"),), dialect="hold"), None, id="no groups at all"
        ),
    ],
)
def test_disagreement(snapshot: Snapshot, reason: Reason | None) -> None:
    told = disagreement(snapshot)
    assert (told[0] if told else None) == reason


def test_a_pod_that_claimctl_listed_for_an_upgrade_says_nothing_about_the_scheduler() -> None:
    listed = seen(running("a", group="train"), listed=(pod_ref("a"),))
    assert listed.claim is not None
    ours = written_by_claimctl(listed.claim, [pod_ref("a").uid])
    assert disagreement(replace_state(listed, claim=ours)) is None


def test_a_pod_that_has_not_started_is_looked_at_again_in_time() -> None:
    snapshot = seen(BOUND, bound_for=10.0)
    assert look_again(snapshot) == START_SECONDS - 10.0
    late = seen(BOUND, bound_for=31.0)
    assert look_again(late) is None


def test_what_has_been_told_of_pods_that_do_not_start_stays_until_they_do() -> None:
    """A controller that started later has not waited for as long, and would take it back."""
    told = Condition(type="Consistent", reason=Reason.KUBELETS_REFUSE, message="as told")
    made = reservation(status=ClaimReservationStatus(conditions=(told,)))
    held = Held(made, WorkloadState(WorkloadPhase.ACTIVE, "uid-train"))
    waiting = replace_state(seen(BOUND, bound_for=1.0), reservations=(held,))
    assert disagreement(waiting) == (Reason.KUBELETS_REFUSE, "as told")
    started = replace_state(seen(running("a", group="train")), reservations=(held,))
    assert disagreement(started) is None
