"""Emulated components are broken on purpose: the recorded stories must tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kube_in_process.components.controllers import claims
from kube_in_process.components.controllers.deployments import controller as deployments
from kube_in_process.components.controllers.deployments import rollout
from kube_in_process.components.controllers.device_taints import DeviceTaintController
from kube_in_process.components.controllers.garbage import GarbageCollector
from kube_in_process.components.controllers.generated import Generator
from kube_in_process.components.controllers.jobs import controller as jobs
from kube_in_process.components.controllers.jobs import indexed_pods
from kube_in_process.components.controllers.jobs import status as job_status
from kube_in_process.components.controllers.replicasets import ReplicaSetController
from kube_in_process.components.controllers.statefulsets.controller import StatefulSetController
from kube_in_process.components.controllers.taints import TaintController
from kube_in_process.components.kubelet.nodes import NodeController
from kube_in_process.components.scheduler import binding
from kube_in_process.kinds.validation import claims as validation
from kube_in_process.verbs import eviction

from judges.differential.actions.judge import differences
from judges.differential.actions.recording import load, recordings
from judges.differential.actions.rehearsal import on_embedded

Patch = pytest.MonkeyPatch


def no_surge(patch: Patch) -> None:
    patch.setattr(rollout, "max_surge", lambda _: 0)


def rollouts_do_not_wait(patch: Patch) -> None:
    def all_at_once(deployment: Any, new: Any, old: Any) -> Any:
        return ((event, 0) for event in old)

    patch.setattr(deployments, "old_sizes", all_at_once)


def claims_stay_allocated(patch: Patch) -> None:
    clean = claims.ClaimController._clean

    def kept(self: Any, claim: Any, valid: Any, *, deallocate: bool) -> None:
        clean(self, claim, valid, deallocate=False)

    patch.setattr(claims.ClaimController, "_clean", kept)


def no_finalizer_before_an_allocation(patch: Patch) -> None:
    patch.setattr(binding, "_protected", lambda claim: claim)


def generated_claims_stay(patch: Patch) -> None:
    patch.setattr(claims.ClaimController, "_delete_unused", lambda *_: None)


def orphans_are_collected(patch: Patch) -> None:
    def deleted(self: Any, node: Any, owner: str) -> None:
        self._delete(node, foreground=False)

    patch.setattr(GarbageCollector, "_disown", deleted)


def orphans_are_not_adopted(patch: Patch) -> None:
    patch.setattr(deployments.DeploymentController, "_adopted", lambda *_: iter(()))


def budgets_allow_everything(patch: Patch) -> None:
    patch.setattr(eviction, "_unprotected", lambda _: True)


def partitions_do_not_count(patch: Patch) -> None:
    roll = StatefulSetController._roll

    def whole(self: Any, look: Any) -> Any:
        spec = {**look.workload["spec"], "updateStrategy": {"type": "RollingUpdate"}}
        changed = type(look)({**look.workload, "spec": spec}, look.pods, look.current, look.update)
        return roll(self, changed)

    patch.setattr(StatefulSetController, "_roll", whole)


def ordinals_do_not_wait(patch: Patch) -> None:
    patch.setattr(StatefulSetController, "_is_available", lambda *_: True)


def failures_are_not_counted(patch: Patch) -> None:
    patch.setattr(job_status, "_counts_as_failed", lambda *_: False)


def indexes_come_highest_first(patch: Patch) -> None:
    free = indexed_pods.free_indexes
    patch.setattr(jobs, "free_indexes", lambda *args: free(*args)[::-1])


def suspended_jobs_go_on(patch: Patch) -> None:
    patch.setattr(jobs.JobController, "_suspend", lambda *_: None)


def lost_nodes_keep_their_pods(patch: Patch) -> None:
    patch.setattr(TaintController, "_evict", lambda *_: None)


def tainted_devices_keep_their_pods(patch: Patch) -> None:
    patch.setattr(DeviceTaintController, "_evict", lambda *_: None)


def deleted_nodes_keep_their_pods(patch: Patch) -> None:
    patch.setattr(NodeController, "_collect", lambda *_: None)


def lists_have_no_end(patch: Patch) -> None:
    patch.setattr(validation, "RESERVED_FOR_LIMIT", 1000)


def nobody_tells_of_created_pods(patch: Patch) -> None:
    patch.setattr(ReplicaSetController, "event", lambda *_: None)


def templates_are_ignored(patch: Patch) -> None:
    patch.setattr(Generator, "for_pod", lambda self, pod, group: pod)


MUTANTS: dict[Callable[[Patch], None], str] = {
    no_surge: "rollout",
    rollouts_do_not_wait: "rollout",
    claims_stay_allocated: "cascades",
    no_finalizer_before_an_allocation: "cascades",
    generated_claims_stay: "own-claims",
    orphans_are_collected: "cascades",
    orphans_are_not_adopted: "cascades",
    budgets_allow_everything: "eviction",
    partitions_do_not_count: "stateful-update",
    ordinals_do_not_wait: "stateful-update",
    failures_are_not_counted: "deleted-node",
    indexes_come_highest_first: "indexed-job",
    suspended_jobs_go_on: "suspend",
    lost_nodes_keep_their_pods: "lost-node",
    tainted_devices_keep_their_pods: "tainted-devices",
    deleted_nodes_keep_their_pods: "deleted-node",
    lists_have_no_end: "full-list",
    nobody_tells_of_created_pods: "cascades",
    templates_are_ignored: "own-claims",
}
"""With the story that is about it, which is played first; the others follow."""


def _noticed(version: tuple[int, int], first: str) -> bool:
    for path in sorted(recordings(), key=lambda recording: f"-{first}-" not in recording.name):
        of, story, theirs = load(path)
        if of == version and differences(
            theirs, on_embedded((version, version >= (1, 36)), story, "s0")
        ):
            return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_component_is_noticed(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    assert _noticed((1, 36), MUTANTS[mutant])
