"""States of a cluster: torture that stops at a random moment, and clusters in good order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from claimctl.installation import INSTALLED
from claimctl.wire.base import Object
from labs.agreement.answers import Gauges, moved
from labs.agreement.truth import ObservedObjects
from labs.torture.bodies import App
from labs.torture.explorer import Schedule, begun
from labs.torture.lone_users import LoneUsers
from labs.torture.testbed import Testbed
from labs.torture.user_actions import KINDS, Action
from tests.e2e.harness import DEVICE_CLASS

PAUSES = (0.0, 3.0, 11.0, 25.0, 70.0)
"""Seconds between the last action of torture and the look at its state."""
QUIET, PATIENCE = 3.0, 90.0
"""Seconds without a write after which a state stands, and how long to wait for that."""
IDLE_TIMEOUTS = (60, 600, 3600)
TAINTED_SHARE = 0.3
"""The share of clusters whose nodes are for pods with devices only."""
DEDICATED = {"key": "dedicated", "value": "devices", "effect": "NoSchedule"}
GOOD = "good"
"""The controller without faults."""


@dataclass
class GoodUsers(LoneUsers):
    """Users who break nothing."""

    alone: bool = False
    """Whether a claim is made for one workload, as in ``native``."""

    def choose(self) -> None:
        kinds = self.rng.sample(KINDS, 1 if self.alone else self.rng.choice([1, 2]))
        self.apps = [replace(self._app(kind, "slice"), annotated=False) for kind in kinds]

    async def begin(self) -> None:
        """The same, also on dedicated nodes."""
        for node in self.place.bodies.fleet.names if self.rng.random() < TAINTED_SHARE else ():
            self.admin.patch("nodes", "", node, {"spec": {"taints": [DEDICATED]}})
        await super().begin()

    def _workload(self, app: App, pods: int) -> Object:
        """The same, with pods that tolerate the taint of dedicated nodes."""
        body = super()._workload(app, pods)
        body["spec"]["template"]["spec"]["tolerations"] = [{**DEDICATED, "operator": "Equal"}]
        return body

    def _reservation(self, app: App) -> Object:
        """The same, with a template, and with times that people would choose."""
        body = self.place.bodies.reservation(app, template=True)
        body["spec"]["idleTimeoutSeconds"] = self.rng.choice(IDLE_TIMEOUTS)
        return body

    def actions(self) -> list[Action]:
        return [*[self.scale] * 4, self.restart, self.delete_pod, self.create, self.annotate]


class UnluckyUsers(LoneUsers):
    """Users who also lose nodes, drivers and DeviceClasses for good."""

    def actions(self) -> list[Action]:
        rare = [self.delete_node, self.delete_slice, self.delete_class]
        return [*super().actions(), *rare]

    async def delete_node(self) -> None:
        self.admin.delete("nodes", "", self._node())

    async def delete_slice(self) -> None:
        """The driver of a node goes, and takes back what it has published."""
        self.admin.delete("resourceslices", "", f"{self._node()}-gpu.example.com")

    async def delete_class(self) -> None:
        self.admin.delete("deviceclasses", "", DEVICE_CLASS)


@asynccontextmanager
async def tortured(seed: int) -> AsyncIterator[Testbed]:
    """Torture as it is at a random moment, with its controllers and faults."""
    schedule, rng = Schedule.of(seed), Random(f"moment {seed}")
    async with begun(schedule, UnluckyUsers) as playing:
        for _ in range(rng.randint(1, schedule.actions)):
            await playing.act()
        await playing.testbed.sleep(rng.choice(PAUSES))
        yield playing.testbed


@asynccontextmanager
async def in_order(seed: int) -> AsyncIterator[tuple[Testbed, Gauges]]:
    """A cluster on which good users have worked, some time after their last action."""
    rng = Random(f"good {seed}")
    schedule = replace(Schedule.of(seed), rate=0.0, slow=False)
    people = partial(GoodUsers, alone=schedule.dialect == "native")
    async with begun(schedule, people) as playing:
        testbed = playing.testbed
        gauges = await with_a_good_controller(testbed)
        for _ in range(rng.randint(1, schedule.actions)):
            await playing.users.act()
            await testbed.sleep(rng.choice(PAUSES))
        await testbed.until(lambda: not ObservedObjects.of(testbed).ailments(), PATIENCE, step=1.0)
        await stood_still(testbed)
        yield testbed, gauges


async def with_a_good_controller(testbed: Testbed) -> Gauges:
    """Put one controller without faults into the place of all. The rest stays as it is.

    Returns:
        The gauges that it exports.
    """
    testbed.cluster.handler.fault = None
    for name in list(testbed.processes):
        await testbed.kill(name)
    gauges = testbed.telemetry = Gauges()
    testbed.start(GOOD, leader_elect=True)
    await testbed.until(lambda: _leader(testbed) == GOOD, PATIENCE)
    await stood_still(testbed)
    return gauges


def _leader(testbed: Testbed) -> str:
    leases = testbed.cluster.admin.list("leases")
    own = (it["spec"] for it in leases if it["metadata"]["namespace"] == INSTALLED)
    return next((spec.get("holderIdentity", "") for spec in own), "")


async def stood_still(testbed: Testbed) -> None:
    """Wait until nothing is written any more; for a while only, as some things never end."""
    end = testbed.cluster.clock.monotonic() + PATIENCE
    since = -1
    while moved(testbed, since) and testbed.cluster.clock.monotonic() < end:
        since = testbed.cluster.store.revision
        await testbed.sleep(QUIET)
