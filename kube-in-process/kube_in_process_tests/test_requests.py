"""What a pod requests of its node."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.components.requests import UNSTATED, clashes, host_ports, pod_requests


def container(name: str = "main", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def pod(*containers: Any, first: tuple[Any, ...] = (), **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), "initContainers": list(first), **spec}}


def sidecar(name: str, **requests: str) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("body", "cpu"),
    [
        (pod(container(cpu="100m"), container("b", cpu="0.5")), 600),
        (pod(container(cpu="1"), first=(container("i", cpu="3"),)), 3000),
        (pod(container(cpu="4"), first=(container("i", cpu="3"),)), 4000),
        (pod(container(cpu="1"), first=(sidecar("s", cpu="2"), container("i", cpu="500m"))), 3000),
        (pod(container(cpu="1"), first=(sidecar("s", cpu="2"), container("i", cpu="3"))), 5000),
        (pod(container(cpu="1"), overhead={"cpu": "250m"}), 1250),
        (pod(container(cpu="1"), resources={"requests": {"cpu": "2"}}), 2000),
        (pod(container(cpu="0.0001")), 1),
    ],
)
def test_containers_count_together_and_init_containers_if_they_need_more(
    body: dict[str, Any], cpu: int
) -> None:
    assert pod_requests(body)["cpu"] == cpu


def test_a_container_without_requests_counts_where_nodes_are_compared() -> None:
    body = pod(container(cpu="1"), container("b", memory="1Gi"))
    assert pod_requests(body) == {"cpu": 1000, "memory": 2**30}
    assert pod_requests(body, UNSTATED) == {"cpu": 1100, "memory": 2**30 + 200 * 2**20}


@pytest.mark.parametrize(("reason", "cpu"), [("", 2000), ("Deferred", 2000), ("Infeasible", 1000)])
def test_while_a_resize_is_under_way_the_largest_number_counts(reason: str, cpu: int) -> None:
    status: dict[str, Any] = {"name": "main", "allocatedResources": {"cpu": "1"}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    body = pod(container(cpu="2"))
    body["status"] = {"containerStatuses": [status], "conditions": conditions if reason else []}
    assert pod_requests(body)["cpu"] == 2000  # without actual requests, the spec counts
    status["resources"] = {"requests": {"cpu": "500m"}}
    assert pod_requests(body)["cpu"] == cpu
    status["resources"] = {"requests": {"cpu": "3"}}
    assert pod_requests(body)["cpu"] == 3000


def test_host_ports_clash_on_the_same_address() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81}]
    body = pod({**container(), "ports": ports})
    assert list(host_ports(body)) == [("0.0.0.0", "TCP", 80)]
    assert clashes(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80))
    assert not clashes(("10.0.0.2", "TCP", 80), ("10.0.0.1", "TCP", 80))
    assert not clashes(("0.0.0.0", "UDP", 80), ("0.0.0.0", "TCP", 80))
