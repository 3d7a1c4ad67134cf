"""The account of ``claimctl reschedule`` uses each of its rights and needs no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

from kube_in_process.options import ClusterOptions, Preset
from msgspec.structs import replace as changed

from claimctl.kube.client import Client
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection
from claimctl.wire.resources import CLAIMRESERVATIONS, PODGROUPS, PODS
from claimctl.wire.seams import Transport
from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.plan.plan import Plan, PodRef, Reallocation, Release
from claimctl_reschedule.plan.planning import NOT_LISTED
from claimctl_reschedule.plan.policy import Policy, Profile, UnplaceablePods
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.loop import Loop, election_settings
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule_tests.e2e.moving import (
    evictions,
    led_since,
    move,
    plan_of,
    runner,
    running,
    taint_step,
)
from claimctl_reschedule_tests.e2e.rescheduling import DUPLICATES
from claimctl_reschedule_tests.e2e.rescheduling import runner as policy_runner
from claimctl_reschedule_tests.e2e.resizing import node_with, resize, resizes, until_deferred
from claimctl_reschedule_tests.e2e.unplaceable import install_policy
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, PODGROUP_136, Stage, embedded_stage
from tests.e2e.node_taints import taints
from tests.e2e.rights import as_account, grant, permissions, strict, watched
from tests.e2e.site import CONTROLLER_NAMESPACE

RIGHTS = "rescheduler/rights.yaml"
ACCOUNT = "claimctl-rescheduler"
THREE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
USER = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{ACCOUNT}"


async def test_every_permission_is_used_and_no_other_is_asked_for() -> None:
    async with embedded_stage(strict(replace(PODGROUP_136, nodes=3))) as stage:
        register = watched(stage.embedded, USER)
        given = permissions(RIGHTS)
        await grant(stage, given, RIGHTS)
        await install_policy(stage)
        transport = await as_account(stage, ACCOUNT)
        plan = await _plan(stage)
        loop = _loop(stage, transport, plan)
        run = asyncio.create_task(loop.run())
        await stage.until(lambda: _is_done(stage), "the plan is executed", within=90)
        loop.runner.stop.set()
        await run
        assert list(register.refused) == []
        # the path is asked for by newer servers: test_the_gate_is_asked_for_with_its_right
        wanted = [each for each in given if not each.path]
        unused = [each for each in wanted if not any(map(each.allows, register.used))]
        assert "\n".join(map(str, unused)) == ""


async def _plan(stage: Stage) -> Plan:
    """A unit leaves its node, and a held claim is given up."""
    (pod,) = await running(stage, replicas=1)
    await stage.client.create(CLAIMRESERVATIONS, manifests.reservation(), NAMESPACE)
    step = await taint_step(stage, pod.spec.node_name, pod, "u", critical=False)
    plan = await plan_of(stage, [move(pod, unit="u", closes=pod.spec.node_name)], step)
    asked = Reallocation(
        namespace=NAMESPACE,
        reservation="train-slice",
        claim="slice",
        claim_uid="c-1",
        unit="u",
        leader_since=await led_since(stage),
    )
    release = Release(pod=await _braked_pod(stage))
    return changed(plan, reallocations=(asked,), releases=(release,)).sealed()


async def _braked_pod(stage: Stage) -> PodRef:
    gates = {"schedulingGates": [{"name": BRAKE_GATE}], "containers": [{"name": "c", "image": "x"}]}
    body = {"metadata": {"name": "waits", "namespace": NAMESPACE}, "spec": gates}
    made = await stage.create(PODS, body)
    return PodRef(namespace=NAMESPACE, name="waits", uid=made.metadata.uid)


def _loop(stage: Stage, transport: Transport, plan: Plan) -> Loop:
    client = Client(transport, stage.clock)
    client.use_version(PODGROUPS.group, "v1alpha2")
    events = EventRecorder(client, stage.clock, "claimctl.io/rescheduler", "one")
    made = runner(stage, plan=plan)
    policy = Policy(profiles=(Profile(deschedule=(UnplaceablePods(),)),))
    process = replace(made, client=client, policy=policy, signs=Signs(client.telemetry, events))
    process.records = replace(made.records, client=client)
    settings = election_settings(CONTROLLER_NAMESPACE)
    election = LeaderElection(client, stage.clock, settings, "one", rng=Random(0))
    return Loop(process, election, 5.0, events)


async def _is_done(stage: Stage) -> bool:
    """The request to give the claim up is withdrawn at the end: only the history has it."""
    asked = any(
        "claimctl.io/reallocate" in (each.object()["metadata"].get("annotations") or {})
        for each in stage.embedded.history()
        if each.plural == "claimreservations"
    )
    return len(evictions(stage)) == 1 and asked and await taints(stage) == []


async def test_the_gate_is_asked_for_with_its_right() -> None:
    """Without the right, claimctl does not guess."""
    newer = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 37), nodes=2)
    async with embedded_stage(strict(newer)) as stage:
        register = watched(stage.embedded, USER)
        given = permissions(RIGHTS)
        (path,) = [each for each in given if each.path]
        await grant(stage, [each for each in given if each is not path], RIGHTS)
        transport = await as_account(stage, ACCOUNT)
        await node_with(stage, big=(30, "high"), low=(30, "low"))
        await resize(stage, "big", 60)
        await until_deferred(stage, "big")
        plan = await policy_runner(stage, resizes(), transport).plan()
        assert (plan.moves, len(register.refused)) == ((), 1)
        assert {each.reason for each in plan.skipped} == {Ground.GATE_UNKNOWN}
        role = stage.embedded.admin.get("clusterroles", "", ACCOUNT)
        rules = [*role["rules"], path.rule()]
        stage.embedded.admin.update("clusterroles", {**role, "rules": rules})
        plan = await policy_runner(stage, resizes(), transport).plan()
        assert len(plan.moves) == 1
        assert any(map(path.allows, register.used))


async def test_without_the_right_to_list_workload_kinds_none_counts() -> None:
    """An account from before has no such right; the plan says so once."""
    async with embedded_stage(strict(THREE)) as stage:
        given = [each for each in permissions(RIGHTS) if each.resource != "workloadkinds"]
        await grant(stage, given, RIGHTS)
        process = policy_runner(stage, DUPLICATES, await as_account(stage, ACCOUNT))
        assert [note.text for note in (await process.plan()).notes] == [NOT_LISTED]
