"""Each pod of a LeaderWorkerSet, and of a kind whose WorkloadKind names the labels of the ordinals,
has a claim of its own, which comes back to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.kinds import define, describe, gangs
from tests.e2e.operators import LEADERS, LeaderWorkerSets, owned
from tests.e2e.sticky import (
    LIFE_WRITES,
    asking,
    entries,
    install_policy,
    live,
    make_templates,
    pods,
)
from tests.e2e.unreliable_transport import UnreliableTransport

pytestmark = pytest.mark.cluster(HOLD_136)

Devices = dict[str, set[tuple[str, str]]]
PLACES = ("0-0", "0-1", "1-0", "1-1")
"""Two groups of a leader and a worker."""


def named(*places: str, template: str = "big") -> list[str]:
    return [f"train-{place}.lws.gpu.{template}" for place in places]


async def devices(stage: Stage) -> Devices:
    """By claim: the devices that it has."""
    claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    return {
        claim.metadata.name: {(device.pool, device.device) for device in claim.devices}
        for claim in claims
    }


async def uids(stage: Stage) -> dict[str, str]:
    """By claim: its UID."""
    claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    return {claim.metadata.name: claim.metadata.uid for claim in claims}


async def until_claims(stage: Stage, *names: str) -> None:
    async def holds() -> bool:
        claims = (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
        there = sorted(claim.metadata.name for claim in claims)
        return there == sorted(names) and len(await stage.reservations()) == len(names)

    await stage.until(holds, f"there are the claims {names}", 400)


async def until_held(stage: Stage, *claims: str, by: str = "leaderworkersets/train") -> None:
    async def holds() -> bool:
        lists = [await stage.references(name) for name in claims]
        return all(by in references for references in lists)

    await stage.until(holds, f"{claims} are held")


def group_template(template: str = "big", size: int = 2) -> dict[str, Any]:
    body = asking(manifests.stateful_set(), "*", ("gpu", template))["spec"]["template"]
    return {"size": size, "workerTemplate": {"metadata": body["metadata"], "spec": body["spec"]}}


async def make_set(stage: Stage, groups: int, size: int, when_scaled: str = "Retain") -> None:
    # a hold of all claims that its pods name leaves the sticky ones alone
    notes = {"claimctl.io/when-scaled": when_scaled, "claimctl.io/reserve": "*"}
    spec = {"replicas": groups, "leaderWorkerTemplate": group_template(size=size)}
    body = {"metadata": {"name": "train", "annotations": notes}, "spec": spec}
    await stage.create(LEADERS, body)


@asynccontextmanager
async def trained(stage: Stage, operator: LeaderWorkerSets | None = None) -> AsyncIterator[Devices]:
    """A LeaderWorkerSet of two groups whose pods run; gives the devices of its claims."""
    await define(stage, LEADERS)
    await install_policy(stage)
    await make_templates(stage, "big", "other")
    async with (operator or LeaderWorkerSets(stage)).running():
        await make_set(stage, 2, 2)
        await stage.until_running(4)
        await until_held(stage, *named(*PLACES))
        yield await devices(stage)


async def scale(stage: Stage, groups: int) -> None:
    await stage.patch(LEADERS, "train", {"spec": {"replicas": groups}})


async def test_each_pod_of_a_group_comes_back_to_its_device(stage: Stage) -> None:
    await stage.started()
    async with trained(stage) as before:
        assert sorted(before) == named(*PLACES)
        assert len(set.union(*before.values())) == 4
        made = await uids(stage)
        # a group goes with its leader
        await stage.delete(PODS, "train-0")
        await stage.until_running(4)
        await stage.delete(PODS, "train-1-1")
        await stage.until_running(4)
        assert await devices(stage) == before
        assert await uids(stage) == made
        # no claim was generated beside them
        await until_claims(stage, *named(*PLACES))


async def test_a_group_that_is_scaled_away_keeps_its_devices_or_not(stage: Stage) -> None:
    await stage.started()
    async with trained(stage):
        made = await uids(stage)
        await scale(stage, 1)
        await until_pods(stage, 2)
        await stage.quiet(10)
        await scale(stage, 2)
        await stage.until_running(4)
        assert await uids(stage) == made
        change = {"metadata": {"annotations": {"claimctl.io/when-scaled": "Delete"}}}
        await stage.patch(LEADERS, "train", change)
        await scale(stage, 1)
        await until_claims(stage, *named("0-0", "0-1"))


async def until_pods(stage: Stage, count: int) -> None:
    async def holds() -> bool:
        return len((await stage.client.list(PODS, NAMESPACE)).items) == count

    await stage.until(holds, f"there are {count} pods")


async def test_another_template_is_another_claim_for_the_next_pod(stage: Stage) -> None:
    await stage.started()
    async with trained(stage):
        await change_template(stage, "other")
        await until_claims(stage, *named(*PLACES, template="other"))
        await stage.until_running(4)


async def test_a_device_is_not_given_up_by_a_late_cache_of_statefulsets(stage: Stage) -> None:
    """The template of the leaders has changed and changed back; the pod of an ordinal is away when
    claimctl has seen the first change alone."""
    transport = UnreliableTransport(stage.connect())
    await stage.started(transport=transport)
    async with trained(stage):
        before = await uids(stage)
        stage.embedded.pause("statefulset-controller")
        await change_template(stage, "other")
        await stage.quiet(10)
        transport.late = {"statefulsets": 60.0}
        await change_template(stage, "big")
        await stage.quiet(5)
        await stage.delete(PODS, "train-1")
        await stage.quiet(30)
        stage.embedded.resume("statefulset-controller")
        await stage.until_running(4)
        assert await uids(stage) == before


async def change_template(stage: Stage, template: str) -> None:
    change = {"spec": {"leaderWorkerTemplate": group_template(template)}}
    await stage.patch(LEADERS, "train", change)


async def test_claims_go_that_no_pod_asks_for_any_more(stage: Stage) -> None:
    await stage.started()
    async with trained(stage):
        change = {"metadata": {"annotations": {"claimctl.io/sticky": "nic"}}}
        template = {"leaderWorkerTemplate": {"workerTemplate": change}}
        await stage.patch(LEADERS, "train", {"spec": template})

        async def are_gone() -> bool:
            return not await stage.reservations()

        await stage.until(are_gone, "no sticky claim is left", 120)
        assert not [name for name in await devices(stage) if ".lws." in name]
        await stage.until_running(4)


async def test_pods_of_another_workload_take_no_claim_from_an_ordinal(stage: Stage) -> None:
    """They have the names of the ordinal's pods, and ask for the claim of another template."""
    await stage.started()
    operator = LeaderWorkerSets(stage)
    async with trained(stage, operator):
        before = await uids(stage)
        # the ordinal has no pod for a while
        operator.may_make.clear()
        await stage.delete(STATEFULSETS, "train-1")
        await until_pods(stage, 3)
        body = asking(manifests.stateful_set("train-1", 1), "*", ("gpu", "other"))
        body["spec"]["ordinals"] = {"start": 1}
        body["spec"]["template"]["metadata"]["labels"] |= {
            "leaderworkerset.sigs.k8s.io/name": "train",
            "leaderworkerset.sigs.k8s.io/group-index": "1",
        }
        await stage.create(STATEFULSETS, body)
        await stage.until_running(4)
        await stage.quiet(30)
        await stage.delete(STATEFULSETS, "train-1")
        operator.may_make.set()
        await until_claims(stage, *named(*PLACES))
        await stage.until_running(4)
        assert await uids(stage) == before


