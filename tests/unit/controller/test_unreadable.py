"""What a controller makes of objects that cannot be read, in live reads and in its caches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from claimctl.cli.explain import document, lines
from claimctl.cli.get import Wanted, gather
from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import ClaimKey, PlanKey, WorkloadKey
from claimctl.controller.live_reads import MANY_PODS, Findings, Investigator
from claimctl.controller.observations.ghosts import GhostLedger
from claimctl.controller.observations.observations import Observations, OwnWrites
from claimctl.controller.reconcilers.downgrade_plan import DowngradePlanReconciler
from claimctl.controller.reconcilers.result import DONE
from claimctl.controller.reconcilers.workload import WorkloadReconciler
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.embedded.options import Dialect
from claimctl.inspect import controller_health as acting
from claimctl.inspect.cluster_checks import Observed, findings, uids
from claimctl.inspect.explain import explain
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import UnreadableObject
from claimctl.kube.events import EventRecorder
from claimctl.kube.informer import Informer
from claimctl.orphans.model import WatchTimes
from claimctl.orphans.reclaim import Outcome, Reclaim
from claimctl.orphans.scan import scan_claims
from claimctl.reservation.decision import ConfirmPods, ConfirmWorkload, ListLivePods
from claimctl.reservation.snapshot import Rules, Snapshot
from claimctl.reservation.workloads import Life
from claimctl.wire.pods import Pod
from claimctl.wire.resources import DOWNGRADEPLANS, PODS, RESOURCECLAIMS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import CLAIM, NAMESPACE, NOW, deployment_ref, finished
from tests.support.spoiling import Spoiling
from tests.unit.cli.test_explaining import deployment, held, reserved
from tests.unit.controller.recording import Recording
from tests.unit.controller.servers import Server, pod_body, server
from tests.unit.controller.test_claims import furnish
from tests.unit.controller.test_evidence import reference, replace_uid, snapshot
from tests.unit.controller.test_podgroups import (
    deleted_group,
    filled,
    finalizers_left,
    look_at_group,
    member,
)
from tests.unit.downgrade import server as downgrade
from tests.unit.downgrade.test_prepare import carried_out

ACTING = acting.Election(acting.State.ACTING, "")


@asynccontextmanager
async def investigating() -> AsyncIterator[tuple[Server, Investigator, Spoiling]]:
    made = server()
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW), rng=Random(0))
    pods = Informer(made.client, PODS, LoopClock(NOW), rng=Random(0))
    follows = asyncio.create_task(pods.run())
    yield made, Investigator(made.client, pods), spoilt
    follows.cancel()
    await asyncio.gather(follows, return_exceptions=True)


@pytest.mark.parametrize("many", [0, MANY_PODS], ids=["by GET", "by LIST"])
async def test_a_listed_pod_that_cannot_be_read_is_not_gone(many: int) -> None:
    async with investigating() as (made, investigator, spoilt):
        uid = made.create("pods", pod_body("bad"))["metadata"]["uid"]
        spoilt.spoil("pods", "bad")
        others = [reference(f"p{number}", f"u{number}") for number in range(many)]
        asked = (reference("bad", uid), reference("bad", "of-before"), *others)
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        evidence = investigator.evidence(asked, findings)
        assert evidence.present_pods == {uid}
        assert evidence.gone_pods == {"of-before", *(each.uid for each in others)}


@pytest.mark.parametrize("many", [0, MANY_PODS], ids=["by GET", "by LIST"])
async def test_nobody_is_gone_whose_uid_one_that_cannot_be_read_may_have(many: int) -> None:
    async with investigating() as (made, investigator, spoilt):
        made.create("pods", pod_body("bad"))
        spoilt.spoil("pods", "bad", "metadata", "uid")
        others = [reference(f"p{number}", f"u{number}") for number in range(many)]
        asked = (reference("bad", "any"), *others)
        findings = await investigator.answer(snapshot(), [ConfirmPods(asked)], Findings())
        assert "any" in investigator.evidence(asked, findings).present_pods
        assert not many or not investigator.evidence(asked, findings).gone_pods


async def test_a_workload_that_cannot_be_read_is_neither_absent_nor_known() -> None:
    async with investigating() as (made, investigator, spoilt):
        labels = {"app": "train"}
        pod = {"containers": [{"name": "main", "image": "x"}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "train", "namespace": NAMESPACE}
        uid = made.create("deployments", {"metadata": meta, "spec": spec})["metadata"]["uid"]
        spoilt.spoil("deployments", "train")
        need = ConfirmWorkload(replace_uid(deployment_ref(), ""))
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
    async with investigating() as (made, investigator, spoilt):
        good = made.create("pods", pod_body("good"))["metadata"]["uid"]
        bad = made.create("pods", pod_body("bad", claim=claim))["metadata"]["uid"]
        spoilt.spoil("pods", "bad", *path)
        need = ListLivePods("10")
        found = (await investigator.answer(snapshot(), [need], Findings())).live
        assert found is not None
        assert [pod.metadata.name for pod in found.pods] == ["good"]
        assert bool(found.unreadable) == told
        assert found.uids == ({good} if path == ("metadata",) else {good, bad})


@pytest.mark.parametrize("bad", ["podgroups", "pods", "claimreservations", "resourceclaims"])
async def test_a_group_is_not_let_go_while_something_about_it_cannot_be_read(bad: str) -> None:
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
    deleted_group(made)
    made.create("pods", member("train"))
    made.admin.delete("pods", NAMESPACE, "train")
    if bad == "pods":
        made.create("pods", member("bad"))
    if bad == "resourceclaims":
        meta = {"name": CLAIM, "namespace": NAMESPACE}
        made.create("resourceclaims", {"metadata": meta, "spec": {"devices": {}}})
    if bad == "claimreservations":
        ref = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": "bad", "namespace": NAMESPACE},
            "spec": {"resourceClaimName": CLAIM, "workloadRef": ref},
        }
        made.create("claimreservations", body)
    name = {"podgroups": "train", "resourceclaims": CLAIM}.get(bad, "bad")
    spoilt.spoil(bad, name)
    await look_at_group(made, await filled(made))
    assert finalizers_left(made) != [[]]


async def test_a_pod_that_only_the_live_list_shows_unreadable_keeps_its_group() -> None:
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
    deleted_group(made)
    caches = await filled(made)
    made.create("pods", member("bad"))
    spoilt.spoil("pods", "bad")
    with pytest.raises(UnreadableObject):
        await look_at_group(made, caches)
    assert finalizers_left(made) != [[]]


KEY = ClaimKey(NAMESPACE, CLAIM)


def plan(*namespaces: str) -> dict[str, Any]:
    return {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "DowngradePlan",
        "metadata": {"name": "claimctl"},
        "spec": {"namespaces": list(namespaces)},
    }


async def seen(plural: str, name: str, *path: str) -> Snapshot:
    """The snapshot of a held claim while one object cannot be read."""
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
    furnish(made)
    if plural == "downgradeplans":
        made.create("downgradeplans", plan("other"))
    spoilt.spoil(plural, name, *path)
    caches, clock = await filled(made), LoopClock(NOW)
    knowledge = Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods),
        clock=clock,
        rules=Rules(dialect="podgroup"),
    )
    snapshots = Snapshots(knowledge)
    snapshots.observe(KEY, Findings())
    return snapshots.build(KEY, Findings())


@pytest.mark.parametrize(
    ("plural", "name", "path", "count"),
    [
        ("pods", "train-1", (), 1),
        ("resourceclaims", CLAIM, (), 1),
        ("claimreservations", "train-slice", (), 1),
        ("deployments", "train", (), 0),
        ("pods", "none", (), 0),
    ],
)
async def test_a_snapshot_has_what_cannot_be_read_and_may_concern_the_claim(
    plural: str, name: str, path: tuple[str, ...], count: int
) -> None:
    snapshot = await seen(plural, name, *path)
    assert len(snapshot.unreadable) == count
    assert not snapshot.frozen


async def test_a_listed_pod_that_cannot_be_read_is_neither_dead_nor_a_ghost() -> None:
    snapshot = await seen("pods", "train-1")
    assert len(snapshot.references) == 1
    assert (snapshot.ghosts, snapshot.memory.dead_age) == ((), {})


@pytest.mark.parametrize("path", [(), ("metadata",)], ids=["known", "nameless"])
async def test_of_a_workload_that_cannot_be_read_the_claim_knows_no_more(
    path: tuple[str, ...],
) -> None:
    (held,) = (await seen("deployments", "train", *path)).reservations
    assert held.workload.life is Life.UNREADABLE
    assert bool(held.workload.uid) == (not path)
    assert "cannot be read" in held.workload.problem


@pytest.mark.parametrize(("path", "frozen"), [(("spec", "namespaces"), True), ((), False)])
async def test_a_plan_that_cannot_be_read_freezes_what_it_may_name(
    path: tuple[str, ...], frozen: bool
) -> None:
    assert (await seen("downgradeplans", "claimctl", *path)).frozen == frozen


def pod(name: str) -> Unreadable:
    return Unreadable(PODS, "?", NAMESPACE, name, f"uid-{name}", "7", b'{"spec":{"nodeName":"n"}}')


async def test_a_pod_that_went_unread_counts_from_its_end_unless_it_was_done_before() -> None:
    clock = LoopClock(NOW)
    ledger = GhostLedger(clock, lambda node: f"boot of {node}")
    done: Pod = finished("done")
    ledger.observe(done, None)
    ledger.observe_list(KEY, [reference("early", "uid-early")], set())
    await asyncio.sleep(100)
    for each in ("done", "early"):
        ledger.vanished_unread(pod(each), [KEY])
    await asyncio.sleep(5)
    found = ledger.of(KEY)
    assert dict(found.ages) == {"uid-early": 5.0}


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
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
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
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events)
    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(key, span)
    made_now = [each for each in made.requests if each.startswith("POST")]
    assert len(made_now) == writes, made.requests


async def test_a_workload_that_cannot_be_read_as_it_is_now_asks_for_nothing() -> None:
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
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
    reconciler = WorkloadReconciler(made.client, caches, OwnWrites(clock), events)
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(WorkloadKey("apps", "Deployment", NAMESPACE, "train"), span)
    assert made.requests == []
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_plan_that_cannot_be_read_is_not_carried_out() -> None:
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    spoilt = Spoiling(made.transport)
    made.client = Client(spoilt, LoopClock(NOW))
    furnish(made)
    made.create("downgradeplans", plan())
    caches = await filled(made)
    caches.plans = Informer(made.client, DOWNGRADEPLANS, LoopClock(NOW), rng=Random(0))
    task = asyncio.create_task(caches.plans.run())
    await caches.plans.wait_synced()
    spoilt.spoil("downgradeplans", "claimctl")
    made.admin.patch("downgradeplans", "", "claimctl", {"metadata": {"labels": {"x": "y"}}})
    await asyncio.sleep(1)
    assert caches.plans.get("claimctl") is not None
    made.requests.clear()
    reconciler = DowngradePlanReconciler(made.client, caches, LoopClock(NOW), 5.0)
    with Recording().span("reconcile") as span:
        assert await reconciler.reconcile(PlanKey("claimctl"), span) == DONE
    assert [each for each in made.requests if "downgradeplans" in each] == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def spoilt_server(plural: str, name: str, *path: str) -> downgrade.Server:
    """An idle claim and a pod beside it, one of the two, or something else, unreadable."""
    made = downgrade.Server.started()
    spoilt = Spoiling(made.handler)
    made.client = Client(spoilt, made.clock, rng=Random(0))
    spoilt.spoil(plural, name, *path)
    return made


VM = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "v-1"}


def leaked(made: downgrade.Server) -> None:
    """Allocated, and reserved for nobody."""
    made.claim("slice", VM, shared=False)
    made.write_list()


@pytest.mark.parametrize(
    ("plural", "path", "freed"),
    [
        ("pods", (), True),
        ("pods", ("spec", "resourceClaims"), False),
        ("pods", ("metadata",), False),
        ("claimreservations", ("spec", "workloadRef"), True),
        ("claimreservations", ("spec", "resourceClaimName"), False),
    ],
)
async def test_orphans_are_left_that_an_unreadable_object_may_concern(
    plural: str, path: tuple[str, ...], freed: bool
) -> None:
    """The object names another claim, where that can be read."""
    made = await spoilt_server(plural, "bad", *path)
    leaked(made)
    if plural == "pods":
        made.pod("bad", claim="other")
    else:
        ref = {"apiGroup": "apps", "kind": "Deployment", "name": "x"}
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": "bad", "namespace": downgrade.NAMESPACE},
            "spec": {"resourceClaimName": "other", "workloadRef": ref},
        }
        made.admin.create("claimreservations", body)
    told: list[str] = []
    freeing = Reclaim(made.client, made.clock, "", WatchTimes(), told.append)
    outcomes = [each.outcome for each in await freeing.run()]
    assert outcomes == ([Outcome.FREED] if freed else [])


async def test_a_leftover_that_cannot_be_read_any_more_is_not_freed() -> None:
    made = downgrade.Server.started()
    spoilt = Spoiling(made.handler)
    made.client = Client(spoilt, made.clock, rng=Random(0))
    leaked(made)
    spoil = asyncio.get_running_loop().call_later(
        20, lambda: spoilt.spoil("resourceclaims", "slice")
    )
    freeing = Reclaim(made.client, made.clock, "", WatchTimes(), lambda _: None)
    (found,) = await freeing.run()
    assert found.outcome is Outcome.FAILED
    assert "slice cannot be read" in found.note
    spoil.cancel()


@pytest.mark.parametrize("plural", ["pods", "resourceclaims", "claimreservations"])
async def test_doctor_names_what_cannot_be_read_and_judges_the_rest(plural: str) -> None:
    made = await spoilt_server(plural, "bad")
    leaked(made)
    made.claim("bad")
    made.pod("bad")
    ref = {"apiGroup": "apps", "kind": "Deployment", "name": "x"}
    body = {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "metadata": {"name": "bad", "namespace": downgrade.NAMESPACE},
        "spec": {"resourceClaimName": "bad", "workloadRef": ref},
    }
    made.admin.create("claimreservations", body)
    seen = await scan_claims(made.client, made.clock)
    found = findings(
        Observed(
            "hold", tuple(scanned.claim for scanned in seen.claims), unreadable=seen.unreadable
        )
    )
    (bad,) = [each for each in found if each.check == "unreadable-objects"]
    assert (bad.namespace, bad.object) == (downgrade.NAMESPACE, "bad")
    assert "cannot be read: Expected `int`" in bad.message
    assert "slice" in {scanned.claim.metadata.name for scanned in seen.claims}


async def test_doctor_takes_nobody_for_gone_who_may_be_there_unreadable() -> None:
    made = await spoilt_server("pods", "bad", "metadata", "uid")
    made.claim("slice", {"resource": "pods", "name": "bad", "uid": "x"}, shared=False)
    made.pod("bad")
    claims = (await made.client.list(RESOURCECLAIMS)).items
    for partial in (True, False):
        listed = await made.client.list(PODS, partial=True)
        known = uids(listed) if partial else frozenset({"other"})
        found = findings(Observed("hold", claims, uids={"pods": known}))
        assert [each.check for each in found] == ([] if partial else ["dangling-references"])


async def test_explain_shows_what_blocks_the_release() -> None:
    made = await spoilt_server("pods", "bad")
    owner = deployment(made, replicas=0)
    made.claim("slice", owner)
    made.pod("bad")
    reserved(made, held(made, owner))
    told = await explain(made.client, downgrade.NAMESPACE, "slice", made.clock.now())
    assert not told.releasable
    assert [one.sign for one in acting.troubles(ACTING, told.assessment)] == [
        acting.Sign.STATUS_BEHIND  # the generation, and not the consumers
    ]
    problem = "Expected `int`, got `str` - at `$.metadata.generation`"
    text = lines(told)
    assert text[text.index("Cannot be read:") + 1] == f"  Pod ml/bad: {problem}"
    assert f"  UnreadableObject: Pod ml/bad cannot be read: {problem}" in text
    assert any("Correct or delete the object" in line for line in text)
    shown = document(told, made.clock.now())
    assert shown["unreadable"][0]["message"] == problem
    assert shown["leftAlone"] is False


async def test_get_shows_the_rest_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    for plural in ("resourceclaims", "pods"):
        made = await spoilt_server(plural, "bad")
        for name in ("bad", "slice"):
            made.claim(name)
            made.pod(name, claim=name)
        shown = await gather(made.client, Wanted(downgrade.NAMESPACE))
        names = ["slice"] if plural == "resourceclaims" else ["bad", "slice"]
        assert [view.name for view in shown] == names
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("warning: ")
        assert "ml/bad cannot be read: Expected `int`" in line


async def test_a_lease_that_cannot_be_read_tells_nothing_of_who_is_elected() -> None:
    made = await spoilt_server("leases", "claimctl")
    meta = {"name": "claimctl-controller", "namespace": downgrade.NAMESPACE}
    made.admin.create("leases", {"metadata": meta, "spec": {}})
    found = await acting.election(made.client, made.clock.now())
    assert found.state is acting.State.UNKNOWN
    assert "cannot be read" in found.message


async def test_explain_says_that_a_claim_is_left_alone() -> None:
    made = await spoilt_server("claimreservations", "train")
    owner = deployment(made)
    made.claim("slice", owner)
    reserved(made, held(made, owner))
    told = await explain(made.client, downgrade.NAMESPACE, "slice", made.clock.now())
    assert told.left_alone
    assert [one.sign for one in acting.troubles(ACTING, told.assessment)] == []
    assert any("leaves the claim alone" in line for line in lines(told))
    assert document(told, made.clock.now())["leftAlone"] is True


@pytest.mark.parametrize("when", ["before", "while it is expanded"])
async def test_a_downgrade_goes_on_past_a_claim_that_cannot_be_read_and_is_blocked(
    when: str,
) -> None:
    made = downgrade.Server.started()
    spoilt = Spoiling(made.handler)
    made.client = Client(spoilt, made.clock, rng=Random(0))
    for name in ("good", "slice"):
        made.claim(name)
        made.pod(f"pod-{name}", claim=name)
    if when == "before":
        spoilt.spoil("resourceclaims", "slice")
    else:
        made.upon("patch", "resourceclaims", lambda _: spoilt.spoil("resourceclaims", "slice"))
    status = await carried_out(made)
    states = {each.name: (each.state, each.reason) for each in status.claims}
    assert states == {"good": ("Expanded", ""), "slice": ("Failed", "UnreadableObject")}
    assert status.phase == "Blocked"
    assert made.listed("good") == ["pods/pod-good"]


async def test_a_downgrade_leaves_claims_that_an_unreadable_pod_may_use() -> None:
    made = await spoilt_server("pods", "bad")
    for name in ("good", "slice"):
        made.claim(name)
        made.pod(f"pod-{name}", claim=name)
    made.pod("bad", claim="slice")
    status = await carried_out(made)
    states = {each.name: (each.state, each.reason) for each in status.claims}
    assert states == {"good": ("Expanded", ""), "slice": ("Refused", "UnreadablePod")}
    assert made.listed("slice") == ["deployments/train"]
