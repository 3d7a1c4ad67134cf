"""How many pods an owner still wants, by which a run knows that no replacement will come."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.run.landings import PodOwner

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
