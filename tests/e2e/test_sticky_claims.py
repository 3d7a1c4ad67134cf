"""Each ordinal of a workload has a claim, and so a device, of its own, which comes back to it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    STATEFULSETS,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import DEVICE_CLASS, HOLD_136, NAMESPACE, Stage
from tests.e2e.pools import BROKEN, Pool
from tests.e2e.sticky import (
    LIFE_WRITES,
    asking,
    entries,
    install_policy,
    live,
    make_templates,
    pods,
)

pytestmark = pytest.mark.cluster(HOLD_136)

GPU = ("gpu", "big")
Devices = dict[str, set[tuple[str, str]]]


async def all_claims(stage: Stage) -> tuple[ResourceClaim, ...]:
    return tuple((await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items)


async def devices(stage: Stage) -> Devices:
    """By claim: the devices that it has."""
    return {
        claim.metadata.name: {(device.pool, device.device) for device in claim.devices}
        for claim in await all_claims(stage)
    }


async def until_devices(stage: Stage, wanted: Devices) -> None:
    async def holds() -> bool:
        return await devices(stage) == wanted

    await stage.until(holds, f"the claims have {wanted}", 120)


async def until_there_are(stage: Stage, resource: Any, *names: str) -> None:
    async def holds() -> bool:
        there = (await stage.client.list(resource, NAMESPACE)).items
        return sorted(item.metadata.name for item in there) == sorted(names)

    await stage.until(holds, f"there are {names} of {resource.plural}", 400)


async def until_held(stage: Stage, *claims: str) -> None:
    async def holds() -> bool:
        lists = [await stage.references(name) for name in claims]
        return all("statefulsets/train" in references for references in lists)

    await stage.until(holds, f"{claims} are held")


def sts(*ordinals: int, template: str = "big") -> list[str]:
    return [f"train-{ordinal}.sts.gpu.{template}" for ordinal in ordinals]


async def trained(
    stage: Stage, replicas: int = 3, device_class: str = DEVICE_CLASS, **annotations: str
) -> Devices:
    """A StatefulSet with sticky claims whose pods run; returns the devices of its claims."""
    await install_policy(stage)
    await make_templates(stage, "big", "other", device_class=device_class)
    await make_set(stage, replicas, **annotations)
    await stage.until_running(replicas)
    await until_held(stage, *sts(*range(replicas)))
    return await devices(stage)


async def make_set(stage: Stage, replicas: int, **annotations: str) -> None:
    body = asking(manifests.stateful_set(replicas=replicas), "*", GPU)
    named = {f"claimctl.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    body["metadata"]["annotations"] = named
    body["spec"]["podManagementPolicy"] = "Parallel"
    await stage.create(STATEFULSETS, body)


async def scale(stage: Stage, replicas: int) -> None:
    await stage.patch(STATEFULSETS, "train", {"spec": {"replicas": replicas}})


async def ask_for(stage: Stage, template: str) -> None:
    """Let the pod template ask for another ResourceClaimTemplate; it rolls the pods."""
    entries = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec = {"template": {"spec": {"resourceClaims": entries}}}
    await stage.patch(STATEFULSETS, "train", {"spec": spec})


async def test_each_pod_comes_back_to_the_device_of_its_ordinal(stage: Stage) -> None:
    await stage.started()
    before = await trained(stage)
    assert sorted(before) == sts(0, 1, 2)
    assert len(set.union(*before.values())) == 3
    for pod in await pods(stage, 3):
        await stage.delete(PODS, pod.metadata.name)
    await stage.until_running(3)
    assert await devices(stage) == before
    # no claim was generated beside them, and each has one reservation
    assert len(await stage.reservations()) == 3


async def test_a_device_waits_for_its_ordinal_while_the_workload_is_scaled_to_0(
    stage: Stage,
) -> None:
    await stage.started()
    before = await trained(stage, retention_policy="Persistent")
    await scale(stage, 0)
    await until_there_are(stage, PODS)
    await stage.quiet(90)
    assert await devices(stage) == before
    await scale(stage, 2)
    await stage.until_running(2)
    assert await devices(stage) == before


async def test_an_idle_ordinal_gives_its_device_back_and_keeps_its_claim(stage: Stage) -> None:
    await stage.started()
    before = await trained(stage, idle_timeout_seconds="5")
    await scale(stage, 1)
    first, *others = sts(0, 1, 2)
    await until_devices(stage, {first: before[first], **{name: set() for name in others}})
    await scale(stage, 3)
    await stage.until_running(3)
    await until_held(stage, *others)
    assert (await devices(stage))[first] == before[first]


async def test_a_claim_goes_with_its_ordinal_when_that_is_asked_for(stage: Stage) -> None:
    await stage.started()
    before = await trained(stage, when_scaled="Delete", retention_policy="Persistent")
    await scale(stage, 1)
    await until_devices(stage, {name: before[name] for name in sts(0)})
    await stage.until(lambda: _has_reservations(stage, 1), "one reservation is left")
    await scale(stage, 2)
    await stage.until_running(2)
    assert sorted(await devices(stage)) == sts(0, 1)


async def _has_reservations(stage: Stage, count: int) -> bool:
    return len(await stage.reservations()) == count


async def test_another_template_is_another_claim_for_the_next_pod(stage: Stage) -> None:
    await stage.started()
    await trained(stage, retention_policy="Persistent")
    await ask_for(stage, "other")
    await until_there_are(stage, RESOURCECLAIMS, *sts(0, 1, 2, template="other"))
    await stage.until_running(3)
    await stage.until(lambda: _has_reservations(stage, 3), "three reservations are left")


async def test_pods_keep_the_claim_of_the_old_template_until_they_are_replaced(
    stage: Stage,
) -> None:
    await stage.started()
    before = await trained(stage)
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    await stage.patch(STATEFULSETS, "train", {"spec": {"updateStrategy": strategy}})
    await ask_for(stage, "other")
    await stage.quiet(90)
    assert await devices(stage) == before
    await stage.delete(PODS, "train-1")
    wanted = [*sts(0, 2), *sts(1, template="other")]
    await until_there_are(stage, RESOURCECLAIMS, *wanted)
    await stage.until_running(3)


async def test_ordinals_below_the_partition_of_a_rolling_update_keep_their_claims(
    stage: Stage,
) -> None:
    await stage.started()
    before = await trained(stage, retention_policy="Persistent")
    await set_partition(stage, 3)
    await ask_for(stage, "other")
    await scale(stage, 1)
    await until_there_are(stage, PODS, "train-0")
    await stage.quiet(60)
    await scale(stage, 3)
    await stage.until_running(3)
    assert await devices(stage) == before
    # the update goes on
    await set_partition(stage, 1)
    await until_there_are(stage, RESOURCECLAIMS, *sts(0), *sts(1, 2, template="other"))
    await stage.until_running(3)
    # no pod has the earlier template, and no later one will
    await scale(stage, 0)
    await until_there_are(stage, RESOURCECLAIMS, *sts(1, 2, template="other"))


async def test_an_ordinal_whose_update_is_stopped_halfway_has_one_claim(stage: Stage) -> None:
    """The controller is down while the ordinal gets a pod of the new template, and only then does
    the partition protect it."""
    await stage.started()
    await trained(stage, retention_policy="Persistent")
    await stage.kill()
    await ask_for(stage, "other")

    async def is_new() -> bool:
        there = {pod.metadata.name: pod for pod in await pods(stage, 3)}
        return entries(there["train-2"]) == {"gpu": "claim train-2.sts.gpu.other"}

    await stage.until(is_new, "train-2 has the new template")
    await set_partition(stage, 3)
    await stage.started("two")
    await until_there_are(stage, RESOURCECLAIMS, *sts(0, 1), *sts(2, template="other"))
    await stage.until_running(3)


async def test_an_update_that_is_taken_back_leaves_no_claim_beside_a_generated_one(
    stage: Stage,
) -> None:
    """The earlier pod template asks for no sticky claims."""
    await stage.started()
    await install_policy(stage)
    await make_templates(stage, "big")
    await stage.create(STATEFULSETS, asking(manifests.stateful_set(replicas=2), None, GPU))
    await stage.until_running(2)
    await set_partition(stage, 1)
    note = {"metadata": {"annotations": {"claimctl.io/sticky": "*"}}}
    await stage.patch(STATEFULSETS, "train", {"spec": {"template": note}})
    await until_held(stage, *sts(1))
    await set_partition(stage, 2)
    await stage.delete(PODS, "train-1")

    async def holds() -> bool:
        return not set(sts(0, 1)) & (await devices(stage)).keys()

    await stage.until(holds, "no sticky claim is left", 120)
    await stage.until_running(2)


async def set_partition(stage: Stage, partition: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    await stage.patch(STATEFULSETS, "train", {"spec": {"updateStrategy": strategy}})


async def test_the_claims_go_with_the_workload(stage: Stage) -> None:
    await stage.started()
    await trained(stage, retention_policy="Persistent")
    await stage.delete(STATEFULSETS, "train")
    for resource in (PODS, RESOURCECLAIMS, CLAIMRESERVATIONS):
        await until_there_are(stage, resource)


async def test_a_new_workload_right_after_the_last_one_has_claims_that_stay(stage: Stage) -> None:
    """They are new ones, or the old ones where garbage collection is late."""
    await stage.started()
    await trained(stage)
    await stage.delete(STATEFULSETS, "train")
    await make_set(stage, 3)
    owner = (await stage.client.get(STATEFULSETS, "train", NAMESPACE)).metadata.uid

    async def stay() -> bool:
        made = await stage.reservations()
        owners = [one.metadata.controller() for one in made]
        objects = [*made, *await all_claims(stage), *await stage.running()]
        lasting = not any(each.metadata.deleting for each in objects)
        ours = all(each is not None and each.uid == owner for each in owners)
        return lasting and ours and len(objects) == 9

    await stage.until(stay, "three pods run on claims that stay")
    await until_held(stage, *sts(0, 1, 2))
    before = await devices(stage)
    await stage.quiet(30)
    await stage.delete(PODS, "train-1")
    await stage.until_running(3)
    assert await devices(stage) == before


async def test_a_new_workload_of_the_name_goes_on_with_the_devices(stage: Stage) -> None:
    await stage.started()
    before = await trained(stage, when_deleted="Retain", retention_policy="Persistent")
    await stage.delete(STATEFULSETS, "train")
    await until_there_are(stage, PODS)
    await stage.quiet(90)
    assert await devices(stage) == before
    await make_set(stage, 3, when_deleted="Retain", retention_policy="Persistent")
    await stage.until_running(3)
    assert await devices(stage) == before


async def test_the_settings_of_the_workload_may_change(stage: Stage) -> None:
    await stage.started()
    before = await trained(stage)
    annotations = {
        "claimctl.io/when-deleted": "Retain",
        "claimctl.io/retention-policy": "Persistent",
    }
    await stage.patch(STATEFULSETS, "train", {"metadata": {"annotations": annotations}})

    async def changed() -> bool:
        made = await stage.reservations()
        return all(
            one.spec.retention_policy == "Persistent" and not one.metadata.owner_references
            for one in made
        )

    await stage.until(changed, "the reservations have the new settings")
    await stage.delete(STATEFULSETS, "train")
    await until_there_are(stage, PODS)
    await stage.quiet(30)
    assert await devices(stage) == before


async def test_the_claim_of_an_index_goes_when_the_index_has_completed(stage: Stage) -> None:
    await stage.started()
    await install_policy(stage)
    await make_templates(stage, "big")
    body = asking(manifests.job(pods=3), "*", GPU)
    body["spec"] |= {"completionMode": "Indexed", "parallelism": 2, "backoffLimitPerIndex": 3}
    await stage.create(JOBS, body)
    await stage.until_some_run()

    async def complete() -> bool:
        job = await stage.client.get(JOBS, "train", NAMESPACE)
        return any(each.type == "Complete" for each in job.status.conditions)

    await stage.until(complete, "the Job has completed", 300)
    await until_there_are(stage, RESOURCECLAIMS)
    await until_there_are(stage, CLAIMRESERVATIONS)


async def test_pods_wait_for_a_controller(stage: Stage) -> None:
    await install_policy(stage)
    await make_templates(stage, "big")
    await make_set(stage, 2)
    await pods(stage, 2)
    await stage.quiet(10)
    assert await devices(stage) == {}
    await stage.started()
    await stage.until_running(2)
    assert sorted(await devices(stage)) == sts(0, 1)


async def test_a_template_that_comes_late_is_what_the_pods_wait_for(stage: Stage) -> None:
    await stage.started()
    await install_policy(stage)
    await make_set(stage, 1)
    await stage.until_condition("Reserved", "False", "TemplateNotFound")
    await make_templates(stage, "big")
    await stage.until_running(1)
    await stage.delete(RESOURCECLAIMTEMPLATES, "big")
    await until_held(stage, *sts(0))


async def test_without_the_policy_the_workload_is_told_so(stage: Stage) -> None:
    if stage.cluster is None:
        pytest.skip("a real cluster keeps the policy of other scenarios")
    await stage.started()
    await make_templates(stage, "big")
    await make_set(stage, 2)
    await stage.until_running(2)
    await stage.until_event("StickyNotInForce")
    assert len(await devices(stage)) == 2
    assert await stage.reservations() == ()


async def test_a_claim_that_somebody_else_made_is_not_held(stage: Stage) -> None:
    await stage.started()
    await install_policy(stage)
    await make_templates(stage, "big")
    [name] = sts(0)
    await stage.create(RESOURCECLAIMS, manifests.claim(name))
    await make_set(stage, 1)
    await stage.until_running(1)
    await stage.until_condition("Ready", "False", "StickyNameTaken")
    assert await stage.references(name) == ("pods/train-0",)
    # as its condition advises
    await stage.delete(RESOURCECLAIMS, name)
    await stage.delete(PODS, "train-0")
    await until_held(stage, name)


GPUS = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")


@pytest.mark.parametrize("broken", [False, True], ids=["gone", "broken"])
async def test_only_the_ordinal_whose_device_is_bad_gets_another_one(
    stage: Stage, broken: bool
) -> None:
    driver, node = stage.site.drivers("maker"), stage.site.nodes[0]
    await driver.make_class()
    await driver.publish(node, node, *GPUS, fields={})
    await stage.started()
    before = await trained(stage, device_class=driver.name)
    first, second, third = sts(0, 1, 2)
    [(_, bad)] = before[second]
    rest = [device for device in GPUS if device != bad]
    if broken:
        await Pool(driver, node).offers(bad, *rest, taints=(BROKEN,), tainted={bad})
    else:
        await Pool(driver, node).offers(*rest)

    async def given_up() -> bool:
        return await stage.references(second) == ("pods/train-1",)

    await stage.until(given_up, "the device is left to its pod")
    await replaced(stage, "train-1")
    used = {device for each in before.values() for _, device in each}
    [spare] = set(GPUS) - used
    await until_devices(stage, before | {second: {(node, spare)}})
    await until_held(stage, first, second, third)


async def test_only_the_ordinal_that_cannot_go_to_its_node_gets_another_device(
    stage: Stage,
) -> None:
    await stage.started()
    before = await trained(stage)
    first, second, third = sts(0, 1, 2)
    node = (await stage.client.get(PODS, "train-1", NAMESPACE)).spec.node_name or ""
    await stage.cordon(node)
    await replaced(stage, "train-1")
    after = await devices(stage)
    assert after[second].isdisjoint(before[second])
    assert (after[first], after[third]) == (before[first], before[third])
    await until_held(stage, first, second, third)
    await stage.cordon(node, unschedulable=False)


async def replaced(stage: Stage, name: str) -> None:
    """Delete a pod, and wait until the next one of its ordinal runs; no other pod goes."""
    old = {pod.metadata.name: pod.metadata.uid for pod in await pods(stage, 3)}
    await stage.delete(PODS, name)

    async def runs() -> bool:
        new = {pod.metadata.name: pod.metadata.uid for pod in await stage.running()}
        changed = {each for each in old if new.get(each) != old[each]}
        return len(new) == len(old) and changed == {name}

    await stage.until(runs, f"another {name} runs", 180)


@pytest.mark.parametrize("write", range(1, LIFE_WRITES + 2))
async def test_the_life_of_a_claim_is_finished_after_a_kill_at_any_write(
    stage: Stage, write: int
) -> None:
    await install_policy(stage)
    await make_templates(stage, "big")
    transport = DyingTransport(stage.connect(), write)
    await stage.started("first", transport=transport)
    transport.arm()
    await make_set(stage, 1, when_scaled="Delete")
    [claim] = sts(0)
    await live(stage, transport, claim, "statefulsets/train", partial(scale, stage, 0))
    assert stage.cluster is None or transport.dead.is_set() == (write <= LIFE_WRITES)
    await stage.kill("first")
    await stage.started("second")
    await scale(stage, 1)
    await stage.until_running(1)
    await until_held(stage, *sts(0))
    await scale(stage, 0)
    for resource in (PODS, RESOURCECLAIMS, CLAIMRESERVATIONS):
        await until_there_are(stage, resource)
