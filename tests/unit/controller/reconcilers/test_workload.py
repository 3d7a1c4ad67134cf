"""The reconciler of annotated workloads against a server."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from claimctl.controller.caches.chains import Chains, Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.events import refusal
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.observations.own_writes import OwnWrites
from claimctl.controller.reconcilers.workload import (
    MOST_WRITES,
    NEXT_TURN,
    WorkloadReconciler,
)
from claimctl.controller.workers import SOON
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Forbidden, Invalid
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.resources import EVENTS
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.recording import Recording
from tests.unit.controller.cluster import filled, furnish, groups_server


@pytest.mark.parametrize(
    ("plural", "name", "path", "writes"),
    [
        ("deployments", "none", (), 1),
        ("claimreservations", "bad", (), 1),
        ("claimreservations", "bad", ("spec", "workloadRef"), 0),
        ("claimreservations", "bad", ("metadata",), 1),
        ("claimreservations", "train", ("metadata", "labels"), 0),
    ],
)
async def test_reservations_are_made_only_when_all_that_there_are_can_be_read(
    plural: str, name: str, path: tuple[str, ...], writes: int
) -> None:
    """One that may be the workload's may be the one that its annotation asks for."""
    made, spoilt = groups_server()
    furnish(made)
    for called, workload in (("bad", "other"), ("train-other", "train")):
        ref = {"apiGroup": "apps", "kind": "Deployment", "name": workload}
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": called, "namespace": NAMESPACE},
            "spec": {"resourceClaimName": "other", "workloadRef": ref},
        }
        made.create("claimreservations", body)
    wanted = {"metadata": {"annotations": {"claimctl.io/reserve": f"{CLAIM},more"}}}
    made.admin.patch("deployments", NAMESPACE, "train", wanted)
    spec = made.admin.get("deployments", NAMESPACE, "train")["spec"]["template"]["spec"]
    more = [*spec["resourceClaims"], {"name": "more", "resourceClaimName": "more"}]
    change = {"spec": {"template": {"spec": {"resourceClaims": more}}}}
    made.admin.patch("deployments", NAMESPACE, "train", change)
    spoilt.spoil(plural, name, *path)
    caches, clock = await filled(made), LoopClock(NOW)
    events = EventRecorder(made.client, clock, "test", "test")
    climber = Climber(made.client, Chains(caches))
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events, climber)
    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(key, span)
    made_now = [each for each in made.requests if each.startswith("POST")]
    assert len(made_now) == writes, made.requests


async def test_a_workload_that_cannot_be_read_as_it_is_now_asks_for_nothing() -> None:
    made, spoilt = groups_server()
    furnish(made)
    wanted = {"metadata": {"annotations": {"claimctl.io/reserve": CLAIM}}}
    made.admin.patch("deployments", NAMESPACE, "train", wanted)
    made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    caches, clock = Caches(made.client, LoopClock(NOW), Random(0)), LoopClock(NOW)
    tasks = [asyncio.create_task(each.run()) for each in caches.informers()]
    for each in caches.informers():
        await each.wait_synced()
    spoilt.spoil("deployments", "train")
    # the watch was opened before: what it brings is spoilt from here on
    made.admin.patch("deployments", NAMESPACE, "train", {"metadata": {"labels": {"x": "y"}}})
    await asyncio.sleep(1)
    made.requests.clear()
    events = EventRecorder(made.client, clock, "test", "test")
    climber = Climber(made.client, Chains(caches))
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events, climber)
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(WorkloadKey("apps", "Deployment", NAMESPACE, "train"), span)
    assert made.requests == []
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_annotation_that_matches_nothing_is_told_by_an_event() -> None:
    made, _ = groups_server()
    furnish(made)
    own = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    change = {
        "metadata": {"annotations": {"claimctl.io/reserve": "*"}},
        "spec": {"template": {"spec": {"resourceClaims": own}}},
    }
    made.admin.patch("deployments", NAMESPACE, "train", change)
    caches, clock = await filled(made), LoopClock(NOW)
    events = EventRecorder(made.client, clock, "test", "test")
    climber = Climber(made.client, Chains(caches))
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events, climber)
    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    task = asyncio.create_task(events.run())
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(key, span)
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (event,) = (await made.client.list(EVENTS, NAMESPACE)).items
    assert (event.type, event.reason) == ("Warning", "ClaimNotNamedByPodTemplate")
    assert (event.regarding.kind, event.regarding.name) == ("Deployment", "train")
    assert '"*" matches no claim' in event.note


async def test_a_turn_of_a_workload_has_few_writes() -> None:
    made, _ = groups_server()
    furnish(made)
    names = [f"c-{number}" for number in range(MOST_WRITES * 2 + 5)]
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    change = {
        "metadata": {"annotations": {"claimctl.io/reserve": "*"}},
        "spec": {"template": {"spec": {"resourceClaims": claims}}},
    }
    made.admin.patch("deployments", NAMESPACE, "train", change)
    caches, clock = await filled(made), LoopClock(NOW)
    events = EventRecorder(made.client, clock, "test", "test")
    climber = Climber(made.client, Chains(caches))
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events, climber)
    key, turns = WorkloadKey("apps", "Deployment", NAMESPACE, "train"), []
    for _ in range(3):
        made.requests.clear()
        with Recording().span("reconcile") as span:
            outcome = await reconciler.reconcile(key, span)
        turns.append((len([each for each in made.requests if each.startswith("POST")]), outcome))
    # the cache shows none of them, and none is made twice
    assert turns == [(MOST_WRITES, NEXT_TURN), (MOST_WRITES, NEXT_TURN), (5, SOON)]


@pytest.mark.parametrize(
    ("error", "reason", "note"),
    [
        (
            Forbidden(
                "POST",
                "/p",
                status=403,
                message='claimreservations.claimctl.io "x" is forbidden: '
                "ValidatingAdmissionPolicy 'claimctl-limits' with binding 'team' denied request: "
                "idleTimeoutSeconds is 9",
            ),
            Reason.LIMIT_EXCEEDED,
            "the annotation asks for more than is allowed: idleTimeoutSeconds is 9",
        ),
        (
            Forbidden(
                "POST", "/p", status=403, message="it is forbidden: exceeded quota: q, used: 1"
            ),
            Reason.LIMIT_EXCEEDED,
            "the annotation asks for more than is allowed: exceeded quota: q, used: 1",
        ),
        (
            Forbidden("POST", "/p", status=403, message="cannot create"),
            Reason.FORBIDDEN,
            "POST /p: 403: cannot create",
        ),
        (
            Invalid("POST", "/p", status=422, message="spec: odd"),
            Reason.INVALID_ANNOTATION,
            "POST /p: 422: spec: odd",
        ),
    ],
)
def test_the_user_of_an_annotation_is_told_of_a_limit(
    error: Forbidden | Invalid, reason: Reason, note: str
) -> None:
    problem = refusal(error)
    assert (problem.reason, problem.note) == (reason, note)
