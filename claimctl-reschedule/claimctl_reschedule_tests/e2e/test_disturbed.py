"""What a run does while pods, nodes and the server are disturbed, and what holds for every plan."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
import yaml
from kube_in_process.errors import StatusError
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.kube.errors import Forbidden
from claimctl.wire.resources import DEPLOYMENTS, PODGROUPS
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan as planner
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.observing import Observation
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule_labs.clusters.making import Made, made
from claimctl_reschedule_labs.clusters.names import SPACES
from claimctl_reschedule_labs.clusters.playing import build
from claimctl_reschedule_tests.e2e.rescheduling import (
    CPU,
    QUICK,
    closed,
    filled,
    places,
    runner,
    utilization,
    workload,
)
from tests.e2e import manifests
from tests.e2e.harness import PODGROUP_137, Stage, embedded_stage
from tests.e2e.node_taints import taints

USER = "rescheduler"
SEEDS = (4, 16, 35, 49, 98)


def evicted(stage: Stage) -> list[tuple[str, str]]:
    """UID and name of the pods that the run has evicted, in this order."""
    return [
        (revision.object()["metadata"]["uid"], revision.name)
        for revision in stage.embedded.history()
        if revision.plural == "pods" and revision.actor == USER and revision.subresource == ""
    ]


# Scenario 13


GANG = replace(PODGROUP_137, nodes=3)


async def ganged(stage: Stage) -> None:
    """Two pods of a group that is disrupted as a whole use too much of the first node."""
    await closed(stage, 1, 2)
    group = manifests.pod_group("gang")
    group["spec"] |= {"disruptionMode": {"all": {}}}
    await stage.create(PODGROUPS, group)
    body = manifests.in_group(workload("gang", 2, requests={"cpu": "6"}), "gang")
    await stage.create(DEPLOYMENTS, body)
    await filled(stage)
    await stage.until_running(5)
    await closed(stage, 1, 2, unschedulable=False)


@pytest.mark.parametrize(("refused", "expected"), [(2, 2), (1000, 0)], ids=["for a moment", "long"])
async def test_a_gang_moves_whole_or_not_at_all(refused: int, expected: int) -> None:
    """The server says 429 to its second pod: the run tries again, or has tried nothing."""
    async with embedded_stage(GANG) as stage:
        await ganged(stage)
        process = runner(stage, utilization(*CPU), stage.site.connection(USER), QUICK)
        plan = await process.plan()
        gang = [each for each in plan.moves if each.pod.name.startswith("gang-")]
        assert len(gang) == 2
        stage.embedded.handler.fault = _refusing(gang[1].pod.name, refused)
        await process.execute(plan)
        moved = [name for _, name in evicted(stage) if name.startswith("gang-")]
        assert len(moved) == expected
        stage.embedded.handler.fault = None
        await stage.until_running(5)
        assert (await places(stage, "gang"))[stage.site.nodes[0]] == 2 - expected


def _refusing(pod: str, times: int) -> Callable[[FaultPoint], Fault | None]:
    left = times

    def fault(point: FaultPoint) -> Fault | None:
        nonlocal left
        if point.subresource != "eviction" or point.name != pod or not left:
            return None
        left -= 1
        return Fault(status=429, reason="TooManyRequests")

    return fault


# Scenario 38


@pytest.mark.parametrize("plural", ["poddisruptionbudgets", "nodes", "resourceclaims"])
async def test_without_a_right_to_read_nothing_is_evicted(plural: str) -> None:
    async with embedded_stage(GANG) as stage:
        await ganged(stage)
        stage.embedded.handler.fault = lambda point: (
            Fault(status=403, reason="Forbidden") if point.plural == plural else None
        )
        with pytest.raises(Forbidden, match=plural):
            await runner(stage, utilization(*CPU), stage.site.connection(USER)).run()
        assert evicted(stage) == []


async def test_without_the_right_to_evict_the_run_says_so_and_leaves_no_taint() -> None:
    async with embedded_stage(GANG) as stage:
        await ganged(stage)
        stage.embedded.handler.fault = lambda point: (
            Fault(status=403, reason="Forbidden") if point.subresource == "eviction" else None
        )
        report = await runner(stage, utilization(*CPU), stage.site.connection(USER)).run()
        assert (report.evicted, evicted(stage)) == (0, [])
        assert "/eviction: 403" in report.failure
        assert await taints(stage) == []


# Scenarios 39 and 43


@pytest.mark.virtual_limit(20_000)
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_executed_is_a_part_of_the_plan(seed: int) -> None:
    """Pods change between plan and act, and the server refuses, fails and breaks connections."""
    cluster, rng = made(seed), Random(f"disturbed {seed}")
    async with embedded_stage(cluster.options) as stage:
        await build(stage, cluster)
        text = yaml.safe_dump(cluster.policy)
        process = runner(stage, text, stage.site.connection(USER), QUICK)
        plan = await process.plan()
        assert plan.moves
        stage.embedded.handler.fault = _failing(rng)
        disturbing = asyncio.create_task(_disturb(stage, plan, rng))
        report = await process.execute(plan)
        disturbing.cancel()
        stage.embedded.handler.fault = None
        went = evicted(stage)
        assert {uid for uid, _ in went} <= {move.pod.uid for move in plan.moves}
        assert len(went) == len(dict(went))
        if not report.failure:
            assert all(step.result is Result.EVICTED or step.reason for step in report.steps)
        await runner(stage, text).sweep(everything=True)
        assert [each for each in await taints(stage) if each[2].startswith("claimctl-")] == []


def _failing(rng: Random) -> Callable[[FaultPoint], Fault | None]:
    """Every fifth request of the run fails in some way."""
    ways = (
        Fault(status=429, reason="TooManyRequests", retry_after=1),
        Fault(status=500, reason="InternalError"),
        Fault(drop=True),
        Fault(drop=True, after_write=True),
        Fault(delay=5.0),
    )

    def fault(point: FaultPoint) -> Fault | None:
        if point.user != USER or rng.random() >= 0.2:
            return None
        if point.verb == "list" and rng.random() < 0.5:
            return Fault(status=410, reason="Expired")
        return rng.choice(ways)

    return fault


async def _disturb(stage: Stage, plan: Plan, rng: Random) -> None:
    """Users change pods of the plan and others, and nodes, at random times."""
    api = stage.embedded.admin
    pods = [(each.pod.namespace, each.pod.name) for each in plan.moves]
    pods += [(each.pod.namespace, each.pod.name) for each in plan.skipped[:5]]
    while True:
        await stage.clock.sleep(rng.choice((0.01, 0.5, 2.0)))
        space, name = rng.choice(pods)
        with suppress(StatusError):
            match rng.randrange(3):
                case 0:
                    api.delete("pods", space, name)
                case 1:
                    label = {"metadata": {"labels": {"changed": str(rng.randrange(9))}}}
                    api.patch("pods", space, name, label)
                case 2:
                    closed_ = rng.random() < 0.5
                    stage.embedded.cordon(rng.choice(stage.site.nodes), unschedulable=closed_)


# Scenario 44


@pytest.mark.virtual_limit(20_000)
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_holds_for_every_plan(seed: int) -> None:
    """The order of what is read has no influence. No limit is passed, no budget, no pod twice."""
    cluster = made(seed)
    async with embedded_stage(cluster.options) as stage:
        await build(stage, cluster)
        process = runner(stage, yaml.safe_dump(cluster.policy))
        observed = await Observation(process.client, process.clock, process.records).read()
        first = planner(observed, process.policy)
        rng = Random(seed)
        for _ in range(3):
            assert planner(_shuffled(observed, rng), process.policy).digest == first.digest
        moved = [move.pod.uid for move in first.moves]
        stays = [each.pod.uid for each in first.skipped]
        assert len({*moved, *stays}) == len(moved) + len(stays)
        assert all(each.reason in list(Ground) for each in first.skipped)
        _check_limits(cluster, first)
        _check_budgets(stage, first)


def _shuffled(observed: Observed, rng: Random) -> Observed:
    changed: dict[str, Any] = {}
    for each in fields(observed):
        value = getattr(observed, each.name)
        if isinstance(value, tuple) and each.name != "server":
            changed[each.name] = tuple(rng.sample(value, len(value)))
    return replace(observed, **changed)


def _check_limits(cluster: Made, plan: Plan) -> None:
    total = cluster.policy.get("maxNoOfPodsToEvictTotal", 1000)
    assert len(plan.moves) <= total
    per_node = cluster.policy.get("maxNoOfPodsToEvictPerNode", 1000)
    assert all(
        count <= per_node for count in Counter(each.pod.node for each in plan.moves).values()
    )


def _check_budgets(stage: Stage, plan: Plan) -> None:
    for space in SPACES:
        for budget in stage.embedded.admin.list("poddisruptionbudgets", space):
            app = budget["spec"]["selector"]["matchLabels"]["app"]
            planned = [
                move
                for move in plan.moves
                if move.pod.namespace == space and dict(move.facts.labels).get("app") == app
            ]
            ready = [move for move in planned if move.facts.ready]
            assert len(ready) <= budget["status"]["disruptionsAllowed"], app
