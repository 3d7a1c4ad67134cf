"""A workload on an embedded cluster, whose driver takes up its habits at their moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kube_in_process.device_witness import OF_KUBERNETES
from kube_in_process.habits.habit import Habit
from kube_in_process.objects import Object
from kube_in_process.options import ClusterOptions, Heartbeats, Timings

from claimctl.wire.resources import DEPLOYMENTS, JOBS, RESOURCECLAIMS, STATEFULSETS, Resource
from labs.habits.counting import CLAIM, Counting
from labs.habits.drivers import DescribedDriver
from labs.habits.figures import Figures
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, Stage, embedded_stage
from tests.e2e.site import NAMESPACE

PATIENCE = 200.0
"""Seconds in which a wanted pod has to run. A kubelet tries a refused prepare again after 60 to 90
s."""
RELEASE_SECONDS = 600.0
"""Seconds in which a claim has to be deallocated when its workload is gone."""
AT_REST = 15.0
"""Seconds in which a claim comes to rest. A hold whose workload is idle lasts for 60 s."""
AS_REAL = Timings(pod_start=0.3, pod_stop=1.0, kcm_finished_pod_loop=0.5)
"""Containers take their time, as real ones do. The loop of kube-controller-manager on finished pods
is slower than a real one, so that a play is short."""
KINDS: Mapping[str, Resource[Any]] = {
    "Deployment": DEPLOYMENTS,
    "StatefulSet": STATEFULSETS,
    "Job": JOBS,
}


@dataclass(frozen=True, slots=True)
class Moment:
    """When a driver has a habit.

    Attributes:
        late: whether it takes the habit up when the first pod runs, unless the story only starts a
            pod. A driver that had, say, fewer devices from the start would be an ordinary driver.
        lasts: seconds until it has the habit no more; None if it keeps it.
        beside_ghosts: the same if pods vanish, which a kubelet ends by and by.
        before: seconds for which a pod has run beside it before anything else happens.
    """

    late: bool = False
    lasts: float | None = None
    beside_ghosts: float = 0.0
    before: float = 45.0


MOMENTS: Mapping[str, Moment] = {
    "away": Moment(late=True, lasts=75.0, beside_ghosts=300.0),
    "fewer-devices": Moment(late=True),
    "renames-devices": Moment(late=True),
    "taints-no-schedule": Moment(late=True),
    # pods are evicted, and made again, as long as it lasts
    "taints-no-execute": Moment(late=True, lasts=15.0, before=4.0),
    "fails-to-prepare": Moment(late=True, lasts=75.0),
    "fails-to-unprepare": Moment(late=True, lasts=105.0, beside_ghosts=300.0),
}
"""The other habits are those of a driver's whole life."""


