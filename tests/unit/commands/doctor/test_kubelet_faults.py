"""Which kubelets have which fault."""

from __future__ import annotations

import pytest

from claimctl.commands.doctor.cluster_checks import checks
from claimctl.commands.doctor.kubelet_faults import kubelet_faults
from claimctl.commands.doctor.model import CheckVerdict, ObservedCluster
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node, NodeStatus, NodeSystemInfo

LATE, TWO = "#140527", "#135901"


def node(name: str, version: str) -> Node:
    info = NodeSystemInfo(kubelet_version=version)
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(node_info=info))


@pytest.mark.parametrize(
    ("version", "faults"),
    [
        ("v1.31.9", []),
        ("v1.32.0", [LATE]),
        ("v1.33.5", [LATE]),
        ("v1.34.0", [LATE, TWO]),
        ("v1.34.3-gke.100", [LATE, TWO]),
        ("v1.34.4", [LATE]),
        ("v1.35.0", [LATE, TWO]),
        ("v1.35.1+k3s1", [LATE]),
        ("v1.36.0", [LATE]),
        ("v1.36.10", [LATE]),
        ("v1.37.0", []),
        ("v1.38.1", []),
        ("v2.0.0", []),
        ("unknown", []),
        ("", []),
    ],
)
def test_a_kubelet_has_the_faults_of_its_version(version: str, faults: list[str]) -> None:
    lines = list(kubelet_faults([node("n", version)]))
    assert [each for line in lines for each in (LATE, TWO) if each in line] == faults


def test_one_line_names_the_nodes_of_a_fault() -> None:
    nodes = [node(f"node-{number}", "v1.36.2") for number in range(5)]
    (line,) = kubelet_faults([*nodes, node("new", "v1.37.0")])
    assert line == (
        "a pod that comes while the claim's last pod goes may run with devices that are unprepared "
        "(kubernetes/kubernetes#140527): node-0 (v1.36.2), node-1 (v1.36.2), node-2 (v1.36.2) and "
        "2 more; upgrade to 1.37, or keep the devices prepared by a pod that does nothing"
    )


@pytest.mark.parametrize(
    ("observed", "verdict", "word"),
    [
        (ObservedCluster("hold", nodes=(node("n", "v1.36.2"),)), CheckVerdict.FACT, LATE),
        (ObservedCluster("hold", nodes=(node("n", "v1.37.0"),)), CheckVerdict.OK, "no kubelet"),
        (
            ObservedCluster("hold", refused={"kubelets": "you may not list nodes"}),
            CheckVerdict.UNKNOWN,
            "you may not list nodes",
        ),
    ],
)
def test_a_fault_of_kubelets_is_a_fact_and_no_problem(
    observed: ObservedCluster, verdict: CheckVerdict, word: str
) -> None:
    (line,) = [each for each in checks(observed) if each.check == "kubelets"]
    assert line.verdict is verdict
    assert word in line.message
