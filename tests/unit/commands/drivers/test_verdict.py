"""Which observation means which habit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.commands.drivers.signs import REFUSALS
from claimctl.commands.drivers.signs import StepOutcome as Outcome
from claimctl.commands.drivers.signs import StepResult as Result
from claimctl.commands.drivers.verdict import (
    CheckStep as Step,
)
from claimctl.commands.drivers.verdict import (
    NodeSeen,
    answer_of,
    habits_of,
    not_tried,
    seen_in_words,
    tasks_of,
)
from claimctl.reservation.kinds.drivers import known_habits

DONE = Outcome(Result.DONE, seconds=0.4)
LONG = Outcome(Result.DONE, seconds=21.0)
REFUSED = Outcome(Result.PREPARE_REFUSED, message="no")
AWAY = Outcome(Result.PREPARE_REFUSED, message="DRA driver d is not registered")
NO_CONTAINER = Outcome(Result.CONTAINER_REFUSED, message="bound to another pod")
STUCK = Outcome(Result.TIMED_OUT, message="the pod was still there")
WELL = {
    Step.PREPARE: DONE,
    Step.UNPREPARE: DONE,
    Step.AGAIN: DONE,
    Step.HOLD_FIRST: DONE,
    Step.TWO_PODS: DONE,
}
BEHIND, BEFORE = {Step.HOLD_FIRST: REFUSED}, {Step.HOLD_LAST: REFUSED}


def seen(steps: dict[Step, Outcome], **more: object) -> NodeSeen:
    return NodeSeen("node-1", steps=steps, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "habits"),
    [
        (WELL, ()),
        ({**WELL, **BEHIND, **BEFORE}, ("wants-one-pod",)),
        ({**WELL, **BEHIND, **BEFORE, Step.TWO_PODS: REFUSED}, ("wants-one-pod",)),
        ({**WELL, **BEHIND, Step.HOLD_LAST: DONE}, ("reads-the-first-reference",)),
        ({**WELL, **BEHIND}, ()),
        ({**WELL, **BEHIND, Step.HOLD_LAST: STUCK}, ()),
        ({**WELL, Step.HOLD_FIRST: STUCK}, ()),
        ({**WELL, Step.TWO_PODS: NO_CONTAINER}, ("refuses-a-second-pod",)),
        ({**WELL, Step.TWO_PODS: REFUSED}, ("refuses-a-second-pod",)),
        (
            {**WELL, **BEHIND, Step.HOLD_LAST: DONE, Step.TWO_PODS: NO_CONTAINER},
            ("reads-the-first-reference", "refuses-a-second-pod"),
        ),
        ({Step.PREPARE: REFUSED}, ("fails-to-prepare",)),
        ({Step.PREPARE: AWAY}, ("away",)),
        ({Step.PREPARE: AWAY, Step.UNPREPARE: STUCK}, ("away",)),
        (
            {Step.PREPARE: DONE, Step.UNPREPARE: DONE, Step.AGAIN: REFUSED},
            ("fails-to-prepare",),
        ),
        ({Step.PREPARE: DONE, Step.UNPREPARE: STUCK}, ("fails-to-unprepare",)),
        ({**WELL, Step.PREPARE: LONG}, ()),
        ({**WELL, Step.PREPARE: LONG, Step.AGAIN: LONG}, ("slow",)),
        ({**WELL, Step.UNPREPARE: LONG}, ("slow",)),
        ({Step.PREPARE: Outcome(Result.NOT_SCHEDULED)}, ()),
        ({Step.PREPARE: Outcome(Result.NO_IMAGE)}, ()),
    ],
)
def test_what_the_steps_show(steps: dict[Step, Outcome], habits: tuple[str, ...]) -> None:
    assert habits_of(seen(steps)) == habits


@pytest.mark.parametrize(
    ("hidden", "effects", "habits"),
    [
        (True, (), ("hides-used-devices",)),
        (False, ("NoSchedule",), ("taints-no-schedule",)),
        (False, ("NoExecute", "None"), ("taints-no-execute",)),
        (False, ("None",), ()),
    ],
)
def test_what_the_slices_show(
    effects: tuple[str, ...], habits: tuple[str, ...], *, hidden: bool
) -> None:
    assert habits_of(seen(WELL, hidden=hidden, effects=frozenset(effects))) == habits


outcomes = st.sampled_from([DONE, LONG, REFUSED, AWAY, NO_CONTAINER, STUCK, Outcome()])


@given(st.dictionaries(st.sampled_from(list(Step)), outcomes), st.booleans())
def test_a_habit_is_named_only_if_a_check_can_see_it(
    steps: dict[Step, Outcome], hidden: bool
) -> None:
    found = habits_of(seen(steps, hidden=hidden))
    assert not set(found) & not_tried().keys()
    assert set(found) <= known_habits().keys()
    blames_the_list = {"wants-one-pod", "reads-the-first-reference", "refuses-a-second-pod"}
    if blames_the_list & set(found):
        # without a hold and with one pod, the driver prepared the claim
        assert steps[Step.AGAIN].result is Result.DONE
        assert any(outcome.result in REFUSALS for outcome in steps.values())


def test_a_check_is_complete_if_every_step_says_something() -> None:
    assert seen(WELL).complete
    assert seen({**WELL, **BEHIND, Step.HOLD_LAST: DONE}).complete
    assert not seen({**WELL, **BEHIND}).complete
    assert not seen({**WELL, Step.TWO_PODS: STUCK}).complete
    assert not seen({Step.PREPARE: REFUSED}).complete
    assert not NodeSeen("node-1", skipped="the node is not ready").complete


def test_the_line_says_what_was_seen() -> None:
    steps = {
        Step.PREPARE: Outcome(Result.DONE, "not yet", 61.2),
        Step.UNPREPARE: DONE,
        Step.AGAIN: REFUSED,
    }
    told = seen_in_words(seen(steps, hidden=True, effects=frozenset({"NoExecute"})))
    assert told == (
        "prepare: done in 61s, refused at first (not yet); unprepare: done; "
        "prepare again: refused (no); the device was not published while a pod used it; "
        "a device has a taint NoExecute"
    )
    skipped = NodeSeen("node-1", skipped="the node is not ready")
    assert seen_in_words(skipped) == "nothing tried: the node is not ready"
    assert answer_of(skipped, "d") == "-"


def test_a_driver_that_claimctl_does_not_know_is_to_be_named_to_it() -> None:
    found = seen({**WELL, **BEHIND, **BEFORE})
    assert "--one-pod-driver gpu.example.com" in answer_of(found, "gpu.example.com")
    assert answer_of(found, "dra.net") == "keeps its hold out of the list while a pod is there"
    assert tasks_of(found, "dra.net") == ()


def test_what_is_to_be_done_in_any_case_is_said_of_known_drivers_too() -> None:
    found = seen({**WELL, Step.TWO_PODS: NO_CONTAINER})
    assert "strategy: Recreate" in answer_of(found, "dra.cpu")


def test_without_a_habit_claimctl_holds_the_claim_or_nothing_is_known() -> None:
    assert answer_of(seen(WELL), "d") == "holds the claim"
    unknown = answer_of(seen({Step.PREPARE: Outcome(Result.NO_IMAGE)}), "d")
    assert unknown == "not known: the check was not finished"


def test_every_habit_is_seen_or_said_not_to_be_tried() -> None:
    named = {
        *habits_of(seen({**WELL, **BEHIND, **BEFORE}, hidden=True)),
        *habits_of(seen({**WELL, **BEHIND, Step.HOLD_LAST: DONE, Step.TWO_PODS: NO_CONTAINER})),
        *habits_of(seen({Step.PREPARE: AWAY})),
        *habits_of(seen({Step.PREPARE: REFUSED})),
        *habits_of(seen({Step.PREPARE: DONE, Step.UNPREPARE: STUCK})),
        *habits_of(seen({**WELL, Step.UNPREPARE: LONG})),
        *habits_of(seen(WELL, effects=frozenset({"NoSchedule", "NoExecute"}))),
    }
    assert named | not_tried().keys() == known_habits().keys()