async def test_the_claims_go_with_the_workload(stage: Stage) -> None:
    await stage.started()
    async with trained(stage):
        await stage.delete(LEADERS, "train")
        await until_claims(stage)
        await until_pods(stage, 0)


async def test_the_idle_time_of_groups_goes_on_when_the_controller_restarts(stage: Stage) -> None:
    await stage.started("first", leader_elect=False)
    async with trained(stage):
        notes = {"claimctl.io/idle-timeout-seconds": "600"}
        await stage.patch(LEADERS, "train", {"metadata": {"annotations": notes}})
        await scale(stage, 0)
        await until_pods(stage, 0)
        await stage.quiet(20)
        before = await stage.reservations()
        assert all(each.status.idle_since is not None for each in before)
        await stage.kill("first")
        await stage.started("second", leader_elect=False)
        await stage.quiet(20)
        assert await stage.reservations() == before


async def test_pods_wait_until_their_workload_is_known(stage: Stage) -> None:
    """The pods do not name the UID of a LeaderWorkerSet."""
    await define(stage, LEADERS)
    await install_policy(stage)
    await make_templates(stage, "big")
    await stage.started()
    meta = {"name": "train", "labels": {"leaderworkerset.sigs.k8s.io/name": "train"}}
    leaders = asking(manifests.stateful_set(replicas=1), "*", ("gpu", "big"))
    leaders["spec"]["template"]["metadata"]["labels"] |= meta["labels"]
    await stage.create(STATEFULSETS, leaders)
    [pod] = await pods(stage, 1)
    assert entries(pod) == {"gpu": "claim train-0-0.lws.gpu.big"}
    await stage.quiet(30)
    assert await devices(stage) == {}
    await make_set(stage, 1, 1)
    await stage.until_running(1)
    await until_held(stage, *named("0-0"))


