"""The created objects and the judge, without a real server."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.pod_worker import Finding
from kube_in_process.storage.store import Address, Author, Revision, Store

from labs.torture.bodies import App, Bodies
from labs.torture.mutants import MUTANTS
from labs.torture.stored import log_lines
from labs.torture.user_actions import POLICIES
from labs.torture_real import again
from labs.torture_real.controllers import USER
from labs.torture_real.judge import RealVerdict, judge
from labs.torture_real.mutants import BUGS
from labs.torture_real.schedule import DEVICES, NODES

CLAIM = Address("resource.k8s.io", "resourceclaims", "team", "slice")
POD = Address("", "pods", "team", "train-0")


def test_every_bug_that_is_planted_here_is_known() -> None:
    assert set(BUGS) <= {mutant.name for mutant in MUTANTS}


@pytest.mark.parametrize(("version", "exactly"), [((1, 32), False), ((1, 36), True)])
def test_claims_are_written_as_their_version_wants(version: tuple[int, int], exactly: bool) -> None:
    bodies = Bodies("team", Fleet(version), 8)
    [request] = bodies.claim("slice")["spec"]["devices"]["requests"]
    assert ("exactly" in request) == exactly


def test_an_annotated_job_says_everything_by_itself() -> None:
    policy = Random(0).choice(POLICIES)
    app = App("Job", "train", "slice", policy=policy, annotated=True, job={"suspend": True})
    body = Bodies("team", Fleet((1, 36)), 8).workload(app, 0)
    assert body["metadata"]["annotations"]["claimctl.io/retention-policy"] == policy
    assert (body["spec"]["suspend"], body["spec"]["completions"]) == (True, 1)


def test_no_schedule_wants_more_devices_than_it_has() -> None:
    own = App("Deployment", "side", "").at_most(8)
    shared_claims, one_more_in_a_rollout = 2, 1
    assert own + shared_claims + one_more_in_a_rollout <= NODES * DEVICES
    assert App("Deployment", "train", "slice").at_most(8) == 8


def _claim(*, allocated: bool) -> dict[str, Any]:
    status: dict[str, Any] = {"allocation": {"devices": {}}} if allocated else {}
    meta = {"name": "slice", "namespace": "team", "uid": "claim"}
    return {"apiVersion": "resource.k8s.io/v1", "metadata": meta, "status": status}


def _pod() -> dict[str, Any]:
    meta = {"name": "train-0", "namespace": "team", "uid": "pod"}
    spec = {
        "nodeName": "node-0",
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    }
    return {"apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def _history(by: str) -> list[Revision]:
    """The history of a claim that ``by`` deallocates while a pod runs."""
    store = Store(lambda: 0.0)
    store.put(CLAIM, _claim(allocated=True), Author("scheduler", "update"))
    store.put(POD, _pod(), Author("scheduler", "update"))
    store.put(CLAIM, _claim(allocated=False), Author(by, "patch", "status"))
    return list(store.history())


def _judged(by: str) -> RealVerdict:
    verdict = RealVerdict("SEED=1")
    lost = Finding("LostAllocation", "team/train-0", "team/slice", "it is gone")
    judge(verdict, _history(by), [lost], whole=True)
    return verdict


def test_what_claimctl_takes_from_under_a_pod_is_a_violation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = _judged(USER)
    assert [text.partition(":")[0] for text in verdict.violations] == [
        "DeallocatedInUse",
        "LostAllocation",
    ]
    assert not verdict.others
    assert "SEED=1: violations: DeallocatedInUse" in capsys.readouterr().err


def test_what_others_take_is_counted_apart() -> None:
    verdict = _judged("system:kube-controller-manager")
    assert verdict.good
    assert verdict.others == [
        "LostAllocation: pod team/train-0, claim team/slice: it is gone; "
        "deallocated by system:kube-controller-manager"
    ]


def test_a_history_is_told_in_one_order_with_actions_and_faults() -> None:
    lines = list(log_lines(_history(USER), [(-1.0, "scale")], [(5.0, "etcd compacted")]))
    assert lines[0].endswith("*** scale")
    assert "allocated=False" in lines[3]
    assert lines[-1].endswith("*** etcd compacted")


def test_what_was_kept_of_a_schedule_is_judged_again_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Finding("LostAllocation", "team/train-0", "team/slice", "it is gone")
    guilty = again.keep(tmp_path, "SEED=1", _history(USER), [lost], whole=True)
    first = _judged(USER)
    verdict = again.judged(guilty)
    assert (verdict.violations, verdict.others) == (first.violations, first.others)
    other = _history("system:kube-controller-manager")
    innocent = again.keep(tmp_path, "SEED=2", other, [lost], whole=True)
    assert again.main([str(innocent)]) == 0
    assert again.main([str(guilty), str(innocent)]) == 1
    assert "SEED=1: stands\nSEED=2: nothing found" in capsys.readouterr().out
