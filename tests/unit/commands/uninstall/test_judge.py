"""What is left of claimctl, why it cannot go yet, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from claimctl.commands.orphans.adoption import LABEL
from claimctl.commands.orphans.model import Answer, OwnerState, ScannedClaim
from claimctl.commands.uninstall.judge import (
    adoptable,
    group_pods,
    is_for_user,
    leftovers,
    lost_owners,
    notes,
    passes,
)
from claimctl.commands.uninstall.model import AnnotatedWorkload, Leftover, Scan
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import Reference, ResourceClaim
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
    tomb,
    written_by_claimctl,
)

HOLD = deployment_ref()
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


def only(scan: Scan, watched_seconds: float = 0.0) -> Leftover:
    (left,) = leftovers(scan, watched_seconds=watched_seconds)
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
            of(GOING, scanned(held(pod_ref("a")), running("a"), pending("b"))),
            "ConsumersLeft",
            "1 pod uses claim slice: a",
            65.0,
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


HANDED_OVER = "hands it over to a controller"
TOMBSTONES = claim(pod_ref("a"), tomb("f"))
AHEAD = written_by_claimctl(claim(pod_ref("a"), pod_ref("b")), ["uid-b"])


@pytest.mark.parametrize(
    ("on", "reason", "words", "entries"),
    [
        (scanned(held(), reserved=False), "HoldWithoutReservation", HANDED_OVER, (HOLD,)),
        (
            scanned(held(pod_ref("a")), running("a"), reserved=False),
            "HoldWithoutReservation",
            HANDED_OVER,
            (HOLD,),
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
            HANDED_OVER,
            (),
        ),
        (
            scanned(TOMBSTONES, running("a"), finished("f"), reserved=False),
            "TombstonesWithoutReservation",
            HANDED_OVER,
            (),
        ),
        (
            scanned(AHEAD, running("a"), pending("b"), reserved=False),
            "ListedAhead",
            "lists 1 waiting pod for claimctl, which does not hold the claim any more: b",
            (),
        ),
    ],
)
def test_why_a_claim_without_a_reservation_is_left_and_what_is_handed_over(
    on: ScannedClaim, reason: str, words: str, entries: tuple[Reference, ...] | None
) -> None:
    left = only(Scan(NOW, claims=(on,)))
    assert (left.kind, left.name, left.reason, left.after) == (
        "ResourceClaim",
        "slice",
        reason,
        None,
    )
    assert words in left.message
    orphan = adoptable(on)
    assert (None if orphan is None else orphan.entries) == entries
    assert orphan is None or orphan.blockers == ()


def test_a_claim_that_was_handed_over_is_told_by_its_claimreservation() -> None:
    status = ClaimReservationStatus(reserved_for=HOLD, claim_uid="uid-slice")
    adoption = reservation(deleting=True, status=status)
    meta = structs.replace(adoption.metadata, labels={LABEL: "OrphanedHold"})
    adoption = structs.replace(adoption, metadata=meta)
    on = replace(scanned(held(), reserved=False), adoptions=(adoption,))
    assert adoptable(on) is None
    seen = Scan(NOW, claims=(on,), reservations=(adoption,), tended=True)
    assert only(seen).kind == "ClaimReservation"
    begun = structs.replace(adoption, status=ClaimReservationStatus())
    again = adoptable(replace(on, adoptions=(begun,)))
    assert again is not None
    assert again.entries == (HOLD,)


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
    assert leftovers(Scan(NOW, claims=(scanned(on, running("a"), reserved=False),))) == ()


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


def test_why_a_group_is_guarded() -> None:
    waits = only(Scan(NOW, claims=(LISTED,), groups=(GUARDED,)))
    assert (waits.reason, waits.message) == ("Guarded", "a controller removes its finalizer")
    used = only(Scan(NOW, claims=(USED,), groups=(LEAVING,)))
    assert (used.after, used.message) == (None, "is being deleted, and pods use it: a")
    assert leftovers(Scan(NOW, groups=(pod_group(),))) == ()
    both = leftovers(Scan(NOW, groups=(GUARDED,), reservations=(GOING,)))
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
    assert left.message.startswith("has the annotation claimctl.io/reserve; ")


@pytest.mark.parametrize(
    ("phase", "blocks"), [("", True), ("Expanding", True), ("Prepared", False)]
)
def test_a_plan_blocks_while_it_is_carried_out(phase: str, blocks: bool) -> None:
    plan = DowngradePlan(
        metadata=ObjectMeta(name="claimctl"), status=DowngradePlanStatus(phase=phase)
    )
    scan = Scan(NOW, plans=(plan,))
    assert [each.reason for each in leftovers(scan)] == ["DowngradeUnderWay"] * blocks
    assert bool(notes(scan)) is not blocks


def test_a_cron_job_is_noted_and_blocks_nothing() -> None:
    scan = Scan(NOW, cron_jobs=(ObjectMeta(name="nightly", namespace="ml"),))
    assert leftovers(scan) == ()
    assert "CronJob ml/nightly" in notes(scan)[0]


def test_nodes_that_may_not_be_listed_are_noted() -> None:
    scan = Scan(NOW, nodes_unreadable=True)
    assert leftovers(scan) == ()
    assert "nodes may not be listed" in notes(scan)[0]
    assert notes(Scan(NOW)) == ()


def test_an_object_that_may_have_a_hold_and_cannot_be_read_is_left() -> None:
    unread = Unreadable(RESOURCECLAIMS, "spec: bad", "ml", "slice")
    assert only(Scan(NOW, unreadable=(unread,))).reason == "UnreadableObject"
    workload = replace(unread, resource=read_as(DEPLOYMENTS, ObjectHeader))
    assert only(Scan(NOW, unreadable=(workload,))).kind == "Deployment"
    assert leftovers(Scan(NOW, unreadable=(replace(unread, resource=PODS),))) == ()


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
    ("reason", "alone"),
    [
        ("FinishedPodsLeft", True),
        ("UnreadableObject", True),
        ("ForeignFinalizer", False),
        ("ConsumersLeft", False),
        ("Withdrawn", False),
        ("Annotated", False),
    ],
)
def test_what_only_a_user_takes_away(reason: str, alone: bool) -> None:
    assert is_for_user(Leftover("ClaimReservation", "ml", "train", reason, "")) is alone


@pytest.mark.parametrize(
    ("served", "tended", "blocks"),
    [(True, True, False), (True, False, False), (False, False, False), (False, True, True)],
)
def test_a_controller_that_runs_without_the_crds_has_to_stop(
    served: bool, tended: bool, blocks: bool
) -> None:
    left = leftovers(Scan(NOW, served=served, tended=tended))
    assert [each.reason for each in left] == ["ControllerRuns"] * blocks


def test_a_hold_that_managed_fields_alone_call_claimctls_is_told_and_blocks_nothing() -> None:
    """Whoever may update the claim may write them, and would keep claimctl installed for ever."""
    on = replace(scanned(held(pod_ref("a")), running("a"), reserved=False), believing=False)
    seen = Scan(NOW, claims=(on,))
    assert leftovers(seen) == ()
    (note,) = notes(seen)
    assert note.startswith("ResourceClaim train/slice stays held: managedFields alone call ")
    assert note.endswith("add --believe-managed-fields")