@dataclass
class Bench:
    """One workload, ``train``, which uses one claim, with the counts of the play."""

    stage: Stage
    driver: DescribedDriver
    figures: Figures
    counting: Counting
    kind: Resource[Any] = DEPLOYMENTS
    _known: set[tuple[str, int]] = field(default_factory=set)
    """The containers that have run: each by the UID of its pod, and its number of restarts."""
    _ends: list[asyncio.Task[None]] = field(default_factory=list)

    # The driver

    def take_up(self, *, late: bool, ghosts: bool = False) -> None:
        """Let the driver take up the habits of its whole life, or the late ones.

        Args:
            ghosts: whether pods are going to vanish.
        """
        for each in self.driver.habits:
            moment = MOMENTS.get(each.name, Moment())
            if moment.late is late:
                self.counting.driver.take_up(each)
                if moment.lasts is not None:
                    self._plan_end(each, max(moment.lasts, moment.beside_ghosts if ghosts else 0.0))

    async def changes(self, *, ghosts: bool = False) -> None:
        """Let the driver take up its late habits, and time pass."""
        self.take_up(late=True, ghosts=ghosts)
        moments = [MOMENTS.get(each.name, Moment()) for each in self.driver.habits]
        await self.stage.quiet(min(each.before for each in moments))

    def _plan_end(self, habit: Habit, seconds: float) -> None:
        async def end() -> None:
            await asyncio.sleep(seconds)
            self.counting.driver.drop(habit.name)

        self._ends.append(asyncio.create_task(end(), name=f"the end of {habit.name}"))

    async def mend(self) -> None:
        """End the late habits."""
        for task in self._ends:
            task.cancel()
        await asyncio.gather(*self._ends, return_exceptions=True)
        for each in self.driver.habits:
            if MOMENTS.get(each.name, Moment()).late:
                self.counting.driver.drop(each.name)

    # The workload

    async def create(self, body: Object, kind: str = "Deployment") -> None:
        """Create the claim and the workload, which is annotated for claimctl."""
        self.kind = KINDS[kind]
        await self.stage.create(RESOURCECLAIMS, manifests.claim(CLAIM))
        await self.stage.create(self.kind, body)

    async def starts(self) -> None:
        """Wait until a new container runs, in a new pod or in the old one, and count it."""
        self.figures.wanted += 1
        begin = self.stage.clock.monotonic()
        while not (new := self._running() - self._known):
            if self.stage.clock.monotonic() - begin > PATIENCE:
                break
            await self.stage.site.look_again()
        self.figures.ran += bool(new)
        self.figures.waited += self.stage.clock.monotonic() - begin
        self._known |= self._running()

    async def rest(self) -> None:
        await self.stage.quiet(AT_REST)

    async def patch(self, patch: Object) -> None:
        await self.stage.patch(self.kind, "train", patch)

    async def scale(self, replicas: int) -> None:
        await self.patch({"spec": {"replicas": replicas}})

    async def roll_out(self) -> None:
        annotations = {"restarted": str(self.figures.wanted)}
        await self.patch({"spec": {"template": {"metadata": {"annotations": annotations}}}})

    def pods(self) -> list[Object]:
        """The pods that are not being deleted."""
        pods = self.stage.embedded.admin.list("pods", NAMESPACE)
        return [each for each in pods if "deletionTimestamp" not in each["metadata"]]

    async def force_delete(self) -> None:
        for each in self.pods():
            await self.stage.site.force_delete(each["metadata"]["name"])

    @property
    def node(self) -> str:
        """The node of the workload's pod."""
        return str(self.pods()[0]["spec"]["nodeName"])

    async def delete(self) -> None:
        """Delete the workload for good."""
        self.counting.wanted = False
        await self.stage.delete(self.kind, "train", propagation="Background")

    async def is_released(self) -> None:
        """Wait until the claim of a deleted workload is deallocated; count it if it is not."""
        begin = self.stage.clock.monotonic()
        while not await self.stage.released(CLAIM):
            if self.stage.clock.monotonic() - begin > RELEASE_SECONDS:
                self.figures.left += 1
                return
            await self.stage.site.look_again()

    def _running(self) -> set[tuple[str, int]]:
        return {
            (each["metadata"]["uid"], each["status"]["containerStatuses"][0]["restartCount"])
            for each in self.pods()
            if any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in (each.get("status") or {}).get("conditions") or ()
            )
        }


@asynccontextmanager
async def bench(
    driver: DescribedDriver, *, with_claimctl: bool, options: ClusterOptions = HOLD_136
) -> AsyncIterator[Bench]:
    """A cluster whose devices are the driver's; with or without a controller of claimctl.

    What the witnesses say against claimctl is in the figures.
    """
    figures = Figures()
    wanted = replace(options, driver=driver.name, heartbeats=Heartbeats(), timings=AS_REAL)
    try:
        async with embedded_stage(wanted) as stage:
            stage.site.excused.update(OF_KUBERNETES)
            made = Bench(stage, driver, figures, Counting(stage.embedded, figures))
            if with_claimctl:
                await stage.started()
            yield made
            await made.mend()
    except AssertionError as accusation:
        figures.accused.append(str(accusation).splitlines()[0])
