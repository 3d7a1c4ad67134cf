"""The story: what happens to claims in a cluster, step by step, with checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from kube_in_process.options import Preset

from claimctl.cli.errors import CommandFailed
from claimctl.downgrade.plans import PlanRefused
from claimctl.downgrade.records import PlanPhase
from claimctl.kube.errors import KubeError
from claimctl_demo.story import growing, objects, ordinals, refusing, rescheduling
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import CLAIM, DEPLOYMENT, JOB, NODE, POD, Workload
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Figures, Printer, Report, Step
from claimctl_demo.story.stage import Stage, StoryFailed
from claimctl_witness.world import Key

TROUBLE = (StoryFailed, KubeError, PlanRefused, CommandFailed)


@dataclass(frozen=True, slots=True)
class Plot:
    """How many pods each step has, and what a dialect lists for them."""

    part: Part
    shared: int
    downgraded: int
    wide: int = 300
    """Pods of the step with more pods than places; 0 leaves the step out."""
    job_seconds: float = 1.0
    """Seconds for which a pod of the Job runs, long enough to see it in the list."""

    @classmethod
    def of(cls, part: Part) -> Plot:
        if part.preset is not Preset.PLAIN:
            return cls(part, shared=600, downgraded=200)
        return cls(part, shared=40, downgraded=120)

    @classmethod
    def of_real(cls, part: Part) -> Plot:
        """Fewer pods: a real scheduler lists about four pods of a claim a second.

        The stand-in for kubelets also needs a few requests for each pod.
        """
        if part.preset is not Preset.PLAIN:
            return cls(part, shared=200, downgraded=100, job_seconds=5.0)
        return cls(part, shared=20, downgraded=40, wide=0, job_seconds=5.0)

    @classmethod
    def of_nodes(cls, part: Part) -> Plot:
        """A pod in a container takes about half a second of a core to start and to end."""
        return cls(part, shared=8, downgraded=8, wide=0, job_seconds=5.0)

    @property
    def native(self) -> bool:
        return self.part.preset is Preset.RESERVED_FOR_ANY_POD

    @property
    def resizes(self) -> bool:
        """Whether the cluster resizes running pods: by default from 1.33 on."""
        return self.part.numbers >= (1, 33)

    @property
    def mutates(self) -> bool:
        """Whether the cluster serves MutatingAdmissionPolicies: by default from 1.36 on."""
        return self.part.numbers >= (1, 36)

    @property
    def groups(self) -> bool:
        return self.part.preset is Preset.POD_GROUPS

    def references(self, pods: int) -> int:
        """How many entries the list of a held claim has."""
        if self.part.preset is Preset.PLAIN:
            return pods + 1
        return 1 if self.native else 2


StepResult = tuple[Figures, str]
Play = Callable[[], Awaitable[StepResult]]


@dataclass(slots=True)
class Story:
    stage: Stage
    plot: Plot
    report: Report
    printer: Printer
    acts: Acts = field(init=False)

    def __post_init__(self) -> None:
        self.acts = Acts(self.stage, native=self.plot.native, groups=self.plot.groups)

    async def play(self) -> None:
        """Play all steps in turn; a failed step does not stop the others."""
        for name, play in self._steps().items():
            await self._step(name, play)

    def _steps(self) -> dict[str, Play]:
        steps: dict[str, Play] = {
            "shared-claim": self.shared_claim,
            "rolling-restart": self.rolling_restart,
            "scale-to-zero": self.scale_to_zero,
        }
        if self.plot.native:
            steps["mixed-list"] = self.mixed_list
        else:
            steps["finished-pod"] = self.finished_pod
        steps |= {
            "unreserved-workload": self.unreserved_workload,
            "deployment-deleted": self.deployment_deleted,
            "job-ended": self.job_ended,
        }
        if self.plot.mutates:
            steps["sticky-claims"] = self.sticky_claims
        steps |= {
            "node-cordoned": self.node_cordoned,
            "rescheduled": self.rescheduled,
            "avoided": self.avoided,
        }
        if self.plot.resizes:
            steps["resized"] = self.resized
        steps["downgrade"] = self.downgrade
        if self.plot.wide and self.plot.part.preset is Preset.PLAIN:
            steps["more-than-256"] = self.more_than_the_limit
        elif self.plot.wide:
            steps["downgrade-refused"] = self.downgrade_refused
        return {name: play for name, play in steps.items() if self.plot.part.plays(name)}

    async def _step(self, name: str, play: Play) -> None:
        loop = asyncio.get_running_loop()
        start, began = loop.time(), self.stage.clock.now()
        try:
            figures, message = await play()
            ok = True
        except TROUBLE as trouble:
            figures, message, ok = Figures(), str(trouble), False
        took = loop.time() - start
        step = Step(name, ok, took, figures, message, self.plot.part, began)
        self.report.steps.append(step)
        self.printer.step(step)

    # The Deployment whose claim is held

    @property
    def train(self) -> Workload:
        return Workload("train", "train", "slice", self.plot.shared)

    async def shared_claim(self) -> StepResult:
        """A Deployment shares one claim; another one without a reservation has its own."""
        await self.acts.room("train")
        await self.acts.claim_made("train", "plain")
        await self.stage.user.create(objects.deployment(Workload("train", "plain", "plain", 5)))
        figures = await self.acts.held(self.train, idleTimeoutSeconds=60)
        device = self.acts.device(self.train)
        return figures, f"Deployment train of {figures.pods} pods shares {device}"

    async def rolling_restart(self) -> StepResult:
        """All pods are replaced, and the device stays."""
        async with self.acts.same_device(self.train) as counted:
            before = {pod.metadata.uid for pod in self.acts.pods(self.train)}
            stamp = {"metadata": {"annotations": {"example.com/restarted": "1"}}}
            await self.acts.change(self.train, {"template": stamp})
            await self.stage.until(
                lambda: before.isdisjoint(pod.metadata.uid for pod in self.acts.pods(self.train)),
                "all pods are replaced",
                40.0,
            )
            await self.acts.runs(self.train)
            await self.acts.held_again(self.train)
        return counted(), "every pod was replaced, the device stayed"

    async def scale_to_zero(self) -> StepResult:
        """The workload is idle for less than the timeout: the claim stays held."""
        some = replace(self.train, pods=min(self.train.pods, 40))
        async with self.acts.same_device(self.train) as counted:
            await self.acts.change(self.train, {"replicas": 0})
            await self.stage.until(
                lambda: not self.acts.pods(self.train), "all pods are gone", 30.0
            )
            self.acts.expect_held(self.train)
            await self.acts.change(self.train, {"replicas": some.pods})
            await self.acts.runs(some)
            await self.acts.held_again(some)
        return counted(), f"to 0 and back to {some.pods} pods within the idle timeout: same device"

    async def finished_pod(self) -> StepResult:
        """A finished pod beside running ones. It would start KCM's loop (#141274)."""
        once = Workload("train", "once", "slice")
        counted = self.acts.count(self.train)
        await self.stage.user.create(
            objects.job(self.acts.grouped(once, "train"), at_once=1, run_seconds=0.2)
        )
        await self.acts.settled_beside_finished(self.train)
        revisions = await self.acts.revisions_within(self.train, 1.0)
        if revisions > 5:
            raise StoryFailed(f"{revisions} writes to the claim in a second with a finished pod")
        figures = counted()
        await self.stage.user.delete(JOB, "train", "once")
        await self.acts.held_again(self.train)
        message = f"a finished pod beside running ones: {revisions} writes to the claim in 1 s"
        return replace(figures, more={"claimRevisionsPerSecond": revisions}), message

    async def mixed_list(self) -> StepResult:
        """Somebody lists pods beside the workload, as a scheduler without the feature does."""
        counted = self.acts.count(self.train)
        pods = self.acts.pods(self.train)[:5]
        claim = await self.stage.user.get(CLAIM, "train", "slice")
        entries = [*claim["status"]["reservedFor"], *map(objects.pod_entry, pods)]
        body = {"status": {"reservedFor": entries}}
        await self.stage.user.patch_status(CLAIM, "train", "slice", body)
        await self.stage.until(
            lambda: counted().writes and len(self.acts.references(self.train)) == 1,
            "the claim lists the workload alone",
        )
        return (
            counted(),
            f"{len(pods)} pods were listed beside the workload: it is listed alone again",
        )

    async def unreserved_workload(self) -> StepResult:
        """A workload without a reservation: claimctl never writes its claim."""
        plain = Workload("train", "plain", "plain", 5)
        await self.acts.change(plain, {"replicas": 0})
        by = await self.acts.deallocated(plain)
        writes = self.stage.witness.writes[_key(plain)]
        if writes:
            raise StoryFailed(f"claimctl wrote {writes} times to a claim that is not reserved")
        return Figures(0, 0, writes), f"left alone; deallocated by {by}"

    async def deployment_deleted(self) -> StepResult:
        """The workload ends, and its device is free."""
        counted = self.acts.count(self.train)
        await self.stage.user.delete(DEPLOYMENT, "train", "train")
        by = await self.acts.deallocated(self.train)
        return counted(), f"Deployment deleted: claim deallocated by {by}"

    async def job_ended(self) -> StepResult:
        """A Job holds its claim from the first pod to its end."""
        batch = Workload("batch", "batch", "scratch", 4, reserve=True)
        counted = self.acts.count(batch)
        await self.acts.room("batch")
        await self.acts.reserve(batch, JOB)
        await self.stage.user.create(
            objects.job(self.acts.grouped(batch), at_once=2, run_seconds=self.plot.job_seconds)
        )
        await self.acts.held_again(batch)
        by = await self.acts.deallocated(batch)
        done = self.acts.succeeded(batch)
        if done != batch.pods:
            raise StoryFailed(f"deallocated when {done} of {batch.pods} pods had finished")
        return counted(), f"Job of {done} pods ended: claim deallocated by {by}"

    async def sticky_claims(self) -> StepResult:
        """A pod of a StatefulSet comes back to its device, while another pod waits for one."""
        return await ordinals.came_back(self.acts)

    async def node_cordoned(self) -> StepResult:
        """The node is cordoned: claimctl gives the device up and the workload moves."""
        move = Workload("move", "move", "local", 3)
        await self.acts.room("move")
        await self.acts.held(move, reallocateTimeoutSeconds=1)
        before = self.acts.pods(move)
        node = before[0].spec.node_name
        counted = self.acts.count(move)
        await self.stage.user.patch(NODE, "", node, {"spec": {"unschedulable": True}})
        for pod in before:
            await self.stage.user.delete(POD, "move", pod.metadata.name)
        await self.stage.until(
            lambda: (
                self.acts.all_run(move)
                and all(pod.spec.node_name != node for pod in self.acts.pods(move))
            ),
            "the pods run on another node",
            30.0,
        )
        if not self.acts.has_reason(move, "Reallocated"):
            raise StoryFailed("the reservation does not say Reallocated")
        await self.acts.held_again(move)
        figures = counted()
        await self.stage.user.patch(NODE, "", node, {"spec": {"unschedulable": None}})
        await self.stage.user.delete(DEPLOYMENT, "move", "move")
        now = self.stage.witness.devices.get(_key(move), ())
        return figures, f"{node} cordoned: Reallocated, {' -> '.join(now)}"

    async def rescheduled(self) -> StepResult:
        """Two held claims crowd a node: claimctl reschedule moves one, with all its pods."""
        crowd = [Workload("pack", name, name, 3) for name in ("one", "two")]
        await self.acts.room("pack")
        await self.acts.all_free()
        async with self.acts.only_node() as node:
            for each in crowd:
                await self.acts.held(each, reallocateTimeoutSeconds=60)
        counts = [self.acts.count(each) for each in crowd]
        pods = [f"pack/{pod.metadata.name}" for each in crowd for pod in self.acts.pods(each)]
        await rescheduling.expect_pinned(self.stage, pods)
        whole_units = rescheduling.crowding("WholeUnit")
        evicted = await rescheduling.as_planned(self.stage, whole_units)
        for each in crowd:
            await self.acts.runs(each)
            await self.acts.held_again(each)
        await rescheduling.expect_nothing_left(self.stage)
        away = [each for each in crowd if self.acts.nodes(each).isdisjoint({node})]
        if len(away) != 1:
            raise StoryFailed(f"{len(away)} of 2 workloads have left {node}")
        figures = counts[crowd.index(away[0])]()
        now = self.stage.witness.devices.get(_key(away[0]), ())
        for each in crowd:
            await self.stage.user.delete(DEPLOYMENT, "pack", each.name)
        return figures, (
            f"{node} is crowded, and its pods are pinned by their claims; {evicted} pods of one "
            f"claim moved together, as the dry run said: {' -> '.join(now)}"
        )

    async def avoided(self) -> StepResult:
        """A node refuses the pods of one owner: claimctl reschedule keeps them off that node."""
        return await refusing.avoided(self.acts)

    async def resized(self) -> StepResult:
        """A pod's resize has no room: claimctl reschedule evicts the one pod that is enough."""
        return await growing.resized(self.acts)

    # Downgrades

    async def downgrade(self) -> StepResult:
        """Workload references are replaced by pod references while pods run."""
        shrink = Workload("shrink", "shrink", "slice", self.plot.downgraded)
        await self.acts.room("shrink")
        await self.acts.held(shrink)
        await self.acts.recorded(shrink)
        counted = self.acts.count(shrink)
        async with self.acts.plan("shrink") as status:
            if status.phase != PlanPhase.PREPARED:
                why = "; ".join(f"{one.reason}: {one.message}" for one in status.claims)
                raise StoryFailed(f"phase {status.phase}, not {PlanPhase.PREPARED}: {why}")
            self.acts.expect_exactly_its_pods(shrink)
            figures = counted()
        await self.stage.user.delete(DEPLOYMENT, "shrink", "shrink")
        return figures, f"prepared: exactly its {figures.pods} live pods listed, no workload"

    async def downgrade_refused(self) -> StepResult:
        """The claim has more pods than a list takes: claimctl leaves it as it is."""
        wide = Workload("wide", "wide", "slice", self.plot.wide)
        await self.acts.room("wide")
        await self.acts.held(wide)
        await self.acts.recorded(wide)
        before = self.acts.claim(wide)
        counted = self.acts.count(wide)
        async with self.acts.plan("wide") as status:
            if status.phase != PlanPhase.BLOCKED:
                raise StoryFailed(f"phase {status.phase}, not {PlanPhase.BLOCKED}")
            if self.acts.claim(wide) != before:
                raise StoryFailed("the refused claim was changed")
            figures = counted()
        await self.stage.user.delete(DEPLOYMENT, "wide", "wide")
        reasons = ", ".join(one.reason for one in status.claims)
        return figures, f"downgrade of {wide.pods} pods refused ({reasons}), claim untouched"

    async def more_than_the_limit(self) -> StepResult:
        """The claim has more pods than a list takes: 256 run, and the rest is reported."""
        wide = Workload("wide", "wide", "slice", self.plot.wide)
        await self.acts.room("wide")
        counted = self.acts.count(wide)
        await self.acts.create(wide)
        running = await self.acts.full(wide)
        figures = counted()
        excess = wide.pods - running
        few = replace(wide, pods=40)
        await self.acts.change(few, {"replicas": few.pods})
        await self.acts.runs(few)
        await self.acts.held_again(few)
        await self.stage.user.delete(DEPLOYMENT, "wide", "wide")
        message = (
            f"{running} of {wide.pods} pods run, {excess} stay pending, reported HoldYielded; "
            f"held again with {few.pods}"
        )
        return replace(figures, more={"pending": excess}), message


def _key(workload: Workload) -> Key:
    return workload.namespace, workload.claim
