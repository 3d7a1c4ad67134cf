"""What becomes of one PodGroup: a table of cases, each with the one write that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.memory import Memory, SeenGhost
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.pod_groups.case import (
    Asking,
    DropGroup,
    GroupCase,
    GroupDecision,
    GuardGroup,
    MakeGroup,
    decide_group,
    no_longer_needs,
    shared_claims,
)
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import PodResourceClaim, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pod_group,
    reservation,
)
from tests.support.claim_cases import held_status

GUARD = ("claimctl.io/release",)
OWNER = OwnerReference(api_version="apps/v1", kind="Deployment", name="train", uid="uid-train")


def asking(*reserved: str, names: tuple[str, ...] = ("slice",)) -> Asking:
    entries = tuple(PodResourceClaim(name=f"c-{n}", resource_claim_name=n) for n in names)
    return Asking(
        OWNER, PodTemplateSpec(spec=PodSpec(resource_claims=entries)), frozenset(reserved)
    )


def entry(name: str) -> PodResourceClaim:
    return PodResourceClaim(name=f"c-{name}", resource_claim_name=name)


OURS = pod_group(made_by_claimctl=True, finalizers=GUARD, owner=OWNER)
UNGUARDED = pod_group(made_by_claimctl=True, owner=OWNER)
GOING = pod_group(made_by_claimctl=True, finalizers=GUARD, deleting=True)
THEIRS = pod_group(finalizers=GUARD, deleting=True)
ASKED = GroupCase(None, (asking("slice"),), quiet=10.0)


@pytest.mark.parametrize(
    ("case", "decision"),
    [
        pytest.param(
            ASKED, GroupDecision(MakeGroup((OWNER,), (entry("slice"),))), id="asked for: made"
        ),
        pytest.param(
            replace(ASKED, asking=(asking(),)), GroupDecision(), id="nothing reserved: not made"
        ),
        pytest.param(
            replace(ASKED, listed=True), GroupDecision(), id="its name still listed: not made"
        ),
        pytest.param(
            replace(ASKED, quiet=2.0), GroupDecision(after=3.0), id="its name in use lately: later"
        ),
        pytest.param(
            replace(ASKED, quiet=5.0),
            GroupDecision(MakeGroup((OWNER,), (entry("slice"),))),
            id="its name not in use for the settle time: made",
        ),
        pytest.param(GroupCase(OURS, reserved=True), GroupDecision(), id="in use: left as it is"),
        pytest.param(
            GroupCase(UNGUARDED, reserved=True),
            GroupDecision(GuardGroup(UNGUARDED, present=True)),
            id="reserved again: guarded again",
        ),
        pytest.param(
            GroupCase(OURS, reserved=True, unneeded=True),
            GroupDecision(),
            id="idle and released: kept",
        ),
        pytest.param(
            GroupCase(OURS, reserved=True, unneeded=True, owner_ended=True),
            GroupDecision(DropGroup(OURS)),
            id="ended and released: deleted",
        ),
        pytest.param(
            GroupCase(OURS, reserved=True, owner_ended=True),
            GroupDecision(),
            id="ended and not released: kept",
        ),
        pytest.param(
            GroupCase(OURS, unneeded=True),
            GroupDecision(GuardGroup(OURS, present=False)),
            id="withdrawn: left to its pods without a guard",
        ),
        pytest.param(
            GroupCase(GOING, reserved=True), GroupDecision(), id="deleted under a claim: guarded"
        ),
        pytest.param(
            GroupCase(GOING, reserved=True, unneeded=True),
            GroupDecision(lists=True),
            id="deleted and let go: its pods are listed",
        ),
        pytest.param(
            GroupCase(GOING, reserved=True, unneeded=True, in_use_live=False),
            GroupDecision(GuardGroup(GOING, present=False)),
            id="deleted, let go and listed without a pod: gone",
        ),
        pytest.param(
            GroupCase(GOING, reserved=True, unneeded=True, in_use_live=True),
            GroupDecision(),
            id="deleted and let go, and a pod came that the cache does not show: kept for it",
        ),
        pytest.param(
            GroupCase(GOING, reserved=True, unneeded=True, in_use=True),
            GroupDecision(),
            id="deleted and let go, and a pod came: kept for it",
        ),
        pytest.param(
            GroupCase(GOING, in_use=True),
            GroupDecision(),
            id="deleted and nothing reserved any more, and a pod is there: kept for it",
        ),
        pytest.param(
            GroupCase(OURS, reserved=True, unneeded=True, owner_ended=True, in_use=True),
            GroupDecision(),
            id="ended and released, and a pod came late: kept for it",
        ),
        pytest.param(
            GroupCase(THEIRS, unneeded=True, owner_ended=True),
            GroupDecision(),
            id="made by others: never touched",
        ),
    ],
)
def test_a_group(case: GroupCase, decision: GroupDecision) -> None:
    assert decide_group(case) == decision


def test_no_more_claims_than_a_group_may_have_and_only_reserved_ones_in_their_order() -> None:
    names = ("e", "d", "c", "b", "a", "plain")
    found = shared_claims([asking("a", "b", "c", "d", "e", names=names)])
    assert found == (entry("e"), entry("d"), entry("c"), entry("b"))


def snapshot(*, count: int, held: bool = True, listed: bool = True) -> Snapshot:
    refs = (*((group_ref(),) if listed else ()), *((deployment_ref(),) if held else ()))
    one = reservation(status=held_status(pod_group_name="train"))
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name="slice",
        claim=claim(*refs),
        reservations=(
            Held(one, WorkloadState(WorkloadPhase.ENDED, "uid-train", pod_group="train")),
        ),
        pods=tuple(finished(f"p{n}", group="train") for n in range(count)),
        groups=(OURS,),
    )


def unreserved(*, vanished: float | None = None, blind: float | None = None) -> Snapshot:
    """Nothing is reserved, and the claim lists the group alone."""
    gone = ForceDeletedPod(uid="uid-p1", name="p1", since=NOW)
    ghosts = (SeenGhost(gone, vanished),) if vanished is not None else ()
    seen = snapshot(count=0, held=False)
    return replace(seen, reservations=(), ghosts=ghosts, memory=Memory(blind_age=blind))


GHOST = Blocker(Reason.FORCE_DELETED_PODS, "a ghost")


@pytest.mark.parametrize(
    ("seen", "against", "answer"),
    [
        pytest.param(snapshot(count=0, listed=False), None, True, id="not listed"),
        pytest.param(snapshot(count=300), (), True, id="too many finished, held beside it"),
        pytest.param(snapshot(count=300), (GHOST,), False, id="a ghost"),
        pytest.param(snapshot(count=300), None, False, id="not let go"),
        pytest.param(snapshot(count=300, held=False), (), False, id="nothing holds beside it"),
        pytest.param(snapshot(count=3), (), False, id="few finished: the claim goes first"),
        pytest.param(unreserved(), None, True, id="nothing is reserved"),
        pytest.param(unreserved(vanished=299), None, False, id="nothing reserved, a ghost"),
        pytest.param(unreserved(vanished=300), None, True, id="nothing reserved, an old ghost"),
        pytest.param(unreserved(blind=299), None, False, id="nothing reserved, nothing known"),
        pytest.param(unreserved(blind=300), None, True, id="nothing reserved, long looked at"),
    ],
)
def test_a_claim_gets_along_without_its_group(
    seen: Snapshot, against: tuple[Blocker, ...] | None, answer: bool
) -> None:
    group: PodGroup = OURS
    assert no_longer_needs(seen, group, against) is answer
