"""Snapshots copy caches and observations; only ``observe`` notes something."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kube_in_process.options import Preset

from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.kinds import KindState
from claimctl.controller.keys import ClaimKey, WorkloadKey
from claimctl.controller.live_reads import Findings, Investigator
from claimctl.controller.observations.observations import ABSENT_SECONDS, Observations
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.kube.clock import LoopClock
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.reservation.facts.workloads import JudgedWorkload, WorkloadPhase
from claimctl.reservation.kinds.rules import Rule, Verdict
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import STICKY_CLAIMS_ANNOTATION
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import CLAIM, NAMESPACE, NOW, running
from tests.support.counting_server import pod_body, server
from tests.support.hand_clock import HandClock
from tests.unit.controller.cluster import (
    define_custom_resources,
    filled,
    furnish,
    groups_server,
    plan,
)

KEY = ClaimKey(NAMESPACE, CLAIM)
GONE = Findings(claim_read_for=WriteList("1", ()))
"""A live read has shown that the claim is gone."""


def snapshots(caches: Caches, clock: HandClock) -> Snapshots:
    made = server()
    knowledge = Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods, caches.kinds),
        clock=clock,
        rules=Rules(),
    )
    return Snapshots(knowledge)


def copied(copies: Snapshots, caches: Caches) -> Snapshot:
    """The snapshot of the claim after the watch has shown it."""
    copies.observe(KEY, Findings(live_claim=caches.claims.get(CLAIM, NAMESPACE)))
    return copies.build(KEY, Findings())


async def test_a_deleted_reservation_ages_from_its_first_observation_and_not_from_a_copy() -> None:
    made, clock = server(Preset.POD_GROUPS, kubernetes_version=(1, 37)), HandClock()
    furnish(made)
    made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    copies = snapshots(await filled(made), clock)

    def age() -> float:
        (held,) = copies.build(KEY, Findings()).reservations
        assert held.reservation.metadata.deleting
        return held.deleting_age

    age()
    clock.time += 5
    assert age() == 0.0
    copies.observe(KEY, Findings())
    clock.time += 3
    assert age() == 3.0
    copies.observe(KEY, Findings())
    assert age() == 3.0


@pytest.mark.parametrize(("there", "age"), [(True, 400.0), (False, 0.0)])
async def test_the_ghosts_of_a_claim_that_is_gone_do_not_age(there: bool, age: float) -> None:
    """They stay on record until the claim is there again, or its reservation goes."""
    made, clock = server(Preset.POD_GROUPS, kubernetes_version=(1, 37)), HandClock()
    furnish(made)
    caches = await filled(made)
    copies = snapshots(caches, clock)
    copies._know.observations.ghosts.observe(running("a"), None)
    clock.time += 400
    found = Findings(claim=caches.claims.get(CLAIM, NAMESPACE)) if there else GONE
    (ghost,) = copies.build(KEY, found).ghosts
    assert ghost.age == age


async def test_the_entries_of_a_kind_that_is_not_served_are_known_by_its_rule() -> None:
    """Another reservation of the same workload may have put the entry into the list."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    reservation = made.admin.get("claimreservations", NAMESPACE, "train-slice")
    ref = {"apiGroup": "acme.example", "kind": "Gang", "name": "train"}
    made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    made.create(
        "claimreservations",
        {**reservation, "metadata": {"name": "gang", "namespace": NAMESPACE}}
        | {"spec": reservation["spec"] | {"workloadRef": ref}, "status": {}},
    )
    caches = await filled(made)
    rule = Rule("acme.example", "Gang", "gangs")
    caches.kinds.states[rule.key] = KindState(rule, problem="not served")
    every = copied(snapshots(caches, HandClock()), caches).reservations
    (held,) = (each for each in every if each.name == "gang")
    assert held.workload.phase is WorkloadPhase.UNKNOWN
    assert held.resource == "gangs"


async def seen(plural: str, name: str, *path: str) -> Snapshot:
    """The snapshot of a held claim while one object cannot be read."""
    made, spoilt = groups_server()
    furnish(made)
    if plural == "downgradeplans":
        made.create("downgradeplans", plan("other"))
    spoilt.spoil(plural, name, *path)
    caches, clock = await filled(made), LoopClock(NOW)
    knowledge = Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods, caches.kinds),
        clock=clock,
        rules=Rules(dialect="podgroup"),
    )
    return copied(Snapshots(knowledge), caches)


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


@pytest.mark.parametrize(("phase", "dead"), [("Running", 0), ("Succeeded", 1)])
async def test_a_listed_pod_is_dead_once_it_is_done(phase: str, dead: int) -> None:
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    pod = made.admin.get("pods", NAMESPACE, "train-1")
    made.admin.update("pods", pod | {"status": {"phase": phase}}, "status")
    caches = await filled(made)
    snapshot = copied(snapshots(caches, HandClock()), caches)
    assert snapshot.memory.dead_age == dict.fromkeys([pod["metadata"]["uid"]][:dead], 0.0)


@pytest.mark.parametrize("there", [True, False], ids=["there", "gone"])
async def test_a_listed_group_is_dead_if_it_is_gone(there: bool) -> None:
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    uid = "gone"
    if there:
        meta = {"name": "train", "namespace": NAMESPACE}
        spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
        uid = made.create("podgroups", {"metadata": meta, "spec": spec})["metadata"]["uid"]
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train"}
    claim = made.admin.get("resourceclaims", NAMESPACE, CLAIM)
    claim["status"]["reservedFor"].append({**group, "uid": uid})
    made.admin.update("resourceclaims", claim, "status")
    caches = await filled(made)
    informer = caches.groups.follow()
    following = asyncio.create_task(informer.run())
    await informer.wait_synced()
    snapshot = copied(snapshots(caches, HandClock()), caches)
    following.cancel()
    assert (uid in snapshot.memory.dead_age) is not there


