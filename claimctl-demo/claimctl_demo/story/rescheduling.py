"""``claimctl reschedule`` in the story: policies, a dry run and a run."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from claimctl.kube.discovery import use_served_versions
from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS, NODES
from claimctl.wire.traces import own_taints
from claimctl_demo.story.objects import DEVICE_CLASS
from claimctl_demo.story.stage import Stage, StoryFailed
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import Result

_POLL_SECONDS = 0.3
"""Between two looks at replacements."""


def policy(plugin: str, args: dict[str, Any], **evictor: Any) -> dict[str, Any]:
    """A policy file that turns one plugin on; ``evictor`` are the args of DefaultEvictor."""
    point = "balance" if plugin == "LowNodeUtilization" else "deschedule"
    given = {"DefaultEvictor": evictor, plugin: args}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {
                "name": "demo",
                "pluginConfig": [{"name": name, "args": args} for name, args in given.items()],
                "plugins": {point: {"enabled": [plugin]}},
            }
        ],
    }


def crowding(move_held_claims: str) -> dict[str, Any]:
    """A node is over-used if more than 40 % of its devices are allocated."""
    resource = f"deviceclass.resource.kubernetes.io/{DEVICE_CLASS}"
    usage = {"thresholds": {resource: 20}, "targetThresholds": {resource: 40}}
    return policy("LowNodeUtilization", usage, moveHeldClaims=move_held_claims)


def runner(stage: Stage, policy: dict[str, Any]) -> Runner:
    """What ``claimctl reschedule`` does by a policy file, with an administrator's rights."""
    client, wanted = stage.client, check(policy).policy
    return Runner(
        client=client,
        clock=stage.clock,
        policy=wanted,
        planner=plan,
        records=Records(client),
        settings=RunSettings(
            max_unavailable=wanted.max_unavailable_per_workload, poll=_POLL_SECONDS
        ),
        signs=Signs(client.telemetry),
        rng=Random(0),
    )


async def expect_pinned(stage: Stage, pods: Iterable[str]) -> None:
    """Fail unless a dry run that moves no held claims says of each pod that its claim pins it."""
    await use_served_versions(stage.client)
    made = await runner(stage, crowding("Never")).plan()
    said = {str(each.pod): str(each.reason) for each in made.skipped}
    for pod in pods:
        if said.get(pod) != Ground.PINNED:
            raise StoryFailed(f"the dry run says {said.get(pod, 'nothing')} of {pod}")


async def as_planned(stage: Stage, policy: dict[str, Any]) -> int:
    """A dry run and a run; how many pods were evicted.

    Raises:
        StoryFailed: the run did not do what the dry run said.
    """
    planned = await runner(stage, policy).plan()
    report = await runner(stage, policy).run()
    left = [step for step in report.steps if step.result is not Result.EVICTED]
    if report.failure or left:
        why = report.failure or f"{left[0].move.pod}: {left[0].reason} {left[0].detail}"
        raise StoryFailed(f"the run did not do what the dry run said: {why}")
    if report.plan.digest != planned.digest:
        raise StoryFailed("the run made another plan than the dry run")
    return report.evicted


async def expect_nothing_left(stage: Stage) -> None:
    """Fail if a run has left a taint, an avoidance, or a request to give a claim up."""
    nodes = (await stage.client.list(NODES)).items
    reservations = (await stage.client.list(CLAIMRESERVATIONS)).items
    record = await Records(stage.client).read()
    left = [
        *(f"the taint {taint.key} of {node}" for node, taint in own_taints(nodes)),
        *(
            f"the annotation of {each.metadata.name}"
            for each in reservations
            if each.metadata.annotation(REALLOCATE_ANNOTATION) is not None
        ),
        *(f"the avoidance of {each.name}" for each in (record.status.avoidances if record else ())),
    ]
    if left:
        raise StoryFailed(f"left behind: {', '.join(left)}")
