"""Switches feature gates of an embedded cluster's components, and looks at what its kubelets do."""

from __future__ import annotations

from dataclasses import replace

from claimctl.wire.coordination import PREPARE_FAILED
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import ServedCluster

TRAIN = Workload("ml", "train", "slice", 4)


def switch(served: ServedCluster, **gates: bool) -> None:
    """Set gates, as an administrator does; the names are those of ``Features``."""
    embedded = served.embedded
    embedded.switch(replace(embedded.features, **gates))  # type: ignore[arg-type]  # only gates


async def scale(acts: Acts, pods: int) -> None:
    """Scale the Deployment ``TRAIN`` and wait until its pods run."""
    await acts.change(TRAIN, {"replicas": pods})
    await acts.runs(replace(TRAIN, pods=pods))


def restarts(served: ServedCluster) -> list[int]:
    """How often each container that runs has been started again."""
    containers = (
        pod["status"]["containerStatuses"][0] for pod in served.embedded.admin.list("pods", "ml")
    )
    return [each["restartCount"] for each in containers if "running" in each["state"]]


def refused(served: ServedCluster) -> int:
    """How many events say that a kubelet refused a pod."""
    events = served.embedded.admin.list("events", "ml")
    return sum(each["reason"] == PREPARE_FAILED for each in events)
