"""The step ``avoided``: a node refuses the pods of one owner, and they run elsewhere."""

from __future__ import annotations

from kube_in_process.components.kubelet.admission import REFUSED_ON

from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.admission import installed
from claimctl_demo.story.objects import DEPLOYMENT, POD
from claimctl_demo.story.report import Figures
from claimctl_demo.story.rescheduling import expect_nothing_left, policy, runner
from claimctl_demo.story.stage import StoryFailed
from claimctl_reschedule.plan.avoidance import ENOUGH

SPACE, OWNER, OTHER = "places", "picky", "other"
_BUSY_CPU = 20
"""So much of the other nodes is in use that the scheduler prefers the node that refuses."""


async def avoided(acts: Acts) -> tuple[Figures, str]:
    """Play the step.

    Raises:
        StoryFailed: the pods do not come to run, or something is left.
    """
    stage = acts.stage
    node, *others = await acts.node_names()
    await stage.user.create(objects.namespace(SPACE))
    for each in others:
        await stage.user.create(objects.pod_on(SPACE, each, _BUSY_CPU))
    async with installed(stage, "avoidance") as by_policy:
        refused = await _kept_off(acts, node)
        await _used_by_others(acts, node)
        places = sorted({pod.spec.node_name for pod in acts.running(SPACE, OWNER)})
        for name in (OWNER, OTHER):
            await stage.user.delete(DEPLOYMENT, SPACE, name)
        for each in others:
            await stage.user.delete(POD, SPACE, f"busy-{each}")
        # what ``claimctl reschedule --release-taints`` does
        await runner(stage, policy("UnplaceablePods", {})).sweep(everything=True)
    await expect_nothing_left(stage)
    how = "the admission policy" if by_policy else "a taint"
    return Figures(), (
        f"{node} refused {refused} pods of Deployment {OWNER}; by {how}, the next ones run on "
        f"{', '.join(places)}; another owner's pod runs on {node}"
    )


async def _kept_off(acts: Acts, node: str) -> int:
    """Let the node refuse pods, run ``claimctl reschedule``; how many pods were refused."""
    stage = acts.stage
    told = {REFUSED_ON: f"{node}=UnexpectedAdmissionError"}
    await stage.user.create(objects.plain_deployment(SPACE, OWNER, annotations=told))
    uids: set[str] = set()

    def refused() -> bool:
        uids.update(
            pod.metadata.uid
            for pod in acts.pods_of(SPACE, OWNER)
            if pod.status.phase == "Failed" and pod.spec.node_name == node
        )
        return len(uids) >= ENOUGH

    await stage.until(refused, f"{node} has refused {ENOUGH} pods")
    if acts.running(SPACE, OWNER):
        raise StoryFailed("a pod runs before claimctl reschedule has done anything")
    report = await runner(stage, policy("UnplaceablePods", {})).run()
    if report.failure:
        raise StoryFailed(report.failure)
    await stage.user.patch(DEPLOYMENT, SPACE, OWNER, {"spec": {"replicas": 3}})
    await stage.until(
        lambda: refused() and len(acts.running(SPACE, OWNER)) == 3, f"3 pods of {OWNER} run"
    )
    return len(uids)


async def _used_by_others(acts: Acts, node: str) -> None:
    there = {"kubernetes.io/hostname": node}
    await acts.stage.user.create(objects.plain_deployment(SPACE, OTHER, nodeSelector=there))
    await acts.stage.until(
        lambda: acts.running(SPACE, OTHER), f"the pod of another owner runs on {node}"
    )
