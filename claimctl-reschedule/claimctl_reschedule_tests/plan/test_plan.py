"""Plans: JSON that reads back as the same plan, and a digest of the content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from claimctl.wire.base import decode, encode
from claimctl_reschedule.plan.plan import Facts, Move, Note, Owner, Plan, PodRef, Skipped, TaintStep
from claimctl_reschedule.plan.reasons import Ground

POD = PodRef(namespace="team", name="web-1", uid="u1", node="node-a")
PLAN = Plan(
    made_at=datetime(2026, 1, 1, tzinfo=UTC),
    cluster_uid="c",
    moves=(
        Move(
            strategy="RemoveDuplicates",
            pod=POD,
            owner=Owner(kind="ReplicaSet", name="web", uid="rs"),
            destination="node-b",
            facts=Facts(phase="Running", requests=(("cpu", "100"),), labels=(("app", "web"),)),
        ),
    ),
    taints=(TaintStep(node="a", node_uid="n", key="k", value="v", unit="x", pod=POD),),
    skipped=(Skipped(pod=POD, strategy="S", reason=Ground.PINNED, detail="claim c"),),
    notes=(Note(strategy="S", text="no node is under-used"),),
).sealed()


def test_a_plan_is_the_same_after_it_was_written_and_read() -> None:
    assert decode(encode(PLAN), Plan) == PLAN


def test_the_digest_is_that_of_the_content_and_not_of_the_time() -> None:
    later = replace(PLAN, made_at=PLAN.made_at + timedelta(hours=1))
    assert later.computed_digest() == PLAN.digest
    assert replace(PLAN, digest="").computed_digest() == PLAN.digest


def test_an_edited_plan_has_another_digest() -> None:
    edited = replace(PLAN, moves=(replace(PLAN.moves[0], destination="node-c"),))
    assert edited.computed_digest() != PLAN.digest
    assert replace(PLAN, cluster_uid="d").computed_digest() != PLAN.digest
