"""What becomes of a kind, and what its WorkloadKind says. The rest is in the end-to-end tests."""

from __future__ import annotations

import asyncio

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint
from structlog.testing import capture_logs

from claimctl.controller.caches.kinds import KindState, missing_right
from claimctl.controller.kind_follower import KindFollower, status_of
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.supervisor import Tasks
from claimctl.reservation.kinds.rules import rule_of
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource
from claimctl.wire.workload_kinds import WorkloadKind, WorkloadKindSpec
from claimctl.wire.workloads import CustomWorkload
from tests.e2e.faulty import Faulty
from tests.e2e.kinds import GANGS, definition
from tests.support.builders import CLAIM, NAMESPACE, NOW, after
from tests.support.counting_server import CountingServer
from tests.unit.controller.cluster import define_custom_resources, filled, furnish, groups_server

THINGS = Resource("x.io", "v1", "things", "Thing", CustomWorkload)


def document(name: str = "things.x.io", group: str = "x.io", kind: str = "Thing") -> WorkloadKind:
    return WorkloadKind(
        metadata=ObjectMeta(name=name, generation=3), spec=WorkloadKindSpec(group=group, kind=kind)
    )


USED = KindState(rule_of(document(), "WorkloadKind things.x.io"), THINGS)


def test_the_status_of_a_kind_in_use() -> None:
    status = status_of(document(), USED, NOW)
    (ready,) = status.conditions
    assert (status.served, status.version, status.permitted) == (True, "v1", True)
    assert (ready.status, ready.reason, status.observed_generation) == ("True", "RuleInUse", 3)


def test_the_status_names_the_problem() -> None:
    right = missing_right(THINGS, ["watch"])
    state = KindState(USED.rule, THINGS, problem=right)
    status = status_of(document(), state, NOW)
    assert (status.served, status.permitted, status.conditions[0].message) == (True, False, right)
    assert "watch things.x.io" in right
    assert "claimctl.io/aggregate-to-controller" in right


def test_the_time_of_the_condition_stays_while_its_status_does() -> None:
    first = status_of(document(), USED, NOW)
    kept = WorkloadKind(metadata=document().metadata, spec=document().spec, status=first)
    assert status_of(kept, USED, after(60)) == first


def test_a_rule_that_is_not_used_says_so() -> None:
    second = status_of(document("thing.x.io"), USED, NOW)
    assert second.conditions[0].message == "WorkloadKind things.x.io describes the same kind"
    built_in = status_of(document("jobs.batch", "batch", "Job"), None, NOW)
    assert "cannot be replaced" in built_in.conditions[0].message


async def test_a_status_that_may_not_be_written_is_told_once() -> None:
    made, _ = groups_server()
    define_custom_resources(made)
    for kind in ("Job", "Deployment"):
        spec = {"group": "x.io", "kind": kind}
        meta = {"name": f"{kind.lower()}s.x.io"}
        body = {"apiVersion": "claimctl.io/v1alpha1", "kind": "WorkloadKind"}
        made.create("workloadkinds", {**body, "metadata": meta, "spec": spec})
    caches = await filled(made)
    refused: list[str] = []

    def refuse(point: FaultPoint) -> Fault | None:
        if (point.verb, point.plural, point.subresource) != ("patch", "workloadkinds", "status"):
            return None
        refused.append(point.name)
        return Fault(status=403, reason="Forbidden", message="no right to patch")

    made.handler.fault = refuse
    follower = KindFollower(made.client, caches, LoopClock(NOW), lambda: None, lambda: True)
    tasks = Tasks()
    with capture_logs() as lines:
        await follower.look(tasks)
        await follower.look(tasks)
    assert refused == ["deployments.x.io", "jobs.x.io"] * 2
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    assert line["event"] == "statuses of WorkloadKinds are not written"
    assert "no right to patch" in line["error"]


