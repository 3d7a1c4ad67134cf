"""The step ``sticky-claims``: a pod of a StatefulSet comes back to its device.

All devices of a node are in use, and a pod of somebody else waits for one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from claimctl.wire.base import Object
from claimctl.wire.pods import Pod
from claimctl_demo.story import objects
from claimctl_demo.story.acts import TEMPLATE, Acts
from claimctl_demo.story.admission import installed
from claimctl_demo.story.objects import DEPLOYMENT, POD, STATEFUL_SET, Workload
from claimctl_demo.story.report import Figures
from claimctl_demo.story.stage import Stage, StoryFailed

SPACE, OWNER, RIVAL = "ordinals", "train", "rival"
PODS = 3
LAST = f"{OWNER}-{PODS - 1}"
CLAIM = Workload(SPACE, OWNER, f"{LAST}.sts.{objects.ENTRY}.{TEMPLATE}")
"""The last ordinal and its claim."""
_LOOKS, _LOOK_SECONDS = 200, 0.1


async def came_back(acts: Acts) -> tuple[Figures, str]:
    """Play the step.

    Raises:
        StoryFailed: the ordinal has lost its device, or the rival did not wait for one.
    """
    acts, stage = replace(acts, groups=False), acts.stage  # its pods are of no PodGroup
    node = (await acts.node_names())[-1]
    await stage.user.create(objects.namespace(SPACE))
    await stage.user.create(objects.claim_template(SPACE, TEMPLATE))
    async with installed(stage, "sticky-claims"):
        owner = objects.sticky_set(SPACE, OWNER, PODS, TEMPLATE, node)
        await _in_force(stage, owner)
        await stage.user.create(owner)
        await stage.until(lambda: len(acts.running(SPACE, OWNER)) == PODS, f"{PODS} pods run")
        await acts.held_again(CLAIM)
        rivals = await _rivals(acts, node)
        async with acts.same_device(CLAIM) as counted:
            await _replaced(acts)
            await acts.held_again(CLAIM)
            if len(_waiting(acts)) != 1:
                raise StoryFailed(f"no pod of {RIVAL} waits for a device any more")
        figures, device = counted(), acts.device(CLAIM)
        await stage.user.delete(STATEFUL_SET, SPACE, OWNER)
        await stage.until(
            lambda: len(acts.running(SPACE, RIVAL)) == rivals and acts.claim(CLAIM) is None,
            f"the claim is gone, and all pods of {RIVAL} run",
        )
    await stage.user.delete(DEPLOYMENT, SPACE, RIVAL)
    return figures, (
        f"{LAST} was deleted while a pod of {RIVAL} waited for a device: the next {LAST} has "
        f"{device} again; {RIVAL} got a device when the StatefulSet was deleted"
    )


async def _in_force(stage: Stage, owner: Object) -> None:
    """Wait until the policy names claims. A real server takes a moment."""
    probe = objects.pod_of_set(owner, LAST)
    for _ in range(_LOOKS):
        made = await stage.user.create(probe, dry_run=True)
        if made["spec"]["resourceClaims"][0].get("resourceClaimName") == CLAIM.claim:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise StoryFailed("the admission policy gives a pod no name of a claim")


async def _rivals(acts: Acts, node: str) -> int:
    """Let a Deployment ask for one device more than the node has left; how many pods it has."""
    kind = (acts.stage.resource_api, "ResourceSlice")
    slices = await acts.stage.user.list(kind)
    devices = sum(
        len(each["spec"]["devices"]) for each in slices if each["spec"].get("nodeName") == node
    )
    pods = devices - PODS + 1
    await acts.stage.user.create(objects.generating(SPACE, RIVAL, pods, TEMPLATE, node))
    await acts.stage.until(
        lambda: len(_waiting(acts)) == 1 and len(acts.running(SPACE, RIVAL)) == pods - 1,
        f"one pod of {RIVAL} waits for a device",
    )
    return pods


def _waiting(acts: Acts) -> list[Pod]:
    """The pods of the rival for which the scheduler has found no device."""
    return [
        pod
        for pod in acts.pods_of(SPACE, RIVAL)
        if any(each.reason == "Unschedulable" for each in pod.status.conditions)
        and not pod.spec.node_name
    ]


async def _replaced(acts: Acts) -> None:
    """Delete the last pod, and wait until the next one of its name runs."""
    before = {pod.metadata.uid for pod in acts.running(SPACE, OWNER)}
    await acts.stage.user.delete(POD, SPACE, LAST)
    await acts.stage.until(
        lambda: (
            len({pod.metadata.uid for pod in acts.running(SPACE, OWNER)} & before) == PODS - 1
            and len(acts.running(SPACE, OWNER)) == PODS
        ),
        f"the next {LAST} runs",
    )
