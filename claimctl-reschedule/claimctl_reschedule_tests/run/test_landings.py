"""Which pod is the replacement of an evicted one, and how many pods an owner still wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.base import from_plain
from claimctl.wire.pods import Pod
from claimctl_reschedule.plan.plan import Move, Owner, PodRef
from claimctl_reschedule.run.landings import Landings, PodOwner
from tests.support.builders import NAMESPACE, after, pod

COMPLETE = [{"type": "Complete", "status": "True"}]


@pytest.mark.parametrize(
    ("kind", "spec", "status", "wanted"),
    [
        ("ReplicaSet", {}, {}, 1),
        ("ReplicaSet", {"replicas": 0}, {}, 0),
        ("ReplicaSet", {"replicas": 4}, {}, 4),
        ("Job", {}, {}, 1),
        ("Job", {"parallelism": 3, "completions": 5}, {"succeeded": 1}, 3),
        ("Job", {"parallelism": 3, "completions": 5}, {"succeeded": 4}, 1),
        ("Job", {"parallelism": 3, "completions": 5}, {"conditions": COMPLETE}, 0),
        ("Job", {"parallelism": 3}, {}, 3),
        ("Job", {"parallelism": 3}, {"succeeded": 1}, 0),
    ],
)
def test_what_an_owner_wants(
    kind: str, spec: dict[str, Any], status: dict[str, Any], wanted: int
) -> None:
    owner = from_plain({"metadata": {"name": "x"}, "spec": spec, "status": status}, PodOwner)
    assert owner.wants(kind) == wanted


@dataclass
class Watched:
    """A watch of pods that shows these."""

    pods: Sequence[Pod] = ()

    async def follow(self, _: str) -> None: ...

    def uids(self, _: str) -> set[str]:
        return {each.metadata.uid for each in self.pods}

    def of_owner(self, _uid: str, _namespace: str) -> Sequence[Pod]:
        return self.pods


def made(name: str, seconds: float, node: str = "") -> Pod:
    """A pod that was made so many seconds after the beginning."""
    new = pod(name, node=node)
    return replace(new, metadata=replace(new.metadata, creation_timestamp=after(seconds)))


@pytest.mark.parametrize(
    ("pods", "replacement"),
    [
        ((made("a", 30), made("b", 10), made("c", 20)), "b"),
        ((made("b", 10), made("a", 10)), "a"),
        ((made("a", 10), made("b", 20, node="y")), "b"),
    ],
    ids=["the oldest", "of equal age the first by name", "one with a node"],
)
async def test_which_new_pod_is_the_replacement(pods: Sequence[Pod], replacement: str) -> None:
    watched, clock = Watched(), LoopClock()
    client = Client(None, clock)  # type: ignore[arg-type] # never asked
    landings = Landings(client, clock, watched)  # type: ignore[arg-type] # it only shows pods
    left = PodRef(namespace=NAMESPACE, name="left", uid="left", node="x")
    owner = Owner(kind="ReplicaSet", name="web", uid="web")
    move = Move(strategy="Test", pod=left, owner=owner, destination="y")
    await landings.prepare(move)
    landings.begin(move, within=60.0)
    watched.pods = pods
    await landings.look()
    (flight,) = landings.flights
    (expected,) = [each.metadata.uid for each in pods if each.metadata.name == replacement]
    assert flight.replacement == expected
