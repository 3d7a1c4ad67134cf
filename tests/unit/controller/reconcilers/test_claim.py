"""The reconciler of claims against a server: conflicts, and what comes of a write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import DeleteOptions, Fault, FaultPoint

from claimctl.controller.caches.chains import Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.event_handlers import Queues, Triggers
from claimctl.controller.keys import ClaimKey
from claimctl.controller.live_reads import LIVE_ATTEMPTS, Investigator
from claimctl.controller.observations.observations import Observations
from claimctl.controller.reconcilers.claim import WATCHDOG, ClaimReconciler
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.workers import DONE, SOON, After
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.snapshot import Rules
from claimctl.telemetry.face import Metric
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import FINALIZER, ForceDeletedPod
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from claimctl.wire.seams import Query, Response, Transport
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.counting_server import CountingServer, server
from tests.support.recording import Recording
from tests.unit.controller.cluster import furnish, reserve

KEY = ClaimKey(NAMESPACE, CLAIM)
GRACE = 300.0


@dataclass
class ClaimBench:
    """A reconciler with filled caches, on a server where a Deployment's pod uses a claim."""

    server: CountingServer
    reconciler: ClaimReconciler
    telemetry: Recording
    observations: Observations
    events: EventRecorder

    async def reconcile(self) -> After:
        with self.telemetry.span("reconcile") as span:
            return await self.reconciler.reconcile(KEY, span)

    async def settled(self) -> After:
        """Reconcile until nothing is left to write."""
        for _ in range(30):
            outcome = await self.reconcile()
            if not self.telemetry.attributes["claimctl__claim__write"]:
                return outcome
            await asyncio.sleep(1.5)
        raise AssertionError("never settles")

    def references(self) -> list[str]:
        claim = self.server.admin.get("resourceclaims", NAMESPACE, CLAIM)
        return [each["resource"] for each in claim["status"].get("reservedFor", [])]


@asynccontextmanager
async def working_bench(
    late: str = "", before: Callable[[CountingServer], None] = lambda _: None
) -> AsyncIterator[ClaimBench]:
    """A bench; the cache of one resource is never told more than it listed."""
    made = server(Preset.PLAIN)
    furnish(made)
    before(made)
    bench, caches = _bench(made)
    informers = [asyncio.create_task(each.run()) for each in caches.informers()]
    for each in caches.informers():
        await each.wait_synced()
    for each, task in zip(caches.informers(), informers, strict=True):
        if each.resource.plural == late:
            task.cancel()
    yield bench
    for task in informers:
        task.cancel()
    await asyncio.gather(*informers, return_exceptions=True)


def ignored(key: object) -> None:
    """Nobody waits for the key."""


NO_QUEUES = Queues(*[ignored] * 7)


def _bench(made: CountingServer) -> tuple[ClaimBench, Caches]:
    clock, telemetry = LoopClock(NOW), Recording()
    caches, observations = Caches(made.client, clock, Random(0)), Observations(clock)
    knowledge = Knowledge(
        caches=caches,
        observations=observations,
        investigator=Investigator(made.client, caches.pods, caches.kinds),
        clock=clock,
        rules=Rules(dialect="hold"),
    )
    events = EventRecorder(made.client, clock, "test", "test")
    client = Client(made.transport, clock, telemetry)
    reconciler = ClaimReconciler(client, knowledge, events, telemetry)
    bench = ClaimBench(made, reconciler, telemetry, observations, events)
    Triggers(caches, observations, NO_QUEUES, Climber(client, knowledge.chains))
    return bench, caches


def busy_writer(bench: ClaimBench, times: int) -> None:
    """Somebody who writes to the claim just before the controller does, so many times."""
    left = times

    def hook(point: FaultPoint) -> None:
        nonlocal left
        if left and (point.verb, point.plural, point.subresource) == (
            "patch",
            "resourceclaims",
            "status",
        ):
            left -= 1
            labels = {"metadata": {"labels": {"busy": str(left)}}}
            bench.server.admin.patch("resourceclaims", NAMESPACE, CLAIM, labels)

    bench.server.handler.fault = hook


