"""Plays a user's manifests: create, let run, scale down, delete, and report every claim."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kube_in_process.options import ClusterOptions

from claimctl.commands.timeline.model import Timeline
from claimctl.wire.meta import Condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION
from claimctl_demo.story.applying import NODES, Application, BadManifests
from claimctl_demo.story.claims_seen import ClaimSeen, Observer
from claimctl_demo.story.documents import DemoPlay
from claimctl_demo.story.invent import pods_of
from claimctl_demo.story.manifests import Manifest, load
from claimctl_demo.story.presets import PRESETS
from claimctl_demo.story.report import Printer
from claimctl_demo.story.stage import EmbeddedStage, StoryFailed, staged
from claimctl_demo.story.timelines import embedded_timelines
from claimctl_witness.witness import Violation

RUN_SECONDS = 60.0
"""Seconds within which all pods must run or have finished."""
QUIET_SECONDS = 4.0
"""After as many seconds without a change, no change is expected any more."""
END_SECONDS = 15.0

_SCALABLE = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_MAKES_PODS = _SCALABLE | {"Pod", "Job"}


@dataclass(slots=True)
class PlayReport:
    dialect: str
    version: str
    claims: list[ClaimSeen] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    """Pods that never ran, each with the scheduler's message."""
    violations: list[Violation] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    """The timelines of all claims. Only the page needs them."""

    def document(self) -> DemoPlay:
        return DemoPlay(
            dialect=self.dialect,
            version=self.version,
            claims=tuple(claim.document() for claim in self.claims),
            pending_pods=tuple(self.pending),
            violations=len(self.violations),
            violation_details=tuple(self.violations),
        )


async def play_files(
    files: Sequence[str], dialect: str, version: str, printer: Printer
) -> PlayReport:
    """Play manifests on a new cluster.

    Raises:
        BadManifests: a file cannot be read or the server refuses an object.
    """
    manifests, problems = load(files)
    if problems:
        raise BadManifests(problems)
    major, minor = version.split(".")
    options = ClusterOptions(
        preset=PRESETS[dialect],
        kubernetes_version=(int(major), int(minor)),
        nodes=NODES,
        device_class="demo.claimctl.io",
        devices_per_node=0,
    )
    async with staged(options) as stage:
        return await _Play(stage, manifests, printer, PlayReport(dialect, version)).run()


