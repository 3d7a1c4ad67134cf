"""What is left of claimctl, why it cannot go yet, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from claimctl.commands.orphans.model import (
    GRACE_SECONDS,
    Answer,
    OwnerState,
    ScannedClaim,
    WatchTimes,
)
from claimctl.commands.uninstall.judge import (
    group_pods,
    leftovers,
    lost_owners,
    may_lose_finalizer,
    notes,
    passes,
)
from claimctl.commands.uninstall.model import AnnotatedWorkload, Leftover, Scan
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import Condition, ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    FINALIZER,
    ClaimReservation,
    ClaimReservationStatus,
    DowngradePlan,
    DowngradePlanStatus,
    ForceDeletedPod,
)
from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS, read_as
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    slow,
    tomb,
    written_by_claimctl,
)

HOLD = deployment_ref()
TIMES = WatchTimes(settle_seconds=5.0, grace_seconds=30.0)
OWNER = OwnerReference(api_version="claimctl.io/v1alpha1", kind="ClaimReservation", uid="uid-r")


def held(*entries: object) -> ResourceClaim:
    """A claim with claimctl's hold and these entries."""
    return written_by_claimctl(claim(HOLD, *entries), [HOLD.uid])  # type: ignore[arg-type]


def scanned(
    on: ResourceClaim, *pods: Pod, reserved: bool = True, state: OwnerState = OwnerState.ALIVE
) -> ScannedClaim:
    live = LiveList("10", pods, frozenset(each.metadata.uid for each in pods))
    return ScannedClaim(on, live, NOW, {HOLD.uid: Answer(state)}, reserved, believing=True)


def of(one: ClaimReservation, on: ScannedClaim | None = None, *, tended: bool = True) -> Scan:
    return Scan(NOW, reservations=(one,), claims=(on,) if on else (), tended=tended)


def only(scan: Scan, watched: float = 0.0, run: float = 0.0) -> Leftover:
    (left,) = leftovers(scan, TIMES, watched, run)
    return left


def told(reason: str, message: str = "why") -> ClaimReservationStatus:
    condition = Condition(type="Released", status="False", reason=reason, message=message)
    return ClaimReservationStatus(conditions=(condition,))


GOING = reservation(deleting=True)
GHOST = ClaimReservationStatus(force_deleted_pods=(ForceDeletedPod(uid="g", name="g", since=NOW),))


@pytest.mark.parametrize(
    ("scan", "reason", "words", "seconds"),
    [
        (
            of(reservation()),
            "NotWithdrawn",
            "holds until `claimctl uninstall prepare`",
            None,
        ),
        (
            of(structs.replace(GOING, metadata=structs.replace(GOING.metadata, finalizers=("x",)))),
            "ForeignFinalizer",
            "the owner of x",
            None,
        ),
        (of(GOING, tended=False), "NoController", "does its work", None),
        (of(GOING), "Settling", "the settle time", None),
        (of(GOING, scanned(claim(allocated=False))), "Settling", "the settle time", None),
        (
            of(GOING, scanned(held(pod_ref("a")), running("a"))),
            "ConsumersLeft",
            "1 pod uses claim slice: a; in Kubernetes before 1.34 and in mode native its hold "
            "stays until they have ended",
            None,
        ),
        (
            of(
                reservation(deleting=True, status=told("PodsMayBeBound")),
                scanned(held(), pending("b")),
            ),
            "PodsMayBeBound",
            "why",
            None,
        ),
        (
            of(GOING, scanned(claim(pod_ref("a"), tomb("f")), running("a"), finished("f"))),
            "FinishedPodsLeft",
            "(kubectl delete pod -n train f)",
            None,
        ),
        (
            of(reservation(deleting=True, status=told("UnknownReferences")), scanned(held())),
            "UnknownReferences",
            "why",
            None,
        ),
        (
            of(reservation(deleting=True, status=told("HistoryUnknown")), scanned(held())),
            "HistoryUnknown",
            "why",
            300.0,
        ),
        (
            of(reservation(deleting=True, status=told("Held")), scanned(held())),
            "Withdrawn",
            "",
            None,
        ),
        (
            of(reservation(deleting=True, status=GHOST), scanned(held())),
            "ForceDeletedPods",
            "g",
            300,
        ),
    ],
)
def test_why_a_reservation_is_left(
    scan: Scan, reason: str, words: str, seconds: float | None
) -> None:
    left = only(scan)
    assert (left.kind, left.name, left.reason) == ("ClaimReservation", "train-slice", reason)
    assert words in left.message
    assert left.after == seconds


def test_the_grace_of_a_ghost_passes() -> None:
    scan = of(reservation(deleting=True, status=GHOST), scanned(held()))
    assert only(replace(scan, now=after(100))).after == 200
    assert only(replace(scan, now=after(300))).reason == "Withdrawn"


