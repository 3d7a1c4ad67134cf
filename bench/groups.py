"""How long the pods of a PodGroup take until all are bound, if claimctl or a user makes the group.

Rounds of both kinds alternate on one control plane with PodGroups. A round makes a claim and a
Deployment that reserves it, and counts from the Deployment's creation. In one kind the PodGroup
exists before.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator

from kube_in_process.real.servers.following import Follower

from bench.jobs import POD, JobsBench, claim, common_flags, deployment, made, play
from bench.table import BenchPart, Line, at_most, medians, register, tell
from claimctl.wire.base import Object

GROUP = ("scheduling.k8s.io/v1alpha2", "PodGroup")
DEPLOYMENT = ("apps/v1", "Deployment")
NAME = "train"


class _Times:
    """When the PodGroup came and when each pod was bound, by the monotonic clock."""

    def __init__(self) -> None:
        self.group: dict[str, float] = {}
        self.bound: dict[str, dict[str, float]] = {}

    def see_pod(self, event: str, pod: Object) -> None:
        meta = pod["metadata"]
        of = self.bound.setdefault(meta["namespace"], {})
        if event == "DELETED":
            of.pop(meta["name"], None)
        elif pod["spec"].get("nodeName"):
            of.setdefault(meta["name"], time.monotonic())

    def see_group(self, event: str, group: Object) -> None:
        self.group.setdefault(group["metadata"]["namespace"], time.monotonic())


async def _measure(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    times = _Times()
    kinds = ((POD, times.see_pod), (GROUP, times.see_group))
    tasks = [asyncio.create_task(Follower(bench.transport, *kind).run()) for kind in kinds]
    found: dict[bool, list[float]] = {False: [], True: []}
    try:
        for number in range(options.rounds):
            for before in (False, True):
                space = f"{'before' if before else 'made'}-{number}"
                found[before].append(await _round(bench, times, space, options.pods, before=before))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    yield medians(
        f"groups {bench.version}: {options.pods} pods of a PodGroup, until all are bound",
        found[False],
        "a group made before",
        found[True],
        goal=at_most(1.5),
    )


async def _round(bench: JobsBench, times: _Times, space: str, pods: int, *, before: bool) -> float:
    await bench.client.create(made("v1", "Namespace", space))
    await bench.client.create(claim(bench.fleet, space, NAME))
    if before:
        await bench.client.create(_group(space))
        await bench.until(lambda: space in times.group, "the PodGroup is there")
    began = time.monotonic()
    await bench.client.create(deployment(space, NAME, pods, grouped=True))
    await bench.until(lambda: len(times.bound.get(space, ())) == pods, "pods bound")
    bound = sorted(each - began for each in times.bound[space].values())
    group = times.group[space] - began
    tell(
        f"{'made before' if before else 'made by claimctl':16} all bound {bound[-1]:5.2f} s, the "
        f"first {bound[0]:4.2f} s, half {bound[len(bound) // 2]:4.2f} s, the group {group:4.2f} s"
    )
    await bench.client.patch(DEPLOYMENT, space, NAME, {"spec": {"replicas": 0}})
    await bench.until(lambda: not times.bound[space], "pods gone")
    await bench.client.delete(DEPLOYMENT, space, NAME)
    return bound[-1]


def _group(space: str) -> Object:
    spec = {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": NAME}],
    }
    return {**made(*GROUP, NAME, space), "spec": spec}


def _flags(parser: argparse.ArgumentParser) -> None:
    common_flags(parser)
    parser.set_defaults(gates=True)
    parser.add_argument("--pods", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)


def _part(options: argparse.Namespace) -> list[Line]:
    return play(options, _measure, claims=2 * options.rounds)


register(BenchPart("groups", "pods of a PodGroup, until all are bound", _part, _flags, real=True))