@dataclass(slots=True)
class _Play:
    stage: EmbeddedStage
    manifests: list[Manifest]
    printer: Printer
    report: PlayReport
    observer: Observer = field(default_factory=Observer)

    async def run(self) -> PlayReport:
        self.stage.world.listen(self.observer.notice)
        user, dialect = self.stage.user, self.report.dialect
        api = self.stage.resource_api
        await Application(user, self.manifests, self.printer, dialect, api).apply()
        await self._let_run()
        await self._end()
        self.stage.look()
        self.report.claims = self.observer.claims(self.stage.witness, self.stage.world)
        self.report.violations = self.stage.witness.violations
        self.report.timelines = embedded_timelines(self.stage)
        self._print_results()
        return self.report

    def _print_results(self) -> None:
        for claim in self.report.claims:
            self.printer.head(claim.line())
        for violation in self.report.violations:
            self.printer.head(f"VIOLATION {violation.rule}: {violation.message}")

    async def _let_run(self) -> None:
        """Wait until every pod runs or has finished, or nothing happens any more."""
        if await self._pods_run():
            self.printer.text("all pods run or have finished")
        else:
            self.report.pending = [_why(pod) for pod in self._pods() if not _started(pod)]
            for line in self.report.pending:
                self.printer.text(f"pending: {line}")
        with contextlib.suppress(StoryFailed):
            await self.stage.until(
                self._reservations_report,
                "the ClaimReservations report their claims",
                QUIET_SECONDS,
            )
        self.observer.note_running(self.stage.world)

    async def _pods_run(self) -> bool:
        end = self.stage.clock.monotonic() + RUN_SECONDS
        while self.stage.clock.monotonic() < end:
            before = self._progress()
            try:
                await self.stage.until(
                    partial(self._moves_on, before), "anything more happens", QUIET_SECONDS
                )
            except StoryFailed:
                return False
            if self._all_run():
                return True
        return False

    def _moves_on(self, before: tuple[int, int]) -> bool:
        return self._all_run() or self._progress() != before

    def _progress(self) -> tuple[int, int]:
        pods = self._pods()
        return sum(map(_started, pods)), sum(map(_finished, pods))

    def _reservations_report(self) -> bool:
        """Whether each ClaimReservation reports the state of its claim, now that pods run."""
        reservations = self.stage.world.reservations.values()
        reserved = {
            (one.metadata.namespace, one.spec.workload_ref.name)
            for one in reservations
            if any(_settled(condition) for condition in one.status.conditions)
        }
        annotated = {
            (each.namespace, each.name)
            for each in self.manifests
            if RESERVE_ANNOTATION in (each.body["metadata"].get("annotations") or {})
        }
        wanted = {(one.metadata.namespace, one.spec.workload_ref.name) for one in reservations}
        return (annotated | wanted) <= reserved

    def _pods(self) -> list[Pod]:
        spaces = dict.fromkeys(each.namespace for each in self.manifests)
        return [pod for space in spaces for pod in self.stage.world.pods_in(space)]

    def _all_run(self) -> bool:
        wanted = sum(self._wanted(each) for each in self.manifests)
        started = [pod for pod in self._pods() if _started(pod)]
        return len(started) >= wanted and self._jobs_done()

    def _wanted(self, manifest: Manifest) -> int:
        return pods_of(manifest)[0] if manifest.kind in _MAKES_PODS else 0

    def _jobs_done(self) -> bool:
        jobs = {each.name for each in self.manifests if each.kind == "Job"}
        left = [pod for pod in self._pods() if _owner(pod) in jobs and not _finished(pod)]
        return not left

    async def _end(self) -> None:
        """Scale to 0 what can be scaled, then delete what makes pods, in reverse order."""
        for each in self.manifests:
            if each.kind in _SCALABLE:
                kind = (each.api_version, each.kind)
                body = {"spec": {"replicas": 0}}
                await self.stage.user.patch(kind, each.namespace, each.name, body)
        await self._wait(lambda: not self._pods_of_scalable(), "scaled to zero")
        self.stage.look()
        self.observer.note_idle(self.stage.world)
        for each in reversed(self.manifests):
            if each.kind in _MAKES_PODS:
                kind = (each.api_version, each.kind)
                await self.stage.user.delete(kind, each.namespace, each.name)
        await self._wait(lambda: not self._pods(), "deleted")
        await self._wait(self._all_released, "claims released")

    def _pods_of_scalable(self) -> list[Pod]:
        free = {each.name for each in self.manifests if each.kind == "Pod"}
        jobs = {each.name for each in self.manifests if each.kind == "Job"}
        return [
            pod for pod in self._pods() if pod.metadata.name not in free and _owner(pod) not in jobs
        ]

    def _all_released(self) -> bool:
        return all(
            claim.status.allocation is None or self.observer.stays(claim)
            for claim in self.stage.world.claims.values()
        )

    async def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition that may never hold; the report then shows how far it got."""
        try:
            await self.stage.until(condition, what, END_SECONDS)
            self.printer.text(what)
        except StoryFailed as late:
            self.printer.text(str(late))


def _settled(condition: Condition) -> bool:
    """Whether a ClaimReservation's condition concerns an allocated claim."""
    return condition.type == "Reserved" and condition.reason != "NotAllocated"


def _started(pod: Pod) -> bool:
    return pod.status.phase in {"Running", "Succeeded", "Failed"}


def _finished(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.name if owner else ""


def _why(pod: Pod) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    if pod.spec.node_name:
        return f"pod {name} is bound to {pod.spec.node_name} and has not started"
    waits = scheduled.message if scheduled and scheduled.message else "waits without a condition"
    return f"pod {name}: {waits}"