@pytest.mark.parametrize(
    ("on", "reason", "words", "seconds"),
    [
        (scanned(held(), reserved=False), "HoldWithoutReservation", "no ClaimReservation", 25.0),
        (
            scanned(held(pod_ref("a")), running("a"), reserved=False),
            "HoldWithoutReservation",
            "1 pod uses the claim",
            None,
        ),
        (
            scanned(held(pod_ref("a")), running("a"), pending("b"), reserved=False),
            "HoldWithoutReservation",
            "pods use the claim",
            65.0,
        ),
        (
            scanned(held(), reserved=False, state=OwnerState.RESERVING),
            "HoldWithoutReservation",
            "after the annotation of its workload",
            None,
        ),
        (
            scanned(claim(tomb("f")), finished("f"), reserved=False),
            "TombstonesWithoutReservation",
            "1 tombstone of",
            25.0,
        ),
        (
            scanned(claim(pod_ref("a"), tomb("f")), running("a"), finished("f"), reserved=False),
            "FinishedPodsLeft",
            "kubectl delete pod -n train f",
            None,
        ),
        (
            scanned(claim(pod_ref("a"), tomb("f")), running("a"), reserved=False),
            "TombstonesWithoutReservation",
            "",
            None,
        ),
        (
            scanned(
                written_by_claimctl(claim(pod_ref("a"), pod_ref("b")), ["uid-b"]),
                *(running("a"), pending("b")),
                reserved=False,
            ),
            "ListedAhead",
            "lists 1 waiting pod for claimctl, which does not hold the claim any more: b",
            55.0,
        ),
        (
            scanned(
                written_by_claimctl(claim(pod_ref("b")), ["uid-b"]),
                slow(pending("b"), volume=True),
                reserved=False,
            ),
            "ListedAhead",
            "they go after it was watched",
            595.0,
        ),
    ],
)
def test_why_a_claim_without_a_reservation_is_left(
    on: ScannedClaim, reason: str, words: str, seconds: float | None
) -> None:
    left = only(Scan(NOW, claims=(on,)), watched=10.0)
    assert (left.kind, left.name, left.reason) == ("ResourceClaim", "slice", reason)
    assert words in left.message
    assert left.after == seconds


@pytest.mark.parametrize(
    "on",
    [
        claim(allocated=False),
        claim(pod_ref("a")),
        claim(HOLD),  # another client's entry
        claim(group_ref()),
        claim(pod_ref("a"), deployment_ref("vm", "v")),
    ],
)
def test_what_is_not_claimctls_is_not_left(on: ResourceClaim) -> None:
    assert leftovers(Scan(NOW, claims=(scanned(on, running("a"), reserved=False),)), TIMES) == ()


def test_an_owner_counts_only_if_it_does_not_exist() -> None:
    made = claim(allocated=False)
    owned = structs.replace(
        made, metadata=structs.replace(made.metadata, owner_references=(OWNER,))
    )
    assert only(Scan(NOW, claims=(scanned(owned, reserved=False),))).reason == "OwnerIsGone"
    there = structs.replace(GOING, metadata=structs.replace(GOING.metadata, uid="uid-r"))
    assert lost_owners(owned, (there,)) == ()
    other = structs.replace(OWNER, api_version="apps/v1")
    theirs = structs.replace(
        made, metadata=structs.replace(made.metadata, owner_references=(other,))
    )
    assert lost_owners(theirs, ()) == ()


GUARDED = pod_group(made_by_claimctl=True, finalizers=(FINALIZER,))
LEAVING = pod_group(made_by_claimctl=True, finalizers=(FINALIZER,), deleting=True)
LISTED = scanned(claim(group_ref()), reserved=False)
USED = scanned(claim(group_ref()), running("a", group="train"), reserved=False)
DONE = scanned(claim(group_ref()), finished("a", group="train"), reserved=False)
ELSE = scanned(claim(group_ref()), running("a", group="other"), reserved=False)


@pytest.mark.parametrize(
    ("group", "on", "watched", "may"),
    [
        (GUARDED, USED, 0.0, True),
        (GUARDED, LISTED, 0.0, False),
        (GUARDED, LISTED, GRACE_SECONDS, True),
        (GUARDED, DONE, 0.0, False),
        (GUARDED, ELSE, 0.0, False),
        (GUARDED, scanned(claim(pod_ref("a")), reserved=False), 0.0, True),
        (LEAVING, USED, GRACE_SECONDS, False),
        (LEAVING, LISTED, 0.0, True),
        (LEAVING, DONE, 0.0, True),
    ],
)
def test_when_a_group_may_lose_its_finalizer(
    group: object, on: ScannedClaim, watched: float, may: bool
) -> None:
    scan = Scan(NOW, claims=(on,), groups=(group,))  # type: ignore[arg-type]
    assert may_lose_finalizer(group, scan, watched) is may  # type: ignore[arg-type]


