"""The reconciler of annotated workloads against a server."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from claimctl.controller.caches.chains import Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.events import refusal
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.reconcilers.workload import (
    MOST_WRITES,
    NEXT_TURN,
    WorkloadReconciler,
)
from claimctl.controller.template_injection import Injector
from claimctl.controller.workers import SOON, After
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Forbidden, Invalid
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.resources import EVENTS
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.counting_server import CountingServer
from tests.support.recording import Recording
from tests.unit.controller.cluster import filled, furnish, groups_server, knowledge

KEY = WorkloadKey("apps", "Deployment", NAMESPACE, "train")


def ask(made: CountingServer, annotation: str, claims: list[dict[str, str]] | None = None) -> None:
    """Annotates the workload, and gives its pod template claims."""
    change: dict[str, Any] = {"metadata": {"annotations": {"claimctl.io/reserve": annotation}}}
    if claims is not None:
        change["spec"] = {"template": {"spec": {"resourceClaims": claims}}}
    made.admin.patch("deployments", NAMESPACE, "train", change)


def reconciler_of(made: CountingServer, caches: Caches) -> tuple[WorkloadReconciler, EventRecorder]:
    events, known = (
        EventRecorder(made.client, LoopClock(NOW), "test", "test"),
        knowledge(made, caches),
    )
    climber = Climber(made.client, known.chains)
    injector = Injector(made.client, known, events, allowed=False)
    return WorkloadReconciler(made.client, known, events, climber, injector), events


async def reconcile(reconciler: WorkloadReconciler) -> After:
    with Recording().span("reconcile") as span:
        return await reconciler.reconcile(KEY, span)


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
    spec = made.admin.get("deployments", NAMESPACE, "train")["spec"]["template"]["spec"]
    more = [*spec["resourceClaims"], {"name": "more", "resourceClaimName": "more"}]
    ask(made, f"{CLAIM},more", more)
    spoilt.spoil(plural, name, *path)
    reconciler, _ = reconciler_of(made, await filled(made))
    await reconcile(reconciler)
    made_now = [each for each in made.requests if each.startswith("POST")]
    assert len(made_now) == writes, made.requests


async def test_a_workload_that_cannot_be_read_as_it_is_now_asks_for_nothing() -> None:
    made, spoilt = groups_server()
    furnish(made)
    ask(made, CLAIM)
    made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    caches = Caches(made.client, LoopClock(NOW), Random(0))
    tasks = [asyncio.create_task(each.run()) for each in caches.informers()]
    for each in caches.informers():
        await each.wait_synced()
    spoilt.spoil("deployments", "train")
    # the watch was opened before: what it brings is spoilt from here on
    made.admin.patch("deployments", NAMESPACE, "train", {"metadata": {"labels": {"x": "y"}}})
    await asyncio.sleep(1)
    made.requests.clear()
    reconciler, _ = reconciler_of(made, caches)
    await reconcile(reconciler)
    assert made.requests == []
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_annotation_that_matches_nothing_is_told_by_an_event() -> None:
    made, _ = groups_server()
    furnish(made)
    ask(made, "*", [{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    reconciler, events = reconciler_of(made, await filled(made))
    task = asyncio.create_task(events.run())
    await reconcile(reconciler)
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
    ask(made, "*", [{"name": name, "resourceClaimName": name} for name in names])
    reconciler, _ = reconciler_of(made, await filled(made))
    turns = []
    for _ in range(3):
        made.requests.clear()
        outcome = await reconcile(reconciler)
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
