"""The workload of a reference run: it is named train."""

from __future__ import annotations

from collections.abc import Container

from labs.torture.stored import PLURALS
from labs.torture.testbed import Testbed
from tests.e2e.harness import NAMESPACE


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
