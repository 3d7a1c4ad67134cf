"""One ghost that counts for many pods of one boot of a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.users.several import (
    is_of_namespace,
    is_several,
    several,
    with_longer_grace,
)
from claimctl.wire.reservations import NO_SIGNS_SECONDS, ForceDeletedPod

POD = ForceDeletedPod(
    name="train-0",
    uid="uid-0",
    node_name="node-0",
    boot_id="boot-1",
    termination_grace_period_seconds=30,
)


def test_all_pods_of_a_boot_have_one_ghost_whoever_computes_it() -> None:
    other = replace(POD, name="train-1", uid="uid-1")
    assert several(POD).uid == several(other).uid
    assert several(POD).node_name == "node-0"


@pytest.mark.parametrize("changed", [{"boot_id": "boot-2"}, {"node_name": "node-1"}])
def test_another_boot_and_another_node_have_another_one(changed: dict[str, str]) -> None:
    assert several(POD).uid != several(replace(POD, **changed)).uid


def test_it_is_known_by_its_uid() -> None:
    assert not is_several(POD)
    assert is_several(several(POD))
    assert not is_of_namespace(several(POD))
    assert is_several(several(POD, of_namespace=True))
    assert is_of_namespace(several(POD, of_namespace=True))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(30, 60, 60), (60, 30, 60), (30, None, NO_SIGNS_SECONDS), (None, 30, None)],
)
def test_it_has_the_longest_grace_period(
    one: int | None, other: int | None, expected: float | None
) -> None:
    first, last = (replace(POD, termination_grace_period_seconds=it) for it in (one, other))
    assert with_longer_grace(first, last).termination_grace_period_seconds == expected