async def reserved_for_gangs() -> tuple[CountingServer, KindFollower]:
    """A Gang, the ClaimReservation that names it, and a follower that has not begun."""
    made, _ = groups_server()
    define_custom_resources(made)
    made.create("customresourcedefinitions", definition(GANGS))
    made.create("gangs", {"metadata": {"name": "train", "namespace": NAMESPACE}})
    ref = {"apiGroup": GANGS.group, "kind": GANGS.kind, "name": "train"}
    body = {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {"resourceClaimName": CLAIM, "workloadRef": ref},
    }
    made.create("claimreservations", body)
    caches = await filled(made)
    return made, KindFollower(made.client, caches, LoopClock(NOW), lambda: None, lambda: True)


async def began(follower: KindFollower) -> tuple[float, str]:
    """For how many seconds it begins, and why the state of the Gangs is unknown then."""
    tasks, loop = Tasks(), asyncio.get_running_loop()
    before = loop.time()
    await follower.begin(tasks)
    passed = loop.time() - before
    problem = follower._caches.kinds.problem((GANGS.group, GANGS.kind))
    await tasks.stop(deadline=1.0)
    return passed, problem


async def test_it_begins_when_the_kinds_that_reservations_name_are_listed() -> None:
    made, follower = await reserved_for_gangs()

    def slow(point: FaultPoint) -> Fault | None:
        return Fault(delay=3.0) if (point.verb, point.plural) == ("list", "gangs") else None

    made.handler.fault = slow
    passed, problem = await began(follower)
    assert passed == pytest.approx(3.0, abs=0.5)
    assert problem == ""


async def test_a_kind_whose_list_does_not_come_is_waited_for_10_s() -> None:
    made, follower = await reserved_for_gangs()

    def silent(point: FaultPoint) -> Fault | None:
        return Fault(hang=True) if (point.verb, point.plural) == ("list", "gangs") else None

    made.handler.fault = silent
    passed, problem = await began(follower)
    assert passed == pytest.approx(10.0)
    assert problem == "Gang of acme.example is not listed yet"


async def test_a_server_that_fails_ends_the_wait_for_kinds() -> None:
    made, follower = await reserved_for_gangs()
    refusal = Fault(status=400, reason="BadRequest")
    refusing = Faulty(made.transport, lambda _, path: refusal if path == "/apis" else None)
    follower._client = Client(refusing, LoopClock(NOW))
    passed, problem = await began(follower)
    assert passed < 1.0
    assert problem == "claimctl has not looked for Gang of acme.example yet"


async def test_without_a_kind_to_wait_for_nothing_is_asked_at_the_beginning() -> None:
    made, _ = groups_server()
    furnish(made)
    caches = await filled(made)
    follower = KindFollower(made.client, caches, LoopClock(NOW), lambda: None, lambda: True)
    await follower.begin(Tasks())
    assert made.requests == []


async def test_kinds_that_nobody_uses_and_no_server_serves_are_one_line() -> None:
    made, _ = groups_server()
    define_custom_resources(made)
    spec = {"group": "x.io", "kind": "Thing"}
    body = {"apiVersion": "claimctl.io/v1alpha1", "kind": "WorkloadKind", "spec": spec}
    made.create("workloadkinds", {**body, "metadata": {"name": "things.x.io"}})
    caches = await filled(made)
    follower = KindFollower(made.client, caches, LoopClock(NOW), lambda: None, lambda: True)
    tasks = Tasks()
    with capture_logs() as lines:
        await follower.look(tasks)
        await follower.look(tasks)
    used, unused = [line for line in lines if line["event"].startswith("kind")]
    assert (used["event"], used["kind"], used["group"]) == ("kind of workloads", "Thing", "x.io")
    assert unused["event"] == "kinds of workloads that the cluster does not serve"
    assert "JobSet.jobset.x-k8s.io" in unused["kinds"]
    assert "Thing.x.io" not in unused["kinds"]
