"""Runs of real clusters, replayed: what real schedulers and controllers did, ours do."""

from __future__ import annotations

from functools import cache

import pytest
from kube_in_process.virtual import run

from .comparing import flaps, histories, in_order, messages, removals, snapshot
from .replay import TraceReplay, play
from .trace import Trace, load, names

SUMMARIES = ("B10", "B13")
"""Traces without single events."""

TRACES = [name for name in names() if not name.startswith(SUMMARIES)]


@cache
def replayed(name: str) -> tuple[Trace, TraceReplay]:
    trace = load(name)
    return trace, run(play(trace))


@pytest.mark.parametrize("name", TRACES)
def test_no_component_fails(name: str) -> None:
    _, replay = replayed(name)
    assert replay.failures == []


@pytest.mark.parametrize("name", TRACES)
def test_objects_are_the_same_whenever_the_cluster_has_settled(name: str) -> None:
    trace, replay = replayed(name)
    for at, state in replay.snapshots:
        theirs = [snapshot(trace, state) for state in trace.around(at)]
        assert snapshot(trace, state) in theirs, f"before t={at}"


@pytest.mark.parametrize("name", TRACES)
def test_each_claim_goes_through_the_same_states(name: str) -> None:
    trace, replay = replayed(name)
    if flaps(trace):
        pytest.skip("the loop on finished pods has no order of its own")
    watched = ("ResourceClaim", "PodGroup")
    assert histories(trace, replay.events, *watched) == histories(trace, trace.events, *watched)


@pytest.mark.parametrize("name", TRACES)
def test_each_pod_goes_through_the_same_states(name: str) -> None:
    trace, replay = replayed(name)
    ours, theirs = (histories(trace, side.events, "Pod") for side in (replay, trace))
    assert ours == theirs


@pytest.mark.parametrize("name", [name for name in TRACES if name.startswith(("B3", "B8"))])
def test_jobs_go_through_the_same_states(name: str) -> None:
    trace, replay = replayed(name)
    assert histories(trace, replay.events, "Job") == histories(trace, trace.events, "Job")


@pytest.mark.parametrize("name", [name for name in TRACES if name.startswith("B4")])
def test_a_stateful_set_goes_through_the_same_states(name: str) -> None:
    """Two changes of a pod within a moment may be seen as one."""
    trace, replay = replayed(name)
    ours, theirs = (histories(trace, side.events, "StatefulSet")[0] for side in (replay, trace))
    assert in_order(ours, theirs)
    assert len(ours) >= len(theirs) - 1


@pytest.mark.parametrize("name", TRACES)
def test_objects_go_in_the_same_order(name: str) -> None:
    trace, replay = replayed(name)
    assert removals(trace, replay.events) == removals(trace, trace.events)


@pytest.mark.parametrize("name", TRACES)
def test_the_same_is_told_in_events(name: str) -> None:
    trace, replay = replayed(name)
    assert messages(replay.messages) == messages(trace.messages)
