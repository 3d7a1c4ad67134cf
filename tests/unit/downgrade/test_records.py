"""The record of one claim in a DowngradePlan: what will be replaced, and what was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.downgrade.expansion import Expanded, Expansion, Obstacle, Refused, Unchanged
from claimctl.downgrade.records import (
    Phase,
    State,
    announced,
    expanded_record,
    final_phase,
    is_announced,
    is_over,
    survey,
    withdrawn,
)
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus
from tests.support.builders import CLAIM, NAMESPACE, claim, deployment_ref, pod_ref

HOLD, EARLIER = deployment_ref(), deployment_ref("earlier", "uid-earlier")
EMPTY = DowngradedClaim(namespace=NAMESPACE, name=CLAIM, uid="uid-slice")
HELD = claim(pod_ref("a"), HOLD)
FREE = claim(pod_ref("a"), version="11")
ANNOUNCED = announced(EMPTY, HELD)


def uids(references: tuple[Reference, ...]) -> list[str]:
    return [each.uid for each in references]


@pytest.mark.parametrize(
    ("record", "on", "replaced", "version"),
    [
        pytest.param(EMPTY, HELD, ["uid-train"], "10", id="a hold is announced"),
        pytest.param(EMPTY, FREE, [], "", id="a claim of pods needs no write"),
        pytest.param(ANNOUNCED, FREE, ["uid-train"], "10", id="what went stays on record"),
        pytest.param(
            announced(EMPTY, claim(EARLIER)),
            replace(HELD, metadata=replace(HELD.metadata, resource_version="12")),
            ["uid-earlier", "uid-train"],
            "12",
            id="a hold that came later is added",
        ),
    ],
)
def test_what_a_write_will_replace_is_announced(
    record: DowngradedClaim, on: ResourceClaim, replaced: list[str], version: str
) -> None:
    found = announced(record, on)
    assert (uids(found.replaced_references), found.resource_version) == (replaced, version)


@pytest.mark.parametrize(
    ("record", "on", "expected"),
    [
        pytest.param(ANNOUNCED, HELD, True, id="this version of the claim"),
        pytest.param(ANNOUNCED, claim(HOLD, version="11"), False, id="another version"),
        pytest.param(ANNOUNCED, claim(HOLD, EARLIER), False, id="a hold that is not on record"),
        pytest.param(EMPTY, HELD, False, id="nothing on record"),
    ],
)
def test_a_write_needs_a_record_of_exactly_what_it_replaces(
    record: DowngradedClaim, on: ResourceClaim, expected: bool
) -> None:
    assert is_announced(record, on) is expected


@pytest.mark.parametrize(
    ("uncertain", "left"),
    [
        pytest.param(set(), [], id="the write surely failed"),
        pytest.param({"uid-train"}, ["uid-train"], id="an earlier write may have succeeded"),
        pytest.param({"uid-earlier"}, [], id="another reference is in doubt"),
    ],
)
def test_a_failed_write_leaves_on_record_what_is_in_doubt(
    uncertain: set[str], left: list[str]
) -> None:
    found = withdrawn(ANNOUNCED, HELD, uncertain)
    assert (uids(found.replaced_references), found.resource_version) == (left, "")


@pytest.mark.parametrize(
    ("expansion", "state", "replaced"),
    [
        pytest.param(
            Expanded((pod_ref("a"),), (HOLD,)), State.EXPANDED, ["uid-train"], id="written"
        ),
        pytest.param(
            Unchanged(1, by_pods=True), State.EXPANDED, ["uid-train"], id="only pods hold it"
        ),
        pytest.param(Unchanged(), State.UNCHANGED, [], id="not allocated"),
        pytest.param(Refused(Obstacle.NO_CONSUMER, "no"), State.REFUSED, [], id="refused"),
    ],
)
def test_the_record_after_the_claim(
    expansion: Expansion, state: State, replaced: list[str]
) -> None:
    found = expanded_record(ANNOUNCED, HELD, expansion)
    assert (found.state, uids(found.replaced_references)) == (state, replaced)


def test_a_survey_keeps_earlier_records_and_drops_those_of_other_claims() -> None:
    earlier = (ANNOUNCED, replace(ANNOUNCED, uid="uid-of-an-earlier-claim"))
    (record,) = survey([FREE], earlier)
    assert (record.uid, uids(record.replaced_references)) == ("uid-slice", ["uid-train"])
    assert record.state == State.PENDING
    assert survey([FREE], ()) == ()


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ((), Phase.PREPARED),
        ((State.EXPANDED, State.UNCHANGED), Phase.PREPARED),
        ((State.EXPANDED, State.REFUSED), Phase.BLOCKED),
        ((State.FAILED,), Phase.BLOCKED),
    ],
)
def test_the_final_phase(states: tuple[State, ...], phase: Phase) -> None:
    assert final_phase(replace(EMPTY, state=state) for state in states) is phase


@pytest.mark.parametrize("phase", ["", *Phase])
def test_a_run_is_over_in_three_phases(phase: str) -> None:
    over = phase in ("Prepared", "Blocked", "Failed")
    assert is_over(DowngradePlanStatus(phase=phase)) is over