async def test_a_hold_is_written_told_and_measured_once() -> None:
    async with working_bench() as bench:
        assert await bench.reconcile() == After(WATCHDOG)
        assert bench.references() == ["pods", "deployments"]
        held = bench.telemetry.observed[Metric.ALLOCATION_TO_HOLD_SECONDS.value, ()]
        assert len(held) == 1
        await asyncio.sleep(1)
        assert await bench.settled() == DONE
        assert bench.telemetry.nonzero(Metric.CLAIMS) == {"reserved": 1}
        before = len(bench.server.requests)
        assert await bench.reconcile() == DONE
        assert len(bench.server.requests) == before


async def test_nothing_is_decided_on_less_than_we_wrote() -> None:
    async with working_bench() as bench:
        await bench.reconcile()
        bench.server.requests.clear()
        assert await bench.reconcile() == SOON
        assert bench.server.requests == []


async def test_beside_a_busy_writer_it_reads_decides_and_writes_in_one_go() -> None:
    async with working_bench() as bench:
        busy_writer(bench, 3)
        bench.server.requests.clear()
        assert await bench.reconcile() == After(WATCHDOG)
        claim = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims/{CLAIM}"
        write, read = f"PATCH {claim}/status", f"GET {claim}"
        held = (
            f"GET /apis/claimctl.io/v1alpha1/namespaces/{NAMESPACE}/claimreservations/train-slice"
        )
        assert bench.server.requests == [write, held, read, write, read, write, read, write]
        assert bench.references() == ["pods", "deployments"]
        conflicts = bench.telemetry.counts[
            Metric.WRITE_CONFLICTS.value, (("resource", "resourceclaims"),)
        ]
        assert conflicts == 3


async def test_a_writer_that_never_rests_is_left_alone_for_a_while() -> None:
    async with working_bench() as bench:
        busy_writer(bench, 100)
        bench.server.requests.clear()
        assert await bench.reconcile() == SOON
        assert len(bench.server.requests) == 1 + 1 + 2 * LIVE_ATTEMPTS
        assert bench.references() == ["pods"]


async def test_a_reservation_goes_only_when_the_claim_as_it_is_now_shows_nothing_of_it() -> None:
    async with working_bench(late="resourceclaims") as bench:
        admin = bench.server.admin
        claim = admin.get("resourceclaims", NAMESPACE, CLAIM)
        uid = admin.get("deployments", NAMESPACE, "train")["metadata"]["uid"]
        hold = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": uid}
        claim["status"]["reservedFor"].append(hold)
        admin.update("resourceclaims", claim, "status")
        admin.delete("claimreservations", NAMESPACE, "train-slice")
        await asyncio.sleep(1)
        for _ in range(5):
            await bench.reconcile()
            await asyncio.sleep(1)
        left = admin.get("claimreservations", NAMESPACE, "train-slice")
        assert left["metadata"]["finalizers"] == [FINALIZER]


async def test_a_write_is_remembered_although_it_cannot_be_measured() -> None:
    """Otherwise the next reconcile would decide on the claim as it was before the write."""
    async with working_bench(late="resourceclaims") as bench:

        def fail(metric: Metric, *_: object) -> None:
            if metric is not Metric.REQUEST_SECONDS:
                raise RuntimeError("no metrics")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.telemetry, "observe", fail)
            with pytest.raises(RuntimeError, match="no metrics"):
                await bench.reconcile()
        assert bench.references() == ["pods", "deployments"]
        bench.server.requests.clear()
        assert await bench.reconcile() == SOON
        assert bench.server.requests == []


async def test_a_claim_that_is_gone_beside_a_busy_writer_is_not_written() -> None:
    async with working_bench() as bench:

        def hook(point: FaultPoint) -> Fault | None:
            if (point.verb, point.plural) == ("get", "resourceclaims"):
                return Fault(status=404, reason="NotFound", message="gone")
            return None

        busy_writer(bench, 1)
        busy = bench.server.handler.fault
        assert busy is not None
        bench.server.handler.fault = lambda point: busy(point) or hook(point)
        bench.server.requests.clear()
        assert await bench.reconcile() == SOON
        assert [each.split()[0] for each in bench.server.requests] == ["PATCH", "GET", "GET"]


async def test_a_reservation_goes_when_a_live_read_shows_that_its_claim_is_gone() -> None:
    """The cache still shows the claim."""
    async with working_bench(late="resourceclaims") as bench:
        admin = bench.server.admin
        admin.delete("claimreservations", NAMESPACE, "train-slice")
        admin.delete("resourceclaims", NAMESPACE, CLAIM)
        await asyncio.sleep(1)
        outcomes = []
        for _ in range(3):
            outcomes.append(await bench.reconcile())
            await asyncio.sleep(6)
        assert After(WATCHDOG) in outcomes
        with pytest.raises(NotFound):
            await bench.server.client.get(CLAIMRESERVATIONS, "train-slice", NAMESPACE)


