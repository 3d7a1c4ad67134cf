"""Which claims are left over, what stands against freeing them, and what frees them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from claimctl.commands.orphans.judge import judge, references_to_read
from claimctl.commands.orphans.model import (
    Answer,
    Cause,
    Orphan,
    OwnerState,
    ScannedClaim,
    WatchTimes,
)
from claimctl.reservation.facts.decision import RemoveClaimFinalizer, WriteList
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_tombstone
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ManagedFieldsEntry, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RELEASE_ANNOTATION
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
WATCHED = WatchTimes(version_age=1000.0, quiet_age=1000.0)
FREED = WriteList("10", (), deallocate=True, reason="ReleaseRequested")
FREED_DELETED = replace(FREED, reason="ClaimDeleted")


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


def marked(on: ResourceClaim, uid: str = "uid-slice") -> ResourceClaim:
    annotations = {RELEASE_ANNOTATION: uid}
    return structs.replace(on, metadata=structs.replace(on.metadata, annotations=annotations))


def owned(on: ResourceClaim) -> ResourceClaim:
    """A claim that claimctl made for a reservation."""
    owner = OwnerReference(
        api_version="claimctl.io/v1alpha1", kind="ClaimReservation", name="r", controller=True
    )
    return structs.replace(on, metadata=structs.replace(on.metadata, owner_references=(owner,)))


def scanned(
    on: ResourceClaim, *pods: Pod, reserved: bool = False, **states: OwnerState
) -> ScannedClaim:
    """``fates`` by the last part of the UID: train, group, v."""
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
GUARD = Reference(api_group="claimctl.io", resource="guards", name="slice", uid="uid-slice")


@dataclass(frozen=True)
class Case:
    scanned: ScannedClaim
    cause: Cause | None
    blockers: tuple[Reason, ...] = ()
    write: WriteList | RemoveClaimFinalizer | None = None
    times: WatchTimes = field(default=WATCHED)


CASES = {
    "an empty list beside an allocation": Case(
        scanned(claim()), Cause.ALLOCATED_TO_NOBODY, write=FREED
    ),
    "the same, with a pod that is about to use it": Case(scanned(claim(), pending("a")), None),
    "the same, deleted: it takes no pods": Case(
        scanned(claim(deleting=True), pending("a")),
        Cause.DELETED_BUT_ALLOCATED,
        write=FREED_DELETED,
    ),
    "a deleted claim whose pods are gone": Case(
        scanned(claim(pod_ref("a"), pod_ref("b"), deleting=True)),
        Cause.DELETED_BUT_ALLOCATED,
        write=FREED_DELETED,
    ),
    "a deleted claim with one pod left": Case(
        scanned(claim(pod_ref("a"), pod_ref("b"), deleting=True), running("b")), None
    ),
    "a deleted claim with a listed pod that has no node yet": Case(
        scanned(claim(pod_ref("a"), deleting=True), pending("a")), None
    ),
    "pods that are gone": Case(scanned(claim(pod_ref("a"))), Cause.DEAD_PODS, write=FREED),
    "a pod that has finished": Case(
        scanned(claim(pod_ref("a")), finished("a")), Cause.DEAD_PODS, write=FREED
    ),
    "a pod that is deleted and never got a node": Case(
        scanned(claim(pod_ref("a")), pod("a", deleting=True)), Cause.DEAD_PODS, write=FREED
    ),
    "a pod on a lost node: Failed by PodGC, its container still running": Case(
        scanned(claim(pod_ref("a")), pod("a", node="n", phase="Failed", running=True)), None
    ),
    "a pod that names the claim in no place, but is listed and there": Case(
        ScannedClaim(claim(pod_ref("a")), LiveList("10", (), frozenset({"uid-a"})), NOW), None
    ),
    "somebody else's hold for a workload that is gone": Case(
        scanned(claim(HELD), train=OwnerState.GONE), Cause.DANGLING_REFERENCE, write=FREED
    ),
    "and for one that is another object by now": Case(
        scanned(claim(HELD, pod_ref("a")), train=OwnerState.REPLACED),
        Cause.DANGLING_REFERENCE,
        write=FREED,
    ),
    "and for one that is there": Case(scanned(claim(HELD), train=OwnerState.ALIVE), None),
    "a dangling hold beside a living one": Case(
        scanned(claim(HELD, VM), train=OwnerState.GONE, v=OwnerState.ALIVE),
        Cause.DANGLING_REFERENCE,
        (Reason.OTHER_HOLDERS,),
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
        write=FREED,
    ),
    "the same for a workload that is gone": Case(
        scanned(by_claimctl(claim(HELD), HELD), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        write=FREED,
    ),
    "the same over a running pod": Case(
        scanned(by_claimctl(claim(HELD, pod_ref("a")), HELD), running("a"), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
    ),
    "the same beside somebody else's": Case(
        scanned(by_claimctl(claim(HELD, VM), HELD), train=OwnerState.GONE, v=OwnerState.ALIVE),
        Cause.ORPHANED_HOLD,
        (Reason.OTHER_HOLDERS,),
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
        write=FREED_DELETED,
    ),
    "a claim that somebody else made for a workload": Case(
        scanned(claim(HELD, created_for=HELD), train=OwnerState.ALIVE), None
    ),
    "nothing but tombstones": Case(
        scanned(claim(tomb("a"), tomb("b"))), Cause.ORPHANED_TOMBSTONES, write=FREED
    ),
    "two waiting pods that claimctl listed ahead": Case(
        scanned(AHEAD, pending("a"), pending("b")),
        Cause.LISTED_AHEAD,
        write=WriteList("10", (GUARD,)),
    ),
    "the same beside a running pod and somebody else's hold": Case(
        scanned(
            by_claimctl(claim(pod_ref("r"), pod_ref("a"), VM), pod_ref("a")),
            *(running("r"), pending("a")),
            v=OwnerState.ALIVE,
        ),
        Cause.LISTED_AHEAD,
        write=WriteList("10", (pod_ref("r"), VM, GUARD)),
    ),
    "the same in a full list": Case(
        scanned(
            by_claimctl(claim(*map(pod_ref, FULL)), pod_ref("p0")),
            *(pending("p0"), *map(running, FULL[1:])),
        ),
        Cause.LISTED_AHEAD,
        write=WriteList("10", (*map(pod_ref, FULL[1:]), GUARD)),
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
        write=WriteList("10", (HELD, pod_ref("r"))),
    ),
    "a hold that nobody answers for, and a pod that it keeps waiting": Case(
        scanned(by_claimctl(claim(HELD), HELD), STUCK, train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        write=FREED,
    ),
    "the same with a pod that a scheduler is binding": Case(
        scanned(by_claimctl(claim(HELD), HELD), NOMINATED, train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
    ),
    "the same with a pod that the scheduler has not tried": Case(
        scanned(by_claimctl(claim(HELD), HELD), pending("a"), train=OwnerState.GONE),
        Cause.ORPHANED_HOLD,
        (Reason.CONSUMERS_LEFT,),
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
        write=FREED_DELETED,
    ),
    "the guard, and nobody else": Case(
        scanned(claim(GUARD), pending("a")),
        Cause.LISTED_AHEAD,
        write=replace(FREED, reason="Reallocated"),
    ),
    "the guard beside a running pod": Case(
        scanned(claim(GUARD, pod_ref("r")), running("r"), pending("a")),
        Cause.LISTED_AHEAD,
        write=WriteList("10", (pod_ref("r"),)),
    ),
    "the guard beside somebody else's hold": Case(
        scanned(claim(GUARD, VM), v=OwnerState.ALIVE),
        Cause.LISTED_AHEAD,
        write=WriteList("10", (VM,)),
    ),
    "the tombstone of a pod that is still there": Case(
        scanned(claim(tomb("a")), finished("a")), Cause.ORPHANED_TOMBSTONES, write=FREED
    ),
    "whatever a ClaimReservation names": Case(scanned(claim(), reserved=True), None),
    "a claim that is not allocated": Case(scanned(claim(allocated=False)), None),
    "shared by any pod, its workload gone: a fence comes first": Case(
        scanned(claim(HELD, tomb("a"), shared=True), train=OwnerState.GONE),
        Cause.DANGLING_REFERENCE,
        write=WriteList("10", (tomb("a"),), reason="ReleaseRequested", fence=True),
    ),
    "shared through a PodGroup that is gone: tombstones for who has finished": Case(
        scanned(claim(GROUP), finished("a", group="train"), group=OwnerState.GONE),
        Cause.DANGLING_REFERENCE,
        write=WriteList("10", (tomb("a"),), reason="ReleaseRequested", fence=True),
    ),
    "the same with more finished pods than places": Case(
        scanned(
            claim(GROUP), *(finished(f"p{n}") for n in range(LIMIT + 1)), group=OwnerState.GONE
        ),
        Cause.DANGLING_REFERENCE,
        (Reason.FINISHED_PODS_LEFT,),
    ),
    "shared and deleted: the deletion is the fence": Case(
        scanned(claim(GROUP, deleting=True, shared=True), group=OwnerState.GONE),
        Cause.DELETED_BUT_ALLOCATED,
        write=FREED_DELETED,
    ),
    "a PodGroup that is there": Case(scanned(claim(GROUP), group=OwnerState.ALIVE), None),
    "deallocated by an earlier run": Case(
        scanned(marked(claim(allocated=False))),
        Cause.UNFINISHED_RELEASE,
        write=RemoveClaimFinalizer("10"),
    ),
    "the mark of another claim of that name": Case(
        scanned(marked(claim(allocated=False), "uid-old")), None
    ),
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
def test_what_is_left_over_and_what_frees_it(case: Case) -> None:
    found = judge(case.scanned, case.times)
    if found is None:
        assert case.cause is None
    else:
        told = (found.cause, tuple(each.reason for each in found.blockers), found.write)
        assert told == (case.cause, case.blockers, case.write)
        assert found.wait is None


def test_a_group_that_stays_is_named_with_what_ends_it() -> None:
    made = by_claimctl(claim(GROUP, HELD), HELD)
    found = judge(scanned(made, train=OwnerState.GONE, group=OwnerState.ALIVE), WATCHED)
    assert found is not None
    assert found.describe().endswith(
        "podgroups.scheduling.k8s.io/train; a PodGroup goes with its workload, or after its pods "
        "with: kubectl -n train delete podgroup train"
    )


@pytest.mark.parametrize(
    ("times", "wait"),
    [
        (WatchTimes(), (Reason.SETTLING, 5.0)),
        (WatchTimes(version_age=4.0, quiet_age=1000.0), (Reason.SETTLING, 1.0)),
        (WatchTimes(version_age=1000.0), (Reason.HISTORY_UNKNOWN, 300.0)),
        (WatchTimes(version_age=305.0, quiet_age=299.0), (Reason.HISTORY_UNKNOWN, 1.0)),
        (WatchTimes(version_age=305.0, quiet_age=300.0), None),
        (WatchTimes(grace_seconds=0.0, version_age=5.0), None),
        (WatchTimes(grace_seconds=0.0, version_age=4.0), (Reason.SETTLING, 1.0)),
    ],
)
@pytest.mark.parametrize(
    "seen",
    [
        scanned(claim()),
        scanned(claim(pod_ref("a"), deleting=True)),
        scanned(claim(HELD), train=OwnerState.GONE),
        scanned(claim(HELD, shared=True), train=OwnerState.GONE),
    ],
    ids=["empty", "deleted", "dangling", "shared"],
)
def test_nothing_is_written_before_it_was_watched_for_long_enough(
    seen: ScannedClaim, times: WatchTimes, wait: tuple[Reason, float] | None
) -> None:
    found = judge(seen, times)
    assert found is not None
    told = (found.wait.reason, found.wait.after) if found.wait else None
    assert (told, found.write is None) == (wait, wait is not None)


@pytest.mark.parametrize(
    ("times", "wait"),
    [
        (WatchTimes(version_age=4.0), (Reason.SETTLING, 1.0)),
        (WatchTimes(version_age=5.0), None),
    ],
)
def test_pods_that_were_listed_ahead_leave_as_soon_as_the_claim_has_settled(
    times: WatchTimes, wait: tuple[Reason, float] | None
) -> None:
    found = judge(scanned(AHEAD, running("r"), pending("a"), pending("b")), times)
    assert found is not None
    assert ((found.wait.reason, found.wait.after) if found.wait else None) == wait
    assert (found.write is None) == (wait is not None)


@pytest.mark.parametrize(
    ("seen", "times", "wait"),
    [
        # Beside a running pod, others come and go: the time counts from the guard's first sight.
        ("used", WatchTimes(version_age=5.0, closed_age=59.0), (Reason.PODS_MAY_BE_BOUND, 1.0)),
        ("used", WatchTimes(version_age=5.0, closed_age=60.0), None),
        ("used", WatchTimes(version_age=4.0, closed_age=60.0), (Reason.SETTLING, 1.0)),
        ("unused", WatchTimes(version_age=59.0, closed_age=99.0, quiet_age=999.0),
         (Reason.PODS_MAY_BE_BOUND, 1.0)),
        ("unused", WatchTimes(version_age=60.0, quiet_age=299.0), (Reason.HISTORY_UNKNOWN, 1.0)),
        ("unused", WatchTimes(version_age=60.0, quiet_age=300.0), None),
    ],
)  # fmt: skip
def test_the_guard_stays_while_a_scheduler_may_be_binding_such_a_pod(
    seen: str, times: WatchTimes, wait: tuple[Reason, float] | None
) -> None:
    using = {"used": (running("r"),), "unused": ()}[seen]
    entries = (pod_ref(each.metadata.name) for each in using)
    found = judge(scanned(claim(GUARD, *entries), *using, pending("a")), times)
    assert found is not None
    assert ((found.wait.reason, found.wait.after) if found.wait else None) == wait
    assert (found.write is None) == (wait is not None)


def test_the_finalizer_waits_until_schedulers_have_settled_and_for_no_grace() -> None:
    seen = scanned(marked(claim(allocated=False)))
    assert judge(seen, WatchTimes(version_age=5.0)) == Orphan(
        Cause.UNFINISHED_RELEASE,
        "deallocated by an earlier run that did not remove the finalizer",
        write=RemoveClaimFinalizer("10"),
    )
    early = judge(seen, WatchTimes(version_age=4.0))
    assert early is not None
    assert early.wait is not None
    assert (early.wait.reason, early.write) == (Reason.SETTLING, None)


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
    if draw(st.booleans()):
        on = marked(on)
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
def test_what_is_used_reserved_or_held_is_never_written(seen: ScannedClaim) -> None:
    found = judge(seen, WATCHED)
    if found is None or not isinstance(found.write, WriteList):
        return
    assert not seen.reserved
    assert not _may_be_used(seen)
    states = {uid: answer.state for uid, answer in seen.answers.items()}
    for each in seen.claim.status.reserved_for:
        if each.resource in ("pods", "finishedpods"):
            continue
        gone = states[each.uid] in (OwnerState.GONE, OwnerState.REPLACED)
        assert gone


@given(claims())
def test_a_write_frees_the_claim_or_fences_it(seen: ScannedClaim) -> None:
    found = judge(seen, WATCHED)
    if found is None:
        return
    assert (found.write is None) == bool(found.blockers)
    if isinstance(found.write, RemoveClaimFinalizer):
        assert seen.claim.status.allocation is None
        assert seen.claim.metadata.annotations == {RELEASE_ANNOTATION: "uid-slice"}
    elif found.write is not None and not found.write.deallocate:
        assert found.write.fence
        assert not seen.claim.metadata.deleting
        assert seen.claim.status.allocation is not None
        shared = seen.claim.status.allocation.reserved_for_any_pod
        holds = () if shared else (HELD, VM)
        assert all(is_tombstone(each) or each in holds for each in found.write.reserved_for)
        assert shared or GROUP in seen.claim.status.reserved_for
    elif found.write is not None:
        assert found.write.reserved_for == ()


@given(claims(), st.floats(0, 400), st.floats(0, 400))
def test_nothing_is_written_within_the_settle_time_or_the_grace(
    seen: ScannedClaim, age: float, quiet: float
) -> None:
    found = judge(seen, WatchTimes(version_age=age, quiet_age=quiet))
    if found is not None and found.write is not None:
        assert age >= 5
        assert quiet >= 300 or isinstance(found.write, RemoveClaimFinalizer)


@given(claims())
def test_what_nobody_asked_about_is_never_taken_for_gone(seen: ScannedClaim) -> None:
    unasked = replace(seen, answers={})
    found = judge(unasked, WATCHED)
    holders = [r for r in seen.claim.status.reserved_for if r in (HELD, VM, GROUP)]
    if holders and found is not None:
        assert found.write is None


@pytest.mark.parametrize(
    ("watched", "binding", "freed"), [(59, 60, False), (61, 60, True), (61, 90, False)]
)
def test_a_pod_that_may_be_bound_to_a_deleted_claim_is_waited_for_as_long_as_is_asked(
    watched: float, binding: float, freed: bool
) -> None:
    deleted = by_claimctl(claim(HELD, deleting=True), HELD)
    times = WatchTimes(version_age=watched, quiet_age=1000.0, binding_seconds=binding)
    found = judge(scanned(deleted, pending("a"), train=OwnerState.GONE), times)
    assert found is not None
    assert (found.write is not None) is freed, found
