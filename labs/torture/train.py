"""A reference run, and its workload: it is named train."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from labs.torture.stored import PLURALS
from labs.torture.testbed import Testbed
from tests.e2e.harness import NAMESPACE


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """One script on one cluster, with a workload of one kind that is named train."""

    dialect: str
    kind: str
    script: str = "life"

    @property
    def name(self) -> str:
        return f"{self.dialect} {self.kind} {self.script}"


def want(testbed: Testbed, kind: str, pods: int) -> None:
    """Let the workload want so many pods; a Job wants all of its pods or none."""
    admin = testbed.cluster.admin
    plural = PLURALS[kind]
    if admin.find(plural, NAMESPACE, "train") is None:
        return
    spec = {"suspend": not pods} if kind == "Job" else {"replicas": pods}
    admin.patch(plural, NAMESPACE, "train", {"spec": spec})


def running(testbed: Testbed, but: Container[str] = ()) -> int:
    """The number of pods that run, except those with the UIDs ``but``."""
    return sum(
        pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] not in but
        for pod in testbed.objects("pods")
    )


async def without_pods(testbed: Testbed, reference: ReferenceRun) -> None:
    """Let the workload want no pods, and wait until there are none."""
    want(testbed, reference.kind, 0)
    await testbed.until(lambda: not testbed.objects("pods"), 20, step=0.05)


def force_delete_all(testbed: Testbed) -> None:
    for pod in testbed.objects("pods"):
        testbed.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])