def _releasing(made: CountingServer) -> None:
    """The workload has ended, and a controller has put on record that it releases the claim."""
    admin = made.admin
    held = admin.get("claimreservations", NAMESPACE, "train-slice")
    claim = admin.get("resourceclaims", NAMESPACE, CLAIM)
    uid = admin.get("deployments", NAMESPACE, "train")["metadata"]["uid"]
    hold = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": uid}
    claim["status"]["reservedFor"] = [hold]
    admin.update("resourceclaims", claim, "status")
    step = {"step": "Intent", "reason": "WorkloadEnded", "claimUID": claim["metadata"]["uid"]}
    held["status"] = {
        "claimUID": claim["metadata"]["uid"],
        "reservedFor": hold,
        "release": step | {"since": "2026-01-01T00:00:00Z"},
    }
    admin.update("claimreservations", held, "status")
    admin.delete("deployments", NAMESPACE, "train")
    admin.delete("pods", NAMESPACE, "train-1", DeleteOptions(grace_period_seconds=0))


@pytest.mark.parametrize("reserved", [True, False])
async def test_a_hold_stays_for_which_no_reservation_answers_that_this_process_knows(
    reserved: bool,
) -> None:
    """Another controller may hold the claim for a reservation that the cache does not show yet."""
    async with working_bench(late="claimreservations", before=_releasing) as bench:
        admin = bench.server.admin
        uid = reserve(bench.server, "eval")
        if not reserved:
            finalizers = {"metadata": {"finalizers": None}}
            admin.patch("claimreservations", NAMESPACE, "eval-slice", finalizers)
            admin.delete("claimreservations", NAMESPACE, "eval-slice")
        claim = admin.get("resourceclaims", NAMESPACE, CLAIM)
        hold = {"apiGroup": "apps", "resource": "deployments", "name": "eval", "uid": uid}
        await bench.server.client.merge_patch(
            RESOURCECLAIMS,
            ObjectMeta(
                name=CLAIM,
                namespace=NAMESPACE,
                resource_version=claim["metadata"]["resourceVersion"],
            ),
            {"status": {"reservedFor": [*claim["status"]["reservedFor"], hold]}},
            subresource="status",
        )
        await asyncio.sleep(400)
        for _ in range(6):
            await bench.reconcile()
            await asyncio.sleep(1)
        claim = admin.get("resourceclaims", NAMESPACE, CLAIM)
        assert "allocation" in claim["status"]
        assert claim["status"]["reservedFor"] == [hold]


async def test_the_end_of_a_release_is_told_on_the_claim_if_its_reservation_goes() -> None:
    async with working_bench(before=_releasing) as bench:
        admin = bench.server.admin
        admin.delete("claimreservations", NAMESPACE, "train-slice")
        await asyncio.sleep(400)
        for _ in range(6):
            await bench.reconcile()
            await asyncio.sleep(6)
        sending = asyncio.create_task(bench.events.run())
        await asyncio.sleep(10)
        sending.cancel()
        with pytest.raises(NotFound):
            await bench.server.client.get(CLAIMRESERVATIONS, "train-slice", NAMESPACE)
        told = [(each["involvedObject"]["kind"], each["reason"]) for each in admin.list("events")]
        assert told == [("ResourceClaim", "WorkloadEnded")]


async def test_the_reconciles_of_one_release_are_linked_to_its_first_one() -> None:
    async with working_bench(before=_releasing) as bench:
        await bench.reconcile()
        assert bench.telemetry.links == []
        for _ in range(3):
            await asyncio.sleep(150)
            await bench.reconcile()
        assert len(bench.telemetry.links) >= 2
        assert len(set(bench.telemetry.links)) == 1


@dataclass
class AnswersLate:
    """Lets the answer to a write come after the watch event of the write."""

    inner: Transport

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        response = await self.inner.send(method, path, query, headers, body)
        if method == "PATCH":
            await asyncio.sleep(1)
        return response


