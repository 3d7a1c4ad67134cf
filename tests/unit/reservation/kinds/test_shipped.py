"""The rules that claimctl ships, on objects of the phases that their projects document.

The sources are the types and controllers of each project, in the version of the comment.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from claimctl.reservation.kinds.rules import judge, problems_of
from claimctl.reservation.kinds.shipped import catalog, shipped_rules

WANTED, IDLE, ENDED = (False, False), (True, False), (False, True)


def conditions(*true: str, false: str = "") -> dict[str, Any]:
    listed = [{"type": each, "status": "True"} for each in true]
    listed += [{"type": false, "status": "False"}] if false else []
    return {"conditions": listed}


RUN = "runPolicy"
STOPPED: dict[str, Any] = {"printableStatus": "Stopped"}
CASES: list[tuple[str, str, Any, Any, tuple[bool, bool]]] = [
    # apps/v1, batch/v1: kubernetes/api of 1.36
    ("apps", "Deployment", {}, {}, WANTED),
    ("apps", "Deployment", {"replicas": 0}, {"replicas": 2}, IDLE),
    ("apps", "StatefulSet", {"replicas": 0}, {}, IDLE),
    ("apps", "ReplicaSet", {"replicas": 2}, {}, WANTED),
    ("apps", "DaemonSet", {}, {"desiredNumberScheduled": 0}, WANTED),
    ("apps", "DaemonSet", {}, {"desiredNumberScheduled": 0, "observedGeneration": 1}, IDLE),
    ("apps", "DaemonSet", {}, {"desiredNumberScheduled": 3, "observedGeneration": 1}, WANTED),
    ("batch", "Job", {"suspend": True}, {}, IDLE),
    ("batch", "Job", {"parallelism": 0}, {}, IDLE),
    ("batch", "Job", {"parallelism": 4}, conditions("FailureTarget"), WANTED),
    ("batch", "Job", {"parallelism": 4}, conditions("FailureTarget", "Failed"), ENDED),
    ("batch", "CronJob", {"schedule": "0 3 * * *"}, {}, IDLE),
    ("batch", "CronJob", {}, {"active": [{"kind": "Job", "name": "night"}]}, WANTED),
    # jobset.x-k8s.io/v1alpha2, v0.10: JobSetConditionType; restarts count in status.restarts
    ("jobset.x-k8s.io", "JobSet", {"suspend": True}, conditions("Suspended"), IDLE),
    ("jobset.x-k8s.io", "JobSet", {}, conditions(false="Suspended"), WANTED),
    ("jobset.x-k8s.io", "JobSet", {}, {"restarts": 2, "restartsCountTowardsMax": 2}, WANTED),
    ("jobset.x-k8s.io", "JobSet", {}, conditions("StartupPolicyCompleted"), WANTED),
    ("jobset.x-k8s.io", "JobSet", {}, conditions("Completed"), ENDED),
    ("jobset.x-k8s.io", "JobSet", {}, conditions("Failed"), ENDED),
    # leaderworkerset.x-k8s.io/v1, v0.8: Available, Progressing, UpdateInProgress
    (
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        {"replicas": 2},
        conditions("Available"),
        WANTED,
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", {"replicas": 0}, {}, IDLE),
    # ray.io/v1, v1.4: RayCluster has no end; RayJob's is in jobDeploymentStatus
    ("ray.io", "RayCluster", {"suspend": True}, {"state": "suspended"}, IDLE),
    ("ray.io", "RayCluster", {}, {"state": "failed"}, WANTED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Initializing"}, WANTED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Waiting"}, WANTED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Running", "jobStatus": "FAILED"}, WANTED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED"}, WANTED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Suspended"}, IDLE),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Complete"}, ENDED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "Failed"}, ENDED),
    ("ray.io", "RayJob", {}, {"jobDeploymentStatus": "ValidationFailed"}, ENDED),
    # trainer.kubeflow.org/v1alpha1, v2.1
    ("trainer.kubeflow.org", "TrainJob", {"suspend": True}, conditions("Suspended"), IDLE),
    ("trainer.kubeflow.org", "TrainJob", {}, conditions("Complete"), ENDED),
    ("trainer.kubeflow.org", "TrainJob", {}, conditions("Failed"), ENDED),
    # kubeflow.org/v1 and v2beta1: JobConditionType
    ("kubeflow.org", "PyTorchJob", {RUN: {"suspend": True}}, conditions("Suspended"), IDLE),
    ("kubeflow.org", "PyTorchJob", {RUN: {}}, conditions("Created", "Running"), WANTED),
    ("kubeflow.org", "PyTorchJob", {}, conditions("Restarting", false="Running"), WANTED),
    ("kubeflow.org", "PyTorchJob", {}, conditions("Succeeded"), ENDED),
    ("kubeflow.org", "MPIJob", {RUN: {"suspend": True}}, {}, IDLE),
    ("kubeflow.org", "MPIJob", {}, conditions("Failed"), ENDED),
    # grove.io/v1alpha1: all three have replicas and no end
    ("grove.io", "PodCliqueSet", {"replicas": 0}, {}, IDLE),
    ("grove.io", "PodCliqueScalingGroup", {"replicas": 1}, {}, WANTED),
    ("grove.io", "PodClique", {"replicas": 0}, {}, IDLE),
    # argoproj.io/v1alpha1, apps.kruise.io/v1alpha1
    ("argoproj.io", "Rollout", {"replicas": 0}, {"phase": "Healthy"}, IDLE),
    ("argoproj.io", "Rollout", {"replicas": 3}, {"phase": "Degraded"}, WANTED),
    ("apps.kruise.io", "CloneSet", {"replicas": 0}, {}, IDLE),
    # kubevirt.io/v1: printableStatus
    ("kubevirt.io", "VirtualMachine", {}, STOPPED, IDLE),
    # the published definition makes a status without printableStatus Stopped
    ("kubevirt.io", "VirtualMachine", {}, STOPPED | {"created": False}, IDLE),
    ("kubevirt.io", "VirtualMachine", {}, STOPPED | {"created": True, "ready": True}, WANTED),
    ("kubevirt.io", "VirtualMachine", {}, {"printableStatus": "Stopping"}, WANTED),
    ("kubevirt.io", "VirtualMachine", {}, {"printableStatus": "Migrating"}, WANTED),
    ("kubevirt.io", "VirtualMachine", {}, {}, WANTED),
]


@pytest.mark.parametrize(("group", "kind", "spec", "status", "expected"), CASES)
def test_a_phase(
    group: str, kind: str, spec: Any, status: Any, expected: tuple[bool, bool]
) -> None:
    document = {"metadata": {"generation": 1}, "spec": spec, "status": status}
    verdict = judge(shipped_rules()[group, kind], json.dumps(document).encode())
    assert (verdict.idle, verdict.ended, verdict.problem) == (*expected, "")


def test_every_shipped_rule_is_valid_and_has_a_case() -> None:
    assert {kind.metadata.name: list(problems_of(kind)) for kind in catalog()} == {
        kind.metadata.name: [] for kind in catalog()
    }
    assert {case[:2] for case in CASES} == shipped_rules().keys()


@pytest.mark.parametrize("rule", shipped_rules().values(), ids=lambda rule: rule.kind)
def test_a_new_object_without_status_has_not_ended_and_is_no_problem(rule: Any) -> None:
    verdict = judge(rule, b'{"metadata": {"generation": 1}}')
    assert (verdict.ended, verdict.problem) == (False, "")


def test_the_kinds_whose_controllers_copy_annotations() -> None:
    """Read in Kubernetes 1.36, lws v0.8, kuberay v1.4 and argo-rollouts v1.8."""
    copying = {rule.kind for rule in shipped_rules().values() if rule.copies_annotations}
    assert copying == {"Deployment", "LeaderWorkerSet", "RayJob", "Rollout"}
