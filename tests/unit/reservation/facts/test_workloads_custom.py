"""The state of a workload that only the rule of its kind describes."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from claimctl.reservation.facts.workloads import (
    WorkloadPhase,
    WorkloadState,
    custom_state,
    judged,
    unknown_state,
    with_children,
)
from claimctl.reservation.kinds.rules import Rule
from claimctl.wire.base import encode
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.workloads import CustomWorkload

RULE = Rule(
    *("x.io", "Gang", "gangs"),
    ended="self.status.phase == 'Done'",
    children=(("batch", "Job"),),
)


def state(status: bytes, makers: frozenset[str] = frozenset(), held_for: str = "") -> WorkloadState:
    gang = CustomWorkload(metadata=ObjectMeta(uid="u"), status=msgspec.Raw(status))
    return custom_state(RULE, judged(gang, RULE), makers, (held_for,), confirmed=True)


def test_a_rule_that_says_nothing_leaves_the_state_unknown() -> None:
    assert state(b"{}").phase is WorkloadPhase.UNKNOWN
    assert not state(b"{}").ended
    assert not unknown_state(RULE, "no right").ended


def test_the_claim_is_used_through_pods_or_by_what_holds_it() -> None:
    running = b'{"phase": "Running"}'
    assert not state(running).names_claim
    assert state(running, makers=frozenset({"job"})).names_claim
    assert state(running, held_for="u").names_claim
    assert not state(running, held_for="another").names_claim


def test_a_workload_has_ended_only_when_a_list_has_shown_that_no_child_is_left() -> None:
    over = state(b'{"phase": "Done"}')
    assert with_children(RULE, over, "", ()).ended
    assert not with_children(RULE, over, "", None).ended
    assert not with_children(RULE, over, "", ("Job a",)).ended
    forbidden = with_children(RULE, over, "", "may not list jobs")
    assert forbidden.phase is WorkloadPhase.UNKNOWN


def test_a_workload_that_is_missing_is_gone_only_if_a_live_read_says_so() -> None:
    assert custom_state(RULE, None, frozenset(), (), confirmed=False).phase is WorkloadPhase.UNSEEN
    gone = custom_state(RULE, None, frozenset(), ("u",), confirmed=True)
    assert gone.phase is WorkloadPhase.ABSENT
    assert not with_children(RULE, gone, "u", None).ended


STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(("Done", "Running", "", None, 7)),
        "observedGeneration": st.sampled_from((0, 1, 2, None, "3")),
    },
)
CHILDREN = st.sampled_from((None, "may not list jobs", (), ("Job a",)))


@settings(max_examples=1000)
@given(STATUSES, st.integers(0, 2), CHILDREN, st.booleans(), st.sampled_from(("", "u", "old")))
def test_whatever_a_status_says_only_a_sure_end_without_children_is_an_end(
    status: dict[str, Any],
    generation: int,
    left: tuple[str, ...] | str | None,
    there: bool,
    recorded: str,
) -> None:
    """A status may lie, lag or lack its fields, and the right to list children may go."""
    meta = ObjectMeta(uid="u", generation=generation)
    gang = CustomWorkload(metadata=meta, status=msgspec.Raw(encode(status)))
    workload = judged(gang, RULE) if there else None
    workload_state = custom_state(RULE, workload, frozenset({"job"}), (recorded,), confirmed=True)
    seen = with_children(RULE, workload_state, recorded, left)
    observed = status.get("observedGeneration")
    behind = isinstance(observed, int) and observed < generation
    says_end = not there or (status.get("phase") == "Done" and not behind)
    no_children = left == () or not (workload_state.uid or recorded)
    assert seen.ended == (says_end and no_children)
    assert not (seen.wants_nothing and there), "a rule without 'idle' never frees a live workload"
