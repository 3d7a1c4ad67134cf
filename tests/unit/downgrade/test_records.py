"""The record of one claim in a DowngradePlan: what will be replaced, and what was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.downgrade.expansion import (
    Expanded,
    Expansion,
    ExpansionObstacle,
    ExpansionRefused,
    Unchanged,
)
from claimctl.downgrade.records import (
    PlanPhase,
    RecordState,
    announced,
    expanded_record,
    final_phase,
    is_announced,
    is_carried_out,
    is_over,
    restored_phase,
    restored_record,
    survey,
    withdrawn,
)
from claimctl.downgrade.restoration import Hindrance, Restoration, Unrestored
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
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
            Expanded((pod_ref("a"),), (HOLD,)), RecordState.EXPANDED, ["uid-train"], id="written"
        ),
        pytest.param(
            Unchanged(1, by_pods=True), RecordState.EXPANDED, ["uid-train"], id="only pods hold it"
        ),
        pytest.param(Unchanged(), RecordState.UNCHANGED, [], id="not allocated"),
        pytest.param(
            ExpansionRefused(ExpansionObstacle.NO_CONSUMER, "no"),
            RecordState.REFUSED,
            [],
            id="refused",
        ),
    ],
)
def test_the_record_after_the_claim(
    expansion: Expansion, state: RecordState, replaced: list[str]
) -> None:
    found = expanded_record(ANNOUNCED, HELD, expansion)
    assert (found.state, uids(found.replaced_references)) == (state, replaced)


def test_a_survey_keeps_earlier_records_and_drops_those_of_other_claims() -> None:
    earlier = (ANNOUNCED, replace(ANNOUNCED, uid="uid-of-an-earlier-claim"))
    (record,) = survey([FREE], earlier)
    assert (record.uid, uids(record.replaced_references)) == ("uid-slice", ["uid-train"])
    assert record.state == RecordState.PENDING
    assert survey([FREE], ()) == ()


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ((), PlanPhase.PREPARED),
        ((RecordState.EXPANDED, RecordState.UNCHANGED), PlanPhase.PREPARED),
        ((RecordState.EXPANDED, RecordState.REFUSED), PlanPhase.BLOCKED),
        ((RecordState.FAILED,), PlanPhase.BLOCKED),
    ],
)
def test_the_final_phase(states: tuple[RecordState, ...], phase: PlanPhase) -> None:
    assert final_phase(replace(EMPTY, state=state) for state in states) is phase


@pytest.mark.parametrize("phase", ["", *PlanPhase])
def test_a_run_has_ended_unless_it_waits_or_works(phase: str) -> None:
    over = phase not in ("", "Frozen", "Expanding", "Restoring")
    assert is_over(DowngradePlanStatus(phase=phase)) is over


@pytest.mark.parametrize(
    ("phase", "generation", "carried_out"),
    [("Prepared", 2, True), ("Prepared", 1, False), ("Restoring", 2, False), ("", 2, False)],
)
def test_a_plan_whose_spec_has_changed_since_is_not_carried_out(
    phase: str, generation: int, carried_out: bool
) -> None:
    status = DowngradePlanStatus(phase=phase, observed_generation=generation)
    plan = DowngradePlan(metadata=ObjectMeta(generation=2), status=status)
    assert is_carried_out(plan) is carried_out


@pytest.mark.parametrize(
    ("left", "state", "phase"),
    [
        ((), RecordState.RESTORED, PlanPhase.RESTORED),
        (
            (Unrestored(HOLD, Hindrance.LIST_FULL),),
            RecordState.NOT_RESTORED,
            PlanPhase.PARTLY_RESTORED,
        ),
    ],
)
def test_a_record_keeps_the_references_that_did_not_return(
    left: tuple[Unrestored, ...], state: RecordState, phase: PlanPhase
) -> None:
    record = replace(EMPTY, replaced_references=(HOLD,), resource_version="7")
    found = restored_record(record, Restoration(left=left))
    assert (found.state, found.resource_version) == (state, "")
    assert found.replaced_references == tuple(each.reference for each in left)
    assert restored_phase([found]) is phase