async def test_a_listed_pod_that_cannot_be_read_is_neither_dead_nor_a_ghost() -> None:
    snapshot = await seen("pods", "train-1")
    assert len(snapshot.references) == 1
    assert (snapshot.ghosts, snapshot.memory.dead_age) == ((), {})


@pytest.mark.parametrize("path", [(), ("metadata",)], ids=["known", "nameless"])
async def test_of_a_workload_that_cannot_be_read_the_claim_knows_no_more(
    path: tuple[str, ...],
) -> None:
    (held,) = (await seen("deployments", "train", *path)).reservations
    assert held.workload.phase is WorkloadPhase.UNREADABLE
    assert bool(held.workload.uid) == (not path)
    assert "cannot be read" in held.workload.problem


@pytest.mark.parametrize(("path", "frozen"), [(("spec", "namespaces"), True), ((), False)])
async def test_a_plan_that_cannot_be_read_freezes_what_it_may_name(
    path: tuple[str, ...], frozen: bool
) -> None:
    assert (await seen("downgradeplans", "claimctl", *path)).frozen == frozen


@pytest.mark.parametrize("recorded", [True, False], ids=["the status", "the claim alone"])
async def test_replica_sets_of_a_deployment_that_is_gone_are_known_by(recorded: bool) -> None:
    """The status of a new hold is written a moment after the hold."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    deployment = made.admin.get("deployments", NAMESPACE, "train")
    uid = deployment["metadata"]["uid"]
    hold = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": uid}
    claim = made.admin.get("resourceclaims", NAMESPACE, CLAIM)
    await made.client.merge_patch(
        RESOURCECLAIMS,
        ObjectMeta(
            name=CLAIM, namespace=NAMESPACE, resource_version=claim["metadata"]["resourceVersion"]
        ),
        {"status": {"reservedFor": [*claim["status"]["reservedFor"], hold]}},
        subresource="status",
    )
    if recorded:
        held = made.admin.get("claimreservations", NAMESPACE, "train-slice")
        held["status"] = {"reservedFor": hold, "claimUID": claim["metadata"]["uid"]}
        made.admin.update("claimreservations", held, "status")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": uid}
    left = {"metadata": {"name": "train-1", "namespace": NAMESPACE}, "spec": deployment["spec"]}
    left["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    made.create("replicasets", {**left, "spec": _of_replica_set(deployment["spec"])})
    copies = snapshots(await filled(made), HandClock())
    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    (found,) = copies.build(KEY, Findings(workloads={key: None})).reservations
    assert found.workload.orphaned_replica_sets == ("train-1",)
    assert not found.workload.ended


async def test_one_live_read_of_a_workload_that_is_gone_serves_the_next_decisions() -> None:
    made, clock = server(Preset.POD_GROUPS, kubernetes_version=(1, 37)), HandClock()
    furnish(made)
    made.admin.delete("deployments", NAMESPACE, "train")
    copies = snapshots(await filled(made), clock)

    def phase(findings: Findings) -> WorkloadPhase:
        copies.observe(KEY, findings)
        return copies.build(KEY, findings).reservations[0].workload.phase

    key = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    assert phase(Findings()) is WorkloadPhase.UNSEEN
    assert phase(Findings(workloads={key: None})) is WorkloadPhase.ABSENT
    clock.time += ABSENT_SECONDS - 1
    assert phase(Findings()) is WorkloadPhase.ABSENT
    clock.time += 1
    assert phase(Findings()) is WorkloadPhase.UNSEEN


def _of_replica_set(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: spec[name] for name in ("replicas", "selector", "template")}


class OneWorkload:
    """A filled cache of a kind that has one workload."""

    synced, trouble = True, None

    def __init__(self, workload: JudgedWorkload) -> None:
        self._workload = workload

    def get(self, name: str, namespace: str) -> JudgedWorkload | None:
        own = self._workload.metadata
        return self._workload if (own.name, own.namespace) == (name, namespace) else None

    def unreadable_for(self, name: str, namespace: str) -> None:
        return None

    def unread(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize(("uid", "over"), [("uid-train", True), ("forged", False)])
async def test_only_pods_of_the_workload_say_which_claim_an_ordinal_has(
    uid: str, over: bool
) -> None:
    """The pod of ordinal 1 has the claim of another template."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    rule = Rule("x.io", "Gang", "gangs")
    define_custom_resources(made)
    big, other = (f"train-1.gang-x-io.gpu.{template}" for template in ("big", "other"))
    spec = {
        "resourceClaimName": big,
        "workloadRef": {"apiGroup": "x.io", "kind": "Gang", "name": "train"},
        "sticky": {"ordinal": 1},
    }
    meta = {"name": "train-1", "namespace": NAMESPACE}
    made.create("claimreservations", {"metadata": meta, "spec": spec})
    owner = {"apiVersion": "x.io/v1", "kind": "Gang", "name": "train", "controller": True}
    pod = pod_body("any", other)
    pod["metadata"]["ownerReferences"] = [{**owner, "uid": uid}]
    pod["metadata"]["annotations"] = {STICKY_CLAIMS_ANNOTATION: "gpu=other"}
    made.create("pods", pod)
    caches: Any = await filled(made)
    caches.kinds.states[rule.key] = KindState(rule)
    gang = ObjectMeta(name="train", namespace=NAMESPACE, uid="uid-train")
    caches.workloads[rule.key] = OneWorkload(JudgedWorkload(metadata=gang, verdict=Verdict()))
    copies = snapshots(caches, HandClock())
    (held,) = copies.build(ClaimKey(NAMESPACE, big), Findings()).reservations
    assert held.workload.claim_over is over
