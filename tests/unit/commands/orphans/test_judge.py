"""Which claims are orphans, what forbids freeing them, and whose entries go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from claimctl.commands.orphans.adoption import LABEL
from claimctl.commands.orphans.judge import judge, judge_begun, references_to_read
from claimctl.commands.orphans.model import (
    Answer,
    Cause,
    OwnerState,
    ScannedClaim,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ManagedFieldsEntry, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod,
    pod_ref,
    running,
    tomb,
)

VM = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
HELD, GROUP = deployment_ref(), group_ref()


def by_claimctl(on: ResourceClaim, *references: Reference) -> ResourceClaim:
    """The claim with managedFields that show these references to be claimctl's."""
    keys: dict[str, object] = {f'k:{{"uid":"{each.uid}"}}': {} for each in references}
    fields = msgspec.json.encode({"f:status": {"f:reservedFor": keys}})
    entry = ManagedFieldsEntry(
        manager="claimctl", subresource="status", fields_v1=msgspec.Raw(fields)
    )
    return structs.replace(on, metadata=structs.replace(on.metadata, managed_fields=(entry,)))


def believed(seen: ScannedClaim) -> ScannedClaim:
    return replace(seen, believing=True)


def owned(on: ResourceClaim) -> ResourceClaim:
    """A claim that claimctl made for a reservation."""
    owner = OwnerReference(
        api_version="claimctl.io/v1alpha1", kind="ClaimReservation", name="r", controller=True
    )
    return structs.replace(on, metadata=structs.replace(on.metadata, owner_references=(owner,)))


def scanned(
    on: ResourceClaim, *pods: Pod, reserved: bool = False, **states: OwnerState
) -> ScannedClaim:
    """``states`` by the last part of the UID: train, group, v."""
    answers = {
        ("v" if uid == "v" else f"uid-{uid}"): Answer(state) for uid, state in states.items()
    }
    uids = frozenset(each.metadata.uid for each in pods)
    return ScannedClaim(on, LiveList("10", pods, uids), NOW, answers, reserved)


STUCK = pending("s", unschedulable_at=NOW)
NOMINATED = structs.replace(
    STUCK, status=structs.replace(STUCK.status, nominated_node_name="node-0")
)
FULL = tuple(f"p{n}" for n in range(LIMIT))
AHEAD = by_claimctl(claim(pod_ref("a"), pod_ref("b")), pod_ref("a"), pod_ref("b"))
HANDED = ClaimReservation(
    metadata=ObjectMeta(name="orphan", uid="uid-orphan", labels={LABEL: "DeadPods"})
)
ITSELF = Reference(
    api_group="claimctl.io", resource="claimreservations", name="orphan", uid="uid-orphan"
)


def adopted(on: ResourceClaim, *pods: Pod, **states: OwnerState) -> ScannedClaim:
    """A claim that an earlier run has adopted."""
    return replace(scanned(on, *pods, reserved=False, **states), adoptions=(HANDED,))


@dataclass(frozen=True)
class Case:
    scanned: ScannedClaim
    cause: Cause | None
    blockers: tuple[Reason, ...] = ()
    entries: tuple[Reference, ...] = ()
    """The entries that nobody answers for."""


