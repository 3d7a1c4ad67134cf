"""The alphas of 1.37 that change how pods go: Recreate of StatefulSets, and EvictionRequests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import PODS, RESOURCECLAIMS, STATEFULSETS, Resource
from tests.e2e import manifests
from tests.e2e.harness import GROUP_137, HOLD_136, NAMESPACE, Stage

HOLD = replace(HOLD_136, kubernetes_version=(1, 37), alphas=True)
GROUP = replace(GROUP_137, alphas=True)
EVICTIONREQUESTS = Resource(
    "lifecycle.k8s.io", "v1alpha1", "evictionrequests", "EvictionRequest", ObjectHeader
)
RESTARTED = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}

both = pytest.mark.parametrize("options", [HOLD, GROUP], ids=["hold", "podgroup"])


async def reserved(stage: Stage, options: ClusterOptions) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.stateful_set(replicas=3, reserve="*")
    body["spec"]["updateStrategy"] = {"type": "Recreate"}
    await stage.create(STATEFULSETS, manifests.in_group(body) if options == GROUP else body)
    await stage.until_running(3)
    await stage.until_condition("Reserved", "True", "Reserved")


async def uids(stage: Stage) -> set[str]:
    return {pod.metadata.uid for pod in await stage.running()}


@both
async def test_the_device_stays_while_all_pods_go_before_new_ones_come(
    stage: Stage, options: ClusterOptions
) -> None:
    await reserved(stage, options)
    before, old = (await stage.claim()).status.allocation, await uids(stage)
    since = stage.embedded.store.revision
    await stage.patch(STATEFULSETS, "train", RESTARTED)

    async def replaced() -> bool:
        return len(await uids(stage) - old) == 3

    await stage.until(replaced, "three new pods run")
    history = list(stage.embedded.history(since))
    ends = [each.number for each in history if (each.plural, each.type) == ("pods", "DELETED")]
    starts = [each.number for each in history if (each.plural, each.type) == ("pods", "ADDED")]
    assert max(ends) < min(starts)
    claims = [each.object()["status"] for each in history if each.plural == "resourceclaims"]
    assert all(status.get("allocation") for status in claims)
    assert (await stage.claim()).status.allocation == before


@both
async def test_a_pod_whose_eviction_is_requested_keeps_its_place_until_it_goes(
    stage: Stage, options: ClusterOptions
) -> None:
    await reserved(stage, options)
    before, listed = (await stage.claim()).status.allocation, await stage.references()
    pod = (await stage.running())[0].metadata
    target = {"pod": {"name": pod.name, "uid": pod.uid}}
    spec = {"requester": "example.com/drain", "intent": "Eviction", "target": target}
    await stage.create(EVICTIONREQUESTS, {"metadata": {"name": "drain"}, "spec": spec})
    await stage.quiet(60)
    assert await stage.references() == listed
    await stage.client.delete(PODS, pod.name, NAMESPACE)

    async def replaced() -> bool:
        running = await uids(stage)
        return len(running) == 3 and pod.uid not in running

    await stage.until(replaced, "another pod runs in its place")
    assert (await stage.claim()).status.allocation == before
