"""A downgrade and the way back, with a pod that ends and another that comes in between."""

from __future__ import annotations

from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import DEPLOYMENTS, DOWNGRADEPLANS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage


async def there_and_back(stage: Stage, dialect: str) -> None:
    """Prepare, let a pod end and another come, restore: the end equals the beginning."""
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=3, reserve="*")
    groups = DIALECTS[dialect].groups
    await stage.create(DEPLOYMENTS, manifests.in_group(body) if groups else body)
    await stage.until_running(3)
    wanted = {"deployments/train", *(("podgroups/train",) if groups else ())}
    await until_held_by(stage, wanted)
    before = (await stage.claim()).status.allocation
    status = await prepared(stage)
    assert (status, await workloads(stage)) == (PlanPhase.PREPARED, set())
    await end_a_pod(stage)
    if not groups:  # the scheduler puts a group back
        assert await workloads(stage) == set()
    await restored(stage, wanted)
    assert (await stage.claim()).status.allocation == before
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 4}})
    await stage.until_running(4)
    assert await workloads(stage) == wanted


async def workloads(stage: Stage) -> set[str]:
    """The entries of the list that are no pods."""
    return {each for each in await stage.references() if not each.startswith("pods/")}


async def until_held_by(stage: Stage, wanted: set[str]) -> None:
    async def held() -> bool:
        return await workloads(stage) == wanted

    await stage.until(held, f"{wanted} hold the claim")


async def prepared(stage: Stage) -> str:
    plan = await plans.begin(stage.client, DowngradePlanSpec())
    return (await plans.follow(stage.client, plan, lambda _: None)).phase


async def end_a_pod(stage: Stage) -> None:
    """Delete a pod, and wait until another one runs and is listed."""
    gone = (await stage.running())[0]
    await stage.client.delete(PODS, gone.metadata.name, NAMESPACE)

    async def replaced() -> bool:
        running = await stage.running()
        return len(running) == 3 and await all_covered(stage, running)

    await stage.until(replaced, "another pod runs, and the list covers it")


async def all_covered(stage: Stage, running: tuple[Pod, ...]) -> bool:
    listed = await stage.references()
    names = {f"pods/{pod.metadata.name}" for pod in running}
    return names <= set(listed) or "podgroups/train" in listed


async def restored(stage: Stage, wanted: set[str]) -> None:
    """Carry out the way back; its progress counts the claim, and the plan can be deleted."""
    back = await plans.begin_restore(stage.client, None)
    assert back is not None
    status = await plans.follow(stage.client, back, lambda _: None)
    assert (status.phase, status.done, status.total) == (PlanPhase.RESTORED, 1, 1)
    await until_held_by(stage, wanted)
    await plans.end(stage.client)
    assert (await stage.client.list(DOWNGRADEPLANS)).items == ()
