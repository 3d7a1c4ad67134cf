"""A plan's life: one at a time, taken up again, followed while a controller carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.downgrade import plans
from claimctl.downgrade.plans import NoSuchNamespace, PlanRefused
from claimctl.downgrade.records import is_carried_out
from claimctl.kube.client import Client
from claimctl.wire.reservations import ClaimName, DowngradePlan, DowngradePlanSpec
from claimctl.wire.resources import DOWNGRADEPLANS
from tests.support.claim_server import NAMESPACE, Server


async def stored(server: Server) -> DowngradePlan:
    (plan,) = (await server.client.list(DOWNGRADEPLANS)).items
    return plan


async def test_a_plan_is_written_for_the_namespaces() -> None:
    server = Server.started("ml", "web")
    plan = await plans.begin(server.client, DowngradePlanSpec(namespaces=("ml", "web")))
    assert plan.spec.namespaces == ("ml", "web")
    assert await stored(server) == plan


async def test_a_plan_under_way_with_the_same_scope_is_gone_on_with() -> None:
    server = Server.started("ml", "web")
    first = await plans.begin(server.client, DowngradePlanSpec(namespaces=("ml", "web")))
    assert await plans.begin(server.client, DowngradePlanSpec(namespaces=("web", "ml"))) == first


async def test_a_finished_plan_is_asked_for_once_more_and_keeps_its_record() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    await server.carry_out()
    again = await plans.begin(server.client, DowngradePlanSpec())
    assert (again.status.phase, len(again.status.claims)) == ("", 1)


async def test_a_preview_beside_a_plan_counts_what_the_plan_has_on_record() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    done = await server.carry_out()
    again = await plans.preview(server.client, DowngradePlanSpec())
    assert [each.replaced_references for each in again.claims] == [
        each.replaced_references for each in done.claims
    ]


async def test_a_plan_with_another_scope_is_in_the_way() -> None:
    server = Server.started()
    await plans.begin(server.client, DowngradePlanSpec(namespaces=("ml",)))
    with pytest.raises(PlanRefused, match="exists already, for ml, and only one can exist"):
        await plans.begin(server.client, DowngradePlanSpec())


async def test_a_plan_for_other_labels_is_in_the_way() -> None:
    server = Server.started()
    await plans.begin(server.client, DowngradePlanSpec(claim_selector="team=ml"))
    with pytest.raises(PlanRefused, match="for all namespaces with labels team=ml, and only one"):
        await plans.begin(server.client, DowngradePlanSpec())


async def test_another_run_may_skip_other_claims_and_work_on_more_at_a_time() -> None:
    server = Server.started()
    server.claim()
    server.pod("a")
    await server.carry_out(await server.plan(parallelism=2))
    skip = (ClaimName(namespace=NAMESPACE, name="slice"),)
    again = await plans.begin(server.client, DowngradePlanSpec(skip=skip))
    assert (again.spec.skip, again.spec.parallelism) == (skip, None)
    assert not is_carried_out(again)
    assert len(again.status.claims) == 1


@pytest.mark.parametrize("work", [plans.begin, plans.preview], ids=["run", "preview"])
async def test_a_namespace_that_does_not_exist_is_refused_and_nothing_is_written(
    work: Callable[[Client, DowngradePlanSpec], Awaitable[object]],
) -> None:
    server = Server.started()
    with pytest.raises(NoSuchNamespace, match="webb"):
        await work(server.client, DowngradePlanSpec(namespaces=(NAMESPACE, "webb")))
    assert (await server.client.list(DOWNGRADEPLANS)).items == ()


async def test_who_may_not_read_namespaces_may_still_begin_a_plan() -> None:
    server = Server.started()
    refusal = Fault(status=403, reason="Forbidden", message="namespaces")
    server.upon("get", "namespaces", lambda _: refusal)
    plan = await plans.begin(server.client, DowngradePlanSpec(namespaces=("webb",)))
    assert plan.spec.namespaces == ("webb",)


async def test_a_plan_that_is_being_deleted_is_waited_for() -> None:
    server = Server.started()
    plan = await plans.begin(server.client, DowngradePlanSpec())
    name = plan.metadata.name
    server.admin.patch("downgradeplans", "", name, {"metadata": {"finalizers": ["x.io/y"]}})
    server.admin.delete("downgradeplans", "", name)
    with pytest.raises(PlanRefused, match="is being deleted"):
        await plans.begin(server.client, DowngradePlanSpec())


async def test_a_cluster_without_the_crds_is_told_so() -> None:
    server = Server.started(crds=False)
    with pytest.raises(PlanRefused, match="install the CRDs"):
        await plans.begin(server.client, DowngradePlanSpec())


async def advance(client: Client, phase: str, done: int) -> None:
    """What a controller writes."""
    (plan,) = (await client.list(DOWNGRADEPLANS)).items
    await client.merge_patch(
        DOWNGRADEPLANS,
        plan.metadata,
        {"status": {"phase": phase, "total": 2, "done": done, "observedGeneration": 1}},
        subresource="status",
    )


async def test_a_controllers_progress_is_followed_to_the_end() -> None:
    server = Server.started()
    plan = await plans.begin(server.client, DowngradePlanSpec())
    heard: list[tuple[str, int]] = []

    async def work() -> None:
        for phase, done in (("Frozen", 0), ("Expanding", 1), ("Prepared", 2)):
            await asyncio.sleep(30.0)
            await advance(server.client, phase, done)

    working = asyncio.create_task(work())
    status = await plans.follow(
        server.client, plan, lambda told: heard.append((told.phase, told.done))
    )
    await working
    assert (status.phase, status.done) == ("Prepared", 2)
    assert heard == [("", 0), ("Frozen", 0), ("Expanding", 1), ("Prepared", 2)]


async def test_a_controller_that_does_not_go_on_is_given_up_and_the_plan_left() -> None:
    server = Server.started()
    plan = await plans.begin(server.client, DowngradePlanSpec())
    with pytest.raises(PlanRefused, match=r"has not continued .* for 60 s \(phase none yet"):
        await plans.follow(server.client, plan, lambda _: None)
    assert await stored(server) == plan


async def test_a_plan_that_is_deleted_meanwhile_ends_the_following() -> None:
    server = Server.started()
    plan = await plans.begin(server.client, DowngradePlanSpec())
    loop = asyncio.get_running_loop()
    name = plan.metadata.name
    loop.call_later(5.0, lambda: server.admin.delete("downgradeplans", "", name) and None)
    with pytest.raises(PlanRefused, match="was deleted while it was followed"):
        await plans.follow(server.client, plan, lambda _: None)


async def test_while_a_plan_is_followed_a_controller_is_seen_to() -> None:
    server = Server.started()
    plan = await plans.begin(server.client, DowngradePlanSpec())
    asked: list[float] = []

    async def ensure() -> None:
        asked.append(server.clock.monotonic())

    with pytest.raises(PlanRefused, match="has not continued"):
        await plans.follow(server.client, plan, lambda _: None, ensure=ensure)
    assert len(asked) == 60 / plans.LOOK_SECONDS
