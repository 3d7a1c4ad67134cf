"""Devices of force-deleted pods, where kubelets report their status as often as they are told to.

The clusters are embedded: kubelets on real nodes have no rhythm that a test could choose.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from random import Random
from statistics import median

import pytest
from kube_in_process.options import ClusterOptions, Heartbeats, Timings
from kube_in_process.storage.store import Revision

from claimctl.commands.claims.explanation import explain
from claimctl.controller.node_leases import LACKING_LOOK_SECONDS
from claimctl.reservation.users.ghosts import RESTARTED_SECONDS, STOOD_SECONDS, WORK_SECONDS
from claimctl.wire.coordination import renewed_at
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import NODE_LEASES
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, LEASES, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage, embedded_stage

GRACES = (1, 5, 30)
REPORTS = (2.0, 10.0, 300.0)
DURATIONS = (40, 300)
READ_SECONDS = 2.5
"""How long after a renewal a device is free: claimctl reads a Lease once a second, and writes."""
FEW, MANY = 6, 50


def cluster(lease: int, report: float, seed: int = 0) -> ClusterOptions:
    """Its pods ignore SIGTERM, so that they are there when somebody deletes them by force."""
    return replace(
        HOLD_136,
        devices_per_node=MANY,
        heartbeats=Heartbeats(lease, report),
        timings=Timings(pod_stop=1000.0),
        seed=seed,
    )


@dataclass
class Deaths:
    """Pods that are deleted by force, each with a claim of its own, and when the claims are free.

    All times are in seconds of the cluster's clock.
    """

    stage: Stage
    rng: Random
    grace: dict[str, int]
    vanished: dict[str, float]
    free: dict[str, float]
    early: set[str]
    """Claims that were free while their devices were still prepared."""

    @classmethod
    async def prepared(cls, stage: Stage, count: int, seed: int, grace: int = 0) -> Deaths:
        rng = Random(seed)
        graces = {f"train-{number}": grace or rng.choice(GRACES) for number in range(count)}
        made = cls(stage, rng, graces, {}, {}, set())
        await stage.started()
        for name, seconds in graces.items():
            await stage.create(RESOURCECLAIMS, manifests.claim(name))
            body = manifests.deployment(name, claim=name)
            body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = seconds
            await stage.create(DEPLOYMENTS, body)
            await stage.create(
                CLAIMRESERVATIONS, manifests.reservation(name, "Deployment", name, name)
            )
        await stage.until_running(count)
        for name in graces:
            await stage.until_condition("Reserved", "True", "Reserved", name=name)
        stage.embedded.subscribe(made._wrote)
        return made

    def _wrote(self, revision: Revision) -> None:
        ours = revision.plural == "resourceclaims" and revision.name in self.vanished
        if ours and "allocation" not in revision.object().get("status", {}):
            if f"{NAMESPACE}/{revision.name}" in self._prepared():
                self.early.add(revision.name)
            self.free.setdefault(revision.name, self.stage.clock.monotonic())

    def _prepared(self) -> set[str]:
        drivers = self.stage.embedded.drivers.values()
        return {claim for driver in drivers for claim, _ in driver.prepared}

    async def happen(self, within: float) -> None:
        """Delete each workload, and its pod by force, at a moment of its own."""
        pods = (await self.stage.client.list(PODS, NAMESPACE)).items
        names = {(pod.metadata.labels or {})["app"]: pod.metadata.name for pod in pods}
        moments = {name: self.rng.uniform(0, within) for name in names}
        await asyncio.gather(*(self._die(each, names[each], moments[each]) for each in names))

    async def _die(self, name: str, pod: str, after: float) -> None:
        await self.stage.clock.sleep(after)
        await self.stage.delete(DEPLOYMENTS, name)
        await self.stage.clock.sleep(1.0)
        self.vanished[name] = self.stage.clock.monotonic()
        await self.stage.site.force_delete(pod)

    async def all_free(self, within: float) -> None:
        async def are_free() -> bool:
            return self.free.keys() == self.grace.keys()

        await self.stage.until(are_free, "all claims are free", within)

    def over(self, lease: int) -> dict[str, float]:
        """By claim: by how many seconds it was free later than promised without a start."""
        renewal = lease / 4 * 1.04
        signs = max(2 * renewal, STOOD_SECONDS + renewal)
        return {
            name: self.free[name] - at - (self.grace[name] + WORK_SECONDS + signs)
            for name, at in self.vanished.items()
        }

    def took(self) -> list[float]:
        """How long each claim was not free after its pod vanished, without the grace period."""
        return [self.free[name] - at - self.grace[name] for name, at in self.vanished.items()]


@pytest.mark.parametrize("lease", DURATIONS)
@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("count", [FEW])
async def test_a_device_is_free_in_time_however_often_kubelets_report(
    lease: int, report: float, count: int
) -> None:
    async with embedded_stage(cluster(lease, report)) as stage:
        deaths = await Deaths.prepared(stage, count, seed=lease)
        await stage.clock.sleep(lease)
        await deaths.happen(within=lease)
        await deaths.all_free(within=400)
        assert not deaths.early
        assert max(deaths.over(lease).values()) < READ_SECONDS
        took = sorted(deaths.took())
        print(
            f"lease {lease} s, report {report:g} s, {count} pods: free {took[0]:.1f}, "
            f"{median(took):.1f}, {took[-1]:.1f} s after the grace period, "
            f"{max(deaths.over(lease).values()):+.1f} s of the bound"
        )


@pytest.mark.parametrize("report", [4.0, 300.0])
async def test_the_time_that_explain_prints_does_not_move(report: float) -> None:
    async with embedded_stage(cluster(40, report)) as stage:
        deaths = await Deaths.prepared(stage, 1, seed=0)
        await stage.clock.sleep(40)
        await deaths.happen(within=0)
        ends = []
        while not deaths.free:
            found = await explain(stage.client, NAMESPACE, "train-0", stage.clock.now())
            for obstacle in found.obstacles:
                assert obstacle.after is not None
                ends.append(stage.clock.monotonic() + obstacle.after)
            await stage.clock.sleep(0.9)
        assert len(ends) > 20
        assert max(ends) - min(ends) < 1.0
        assert deaths.free["train-0"] <= min(ends)


@pytest.mark.parametrize(("lease", "report", "seed"), [(40, 2.0, 0), (40, 300.0, 1), (300, 4.0, 2)])
async def test_no_device_is_free_early_where_kubelets_are_restarted_at_any_moment(
    lease: int, report: float, seed: int
) -> None:
    """A kubelet that was started finds the devices of gone pods up to a minute later."""
    async with embedded_stage(cluster(lease, report, seed)) as stage:
        deaths = await Deaths.prepared(stage, FEW, seed)
        await stage.clock.sleep(lease)
        restarts = asyncio.create_task(_restart_kubelets(stage, deaths.rng, within=lease))
        await deaths.happen(within=lease)
        await deaths.all_free(within=900)
        last = await restarts
        assert not deaths.early
        for name, over in deaths.over(lease).items():
            since_start = max(last - deaths.vanished[name], 0.0)
            # the drivers may come back after the kubelet's first renewal
            assert over < since_start + RESTARTED_SECONDS + LACKING_LOOK_SECONDS + READ_SECONDS


async def test_a_start_in_the_rhythm_of_the_renewals_shows_in_the_slices() -> None:
    async with embedded_stage(replace(cluster(40, 300.0), nodes=1)) as stage:
        deaths = await Deaths.prepared(stage, 1, seed=0)
        await stage.clock.sleep(95)
        lease = await stage.client.get(LEASES, "node-0", NODE_LEASES)
        left = 10.2 - (stage.clock.now() - renewed_at(lease)).total_seconds()
        assert left > 2
        stage.embedded.restart_kubelet("node-0", left)
        await deaths.happen(within=0)
        await deaths.all_free(within=300)
        assert not deaths.early
        assert RESTARTED_SECONDS - 20 < max(deaths.over(40).values()) < RESTARTED_SECONDS + 20


async def _restart_kubelets(stage: Stage, rng: Random, within: float) -> float:
    """Restart the kubelet of each node once; return when the last one was there again."""

    async def restart(node: str) -> float:
        await stage.clock.sleep(rng.uniform(0, within))
        down = rng.uniform(0.5, 8.0)
        stage.embedded.restart_kubelet(node, down)
        return stage.clock.monotonic() + down

    return max(await asyncio.gather(*(restart(f"node-{number}") for number in range(3))))


@pytest.mark.parametrize(("grace", "leaves"), [(1, -60.0), (5, 4.0), (30, 29.0)])
async def test_a_device_stays_prepared_and_allocated_until_its_driver_is_back(
    grace: int, leaves: float
) -> None:
    """A kubelet that works cannot unprepare the device meanwhile, and says so nowhere.

    Args:
        grace: the pod's grace period.
        leaves: when the driver leaves, after the deletion of the pod.
    """
    async with embedded_stage(replace(cluster(40, 10.0), nodes=1)) as stage:
        deaths = await Deaths.prepared(stage, 1, seed=0, grace=grace)
        await stage.clock.sleep(40)
        driver = stage.embedded.driver(stage.site.fleet.driver)
        if leaves < 0:
            driver.leave()
            await stage.clock.sleep(-leaves - 1.0)
        await deaths.happen(within=0)
        await stage.clock.sleep(max(leaves, 0.0))
        driver.leave()
        await stage.clock.sleep(240)
        assert not deaths.free
        found = await explain(stage.client, NAMESPACE, "train-0", stage.clock.now())
        (obstacle,) = found.obstacles
        await stage.until_condition("Released", "False", "ForceDeletedPods", name="train-0")
        (reservation,) = await stage.reservations()
        released = find_condition(reservation.status.conditions, "Released")
        assert released is not None
        for message in (obstacle.message, released.message):
            assert f"the driver {driver.name} is away from node node-0" in message
            assert "`claimctl release train-0 -n team --pod-has-ended train-0-" in message
        driver.come_back()
        await deaths.all_free(within=120)
        assert not deaths.early


@pytest.mark.parametrize("seed", [3, 9, 10])
async def test_a_start_in_the_rhythm_while_the_driver_is_away_frees_no_device_early(
    seed: int,
) -> None:
    """The slices are gone already, so the start shows nowhere. Once a minute, the kubelet looks for
    claims without pods. With these seeds it does so before the driver is back."""
    async with embedded_stage(replace(cluster(40, 300.0, seed), nodes=1)) as stage:
        deaths = await Deaths.prepared(stage, 1, seed=seed, grace=1)
        driver = stage.embedded.driver(stage.site.fleet.driver)
        driver.leave()
        await stage.clock.sleep(95)
        await deaths.happen(within=0)
        await stage.clock.sleep(15)
        lease = await stage.client.get(LEASES, "node-0", NODE_LEASES)
        left = 10.2 - (stage.clock.now() - renewed_at(lease)).total_seconds()
        stage.embedded.restart_kubelet("node-0", left)
        await stage.clock.sleep(left + 60 + 5 * seed)
        driver.come_back()
        await deaths.all_free(within=200)
        assert not deaths.early
