"""Pods that are resized, as a kubelet reports them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypedDict, Unpack

from msgspec.structs import replace

from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW, pod

DEFERRED_FOR = 300.0
"""Seconds."""


class Sizes(TypedDict, total=False):
    """What a pod wants, what is allocated to it and what is in force: as much as before."""

    wants: int
    allocated: int | None
    actual: int | None
    memory: tuple[int, int]
    """What it wants and what it has, in Gi."""
    reason: str
    """Why the resize waits; '' if it does not."""
    waits: float
    priority: int
    generation: int
    seen: int
    more: dict[str, Any]
    """Further parts of the pod."""
    spec: dict[str, Any]


def sized(name: str, cpu: int, on: str = "n", **sizes: Unpack[Sizes]) -> SchedulingPod:
    """A running pod with ``cpu`` thousandths of a cpu, or one that wants others."""
    memory = sizes.get("memory", (0, 0))
    container = {
        "name": "c",
        "image": "web:1",
        "resources": {"requests": _requests(sizes.get("wants", cpu), memory[0])},
    }
    status: dict[str, Any] = {"name": "c"}
    allocated, actual = sizes.get("allocated", cpu), sizes.get("actual", cpu)
    if allocated is not None:
        status["allocatedResources"] = _requests(allocated, memory[1])
    if actual is not None:
        status["resources"] = {"requests": _requests(actual, memory[1])}
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": "True"}]
    if reason := sizes.get("reason", ""):
        since = (NOW - timedelta(seconds=sizes.get("waits", DEFERRED_FOR))).isoformat()
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
        seen = sizes.get("seen", sizes.get("generation", 2))
        conditions.append({**pending, "lastTransitionTime": since, "observedGeneration": seen})
    made = pod(
        name,
        on,
        priority=sizes.get("priority", 0),
        spec={"containers": [container], **sizes.get("spec", {})},
        status={"containerStatuses": [status], "conditions": conditions},
        **sizes.get("more", {"owner": name.partition("-")[0]}),
    )
    return _of_generation(made, sizes.get("generation", 2))


def _requests(cpu: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{cpu}m", **({"memory": f"{memory}Gi"} if memory else {})}


def _of_generation(made: SchedulingPod, generation: int) -> SchedulingPod:
    return replace(made, metadata=replace(made.metadata, generation=generation))


def grows(name: str, has: int, wants: int, **sizes: Any) -> SchedulingPod:
    """A pod of high priority whose resize is deferred; the others are ``Sizes``."""
    given: Any = {"wants": wants, "reason": "Deferred", "priority": 1000, **sizes}
    return sized(name, has, **given)
