"""What kubelets write to show that they live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise

import pytest
from kube_in_process.options import ClusterOptions, Heartbeats, Preset

from kube_in_process_tests.worlds import HOLD, Object, World

NODE = "node-0"


def beating(lease: int = 40, report: float = 300.0) -> ClusterOptions:
    return ClusterOptions(preset=Preset.PLAIN, nodes=1, heartbeats=Heartbeats(lease, report))


def renewals(world: World) -> list[float]:
    """When the Lease of the node was renewed, oldest first."""
    return list(_written(world, "leases", _renewed))


def reports(world: World) -> list[float]:
    """When the kubelet of the node reported its status, oldest first."""
    return list(dict.fromkeys(_written(world, "nodes", _reported)))


def _written(
    world: World, plural: str, moments: Callable[[Object], Iterator[float]]
) -> Iterator[float]:
    for revision in world.cluster.history():
        if (revision.plural, revision.name) == (plural, NODE) and revision.type != "DELETED":
            yield from moments(revision.object())


def _renewed(lease: Object) -> Iterator[float]:
    yield datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()


def _reported(node: Object) -> Iterator[float]:
    for condition in node["status"].get("conditions") or ():
        yield datetime.fromisoformat(condition["lastHeartbeatTime"]).timestamp()


def pauses(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(moments)]


@pytest.mark.parametrize(("options", "every"), [(beating(), 10), (beating(lease=300), 75)])
async def test_a_lease_is_renewed_four_times_in_its_duration(world: World, every: int) -> None:
    await world.passes(20 * every)
    seconds = pauses(renewals(world))
    assert len(seconds) >= 18
    assert all(every <= pause <= every * 1.041 for pause in seconds)
    assert len(set(seconds)) > 10
    lease = world.api.get("leases", "kube-node-lease", NODE)
    assert lease["spec"]["leaseDurationSeconds"] == 4 * every
    assert lease["metadata"]["ownerReferences"][0]["name"] == NODE


@pytest.mark.parametrize("options", [beating(report=4.0), beating(report=300.0)])
async def test_a_status_is_reported_as_often_as_it_is_asked_for(
    world: World, options: ClusterOptions
) -> None:
    assert options.heartbeats is not None
    every = options.heartbeats.report_seconds
    await world.passes(10 * every)
    seconds = pauses(reports(world))
    assert len(seconds) >= 8
    assert all(every - 1 <= pause <= every * 1.04 + 1 for pause in seconds)


@pytest.mark.kube_cluster(beating())
async def test_a_kubelet_that_starts_renews_and_reports_at_once(world: World) -> None:
    """It is down for 3 s, and its renewals have a new rhythm afterwards."""
    await world.passes(102)
    boot = world.get("nodes", NODE)["status"]["nodeInfo"]["bootID"]
    world.cluster.restart_kubelet(NODE, 3.0)
    await world.passes(20)
    start = renewals(world)[0] + 105
    assert start == pytest.approx(renewals(world)[-2], abs=0.1)
    assert reports(world)[-1] == pytest.approx(start, abs=1.0)
    assert world.get("nodes", NODE)["status"]["nodeInfo"]["bootID"] == boot


@pytest.mark.kube_cluster(beating())
async def test_a_reboot_is_a_start_with_a_new_boot_id(world: World) -> None:
    await world.passes(105)
    boot = world.get("nodes", NODE)["status"]["nodeInfo"]["bootID"]
    world.cluster.reboot_node(NODE)
    await world.passes(1)
    assert renewals(world)[-1] == pytest.approx(renewals(world)[0] + 105, abs=0.1)
    assert world.get("nodes", NODE)["status"]["nodeInfo"]["bootID"] != boot


@pytest.mark.kube_cluster(beating())
async def test_a_node_that_is_lost_is_silent_and_keeps_its_rhythm(world: World) -> None:
    await world.passes(30)
    world.cluster.lose_node(NODE)
    before = len(renewals(world))
    await world.passes(60)
    assert len(renewals(world)) == before
    world.cluster.restore_node(NODE)
    await world.passes(11)
    (pause,) = pauses(renewals(world)[-2:])
    assert 60 <= pause <= 80


@pytest.mark.kube_cluster(beating())
async def test_the_lease_goes_with_its_node(world: World) -> None:
    await world.passes(30)
    world.api.delete("nodes", "", NODE)
    await world.passes(30)
    assert world.api.find("leases", "kube-node-lease", NODE) is None


@pytest.mark.kube_cluster(HOLD)
async def test_nodes_have_no_heartbeats_unless_somebody_asks_for_them(world: World) -> None:
    await world.passes(600)
    assert world.api.list("leases") == []
