"""What drivers with habits answer and remember: the decisions, without a cluster."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_in_process.habits import deciding
from kube_in_process.habits.habit import (
    PREPARE,
    UNPREPARE,
    Checkpoint,
    Checkpointed,
    Habit,
    Situation,
    Stage,
)
from kube_in_process.habits.presence import Slow
from kube_in_process.habits.registry import HABITS, habit, read, written

Object = dict[str, Any]
POD = {"resource": "pods", "name": "p1", "uid": "uid-p1"}
HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "work", "uid": "uid-work"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "pods", "name": "odd", "uid": "uid-odd"}
KINDS = list(HABITS.values())


def claim(*listed: Object) -> Object:
    meta = {"namespace": "team", "name": "c", "uid": "uid-c"}
    return {"metadata": meta, "status": {"allocation": {}, "reservedFor": list(listed)}}


def at(
    now: float = 0.0, *listed: Object, known: Checkpointed | None = None, boot: str = "1"
) -> Situation:
    checkpoint: Checkpoint = {} if known is None else {"uid-c": known}
    return Situation(claim(*listed), checkpoint, now, boot)


def names(devices: list[Object]) -> list[str]:
    return [device["name"] for device in devices]


DEVICES = [{"name": "dev-0"}, {"name": "dev-1"}]


@pytest.mark.parametrize("kind", KINDS, ids=list(HABITS))
def test_a_habit_says_where_it_was_read(kind: type[Habit]) -> None:
    said = inspect.getdoc(kind) or ""
    assert re.search(r"(Seen|Read) (with|in) ", said)
    assert re.search(r"\.go\b", said)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.name)


def test_habits_are_found_by_their_names_and_written_down() -> None:
    every = [habit(name, node="node-1") for name in HABITS]
    assert read(json.loads(json.dumps(written(every)))) == tuple(every)
    assert habit("slow", prepare_seconds=3.0) == Slow(prepare_seconds=3.0)
    with pytest.raises(ValueError, match="no habit is called 'lazy'; there are wants-one-pod, "):
        habit("lazy")


def test_a_driver_has_a_habit_on_one_node_or_on_all() -> None:
    everywhere, here = habit("slow"), habit("away", node="node-1")
    assert deciding.on_node([everywhere, here], "node-0") == [everywhere]
    assert deciding.on_node([everywhere, here], "node-1") == [everywhere, here]


REFUSED: list[tuple[str, list[Object], str]] = [
    ("wants-one-pod", [POD], ""),
    ("wants-one-pod", [], "driver only supports one pod per claim, got 0"),
    ("wants-one-pod", [POD, HOLD], "driver only supports one pod per claim, got 2"),
    ("wants-one-pod", [HOLD], "driver only supports Pods, unsupported reference deployments"),
    ("wants-one-pod", [GROUP], "driver only supports Pods, unsupported reference pods"),
    ("reads-the-first-reference", [POD, HOLD], ""),
    ("reads-the-first-reference", [HOLD, POD], "claim uid-c reservedFor[0] is not a Pod"),
    ("reads-the-first-reference", [], "claim uid-c has no ReservedFor entries"),
    ("fails-to-prepare", [POD], "the device does not answer"),
    ("fails-to-unprepare", [POD], ""),
    ("hides-used-devices", [POD], ""),
    ("slow", [POD], ""),
]


@pytest.mark.parametrize(("name", "listed", "error"), REFUSED)
def test_a_prepare_is_refused_by_what_the_claim_lists(
    name: str, listed: list[Object], error: str
) -> None:
    reply = deciding.prepared([habit(name)], at(0.0, *listed))
    assert reply.error == error
    stage = None if reply.entry is None else reply.entry.stage
    assert stage == (None if error else Stage.COMPLETED)


@pytest.mark.parametrize("name", list(HABITS))
def test_an_unprepare_succeeds_whatever_the_claim_lists(name: str) -> None:
    known = Checkpointed(claim(POD, HOLD), Stage.COMPLETED, 0.0, "1")
    reply = deciding.unprepared([habit(name)], at(5.0, POD, HOLD, known=known))
    if name == "fails-to-unprepare":
        assert reply == deciding.Reply("the device does not answer", known)
    else:
        assert reply == deciding.Reply("", None)


def test_a_device_that_the_driver_does_not_have_is_refused_after_the_list() -> None:
    lacking = "prepare failed: requested device is not allocatable: dev-0"
    assert deciding.prepared([], at(0.0, POD), "dev-0").error == lacking
    both = deciding.prepared([habit("wants-one-pod")], at(0.0, HOLD), "dev-0")
    assert both.error.startswith("driver only supports Pods")


def test_times_add_up() -> None:
    slow = Slow(prepare_seconds=2.0, unprepare_seconds=5.0)
    assert deciding.seconds([slow, Slow()], PREPARE) == 22.0
    assert deciding.seconds([slow], UNPREPARE) == 5.0
    assert not deciding.is_there([slow, habit("away")])
    assert deciding.is_there([slow])


# Aborted prepares


def aborted(since: float, *listed: Object) -> Checkpointed:
    return Checkpointed(claim(*listed), Stage.ABORTED, since, "1")


MEMORY = [habit("remembers-aborted-prepares")]
STALE = "stale prepare for claim team/c: claim prepare was already aborted"


def test_a_prepare_that_fails_and_is_tried_again_leads_to_a_prepared_claim() -> None:
    first = deciding.prepared(MEMORY, at(0.0, POD))
    assert first.error == "prepare devices failed: the daemon of the claim is not ready"
    assert first.entry == Checkpointed(claim(POD), Stage.STARTED, 0.0, "1")
    second = deciding.prepared(MEMORY, at(70.0, POD, known=first.entry))
    assert (second.error, second.entry and second.entry.stage) == ("", Stage.COMPLETED)
    assert deciding.unprepared(MEMORY, at(80.0, POD, known=second.entry)).entry is None


def test_a_prepare_that_was_cut_off_is_remembered() -> None:
    first = deciding.prepared(MEMORY, at(0.0, POD))
    left = deciding.unprepared(MEMORY, at(10.0, POD, known=first.entry))
    assert (left.error, left.entry) == ("", aborted(10.0, POD))
    again = deciding.unprepared(MEMORY, at(20.0, POD, known=left.entry))
    assert (again.error, again.entry) == ("", left.entry)


@pytest.mark.parametrize(
    ("now", "listed", "stale"),
    [
        (10.0, [POD], True),
        (99.9, [POD], True),
        (100.0, [POD], False),
        (10.0, [POD, HOLD], False),
        (10.0, [], False),
    ],
)
def test_only_a_claim_whose_status_is_equal_is_refused_and_only_for_90_seconds(
    now: float, listed: list[Object], stale: bool
) -> None:
    reply = deciding.prepared(MEMORY, at(now, *listed, known=aborted(10.0, POD)))
    if stale:
        assert reply == deciding.Reply(STALE, aborted(10.0, POD))
    else:
        assert reply.error != STALE
        assert reply.entry == Checkpointed(claim(*listed), Stage.STARTED, now, "1")


# Reboots and restarts


def test_a_reboot_empties_a_checkpoint_but_that_of_a_driver_that_skips_claims() -> None:
    skips = [habit("skips-checkpointed-claims")]
    known = Checkpointed(claim(POD), Stage.COMPLETED, 0.0, "1")
    assert deciding.rebooted([], {"uid-c": known}) == {}
    kept = deciding.rebooted(skips, {"uid-c": known, "uid-d": aborted(0.0)})
    assert kept == {"uid-c": known}
    before = deciding.prepared(skips, at(1.0, POD, known=known, boot="1"))
    after = deciding.prepared(skips, at(1.0, POD, known=known, boot="2"))
    assert before.error == ""
    assert after == deciding.Reply(after.error, known)
    assert after.error.startswith("error preparing devices for claim team/c:uid-c: claims in Pre")
    assert deciding.unprepared(skips, at(1.0, POD, known=known, boot="2")).entry is None


@pytest.mark.parametrize(
    ("listed", "kept"), [([POD], True), ([POD, HOLD], False), ([], False), ([HOLD], True)]
)
def test_a_restart_keeps_the_checkpoint_but_that_of_a_driver_that_counts_entries(
    listed: list[Object], kept: bool
) -> None:
    known = {"uid-c": Checkpointed(claim(POD), Stage.COMPLETED, 0.0, "1")}
    now = {"uid-c": claim(*listed)}
    assert deciding.restarted([], known, {}) == known
    counts = [habit("restores-claims-with-one-entry")]
    assert deciding.restarted(counts, known, now) == (known if kept else {})
    assert deciding.restarted(counts, known, {}) == {}


# What is published


@pytest.mark.parametrize(
    ("name", "has", "shows"),
    [
        ("fewer-devices", ["dev-1"], ["dev-1"]),
        ("renames-devices", ["dev-0-full", "dev-1-full"], ["dev-0-full", "dev-1-full"]),
        ("hides-used-devices", ["dev-0", "dev-1"], ["dev-0"]),
        ("taints-no-schedule", ["dev-0", "dev-1"], ["dev-0", "dev-1"]),
        ("away", ["dev-0", "dev-1"], ["dev-0", "dev-1"]),
    ],
)
def test_what_a_driver_has_and_what_it_shows(name: str, has: list[str], shows: list[str]) -> None:
    habits = [habit(name)]
    assert names(deciding.has(habits, DEVICES)) == has
    assert names(deciding.shows(habits, DEVICES, {"dev-1"})) == shows


@pytest.mark.parametrize(
    ("name", "effect"), [("taints-no-schedule", "NoSchedule"), ("taints-no-execute", "NoExecute")]
)
def test_a_taint_is_added_to_those_that_a_device_has(name: str, effect: str) -> None:
    old = {"key": "old", "effect": "None"}
    devices: list[Object] = [{"name": "dev-0", "taints": [old]}, {"name": "dev-1"}]
    first, second = deciding.shows([habit(name)], devices, set())
    assert first["taints"][0] == old
    assert [taint["effect"] for taint in first["taints"]] == ["None", effect]
    assert second == {"name": "dev-1"}
    assert devices[0]["taints"] == [old]


@given(st.lists(st.sampled_from(sorted(HABITS)), max_size=4))
def test_only_habits_that_publish_change_what_is_published(chosen: list[str]) -> None:
    habits = [habit(name) for name in chosen]
    used = {"dev-1"}
    if deciding.shows(habits, DEVICES, used) != DEVICES:
        assert any(one_habit.publishes for one_habit in habits)
    if deciding.has(habits, DEVICES) == DEVICES:
        assert {"fewer-devices", "renames-devices"}.isdisjoint(chosen)


def test_a_second_pod_gets_no_container_while_the_first_one_has_one() -> None:
    habits = [habit("refuses-a-second-pod")]
    assert deciding.container_refusal(habits, claim(), "uid-p2", []) == ""
    assert deciding.container_refusal(habits, claim(), "uid-p1", ["uid-p1"]) == ""
    said = deciding.container_refusal(habits, claim(), "uid-p2", ["uid-p1"])
    assert said == 'claimUID "uid-c" already bound to pod "uid-p1"'
    assert deciding.container_refusal([habit("slow")], claim(), "uid-p2", ["uid-p1"]) == ""