def test_why_a_group_is_guarded() -> None:
    waits = only(Scan(NOW, claims=(LISTED,), groups=(GUARDED,)), run=100.0)
    assert (waits.reason, waits.after) == ("Guarded", GRACE_SECONDS - 100.0)
    used = only(Scan(NOW, claims=(USED,), groups=(LEAVING,)))
    assert (used.after, used.message) == (None, "is being deleted, and pods use it: a")
    assert leftovers(Scan(NOW, groups=(pod_group(),)), TIMES) == ()
    both = leftovers(Scan(NOW, groups=(GUARDED,), reservations=(GOING,)), TIMES)
    assert "with the ClaimReservations" in both[1].message


def test_a_pod_counts_once_for_its_group_and_only_in_its_namespace() -> None:
    group = pod_group("train", "slice", "other")
    elsewhere = structs.replace(group, metadata=structs.replace(group.metadata, namespace="x"))
    scan = Scan(NOW, claims=(USED, USED))
    assert [pod.metadata.name for pod in group_pods(group, scan)] == ["a"]
    assert group_pods(elsewhere, scan) == ()


def test_an_annotated_workload_is_left() -> None:
    meta = ObjectMeta(name="train", namespace="ml", annotations={"claimctl.io/reserve": "*"})
    left = only(Scan(NOW, workloads=(AnnotatedWorkload(DEPLOYMENTS, meta),)))
    assert (left.kind, left.namespace, left.name, left.reason) == (
        *("Deployment", "ml", "train"),
        "Annotated",
    )
    assert "claimctl.io/reserve" in left.message


@pytest.mark.parametrize(
    ("phase", "blocks"), [("", True), ("Expanding", True), ("Prepared", False)]
)
def test_a_plan_blocks_while_it_is_carried_out(phase: str, blocks: bool) -> None:
    plan = DowngradePlan(
        metadata=ObjectMeta(name="claimctl"), status=DowngradePlanStatus(phase=phase)
    )
    scan = Scan(NOW, plans=(plan,))
    assert [each.reason for each in leftovers(scan, TIMES)] == ["DowngradeUnderWay"] * blocks
    assert bool(notes(scan)) is not blocks


def test_a_cron_job_is_noted_and_blocks_nothing() -> None:
    scan = Scan(NOW, cron_jobs=(ObjectMeta(name="nightly", namespace="ml"),))
    assert leftovers(scan, TIMES) == ()
    assert "CronJob ml/nightly" in notes(scan)[0]


def test_nodes_that_may_not_be_listed_are_noted() -> None:
    scan = Scan(NOW, nodes_unreadable=True)
    assert leftovers(scan, TIMES) == ()
    assert "nodes may not be listed" in notes(scan)[0]
    assert notes(Scan(NOW)) == ()


def test_an_object_that_may_have_a_hold_and_cannot_be_read_is_left() -> None:
    unread = Unreadable(RESOURCECLAIMS, "spec: bad", "ml", "slice")
    assert only(Scan(NOW, unreadable=(unread,))).reason == "UnreadableObject"
    workload = replace(unread, resource=read_as(DEPLOYMENTS, ObjectHeader))
    assert only(Scan(NOW, unreadable=(workload,))).kind == "Deployment"
    assert leftovers(Scan(NOW, unreadable=(replace(unread, resource=PODS),)), TIMES) == ()


@pytest.mark.parametrize(
    ("reason", "after", "passing"),
    [
        ("Settling", None, True),
        ("PodsMayBeBound", None, True),
        ("HoldWithoutReservation", 5.0, True),
        ("HoldWithoutReservation", 0.0, False),
        ("ConsumersLeft", None, False),
        ("FinishedPodsLeft", None, False),
        ("Withdrawn", None, False),
    ],
)
def test_what_time_alone_ends(reason: str, after: float | None, passing: bool) -> None:
    assert passes(Leftover("ResourceClaim", "ml", "slice", reason, "", after)) is passing


@pytest.mark.parametrize(
    ("served", "tended", "blocks"),
    [(True, True, False), (True, False, False), (False, False, False), (False, True, True)],
)
def test_a_controller_that_runs_without_the_crds_has_to_stop(
    served: bool, tended: bool, blocks: bool
) -> None:
    left = leftovers(Scan(NOW, served=served, tended=tended), TIMES)
    assert [each.reason for each in left] == ["ControllerRuns"] * blocks


def test_a_hold_that_managed_fields_alone_call_claimctls_is_told_and_blocks_nothing() -> None:
    """Whoever may update the claim may write them, and would keep claimctl installed for ever."""
    on = replace(scanned(held(pod_ref("a")), running("a"), reserved=False), believing=False)
    seen = Scan(NOW, claims=(on,))
    assert leftovers(seen, TIMES) == ()
    (note,) = notes(seen)
    assert note.startswith("ResourceClaim train/slice stays held: managedFields alone call ")
    assert note.endswith("add --believe-managed-fields")
