"""Which pods a kubelet starts: those that their claim lists, by name or by their PodGroup."""

from __future__ import annotations

import pytest

from claimctl.wire.base import to_plain
from claimctl.wire.resources import DEPLOYMENTS, EVENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import GROUP_136, HOLD_136, NAMESPACE, Stage
from tests.e2e.nodes.nodes import calls, uses
from tests.e2e.scenes import hold_for_deployment, pod_on
from tests.e2e.site import KCM

REFUSED = "FailedPrepareDynamicResources"


async def messages(stage: Stage, reason: str) -> list[str]:
    events = (await stage.client.list(EVENTS, NAMESPACE)).items
    return [each.note for each in events if each.reason == reason]


@pytest.mark.cluster(HOLD_136)
async def test_a_pod_that_is_stranded_on_a_claim_without_devices_is_refused(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = pod_on(stage.site.nodes[0], "stranded")
    body["spec"]["nodeName"] = stage.site.nodes[0]
    await stage.create(PODS, body)
    await stage.until_event(REFUSED)
    (message, *_) = await messages(stage, REFUSED)
    assert "is not allowed to use" in message or "is not allocated" in message
    assert calls(stage) == []


@pytest.mark.cluster(HOLD_136)
async def test_a_pod_that_its_claim_does_not_list_is_refused(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 1)
    (pod,) = await stage.running()
    # it would list every pod that is bound
    await stage.site.pause(KCM)
    body = pod_on(pod.spec.node_name, "unlisted")
    body["spec"]["nodeName"] = pod.spec.node_name
    await stage.create(PODS, body)
    await stage.until_event(REFUSED)
    (message, *_) = await messages(stage, REFUSED)
    assert "is not allowed to use" in message
    assert len(uses(stage)) == 1
    await stage.site.resume(KCM)


@pytest.mark.cluster(HOLD_136)
async def test_a_pod_that_was_listed_ahead_starts(stage: Stage) -> None:
    await stage.started(list_ahead=False)
    await hold_for_deployment(stage, 1)
    patch = {"spec": {"template": {"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}}}
    await stage.patch(DEPLOYMENTS, "train", patch)

    async def gated() -> bool:
        pods = (await stage.client.list(PODS, NAMESPACE)).items
        return any(not pod.spec.node_name for pod in pods)

    await stage.until(gated, "a pod waits")
    (waiting,) = [
        pod for pod in (await stage.client.list(PODS, NAMESPACE)).items if not pod.spec.node_name
    ]
    listed = [to_plain(each) for each in (await stage.claim()).status.reserved_for]
    entry = {"resource": "pods", "name": waiting.metadata.name, "uid": waiting.metadata.uid}
    await stage.write_list([*listed, entry])
    await stage.patch(PODS, waiting.metadata.name, {"spec": {"schedulingGates": None}})

    async def runs() -> bool:
        return waiting.metadata.uid in {pod.metadata.uid for pod in await stage.running()}

    await stage.until(runs, "the pod that was listed ahead runs")
    assert len(uses(stage)) == 1


@pytest.mark.cluster(GROUP_136)
async def test_a_pod_of_a_listed_group_starts_without_being_listed(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=3, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(3)
    await stage.until_listed("podgroups/train", "deployments/train")
    assert len(uses(stage)) == 1