@pytest.mark.parametrize(
    ("before", "late", "at_once"),
    [
        pytest.param(_releasing, True, True, id="a release whose event came first"),
        pytest.param(_releasing, False, False, id="a release: the event starts the next step"),
        pytest.param(lambda _: None, True, False, id="a hold"),
    ],
)
async def test_the_next_step_of_a_release_waits_for_no_event_that_has_passed(
    before: Callable[[CountingServer], None], late: bool, at_once: bool
) -> None:
    async with working_bench(before=before) as bench:
        await asyncio.sleep(400)
        if late:
            bench.server.transport.inner = AnswersLate(bench.server.transport.inner)
        outcome = await bench.reconcile()
        assert bench.telemetry.attributes["claimctl__claim__write"]
        assert (outcome == After(0.0)) is at_once


async def test_a_claim_that_goes_while_it_is_looked_at_is_no_failure() -> None:
    async with working_bench() as bench:

        def hook(point: FaultPoint) -> None:
            if (point.verb, point.plural) == ("get", "deployments"):
                bench.observations.claims.forget(KEY)

        bench.server.admin.delete("deployments", NAMESPACE, "train")
        await asyncio.sleep(1)
        bench.server.handler.fault = hook
        assert isinstance(await bench.reconcile(), After)


INVALID = Fault(status=422, reason="Invalid", message="status: Invalid value: no")


@pytest.mark.parametrize("plural", ["resourceclaims", "claimreservations"])
async def test_what_the_server_does_not_take_is_told_and_tried_again(plural: str) -> None:
    """Of a status that is not taken everything but that stays as it was."""
    async with working_bench() as bench:
        refused: list[str] = []

        def hook(point: FaultPoint) -> Fault | None:
            if (point.verb, point.plural) != ("patch", plural):
                return None
            refused.append(point.subresource)
            return INVALID if len(refused) == 1 else None

        if plural == "claimreservations":
            await bench.reconcile()
            await asyncio.sleep(1)
        bench.server.handler.fault = hook
        with pytest.raises(Invalid, match="Invalid value: no"):
            await bench.reconcile()
        status = bench.server.admin.get("claimreservations", NAMESPACE, "train-slice")["status"]
        told = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
        assert told["Ready"] == ("False", "Invalid")
        assert ("Reserved" in told) == (plural == "resourceclaims")
        await asyncio.sleep(1)
        await bench.settled()
        status = bench.server.admin.get("claimreservations", NAMESPACE, "train-slice")["status"]
        told = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
        assert told["Ready"] == ("True", "Ready")


def _without_release(made: CountingServer) -> None:
    """The CRD is of an earlier release: the server drops a field of the status."""
    name = "claimreservations.claimctl.io"
    definition = made.admin.get("customresourcedefinitions", "", name)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["properties"]["release"]
    made.admin.update("customresourcedefinitions", definition)


async def test_a_status_that_the_server_does_not_store_is_not_written_without_a_pause() -> None:
    async with working_bench(before=_without_release) as bench:
        await bench.settled()
        bench.server.admin.patch(
            "pods", NAMESPACE, "train-1", {"status": {"phase": "Succeeded"}}, "status"
        )
        bench.server.admin.delete("deployments", NAMESPACE, "train")
        await bench.settled()
        await asyncio.sleep(2 * GRACE)
        before, outcomes = len(bench.server.requests), []
        for _ in range(12):
            await asyncio.sleep(2)
            outcomes.append(await bench.reconcile())
        told = [each for each in bench.server.requests[before:] if "train-slice/status" in each]
        assert len(told) > 5, "it is tried again"
        assert After(0.0) not in outcomes


async def test_a_ghost_of_a_deleted_reservation_is_told_to_the_next_one() -> None:
    async with working_bench() as bench:
        ghosts = bench.observations.ghosts
        ghosts.observe_record(KEY, [ForceDeletedPod(uid="uid-a", name="a", since=NOW)])
        assert [each.once_recorded for each in ghosts.of(KEY)] == [True]
        name = "train-slice"
        free = {"metadata": {"finalizers": None}}
        bench.server.admin.patch("claimreservations", NAMESPACE, name, free)
        bench.server.admin.delete("claimreservations", NAMESPACE, name)
        await asyncio.sleep(1)
        assert [each.once_recorded for each in ghosts.of(KEY)] == [False]
        assert [each.pod.uid for each in ghosts.of(KEY)] == ["uid-a"]
