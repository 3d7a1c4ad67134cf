"""The API server writes the names of sticky claims into the pods that it creates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.wire.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
)
from tests.e2e import manifests
from tests.e2e.harness import GROUP_136, HOLD_136, NAMESPACE, Stage
from tests.e2e.sticky import (
    REWRITTEN,
    all_entries,
    asking,
    entries,
    install_policy,
    make_templates,
    pods,
)

ONE_NODE = replace(HOLD_136, nodes=1, devices_per_node=7)
"""The claim that all pods share keeps them on its node."""

pytestmark = pytest.mark.cluster(HOLD_136)


async def claims(stage: Stage) -> set[str]:
    return {
        each.metadata.name for each in (await stage.client.list(RESOURCECLAIMS, NAMESPACE)).items
    }


@pytest.mark.parametrize("options", [ONE_NODE])
async def test_a_stateful_set_waits_for_the_claims_of_its_ordinals(stage: Stage) -> None:
    await install_policy(stage)
    await make_templates(stage, "big", "small")
    await stage.create(RESOURCECLAIMS, manifests.claim("shared"))
    body = asking(manifests.stateful_set(replicas=3), "*", ("gpu", "big"), ("more", "small"))
    body["spec"]["ordinals"] = {"start": 5}
    shared = {"name": "shared", "resourceClaimName": "shared"}
    body["spec"]["template"]["spec"]["resourceClaims"].insert(1, shared)
    await stage.create(STATEFULSETS, body)
    found = await pods(stage, 3)
    assert all_entries(found) == [
        {
            "gpu": f"claim train-{ordinal}.sts.gpu.big",
            "shared": "claim shared",
            "more": f"claim train-{ordinal}.sts.more.small",
        }
        for ordinal in (5, 6, 7)
    ]
    assert {each.metadata.annotation(REWRITTEN) for each in found} == {"gpu=big,more=small"}
    await stage.quiet(10)
    assert await claims(stage) == {"shared"}
    assert {each.status.phase for each in await pods(stage, 3)} == {"Pending"}
    for pod in found:
        for each in ("gpu.big", "more.small"):
            await stage.create(RESOURCECLAIMS, manifests.claim(f"{pod.metadata.name}.sts.{each}"))
    await stage.until_running(3)
    assert len(await claims(stage)) == 7


async def test_a_new_pod_of_an_index_names_the_same_claim(stage: Stage) -> None:
    await install_policy(stage)
    await make_templates(stage, "big", "small")
    body = asking(manifests.job(pods=2), "none, gpu ", ("more", "small"), ("gpu", "big"))
    body["spec"] |= {"completionMode": "Indexed", "backoffLimitPerIndex": 2}
    await stage.create(JOBS, body)
    wanted = [
        {"more": "template small", "gpu": f"claim train-{index}.job.gpu.big"} for index in (0, 1)
    ]
    found = await pods(stage, 2)
    assert all_entries(found) == wanted
    assert {each.metadata.annotation(REWRITTEN) for each in found} == {"gpu=big"}

    async def generated() -> bool:
        return len(await claims(stage)) == 2

    await stage.until(generated, "the other entry has its claims")
    assert all("more" in each for each in await claims(stage))
    for index in (0, 1):
        await stage.create(RESOURCECLAIMS, manifests.claim(f"train-{index}.job.gpu.big"))
    await stage.until_some_run()
    await stage.delete(PODS, found[0].metadata.name)

    async def anew() -> bool:
        there = (await stage.client.list(PODS, NAMESPACE)).items
        return any(
            entries(each) == wanted[0]
            for each in there
            if each.metadata.uid != found[0].metadata.uid
        )

    await stage.until(anew, "index 0 has a new pod that names the same claim")


async def test_pods_without_an_ordinal_or_a_wish_get_generated_claims(stage: Stage) -> None:
    await install_policy(stage)
    await make_templates(stage, "big")
    gpu = ("gpu", "big")
    await stage.create(DEPLOYMENTS, asking(manifests.deployment("web"), "*", gpu))
    await stage.create(STATEFULSETS, asking(manifests.stateful_set("plain"), None, gpu))
    await stage.create(STATEFULSETS, asking(manifests.stateful_set("other"), "gpus", gpu))
    of_group = asking(manifests.stateful_set("lws"), "*", gpu)
    of_group["spec"]["template"]["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] = "x"
    await stage.create(STATEFULSETS, of_group)
    await stage.create(JOBS, asking(manifests.job("batch"), "*", gpu))
    found = await pods(stage, 5)
    assert all_entries(found) == [{"gpu": "template big"}] * 5
    assert {each.metadata.annotation(REWRITTEN) for each in found} == {None}
    await stage.until_running(5)


async def test_a_name_that_is_too_long_is_refused_where_its_owner_tells_it(stage: Stage) -> None:
    await install_policy(stage)
    longest = "t" * 238
    for name, template in (("fits", longest), ("long", f"{longest}t")):
        await stage.create(
            STATEFULSETS, asking(manifests.stateful_set(name), "*", ("gpu", template))
        )
    [pod] = await pods(stage, 1)
    [told] = entries(pod).values()
    assert (pod.metadata.name, len(told.removeprefix("claim "))) == ("fits-0", 253)
    await stage.until_event("FailedCreate")
    [note] = {
        each.note
        for each in (await stage.client.list(EVENTS, NAMESPACE)).items
        if each.reason == "FailedCreate"
    }
    where = 'Pod "long-0" is invalid: spec.resourceClaims[0].resourceClaimName: Invalid value: '
    assert note.startswith(f"Create Pod long-0 in StatefulSet long failed error: {where}")
    assert note.endswith("must be no more than 253 characters")
    assert [each.metadata.name for each in await pods(stage, 1)] == ["fits-0"]


@pytest.mark.parametrize("options", [GROUP_136])
async def test_the_claims_of_a_pod_group_are_left_to_it(stage: Stage) -> None:
    await install_policy(stage)
    both = (("gpu", "big"), ("more", "small"))
    for name, sticky in (("all", "*"), ("named", "*, more")):
        body = asking(manifests.stateful_set(name), sticky, *both)
        await stage.create(STATEFULSETS, manifests.in_group(body))
    kept = {"gpu": "template big", "more": "template small"}
    assert all_entries(await pods(stage, 2)) == [
        kept,
        kept | {"more": "claim named-0.sts.more.small"},
    ]
