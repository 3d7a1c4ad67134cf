"""Playing a user's own manifests: start, let run, scale down, delete, and tell of every claim."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from claimctl.demo.claims_seen import ClaimSeen, Observer
from claimctl.demo.invent import invented, pods_of
from claimctl.demo.manifests import Manifest, Object, load
from claimctl.demo.objects import namespace
from claimctl.demo.report import Printer
from claimctl.demo.stage import Stage, StoryFailed, staged
from claimctl.demo.user import NotServed, Refused
from claimctl.demo.witness import Violation
from claimctl.embedded.options import ClusterOptions, Dialect
from claimctl.wire.pods import Pod

NODES = 3
RUN_SECONDS = 15.0
"""How long manifests may take until all their pods run, or have finished."""
END_SECONDS = 15.0

_SCALABLE = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_MAKES_PODS = _SCALABLE | {"Pod", "Job"}


class BadManifests(Exception):
    """The manifests cannot be played; ``problems`` has one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = tuple(problems)


@dataclass(slots=True)
class PlayReport:
    dialect: str
    version: str
    claims: list[ClaimSeen] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    """Pods that never ran, each with what the scheduler says about it."""
    violations: list[Violation] = field(default_factory=list)

    def document(self) -> Object:
        return {
            "apiVersion": "cli.claimctl.io/v1alpha1",
            "kind": "DemoPlay",
            "dialect": self.dialect,
            "version": self.version,
            "claims": [claim.document() for claim in self.claims],
            "pendingPods": self.pending,
            "violations": len(self.violations),
            "violationDetails": [asdict(violation) for violation in self.violations],
        }


async def play_files(
    files: Sequence[str], dialect: str, version: str, printer: Printer
) -> PlayReport:
    """Play manifests on a cluster of their own.

    Raises:
        BadManifests: a file cannot be read or the server refuses an object.
    """
    manifests, problems = load(files)
    if problems:
        raise BadManifests(problems)
    major, minor = version.split(".")
    options = ClusterOptions(
        dialect=Dialect(dialect),
        kubernetes_version=(int(major), int(minor)),
        nodes=NODES,
        device_class="demo.claimctl.io",
        devices_per_node=0,
    )
    async with staged(options) as stage:
        return await _Play(stage, manifests, printer, PlayReport(dialect, version)).run()