CASES = {
    "an empty list beside an allocation": Case(scanned(claim()), Cause.ALLOCATED_TO_NOBODY),
    "the same, with a pod that is about to use it": Case(scanned(claim(), pending("a")), None),
    "the same, deleted: it takes no pods": Case(
        scanned(claim(deleting=True), pending("a")),
        Cause.DELETED_BUT_ALLOCATED,
    ),
    "a deleted claim whose pods are gone": Case(
        scanned(claim(pod_ref("a"), pod_ref("b"), deleting=True)),
        Cause.DELETED_BUT_ALLOCATED,
    ),
    "a deleted claim with one pod left": Case(
        scanned(claim(pod_ref("a"), pod_ref("b"), deleting=True), running("b")), None
    ),
    "a deleted claim with a listed pod that has no node yet": Case(
        scanned(claim(pod_ref("a"), deleting=True), pending("a")), None
    ),
    "pods that are gone": Case(scanned(claim(pod_ref("a"))), Cause.DEAD_PODS),
    "a pod that has finished": Case(scanned(claim(pod_ref("a")), finished("a")), Cause.DEAD_PODS),
    "a pod that is deleted and never got a node": Case(
        scanned(claim(pod_ref("a")), pod("a", deleting=True)), Cause.DEAD_PODS
    ),
    "a pod on a lost node: Failed by PodGC, its container still running": Case(
        scanned(claim(pod_ref("a")), pod("a", node="n", phase="Failed", running=True)), None
    ),
    "a pod that names the claim in no place, but is listed and there": Case(
        ScannedClaim(claim(pod_ref("a")), LiveList("10", (), frozenset({"uid-a"})), NOW), None
    ),
    "somebody else's hold for a workload that is gone": Case(
        scanned(claim(HELD), train=OwnerState.GONE), Cause.DANGLING_REFERENCE, entries=(HELD,)
    ),
    "and for one that is another object by now": Case(
        scanned(claim(HELD, pod_ref("a")), train=OwnerState.REPLACED),
        Cause.DANGLING_REFERENCE,
        entries=(HELD,),
    ),
    "and for one that is there": Case(scanned(claim(HELD), train=OwnerState.ALIVE), None),
    "a dangling hold beside a living one": Case(
        scanned(claim(HELD, VM), train=OwnerState.GONE, v=OwnerState.ALIVE),
        Cause.DANGLING_REFERENCE,
        (Reason.OTHER_HOLDERS,),
        entries=(HELD,),
    ),
    "a dangling hold over a running pod": Case(
        scanned(claim(HELD), running("a"), train=OwnerState.GONE), None
    ),
    "a hold of a kind that nobody knows": Case(
        scanned(claim(VM), v=OwnerState.UNKNOWN_KIND),
        Cause.UNKNOWN_REFERENCE,
        (Reason.UNKNOWN_REFERENCES,),
    ),
    "the same beside one that is gone": Case(
        scanned(claim(HELD, VM, deleting=True), train=OwnerState.GONE, v=OwnerState.UNKNOWN_KIND),
        Cause.DANGLING_REFERENCE,
        (Reason.UNKNOWN_REFERENCES,),
        entries=(HELD,),
    ),
    "a hold that could not be asked about": Case(
        scanned(claim(VM), v=OwnerState.UNKNOWN), Cause.UNKNOWN_REFERENCE, (Reason.CANNOT_TELL,)
    ),
    "a hold that managedFields alone call claimctl's": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.ALIVE),
        Cause.ORPHANED_HOLD,
        (Reason.UNKNOWN_REFERENCES,),
    ),
    "the same of a kind that the cluster does not serve": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.UNKNOWN_KIND),
        Cause.ORPHANED_HOLD,
        (Reason.UNKNOWN_REFERENCES,),
    ),
    "the same for an administrator who believes managedFields": Case(
        believed(scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.ALIVE)),
        Cause.ORPHANED_HOLD,
        entries=(HELD,),
    ),
    "the same for a workload that is gone": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        entries=(HELD,),
    ),
    "the same over a running pod": Case(
        scanned(by_claimctl(claim(HELD, pod_ref("a")), HELD), running("a"), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
        entries=(HELD,),
    ),
    "the same beside somebody else's": Case(
        scanned(by_claimctl(claim(HELD, VM), HELD), train=OwnerState.GONE, v=OwnerState.ALIVE),
        Cause.ORPHANED_HOLD,
        (Reason.OTHER_HOLDERS,),
        entries=(HELD,),
    ),
    "the same while its workload asks for a reservation": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.RESERVING), None
    ),
    "the same when nobody could tell whether it asks": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.UNKNOWN),
        Cause.UNKNOWN_REFERENCE,
        (Reason.CANNOT_TELL,),
    ),
    "a claim that claimctl made for a workload, reserved for it by the scheduler": Case(
        scanned(owned(claim(HELD, created_for=HELD, deleting=True)), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        entries=(HELD,),
    ),
    "a claim that somebody else made for a workload": Case(
        scanned(claim(HELD, created_for=HELD), train=OwnerState.ALIVE), None
    ),
    "nothing but tombstones": Case(scanned(claim(tomb("a"), tomb("b"))), Cause.ORPHANED_TOMBSTONES),
    "two waiting pods that claimctl listed ahead": Case(
        scanned(AHEAD, pending("a"), pending("b")),
        Cause.LISTED_AHEAD,
    ),
    "the same beside a running pod and somebody else's hold": Case(
        scanned(
            by_claimctl(claim(pod_ref("r"), pod_ref("a"), VM), pod_ref("a")),
            *(running("r"), pending("a")),
            v=OwnerState.ALIVE,
        ),
        Cause.LISTED_AHEAD,
    ),
    "the same in a full list": Case(
        scanned(
            by_claimctl(claim(*map(pod_ref, FULL)), pod_ref("p0")),
            *(pending("p0"), *map(running, FULL[1:])),
        ),
        Cause.LISTED_AHEAD,
    ),
    "the same under claimctl's hold: the hold goes, and takes them along": Case(
        scanned(
            by_claimctl(claim(HELD, pod_ref("a")), HELD, pod_ref("a")),
            pending("a"),
            train=OwnerState.RESERVING,
        ),
        None,
    ),
    "the same under a hold that nobody answers for: it stays when they leave": Case(
        scanned(
            by_claimctl(claim(HELD, pod_ref("a"), pod_ref("r")), HELD, pod_ref("a")),
            *(running("r"), pending("a")),
            train=OwnerState.GONE,
        ),
        Cause.ORPHANED_HOLD,
        entries=(HELD,),
    ),
    "a hold that nobody answers for, and a pod that it keeps waiting": Case(
        scanned(by_claimctl(claim(HELD), HELD), STUCK, train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        entries=(HELD,),
    ),
    "the same with a pod that a scheduler is binding": Case(
        scanned(by_claimctl(claim(HELD), HELD), NOMINATED, train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
        entries=(HELD,),
    ),
    "the same with a pod that the scheduler has not tried": Case(
        scanned(by_claimctl(claim(HELD), HELD), pending("a"), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
        entries=(HELD,),
    ),
    "waiting pods that the scheduler listed": Case(
        scanned(claim(pod_ref("a")), pending("a")), None
    ),
    "a pod that claimctl listed ahead and that runs": Case(scanned(AHEAD, running("a")), None),
    "pods of a group: a downgrade listed them": Case(
        scanned(AHEAD, pending("a", group="train"), pending("b", group="train")), None
    ),
    "pods of an allocation for any pod: the same": Case(
        scanned(
            by_claimctl(claim(pod_ref("a"), shared=True), pod_ref("a")),
            pending("a"),
        ),
        None,
    ),
    "pods listed ahead in a claim that is being deleted": Case(
        scanned(
            by_claimctl(claim(pod_ref("a"), deleting=True), pod_ref("a")),
            pending("a"),
        ),
        Cause.DELETED_BUT_ALLOCATED,
    ),
    "an adopted claim beside a running pod": Case(
        adopted(claim(ITSELF, pod_ref("r")), running("r"), pending("a")), Cause.LISTED_AHEAD
    ),
    "an adopted claim beside somebody else's hold": Case(
        adopted(claim(ITSELF, VM), v=OwnerState.ALIVE), Cause.LISTED_AHEAD
    ),
    "the tombstone of a pod that is still there": Case(
        scanned(claim(tomb("a")), finished("a")), Cause.ORPHANED_TOMBSTONES
    ),
    "whatever a ClaimReservation names": Case(scanned(claim(), reserved=True), None),
    "a claim that is not allocated": Case(scanned(claim(allocated=False)), None),
    "shared by any pod, its workload gone: a fence comes first": Case(
        scanned(claim(HELD, tomb("a"), shared=True), train=OwnerState.GONE),
        Cause.DANGLING_REFERENCE,
        entries=(HELD,),
    ),
    "shared through a PodGroup that is gone: tombstones for who has finished": Case(
        scanned(claim(GROUP), finished("a", group="train"), group=OwnerState.GONE),
        Cause.DANGLING_REFERENCE,
        entries=(GROUP,),
    ),
    "shared and deleted: the deletion is the fence": Case(
        scanned(claim(GROUP, deleting=True, shared=True), group=OwnerState.GONE),
        Cause.DELETED_BUT_ALLOCATED,
        entries=(GROUP,),
    ),
    "a PodGroup that is there": Case(scanned(claim(GROUP), group=OwnerState.ALIVE), None),
    "deleted and deallocated by somebody else": Case(
        scanned(claim(allocated=False, deleting=True)),
        Cause.FINALIZER_LEFT,
        (Reason.FOREIGN_FINALIZER,),
    ),
    "deleted and deallocated, the finalizer gone": Case(
        scanned(claim(allocated=False, deleting=True, finalizer=False)), None
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_an_orphan_and_what_forbids_freeing_it(case: Case) -> None:
    found = judge(case.scanned)
    if found is None:
        assert case.cause is None
    else:
        blockers = tuple(each.reason for each in found.blockers)
        assert (found.cause, blockers, found.entries) == (case.cause, case.blockers, case.entries)


def test_a_group_that_stays_is_named_with_what_ends_it() -> None:
    made = by_claimctl(claim(GROUP, HELD), HELD)
    found = judge(scanned(made, train=OwnerState.GONE, group=OwnerState.ALIVE))
    assert found is not None
    assert found.describe().endswith(
        "podgroups.scheduling.k8s.io/train; a PodGroup goes with its workload, or after its pods "
        "with: kubectl -n train delete podgroup train"
    )


@pytest.mark.parametrize(
    ("on", "cause"),
    [
        (claim(pod_ref("a")), Cause.DEAD_PODS),
        (claim(ITSELF), Cause.LISTED_AHEAD),
        (claim(allocated=False), Cause.DEAD_PODS),
        (claim(allocated=False, deleting=True), Cause.DEAD_PODS),
    ],
)
def test_an_adopted_claim_stays_an_orphan_until_the_controller_is_done(
    on: ResourceClaim, cause: Cause
) -> None:
    found = judge_begun(adopted(on))
    assert found is not None
    assert (found.cause, found.blockers, found.entries) == (cause, (), ())


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (scanned(claim(HELD, VM)), (HELD, VM)),
        (scanned(claim(GROUP, pod_ref("a"), tomb("b"))), (GROUP,)),
        (scanned(claim(HELD, VM), running("a")), ()),
        (scanned(by_claimctl(claim(HELD, VM), HELD), running("a")), (HELD,)),
        (scanned(claim(HELD), reserved=True), ()),
        (scanned(claim(allocated=False)), ()),
    ],
)
def test_only_suspicious_references_are_asked_about(
    seen: ScannedClaim, asked: tuple[Reference, ...]
) -> None:
    assert references_to_read(seen) == asked


# -- what holds for every claim

NAMES = ("a", "b", "c")
PODS = (running, pending, finished, lambda name: pod(name, deleting=True))


@st.composite
def claims(draw: st.DrawFn) -> ScannedClaim:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    pods = tuple(draw(st.sampled_from(PODS))(name) for name in names)
    entries = [HELD, VM, GROUP, *map(pod_ref, NAMES), tomb("d"), pod_ref("gone")]
    listed = draw(st.lists(st.sampled_from(entries), unique=True))
    on = claim(
        *listed,
        allocated=draw(st.booleans()) or bool(listed),
        shared=draw(st.booleans()),
        deleting=draw(st.booleans()),
        finalizer=draw(st.booleans()),
    )
    if draw(st.booleans()):
        on = by_claimctl(on, HELD)
    states = {uid: draw(st.sampled_from(list(OwnerState))) for uid in ("train", "v", "group")}
    return scanned(on, *pods, reserved=draw(st.integers(0, 4)) == 0, **states)


def _may_be_used(seen: ScannedClaim) -> bool:
    """Said once more, without the words of the product."""
    listed = {each.uid for each in seen.claim.status.reserved_for}
    for each in seen.live.pods:
        running_ = bool(each.spec.node_name) and each.status.phase not in ("Succeeded", "Failed")
        coming = not each.spec.node_name and not each.metadata.deleting
        if running_ or (
            coming and (each.metadata.uid in listed or not seen.claim.metadata.deleting)
        ):
            return True
    return False


@given(claims())
def test_what_is_used_reserved_or_held_is_never_free_to_go(seen: ScannedClaim) -> None:
    found = judge(seen)
    if found is None or found.blockers:
        return
    assert not seen.reserved
    assert not _may_be_used(seen)
    states = {uid: answer.state for uid, answer in seen.answers.items()}
    for each in seen.claim.status.reserved_for:
        if each.resource in ("pods", "finishedpods"):
            continue
        gone = states[each.uid] in (OwnerState.GONE, OwnerState.REPLACED)
        assert gone
        assert each in found.entries


@given(claims())
def test_only_entries_of_objects_that_are_gone_are_taken_out(seen: ScannedClaim) -> None:
    found = judge(seen)
    for entry in found.entries if found is not None else ():
        assert seen.answers[entry.uid].state in (OwnerState.GONE, OwnerState.REPLACED)


@given(claims())
def test_what_nobody_asked_about_is_never_taken_for_gone(seen: ScannedClaim) -> None:
    found = judge(replace(seen, answers={}))
    holders = [r for r in seen.claim.status.reserved_for if r in (HELD, VM, GROUP)]
    if holders and found is not None:
        assert found.blockers
        assert found.entries == ()
