"""Which workloads are read live before a claim is assessed, and which are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.assessment.outdated import outdated_workloads
from claimctl.reservation.facts.decision import ConfirmWorkload, ListChildren
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus, ReleaseProgress
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
)

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
UNSEEN = WorkloadState(WorkloadPhase.UNSEEN)
BY_PODS = WorkloadState(WorkloadPhase.ENDED, "uid-train", by_pods=True)
ORDINAL_OVER = replace(ACTIVE, claim_over=True)
ENDED = WorkloadState(WorkloadPhase.ENDED, "uid-train", root="uid-train", children=None)
GONE = WorkloadState(WorkloadPhase.ABSENT, root="uid-old", children=None)
HELD = claim(deployment_ref())
BEGUN = ClaimReservationStatus(release=ReleaseProgress(step="Intent", reason="OrdinalEnded"))

OTHER = deployment_ref(uid="uid-other")
READ = ConfirmWorkload(deployment_ref(uid=""))


def seen(workload: WorkloadState, on: ResourceClaim | None = HELD) -> Snapshot:
    return Snapshot(NOW, NAMESPACE, CLAIM, on, (Held(reservation(), workload),))


def listing(*references: Reference) -> ResourceClaim:
    return claim(pod_ref("p"), *references)


def made_for(uid: str) -> ResourceClaim:
    return claim(allocated=False, created_for=deployment_ref(uid=uid))


def with_pod(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, pods=(running("p"),))


def releasing(snapshot: Snapshot) -> Snapshot:
    (held,) = snapshot.reservations
    return replace(snapshot, reservations=(replace(held, reservation=reservation(status=BEGUN)),))


@pytest.mark.parametrize(
    ("snapshot", "reads"),
    [
        pytest.param(seen(ACTIVE), (), id="the cache shows the incarnation that is listed"),
        pytest.param(seen(UNSEEN), (READ,), id="the cache lacks it"),
        pytest.param(seen(UNSEEN, None), (READ,), id="the cache lacks it, and there is no claim"),
        pytest.param(
            seen(replace(ACTIVE, phase=WorkloadPhase.UNKNOWN), listing(OTHER)),
            (),
            id="its rule says nothing about it",
        ),
        pytest.param(
            seen(ACTIVE, listing(OTHER)),
            (READ,),
            id="the list has another incarnation",
        ),
        pytest.param(
            seen(replace(ACTIVE, confirmed=True), listing(OTHER)),
            (),
            id="the list has another incarnation, and this one was read live",
        ),
        pytest.param(
            seen(ACTIVE, listing(deployment_ref("eval", "uid-eval"))),
            (),
            id="the list has another workload",
        ),
        pytest.param(
            seen(ACTIVE, made_for("uid-other")), (READ,), id="made for another incarnation"
        ),
        pytest.param(seen(ACTIVE, made_for("uid-train")), (), id="made for this incarnation"),
        pytest.param(seen(BY_PODS), (READ,), id="the rule of a foreign kind says it has ended"),
        pytest.param(
            seen(replace(BY_PODS, confirmed=True)), (), id="the rule says it has ended, read live"
        ),
        pytest.param(
            with_pod(seen(BY_PODS, listing(deployment_ref()))),
            (),
            id="the rule says it has ended, and a pod uses the claim",
        ),
        pytest.param(
            seen(BY_PODS, claim(allocated=False)),
            (),
            id="the rule says it has ended, and the claim is not allocated",
        ),
        pytest.param(seen(ORDINAL_OVER), (READ,), id="it wants the ordinal no more"),
        pytest.param(
            releasing(seen(ORDINAL_OVER)),
            (),
            id="it wants the ordinal no more, and the release has begun",
        ),
        pytest.param(
            seen(ENDED),
            (ListChildren(deployment_ref()),),
            id="it has ended: what it made is listed",
        ),
        pytest.param(
            seen(replace(ENDED, deleting=True)),
            (ListChildren(deployment_ref(), orphans=True),),
            id="it has ended and is being deleted: what it made may have no owner",
        ),
        pytest.param(
            seen(GONE),
            (ListChildren(deployment_ref(uid="uid-old"), orphans=True),),
            id="it is gone: what the last incarnation made is listed",
        ),
        pytest.param(
            with_pod(seen(ENDED, listing(deployment_ref()))),
            (),
            id="it has ended, and a pod uses the claim",
        ),
        pytest.param(
            seen(replace(ENDED, children=())), (), id="it has ended, and what it made is known"
        ),
    ],
)
def test_which_live_reads_come_first(
    snapshot: Snapshot, reads: tuple[ConfirmWorkload | ListChildren, ...]
) -> None:
    assert tuple(outdated_workloads(snapshot)) == reads