@dataclass(slots=True)
class _Play:
    stage: Stage
    manifests: list[Manifest]
    printer: Printer
    report: PlayReport
    observer: Observer = field(default_factory=Observer)
    _refused_namespaces: set[str] = field(default_factory=set)

    async def run(self) -> PlayReport:
        self.stage.world.listen(self.observer.notice)
        await self._check(await self._prepare())
        await self._create()
        await self._let_run()
        await self._end()
        self.stage.look()
        self.report.claims = self.observer.claims(self.stage.witness, self.stage.world)
        self.report.violations = self.stage.witness.violations
        self._tell()
        return self.report

    def _tell(self) -> None:
        for claim in self.report.claims:
            self.printer.head(claim.line())
        for violation in self.report.violations:
            self.printer.head(f"VIOLATION {violation.rule}: {violation.message}")

    # Start

    async def _prepare(self) -> list[str]:
        """Namespaces, and the classes and devices that the manifests ask for; what went wrong."""
        problems = []
        named = [each for each in self.manifests if each.kind == "Namespace"]
        for each in named:
            found = await self._try(each, dry_run=False)
            problems += found
            if found:
                self._refused_namespaces.add(each.name)
        mentioned = dict.fromkeys(each.namespace for each in self._objects())
        for name in mentioned:
            if name not in {"default", "kube-system", *(each.name for each in named)}:
                problems += await self._make_namespace(name)
        bodies = invented(self.manifests, [f"node-{number}" for number in range(NODES)])
        for body in bodies:
            await self._invent(body)
        drivers = {each["spec"]["driver"] for each in bodies if each["kind"] == "ResourceSlice"}
        if drivers:
            self.printer.text(f"devices of {', '.join(sorted(drivers))} are invented")
        return problems

    async def _make_namespace(self, name: str) -> list[str]:
        """A namespace that is only mentioned."""
        try:
            await self.stage.user.create(namespace(name))
        except Refused as refused:
            self._refused_namespaces.add(name)
            where = next(each.where for each in self._objects() if each.namespace == name)
            return [f"{where}: metadata.namespace: {refused}"]
        self.printer.text(f"namespace {name} is made")
        return []

    async def _invent(self, body: Object) -> None:
        """A class or slice; where its name is impossible, the server refuses what asks for it."""
        with contextlib.suppress(Refused):
            await self.stage.user.create(body)

    async def _check(self, problems: list[str]) -> None:
        """Have the server look at everything before anything starts."""
        for each in self._objects():
            if each.namespace not in self._refused_namespaces:
                problems += await self._try(each, dry_run=True)
        if problems:
            raise BadManifests(problems)

    async def _create(self) -> None:
        problems = []
        for each in self._objects():
            problems += await self._try(each, dry_run=False)
        if problems:
            raise BadManifests(problems)
        self.printer.text(f"{len(self.manifests)} objects created")

    def _objects(self) -> list[Manifest]:
        return [each for each in self.manifests if each.kind != "Namespace"]

    async def _try(self, manifest: Manifest, *, dry_run: bool) -> list[str]:
        try:
            created = await self.stage.user.create(manifest.body, dry_run=dry_run)
        except NotServed as missing:
            return [f"{manifest.where}: {missing}{self._hint(manifest)}"]
        except Refused as refused:
            return [f"{manifest.where}: {cause}" for cause in refused.causes]
        if not dry_run:
            manifest.body["metadata"]["name"] = created["metadata"]["name"]
        return []

    def _hint(self, manifest: Manifest) -> str:
        """What would help; PodGroups are what the dialect podgroup is about."""
        if manifest.group == "scheduling.k8s.io":
            return (
                f" (dialect {self.report.dialect}): PodGroups need a cluster of the dialect "
                "podgroup, which this demo does not play"
            )
        return ""

    # Run and end

    async def _let_run(self) -> None:
        """Until every pod runs or has finished, or nothing more is to be expected."""
        try:
            await self.stage.until(self._all_run, "all pods run", RUN_SECONDS)
            self.printer.text("all pods run or have finished")
        except StoryFailed:
            self.report.pending = [_why(pod) for pod in self._pods() if not _started(pod)]
            for line in self.report.pending:
                self.printer.text(f"pending: {line}")
        self.observer.note_running(self.stage.world)

    def _reservations_tell(self) -> bool:
        """Whether each reservation says how it is with its claim, now that pods run."""
        return all(
            any(
                one.type == "Reserved" and one.reason != "NotAllocated"
                for one in reservation.status.conditions
            )
            for reservation in self.stage.world.reservations.values()
        )

    def _pods(self) -> list[Pod]:
        spaces = dict.fromkeys(each.namespace for each in self.manifests)
        return [pod for space in spaces for pod in self.stage.world.pods_in(space)]

    def _all_run(self) -> bool:
        wanted = sum(self._wanted(each) for each in self.manifests)
        started = [pod for pod in self._pods() if _started(pod)]
        return len(started) >= wanted and self._jobs_done() and self._reservations_tell()

    def _wanted(self, manifest: Manifest) -> int:
        return pods_of(manifest)[0] if manifest.kind in _MAKES_PODS else 0

    def _jobs_done(self) -> bool:
        jobs = {each.name for each in self.manifests if each.kind == "Job"}
        left = [pod for pod in self._pods() if _owner(pod) in jobs and not _finished(pod)]
        return not left

    async def _end(self) -> None:
        """Scale down what can be scaled, then delete what makes pods, in the reverse order."""
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
        """Wait for an end that need not come: the report tells how far it went."""
        try:
            await self.stage.until(condition, what, END_SECONDS)
            self.printer.text(what)
        except StoryFailed as late:
            self.printer.text(str(late))


def _started(pod: Pod) -> bool:
    return pod.status.phase in {"Running", "Succeeded", "Failed"}


def _finished(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.name if owner else ""


def _why(pod: Pod) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    told = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    if pod.spec.node_name:
        return f"pod {name} is bound to {pod.spec.node_name} and has not started"
    return f"pod {name}: {told.message if told and told.message else 'waits without a condition'}"
