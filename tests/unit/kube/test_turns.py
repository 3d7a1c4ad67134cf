"""Turns between tenants, as the queue takes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimctl.kube.queue import WorkQueue
from claimctl.kube.turns import Turns


@given(
    crowd=st.integers(1, 200),
    others=st.lists(st.sampled_from("bcdef"), min_size=1, max_size=4, unique=True),
    worked=st.integers(0, 20),
)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_a_crowd_of_keys_delays_a_key_of_another_tenant_by_one_turn(
    crowd: int, others: list[str], worked: int
) -> None:
    """And by one turn of every other tenant that waits."""
    queue: WorkQueue[str] = WorkQueue(lambda key: key[0])
    for number in range(crowd):
        queue.add(f"a{number}", now=0.0)
    for _ in range(worked):
        if (key := queue.get(0.0)) is not None:
            queue.done(key, 0.0)
            queue.add(key, 0.0)
    for other in others:
        queue.add(other, now=1.0)
    turns = []
    for _ in range(len(others) + 1):
        key = queue.get(1.0)
        assert key is not None
        turns.append(key)
        queue.done(key, 1.0)
    assert turns[0].startswith("a")
    assert turns[1:] == others


def test_slow_keys_of_one_tenant_leave_the_others_their_share_of_the_workers() -> None:
    queue: WorkQueue[str] = WorkQueue(lambda key: key[0])
    for number in range(20):
        queue.add(f"slow-{number}", now=0.0)
        queue.add(f"quick-{number}", now=0.0)
    got = []
    for _ in range(8):
        key = queue.get(0.0)
        assert key is not None
        got.append(key)
        if key.startswith("q"):
            queue.done(key, 0.0)
    assert [key for key in got if key.startswith("s")] == ["slow-0"]


def test_no_key_is_ready_in_empty_turns() -> None:
    with pytest.raises(IndexError):
        Turns[str](lambda key: key).take()
