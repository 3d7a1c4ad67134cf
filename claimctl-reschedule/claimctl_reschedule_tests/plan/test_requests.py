"""What a pod requests, by the cases of Kubernetes' PodRequests."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.requests import pod_requests, scored_requests
from claimctl_reschedule.shapes.scheduling import SchedulingPod

MI = 1024 * 1024


def container(name: str = "c", sidecar: bool = False, **requests: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return found | ({"restartPolicy": "Always"} if sidecar else {})


def pod(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> SchedulingPod:
    spec |= {"containers": list(containers), "initContainers": list(init)}
    return from_plain({"spec": spec, "status": status or {}}, SchedulingPod)


def resized(actual: str | None, allocated: str, infeasible: bool = False) -> dict[str, Any]:
    status: dict[str, Any] = {"name": "c", "allocatedResources": {"cpu": allocated}}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    pending = {"type": "PodResizePending", "status": "True"}
    pending["reason"] = "Infeasible" if infeasible else "Deferred"
    return {"containerStatuses": [status], "conditions": [pending]}


CASES = {
    "no containers": (pod(), {}),
    "containers add up": (pod(container(cpu="1"), container(cpu="500m")), {"cpu": 1500}),
    "an init container counts where it needs more": (
        pod(container(cpu="1", memory="1"), init=(container(cpu="3"),)),
        {"cpu": 3000, "memory": 1},
    ),
    "an init container that needs less does not count": (
        pod(container(cpu="1"), init=(container(cpu="500m"),)),
        {"cpu": 1000},
    ),
    "a sidecar counts beside the containers": (
        pod(container(cpu="1"), init=(container(sidecar=True, cpu="2"),)),
        {"cpu": 3000},
    ),
    "an init container runs beside the sidecars before it": (
        pod(container(cpu="1"), init=(container(sidecar=True, cpu="2"), container(cpu="4"))),
        {"cpu": 6000},
    ),
    "an init container does not run beside the sidecars behind it": (
        pod(container(cpu="1"), init=(container(cpu="4"), container(sidecar=True, cpu="2"))),
        {"cpu": 4000},
    ),
    "overhead is added": (pod(container(cpu="1"), overhead={"cpu": "250m"}), {"cpu": 1250}),
    "pod-level requests replace those of the containers": (
        pod(
            container(cpu="1", memory="5", gpu="1"),
            resources={"requests": {"cpu": "4"}},
            overhead={"cpu": "1"},
        ),
        {"cpu": 5000, "memory": 5, "gpu": 1},
    ),
    "pod-level requests are for cpu, memory and huge pages": (
        pod(container(gpu="1"), resources={"requests": {"gpu": "5", "hugepages-2Mi": "2Mi"}}),
        {"gpu": 1, "hugepages-2Mi": 2 * MI},
    ),
    "a container that grows counts with its spec": (
        pod(container(cpu="4"), status=resized("1", "2")),
        {"cpu": 4000},
    ),
    "a container that shrinks counts with what is in force": (
        pod(container(cpu="1"), status=resized("3", "2")),
        {"cpu": 3000},
    ),
    "what the kubelet has admitted counts where it is most": (
        pod(container(cpu="1"), status=resized("1", "2")),
        {"cpu": 2000},
    ),
    "an infeasible resize counts without the spec": (
        pod(container(cpu="9"), status=resized("1", "2", infeasible=True)),
        {"cpu": 2000},
    ),
    "without what is in force, the spec counts": (
        pod(container(cpu="1"), status=resized(None, "2")),
        {"cpu": 1000},
    ),
    "the status of another container does not count": (
        pod(container("other", cpu="1"), status=resized("5", "5")),
        {"cpu": 1000},
    ),
    "a pod-level resize counts with its largest": (
        pod(
            container(),
            resources={"requests": {"cpu": "1"}},
            status={
                "resources": {"requests": {"cpu": "3"}},
                "allocatedResources": {"cpu": "2"},
            },
        ),
        {"cpu": 3000},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_requests(name: str) -> None:
    found, expected = CASES[name]
    assert pod_requests(found) == expected


def test_a_container_without_requests_is_scored_with_the_defaults() -> None:
    assert scored_requests(pod(container(), container(cpu="1"))) == (1100, 400 * MI)
    assert scored_requests(pod(container(), resources={"requests": {"cpu": "2"}})) == (
        2000,
        200 * MI,
    )


def test_a_request_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(ValueError, match="'many' is not a quantity"):
        pod_requests(pod(container(cpu="many")))
