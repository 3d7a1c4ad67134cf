"""What ``claimctl reschedule`` brings to claimctl: see ``claimctl.cli.extensions``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from claimctl.cli.extensions import (
    CheckProblem,
    Extension,
    Lists,
    PodWords,
    ReasonsOfExtension,
)
from claimctl.wire.pods import Pod
from claimctl.wire.resources import NODES
from claimctl.wire.traces import WholePod

SEE = "see `claimctl reschedule --release-taints`"
"""What doctor advises against what a run left behind."""


class Reschedule(Extension):
    """``claimctl reschedule``, its checks, and its words."""

    commands: ClassVar[Mapping[str, str]] = {"reschedule": "claimctl_reschedule.command.reschedule"}
    documents = ("claimctl_reschedule.command.document",)
    checks: ClassVar[Mapping[str, str]] = {
        "avoidances": "no owner's pods wait because nodes refuse them",
        "resizes": "no pod was evicted for a resize that then failed",
        "stale-taints": "no node has a taint that a run of reschedule left behind",
    }

    async def examine(self, lists: Lists, now: datetime) -> Sequence[CheckProblem]:
        from claimctl_reschedule.plan.avoidance import complaints
        from claimctl_reschedule.plan.kubelet import in_vain
        from claimctl_reschedule.plan.own_taints import stale_taints
        from claimctl_reschedule.shapes.records import RESCHEDULERECORDS

        nodes = (await lists(NODES, "stale-taints")).items
        records = (await lists(RESCHEDULERECORDS, *self.checks)).items
        statuses = [record.status for record in records]
        taints = [entry for status in statuses for entry in status.taints]
        avoidances = [entry for status in statuses for entry in status.avoidances]
        rounds = [entry for status in statuses for entry in status.resizes]
        problems = []
        for node, taint in stale_taints(nodes, taints, now):
            text = f"the taint {taint.key}={taint.value} was left behind; {SEE}"
            problems.append(CheckProblem("stale-taints", text, object=node))
        for owner, what in complaints(avoidances, now):
            name = f"{owner.kind.lower()}/{owner.name}"
            problems.append(CheckProblem("avoidances", f"{what}; {SEE}", owner.namespace, name))
        for pod, what in in_vain(rounds, now):
            text = f"{what}; see `claimctl explain pod/{pod.name} -n {pod.namespace}`"
            problems.append(CheckProblem("resizes", text, pod.namespace, f"pod/{pod.name}"))
        return problems

    def about_pod(self, pod: Pod) -> PodWords:
        from claimctl_reschedule.plan.refusals import AVOIDS

        (namespace, name), avoids = pod.metadata.key, pod.metadata.annotation(AVOIDS)
        command = f"claimctl reschedule --policy-config-file FILE --why {namespace}/{name}"
        braked = (
            "nodes refused the pods of its owner; claimctl reschedule lets one through at a time"
        )
        avoided = ("Avoids", f"nodes that refused pods of its owner: {avoids}")
        return PodWords(
            waits=("Braked", braked) if isinstance(pod, WholePod) and pod.braked else None,
            beside=(avoided,) if avoids else (),
            advice={
                **dict.fromkeys(("Braked", "Avoids"), f"See what is done about it: {command}"),
                "ResizeDeferred": "See who could leave, if a policy has DeferredResizes: "
                f"{command}",
            },
        )

    def reasons(self) -> ReasonsOfExtension:
        from claimctl_reschedule.plan.reasons import MEANINGS

        return ReasonsOfExtension(
            "Why a pod is not moved",
            "`claimctl reschedule --policy-config-file FILE --why NAMESPACE/POD` shows more.",
            {str(ground): text for ground, text in MEANINGS.items()},
        )

    def check_policy(self, path: Path) -> None:
        from claimctl_reschedule.command.work import policy_of

        policy_of(path)


EXTENSION = Reschedule()