def ranked(kind: Resource[Any], template: str = "big") -> str:
    """The claim of the pod that ``rank_1`` makes."""
    group = kind.group.replace("-", "--").replace(".", "-")
    return f"train-1.gang-{group}.gpu.{template}"


async def rank_1(stage: Stage, kind: Resource[Any]) -> tuple[ObjectHeader, dict[str, Any]]:
    """A workload of a kind by rule whose second pod runs on a claim that is held; gives the
    workload, and the pod's body."""
    await define(stage, kind)
    await install_policy(stage)
    await make_templates(stage, "big", "other")
    await describe(stage, kind, ordinals={"labels": ["rank"], "counts": ["self.spec.size"]})
    await stage.started()
    body = {"metadata": {"name": "train"}, "spec": {"size": 2}}
    owner: ObjectHeader = await stage.create(kind, body)
    pod = asking(manifests.stateful_set(), "*", ("gpu", "big"))["spec"]["template"]
    pod["metadata"] |= {"name": "train-abc", "labels": {"rank": "1"}}
    await stage.create(PODS, owned(pod, owner, kind))
    await stage.until_running(1)
    await until_held(stage, ranked(kind), by="gangs/train")
    return owner, pod


async def make_next(
    stage: Stage, kind: Resource[Any], owner: ObjectHeader, pod: dict[str, Any]
) -> None:
    """Delete the pod of the ordinal, and make the next one."""
    await stage.delete(PODS, "train-abc")
    pod["metadata"]["name"] = "train-xyz"
    await stage.create(PODS, owned(pod, owner, kind))
    await stage.until_running(1)


async def test_a_kind_by_rule_has_the_ordinals_of_its_label(stage: Stage) -> None:
    kind = gangs("by-rule")
    owner, pod = await rank_1(stage, kind)
    before = await devices(stage)
    await make_next(stage, kind, owner, pod)
    assert await devices(stage) == before
    await stage.delete(PODS, "train-xyz")
    await stage.delete(kind, "train")
    await until_claims(stage)


async def test_a_kind_by_rule_whose_pods_ask_no_more_keeps_the_claim_until_a_person_deletes(
    stage: Stage,
) -> None:
    kind = gangs("asks-no-more")
    owner, pod = await rank_1(stage, kind)
    [reservation] = await stage.reservations()
    del pod["metadata"]["annotations"]
    await make_next(stage, kind, owner, pod)
    await stage.quiet(300)
    assert await stage.references(ranked(kind)) == ("gangs/train",)
    await stage.delete(CLAIMRESERVATIONS, reservation.metadata.name)
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, ranked(kind)), "the claim is deleted")
    # only the generated claim is left
    assert [name.startswith("train-xyz-gpu-") for name in await devices(stage)] == [True]


async def test_a_kind_by_rule_with_another_template_loses_the_claim_of_the_old_one(
    stage: Stage,
) -> None:
    kind = gangs("other-template")
    owner, pod = await rank_1(stage, kind)
    pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "other"
    await make_next(stage, kind, owner, pod)
    await until_claims(stage, ranked(kind, "other"))


@pytest.mark.parametrize("write", range(1, LIFE_WRITES + 2))
async def test_the_life_of_a_claim_is_finished_after_a_kill_at_any_write(
    stage: Stage, write: int
) -> None:
    await define(stage, LEADERS)
    await install_policy(stage)
    await make_templates(stage, "big")
    transport = DyingTransport(stage.connect(), write)
    await stage.started("first", transport=transport)
    transport.arm()
    [claim] = named("0-0")
    async with LeaderWorkerSets(stage).running():
        await make_set(stage, 1, 1, when_scaled="Delete")
        await live(stage, transport, claim, "leaderworkersets/train", partial(scale, stage, 0))
        assert stage.cluster is None or transport.dead.is_set() == (write <= LIFE_WRITES)
        await stage.kill("first")
        await stage.started("second")
        await scale(stage, 1)
        await stage.until_running(1)
        await until_held(stage, claim)
        await scale(stage, 0)
        await until_claims(stage)
