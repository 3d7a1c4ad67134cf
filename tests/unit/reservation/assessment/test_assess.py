"""Which phase a claim is in, and why."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from claimctl.reservation.assessment.assess import Phase, assess, own_holds
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus, WorkloadRef
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pending,
    pod_ref,
    reservation,
    running,
    tomb,
    written_by_claimctl,
)

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1, names_claim=True)
ENDED = WorkloadState(WorkloadPhase.ENDED, "uid-train", names_claim=True)
RULES = Rules(dead_reference_seconds=10)


def seen(on: ResourceClaim | None, workload: WorkloadState, *, deleting: bool = False) -> Snapshot:
    status = ClaimReservationStatus(reserved_for=deployment_ref(), claim_uid="uid-slice")
    held = Held(reservation(deleting=deleting, status=status), workload)
    return Snapshot(NOW, NAMESPACE, CLAIM, on, (held,), rules=RULES)


HELD = seen(claim(pod_ref("p"), deployment_ref()), ACTIVE)
OVER = seen(claim(deployment_ref()), ENDED)
WITHDRAWN = seen(claim(pod_ref("p")), ACTIVE, deleting=True)
LATE = Memory(dead_age={"uid-p": 10.0})


@pytest.mark.parametrize(
    ("snapshot", "phase", "reason"),
    [
        pytest.param(seen(None, ACTIVE), Phase.ABSENT, None, id="no claim"),
        pytest.param(seen(claim(allocated=False), ACTIVE), Phase.UNALLOCATED, None, id="free"),
        pytest.param(HELD, Phase.KEPT, None, id="its workload wants pods"),
        pytest.param(replace(HELD, reservations=()), Phase.KEPT, None, id="nobody reserves it"),
        pytest.param(OVER, Phase.RELEASING, Reason.WORKLOAD_ENDED, id="its workload has ended"),
        pytest.param(
            replace(OVER, pods=(running("p"),)),
            Phase.BLOCKED,
            Reason.WORKLOAD_ENDED,
            id="its workload has ended, and a pod runs",
        ),
        pytest.param(
            replace(WITHDRAWN, pods=(running("p"),)),
            Phase.LEFT_TO_KCM,
            Reason.WITHDRAWN,
            id="withdrawn, and the only entry is a running pod's",
        ),
        pytest.param(
            replace(
                WITHDRAWN,
                claim=written_by_claimctl(claim(pod_ref("p"), pod_ref("w")), ["uid-w"]),
                pods=(running("p"), pending("w")),
            ),
            Phase.BLOCKED,
            Reason.WITHDRAWN,
            id="withdrawn, and beside a running pod one is listed ahead that waits",
        ),
        pytest.param(
            replace(
                WITHDRAWN,
                claim=written_by_claimctl(claim(pod_ref("p"), pod_ref("w")), ["uid-w"]),
                pods=(running("p"),),
            ),
            Phase.BLOCKED,
            Reason.WITHDRAWN,
            id="withdrawn, and beside a running pod one is listed ahead that the cache lacks",
        ),
        pytest.param(
            WITHDRAWN,
            Phase.LEFT_TO_KCM,
            Reason.WITHDRAWN,
            id="withdrawn, and the only entry is a dead pod's",
        ),
        pytest.param(
            replace(WITHDRAWN, memory=LATE),
            Phase.RELEASING,
            Reason.WITHDRAWN,
            id="withdrawn, and KCM should have taken out the dead pod by now",
        ),
    ],
)
def test_the_phase_of_a_claim(snapshot: Snapshot, phase: Phase, reason: Reason | None) -> None:
    found = assess(snapshot)
    assert (found.phase, found.reason) == (phase, reason)
    assert bool(found.blockers) == (phase is Phase.BLOCKED) or phase is Phase.LEFT_TO_KCM
    assert (found.releasing is None) == (phase not in (Phase.BLOCKED, Phase.RELEASING))


OTHER = Reference(api_group="audits.example.com", resource="keeps", name="keep", uid="uid-keep")
OLD = msgspec.structs.replace(deployment_ref(), uid="uid-old")
RECORDED = ClaimReservationStatus(reserved_for=deployment_ref(), claim_uid="uid-slice")
KEEP = replace(
    Held(reservation(), WorkloadState(WorkloadPhase.UNKNOWN), served_as="keeps"),
    reservation=reservation(
        workload_ref=WorkloadRef(api_group="audits.example.com", kind="Keep", name="keep")
    ),
)


@pytest.mark.parametrize(
    ("held", "own"),
    [
        pytest.param(None, set(), id="no reservation names the claim"),
        pytest.param(Held(reservation(), ACTIVE), {"uid-train", "uid-old"}, id="named, and read"),
        pytest.param(
            Held(reservation(), WorkloadState(WorkloadPhase.ABSENT)),
            {"uid-train", "uid-old"},
            id="named, and gone",
        ),
        pytest.param(
            Held(reservation(), WorkloadState(WorkloadPhase.UNKNOWN)), set(), id="named, unknown"
        ),
        pytest.param(
            Held(reservation(status=RECORDED), WorkloadState(WorkloadPhase.UNKNOWN)),
            {"uid-train"},
            id="recorded",
        ),
        pytest.param(
            KEEP, set(), id="a user names the object of another client, of a kind that is not read"
        ),
    ],
)
def test_which_holds_are_claimctls_whatever_managed_fields_say(
    held: Held | None, own: set[str]
) -> None:
    listed = (pod_ref("p"), deployment_ref(), OLD, OTHER, tomb("t"))
    on = written_by_claimctl(claim(*listed), {entry.uid for entry in listed})
    snapshot = Snapshot(NOW, NAMESPACE, CLAIM, on, (held,) if held else ())
    assert own_holds(snapshot) == own
