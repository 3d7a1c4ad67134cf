"""What is asked of the API server, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import yaml

from claimctl.controller.caches.kinds import KindCache
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.live_reads import MANY_PODS, Findings, Investigator
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import NotFound
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.decision import (
    ConfirmPods,
    ConfirmWorkload,
    DeleteClaim,
    ListLivePods,
    ReadClaim,
    WriteList,
)
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import FINALIZER
from claimctl.wire.resources import PODS, Resource
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import CustomWorkload
from tests.support.builders import CLAIM, NAMESPACE, NOW, claim, deployment_ref, reservation
from tests.support.counting_server import CountingServer, pod_body, server
from tests.support.spoiling import Spoiling

RESERVATIONS = Path(__file__).parents[3] / "crds/claimreservations.claimctl.io.yaml"


NO_KINDS = KindCache(cast("Any", None), {})


def snapshot(memory: Memory | None = None) -> Snapshot:
    return Snapshot(
        now=NOW, namespace=NAMESPACE, name=CLAIM, claim=claim(), memory=memory or Memory()
    )


@asynccontextmanager
async def investigating(
    *, following: bool = False
) -> AsyncIterator[tuple[CountingServer, Investigator]]:
    made = server()
    pods = Informer(made.client, PODS, LoopClock(NOW), rng=Random(0))
    follows = asyncio.create_task(pods.run()) if following else None
    yield made, Investigator(made.client, pods, NO_KINDS)
    if follows is not None:
        follows.cancel()
        await asyncio.gather(follows, return_exceptions=True)


def reference(name: str, uid: str) -> Reference:
    return Reference(resource="pods", name=name, uid=uid)


async def test_a_listed_pod_is_gone_when_it_is_not_found_or_has_another_uid() -> None:
    async with investigating() as (made, investigator):
        uid = made.create("pods", pod_body("here"))["metadata"]["uid"]
        made.create("pods", pod_body("again"))
        asked = (reference("here", uid), reference("again", "old"), reference("lost", "lost"))
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        assert set(investigator.gone) == {"old", "lost"}
        assert findings.present_pods == {uid}
        assert len(made.requests) == 3


async def test_many_pods_are_asked_for_by_one_list() -> None:
    async with investigating() as (made, investigator):
        uid = made.create("pods", pod_body("here"))["metadata"]["uid"]
        asked = (
            reference("here", uid),
            *(reference(f"p{number}", f"u{number}") for number in range(MANY_PODS)),
        )
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        assert findings.present_pods == {uid}
        assert len(investigator.gone) == MANY_PODS
        assert made.requests == [f"GET /api/v1/namespaces/{NAMESPACE}/pods"]


async def test_a_workload_is_asked_for_by_its_name() -> None:
    async with investigating() as (_, investigator):
        need = ConfirmWorkload(deployment_ref(uid=""))
        findings = await investigator.answer(snapshot(), [need], Findings())
        key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
        assert findings.workloads == {key: None}


async def test_a_live_list_tells_of_all_pods_and_shows_those_of_the_claim() -> None:
    async with investigating(following=True) as (made, investigator):
        ours = made.create("pods", pod_body("ours"))["metadata"]["uid"]
        other = made.create("pods", pod_body("other", claim="elsewhere"))["metadata"]["uid"]
        need = ListLivePods("10")
        found = (await investigator.answer(snapshot(), [need], Findings())).live
        assert found is not None
        assert found.claim_version == "10"
        assert [pod.metadata.name for pod in found.pods] == ["ours"]
        assert found.uids == {ours, other}
        assert not found.settled


async def test_a_live_list_is_settled_when_the_time_had_passed_as_it_began() -> None:
    async with investigating(following=True) as (_, investigator):
        need = ListLivePods("10")
        old = snapshot(Memory(version_age=5.0))
        young = snapshot(Memory(version_age=4.9, deleting_age=9.0))
        going = replace(young, claim=claim(deleting=True))
        settled = [
            (await investigator.answer(each, [need], Findings())).live
            for each in (old, young, going)
        ]
        assert [each.settled for each in settled if each] == [True, False, True]


async def test_a_live_list_counts_for_no_version_while_the_pod_cache_cannot_follow() -> None:
    """Who was bound and vanished in the gap is in no list, and not known as a ghost yet."""
    async with investigating() as (made, investigator):
        made.create("pods", pod_body("a"))
        need = ListLivePods("10")
        seen = snapshot(Memory(version_age=5.0))
        found = (await investigator.answer(seen, [need], Findings())).live
        assert found is not None
        assert found.claim_version == ""


@asynccontextmanager
async def investigating_unreadable() -> AsyncIterator[
    tuple[CountingServer, Investigator, Spoiling]
]:
    made = server()
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW), rng=Random(0))
    pods = Informer(made.client, PODS, LoopClock(NOW), rng=Random(0))
    follows = asyncio.create_task(pods.run())
    yield made, Investigator(made.client, pods, NO_KINDS), spoilt
    follows.cancel()
    await asyncio.gather(follows, return_exceptions=True)


@pytest.mark.parametrize("many", [0, MANY_PODS], ids=["by GET", "by LIST"])
async def test_a_listed_pod_that_cannot_be_read_is_not_gone(many: int) -> None:
    async with investigating_unreadable() as (made, investigator, spoilt):
        uid = made.create("pods", pod_body("bad"))["metadata"]["uid"]
        spoilt.spoil("pods", "bad")
        others = [reference(f"p{number}", f"u{number}") for number in range(many)]
        asked = (reference("bad", uid), reference("bad", "of-before"), *others)
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        assert findings.present_pods == {uid}
        assert set(investigator.gone) == {"of-before", *(each.uid for each in others)}


@pytest.mark.parametrize("many", [0, MANY_PODS], ids=["by GET", "by LIST"])
async def test_nobody_is_gone_whose_uid_one_that_cannot_be_read_may_have(many: int) -> None:
    async with investigating_unreadable() as (made, investigator, spoilt):
        made.create("pods", pod_body("bad"))
        spoilt.spoil("pods", "bad", "metadata", "uid")
        others = [reference(f"p{number}", f"u{number}") for number in range(many)]
        asked = (reference("bad", "any"), *others)
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        assert "any" in findings.present_pods
        assert not many or not investigator.gone


async def test_a_workload_that_cannot_be_read_is_neither_absent_nor_known() -> None:
    async with investigating_unreadable() as (made, investigator, spoilt):
        labels = {"app": "train"}
        pod = {"containers": [{"name": "main", "image": "x"}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "train", "namespace": NAMESPACE}
        uid = made.create("deployments", {"metadata": meta, "spec": spec})["metadata"]["uid"]
        spoilt.spoil("deployments", "train")
        need = ConfirmWorkload(deployment_ref(uid=""))
        findings = await investigator.answer(snapshot(), [need], Findings())
        found = findings.workloads[WorkloadKey("apps", "Deployment", NAMESPACE, "train")]
        assert isinstance(found, Unreadable)
        assert (found.uid, found.identified) == (uid, True)


@pytest.mark.parametrize(
    ("claim", "path", "told"),
    [
        (CLAIM, (), True),
        ("other", (), False),
        ("other", ("spec", "resourceClaims"), True),
        ("other", ("metadata",), True),
    ],
)
async def test_a_live_list_tells_of_pods_that_may_name_the_claim(
    claim: str, path: tuple[str, ...], told: bool
) -> None:
    async with investigating_unreadable() as (made, investigator, spoilt):
        good = made.create("pods", pod_body("good"))["metadata"]["uid"]
        bad = made.create("pods", pod_body("bad", claim=claim))["metadata"]["uid"]
        spoilt.spoil("pods", "bad", *path)
        need = ListLivePods("10")
        found = (await investigator.answer(snapshot(), [need], Findings())).live
        assert found is not None
        assert [pod.metadata.name for pod in found.pods] == ["good"]
        assert bool(found.unreadable) == told
        assert found.uids == ({good} if path == ("metadata",) else {good, bad})


@pytest.mark.parametrize(
    ("findings", "gone"),
    [
        pytest.param(Findings(), False, id="nothing was read"),
        pytest.param(
            Findings(claim_read_for=DeleteClaim("uid", "7")), True, id="no claim any more"
        ),
        pytest.param(
            Findings(claim_read_for=DeleteClaim("uid", "7"), live_claim=claim()),
            False,
            id="a claim",
        ),
        pytest.param(Findings(live_claim=claim()), False, id="a claim from before"),
    ],
)
def test_a_live_read_shows_that_the_claim_is_gone(findings: Findings, gone: bool) -> None:
    assert findings.claim_gone == gone


@pytest.mark.parametrize("change", ["nothing", "a deletion", "another of its name"])
async def test_after_a_conflict_it_is_known_whether_a_reservation_ended(change: str) -> None:
    async with investigating() as (made, investigator):
        made.create("customresourcedefinitions", yaml.safe_load(RESERVATIONS.read_text()))
        spec = {"workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": "train"}}
        body = {
            "metadata": {"name": "held", "namespace": NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {**spec, "resourceClaimName": CLAIM},
        }
        meta = made.create("claimreservations", body)["metadata"]
        cached = reservation("held")
        if change != "another of its name":
            same = msgspec.structs.replace(cached.metadata, uid=meta["uid"])
            cached = msgspec.structs.replace(cached, metadata=same)
        if change == "a deletion":
            made.admin.delete("claimreservations", NAMESPACE, "held")
        known = replace(
            snapshot(), reservations=(Held(cached, WorkloadState(WorkloadPhase.ACTIVE)),)
        )
        asked = [ReadClaim(WriteList("1", (deployment_ref(),)))]
        findings = await investigator.answer(known, asked, Findings())
    assert findings.reservation_ended == (change != "nothing")


THINGS = Resource("x.io", "v1", "things", "Thing", CustomWorkload)
OBJECT = CustomWorkload(metadata=ObjectMeta(name="train", uid="uid-train"))


class Dropping:
    """A cluster that has the object, and serves its kind in some versions, or not at all.

    The first version is preferred.
    """

    def __init__(self, *versions: str, there: bool) -> None:
        self._versions, self._there = versions, there
        self.clock = LoopClock(NOW)

    async def get(self, resource: Resource[Any], name: str, namespace: str) -> CustomWorkload:
        if not self._there or resource.version not in self._versions:
            raise NotFound("GET", "/", status=404, message="404 page not found")
        return OBJECT

    async def find(
        self, resource: Resource[Any], name: str, namespace: str
    ) -> CustomWorkload | None:
        with suppress(NotFound):
            return await self.get(resource, name, namespace)
        return None

    async def get_document(self, path: str, type_: Any) -> Any:
        if path == "/apis":
            groups = [{"name": "x.io", "preferredVersion": {"version": v}} for v in self._versions]
            return msgspec.convert({"groups": groups[:1]}, type_)
        thing = {"name": "things", "kind": "Thing", "namespaced": True}
        return msgspec.convert({"resources": [thing]}, type_)


@pytest.mark.parametrize(
    ("versions", "there", "gone"),
    [
        pytest.param(("v1",), True, False, id="there"),
        pytest.param(("v1",), False, True, id="gone"),
        pytest.param(("v2", "v1"), False, True, id="gone, and another version is preferred"),
        pytest.param(("v2",), True, False, id="there, and its version was dropped"),
        pytest.param((), True, False, id="the kind was dropped"),
    ],
)
async def test_an_object_is_gone_only_if_its_kind_is_served_without_it(
    versions: tuple[str, ...], there: bool, gone: bool
) -> None:
    kinds = SimpleNamespace(served=lambda group, plural: THINGS)
    client: Any = Dropping(*versions, there=there)
    asks = Investigator(client, cast("Any", None), cast("Any", kinds))
    ref = Reference(api_group="x.io", resource="things", name="train", uid="uid-train")
    findings = await asks.answer(snapshot(), (ConfirmWorkload(ref),), Findings())
    (answer,) = findings.workloads.values()
    assert (answer is None) is gone
