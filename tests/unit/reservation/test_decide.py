"""What a write needs to be read live on top of what it was decided from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.decide import adds_only_tombstones, decide, reads_before, serves
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    ReadClaim,
    SetFinalizer,
    Write,
    WriteList,
)
from claimctl.reservation.facts.snapshot import Evidence, Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.claim_cases import ACTIVE, held_status, stage

PARTS = SetFinalizer(reservation(), present=False)
FREES = WriteList("10", (), deallocate=True)
FENCES = WriteList("10", (), fence=True)
LISTS = WriteList("10", (deployment_ref(),))


def seen(evidence: Evidence | None = None) -> Snapshot:
    """A claim that lists a Deployment ``train``."""
    held = Held(reservation(), WorkloadState(WorkloadPhase.ENDED, "uid-train"))
    on = claim(deployment_ref())
    return Snapshot(NOW, NAMESPACE, CLAIM, on, (held,), evidence=evidence or Evidence())


@pytest.mark.parametrize(
    ("snapshot", "write", "needs"),
    [
        pytest.param(seen(), None, (), id="no write"),
        pytest.param(seen(), LISTS, (), id="the list changes, and the claim stays held"),
        pytest.param(seen(), PARTS, (ReadClaim(PARTS),), id="a reservation goes"),
        pytest.param(
            seen(Evidence(claim_read_for=PARTS)), PARTS, (), id="a reservation goes, claim read"
        ),
        pytest.param(
            seen(), replace(PARTS, present=True), (), id="a reservation gets the finalizer"
        ),
        pytest.param(seen(), FREES, (), id="a hold goes with the allocation"),
    ],
)
def test_what_is_read_before_a_write(
    snapshot: Snapshot, write: Write | None, needs: tuple[object, ...]
) -> None:
    assert reads_before(snapshot, write) == needs


@pytest.mark.parametrize(
    ("asked", "write", "good"),
    [
        pytest.param(PARTS, PARTS, True, id="the same write"),
        pytest.param(PARTS, LISTS, False, id="another one"),
        pytest.param(PARTS, None, False, id="none any more"),
        pytest.param(LISTS, WriteList("11", ()), True, id="the list, written differently now"),
        pytest.param(LISTS, PARTS, False, id="no list any more"),
    ],
)
def test_a_claim_read_live_is_good_for_the_write_that_asked_for_it(
    asked: Write, write: Write | None, good: bool
) -> None:
    assert serves(asked, write) is good


@pytest.mark.parametrize(
    "now", [claim(pod_ref("a")), claim(allocated=False)], ids=["allocated anew", "free"]
)
def test_a_request_goes_first_once_its_claim_has_been_released(now: ResourceClaim) -> None:
    asked = reservation(status=held_status(), annotations={"claimctl.io/release": "uid-slice"})
    on = stage(now, ACTIVE, reserved=asked)
    if now.status.allocation is not None:
        on.put(running("a"))
    snapshot = on.snapshot()
    held = replace(snapshot.reservations[0], requests_met=("claimctl.io/release",))
    decision = decide(replace(snapshot, reservations=(held,)))
    assert decision.write == ClearReleaseRequest(asked)


HOLD, A, B = deployment_ref(), pod_ref("a"), pod_ref("b")


@pytest.mark.parametrize(
    ("before", "after", "only"),
    [
        pytest.param((HOLD, A), (HOLD, tomb("a")), True, id="in place of the pod"),
        pytest.param((HOLD,), (HOLD, tomb("a")), True, id="a pod that is not listed"),
        pytest.param((HOLD, B, A), (HOLD, B, tomb("a"), tomb("c")), True, id="both"),
        pytest.param((HOLD, A), (HOLD, A), False, id="nothing"),
        pytest.param((HOLD, tomb("a")), (HOLD, tomb("a")), False, id="tombstones that were there"),
        pytest.param((HOLD, A, B), (HOLD, tomb("a")), False, id="an entry goes"),
        pytest.param((A,), (HOLD, tomb("a")), False, id="a hold comes"),
        pytest.param((HOLD, A), (HOLD, tomb("a"), B), False, id="a pod comes"),
        pytest.param((HOLD, tomb("a"), B), (HOLD, A, tomb("b")), False, id="a tombstone goes"),
        pytest.param((), (tomb("a"),), False, id="an empty list"),
    ],
)
def test_which_writes_add_nothing_but_tombstones(
    before: tuple[Reference, ...], after: tuple[Reference, ...], only: bool
) -> None:
    assert adds_only_tombstones(before, after) == only
