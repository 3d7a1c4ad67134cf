"""Clusters whose parts disagree about PodGroups."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.mixed import START_SECONDS, disagreement, look_again
from claimctl.reservation.reasons import Reason
from claimctl.reservation.snapshot import Memory, Rules, Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.nodes import Node, NodeStatus, NodeSystemInfo
from claimctl.wire.pods import Pod
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
    running,
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
    told = disagreement(snapshot, snapshot.consumers())
    assert (told[0] if told else None) == reason


def test_a_pod_that_has_not_started_is_looked_at_again_in_time() -> None:
    snapshot = seen(BOUND, bound_for=10.0)
    assert look_again(snapshot, snapshot.consumers()) == START_SECONDS - 10.0
    late = seen(BOUND, bound_for=31.0)
    assert look_again(late, late.consumers()) is None
