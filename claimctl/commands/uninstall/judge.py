"""Say what is left of claimctl in the cluster, and why it cannot go yet.

``leftovers`` is a pure function of one ``Scan``. Nothing that it does not name blocks anything: a
cluster without leftovers can lose the controller, its namespace and its CRDs at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from claimctl.commands.orphans.judge import judge, own_holds, snapshot_of
from claimctl.commands.orphans.model import GRACE_SECONDS, Cause, Orphan, ScannedClaim, WatchTimes
from claimctl.commands.uninstall.model import AnnotatedWorkload, Leftover, Scan, Why
from claimctl.downgrade.plans import LEASE_NAME
from claimctl.downgrade.records import is_carried_out
from claimctl.reschedule.plan.plan import PodRef
from claimctl.reschedule.shapes.records import RESCHEDULERECORDS
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.membership import shares
from claimctl.reservation.facts.pods import Consumers, claim_names, group_of, is_done
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import is_tombstone
from claimctl.reservation.users.binding import binding_seconds
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import OwnerReference, find_condition
from claimctl.wire.nodes import Taint
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, ClaimReservation, DowngradePlan
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    LEASES,
    NODES,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
)
from claimctl.wire.unreadable import Unreadable

CAUSES = frozenset(
    (
        Cause.LISTED_AHEAD,
        Cause.ORPHANED_HOLD,
        Cause.ORPHANED_TOMBSTONES,
        Cause.UNFINISHED_RELEASE,
    )
)
"""The orphans that claimctl itself has caused."""


PASSING = frozenset(
    (
        Reason.FORCE_DELETED_PODS,
        Reason.HISTORY_UNKNOWN,
        Reason.PODS_MAY_BE_BOUND,
        Reason.RELEASING,
        Reason.SETTLING,
    )
)
"""The reasons that time alone ends, also where it is not known how much time."""


def passes(left: Leftover) -> bool:
    """Whether time alone may help."""
    return bool(left.after) or left.reason in PASSING


def leftovers(
    scan: Scan, times: WatchTimes, watched: float = 0.0, run: float = 0.0
) -> tuple[Leftover, ...]:
    """What is left of claimctl, by kind, namespace and name.

    Args:
        times: how long claims without a ClaimReservation are watched before they are freed.
        watched: for how many seconds they have been watched.
        run: for how many seconds the run has watched PodGroups.
    """
    claims = {_key(claim.claim): claim for claim in scan.claims}
    left = (
        *(_workload(workload) for workload in scan.workloads),
        *(
            _reservation(reservation, claims.get(_claim_key(reservation)), scan)
            for reservation in scan.reservations
        ),
        *_claims(scan, times, watched, run),
        *(_group(group, scan, run) for group in guarded_groups(scan)),
        *(_plan(plan) for plan in scan.plans if not is_carried_out(plan)),
        *(_tainted(node, taint) for node, taint in scan.tainted),
        *(_avoiding(name) for name in scan.avoiding),
        *(_braked(pod) for pod in scan.braked),
        *((_RUNS,) if runs_without_crds(scan) else ()),
        *(_unread(unread) for unread in scan.unreadable if unread.resource.kind in _MAY_HAVE_OURS),
    )
    return tuple(sorted(left, key=lambda leftover: leftover.identity))


def runs_without_crds(scan: Scan) -> bool:
    """Whether a controller runs that knows ClaimReservations which do not exist any more."""
    return scan.tended and not scan.served


_RUNS = Leftover(
    LEASES.kind,
    "",
    LEASE_NAME,
    Why.CONTROLLER_RUNS,
    "a controller runs although the CRDs are gone, and may add holds again: stop it (kubectl -n "
    "claimctl-system scale deployment/claimctl-controller --replicas=0)",
)


def notes(scan: Scan) -> tuple[str, ...]:
    """What stays, blocks nothing, and should be known before the CRDs are deleted."""
    return (
        *(
            f"CronJob {meta.namespace}/{meta.name} puts annotations of claimctl on its Jobs "
            "(spec.jobTemplate.metadata.annotations): remove them there before its next Job"
            for meta in scan.cron_jobs
        ),
        *(
            f"DowngradePlan {plan.metadata.name} is the record of a downgrade; it is deleted with "
            "its CRD: run `claimctl downgrade-restore` before, if references should return"
            for plan in scan.plans
            if is_carried_out(plan)
        ),
        *(
            "nodes may not be listed, so a taint of claimctl reschedule may be left: an "
            "administrator runs `claimctl reschedule --release-taints`"
            for _ in range(scan.nodes_unreadable)
        ),
    )


_MAY_HAVE_OURS = (RESOURCECLAIMS.kind, CLAIMRESERVATIONS.kind, PODGROUPS.kind)


def _unread(unread: Unreadable) -> Leftover:
    """An object that cannot be read, so that nobody knows what it has of claimctl."""
    kind, text = unread.resource.kind, unread.describe()
    return Leftover(kind, unread.namespace, unread.name, Reason.UNREADABLE, text)


def _workload(workload: AnnotatedWorkload) -> Leftover:
    names = listed(sorted(workload.annotations))
    return Leftover(
        workload.resource.kind,
        workload.meta.namespace,
        workload.meta.name,
        Why.ANNOTATED,
        f"has the annotations {names}; if it comes back, remove it where the manifest is kept",
    )


# -- ClaimReservations


def _reservation(reservation: ClaimReservation, claim: ScannedClaim | None, scan: Scan) -> Leftover:
    reason, message, after = _why_reserved(reservation, claim, scan)
    meta = reservation.metadata
    return Leftover(CLAIMRESERVATIONS.kind, meta.namespace, meta.name, reason, message, after)


def _why_reserved(
    reservation: ClaimReservation, claim: ScannedClaim | None, scan: Scan
) -> tuple[str, str, float | None]:
    meta = reservation.metadata
    if not meta.deleting:
        return Why.NOT_WITHDRAWN, "is not deleted", None
    if others := [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]:
        return Reason.FOREIGN_FINALIZER, f"waits for the owner of {listed(others)}", None
    if not scan.tended:
        text = "no controller runs; without --verify and --dry-run this command does its work"
        return Why.NO_CONTROLLER, text, None
    if claim is None or claim.claim.status.allocation is None:
        return Reason.SETTLING, "goes when the settle time is over", None
    if (ghost := _ghost(reservation, scan)) is not None:
        return ghost
    holds = own_holds(claim.claim) | _recorded(reservation)
    if not any(entry.uid in holds for entry in claim.claim.status.reserved_for):
        if (finished := _finished(claim)) is not None:
            return finished
    elif (using := _using(claim)) is not None:
        return using
    return _reported(reservation)


def _claim_key(reservation: ClaimReservation) -> tuple[str, str]:
    return reservation.metadata.namespace, reservation.spec.resource_claim_name


def _key(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name


def _recorded(reservation: ClaimReservation) -> frozenset[str]:
    held = reservation.status.reserved_for
    return frozenset((held.uid,)) if held is not None else frozenset()


def _ghost(reservation: ClaimReservation, scan: Scan) -> tuple[str, str, float | None] | None:
    grace = reservation.spec.force_deleted_pod_grace_seconds
    ages = {
        ghost.name: (scan.now - ghost.since).total_seconds()
        for ghost in reservation.status.force_deleted_pods
        if ghost.since is not None
    }
    left = {name: grace - age for name, age in ages.items() if age < grace}
    if not left:
        return None
    text = f"pods vanished while running, and count as running until then: {listed(sorted(left))}"
    return Reason.FORCE_DELETED_PODS, text, max(left.values())


def _finished(claim: ScannedClaim) -> tuple[str, str, None] | None:
    """Finished pods whose tombstones stay in the list beside the entries of running pods."""
    if not (names := finished_pods(claim)):
        return None
    meta = claim.claim.metadata
    text = f"finished pods have tombstones in the list of claim {meta.name}: delete these pods"
    command = f"kubectl delete pod -n {meta.namespace} {' '.join(names)}"
    return Reason.FINISHED_PODS_LEFT, f"{text} ({command})", None


def finished_pods(claim: ScannedClaim) -> tuple[str, ...]:
    """Names of the pods that have a tombstone in the claim's list and still exist."""
    entries = filter(is_tombstone, claim.claim.status.reserved_for)
    return tuple(sorted(entry.name for entry in entries if entry.uid in claim.live.uids))


def _using(claim: ScannedClaim) -> tuple[str, str, None] | None:
    """The pods that run because of the hold. For pods that are not bound, the controller knows."""
    bound = Consumers.of(claim.live.pods).bound.values()
    using = sorted(pod.metadata.name for pod in bound)
    if not using:
        return None
    name = claim.claim.metadata.name
    users = counted(len(using), "pod uses", "pods use")
    where = "in Kubernetes before 1.34 and in dialect native"
    advice = f"{where} its hold stays until they have ended: wait, or scale the workload down"
    return Reason.CONSUMERS_LEFT, f"{users} claim {name}: {listed(using)}; {advice}", None


_LOG = "kubectl -n claimctl-system logs deployment/claimctl-controller"


def _reported(reservation: ClaimReservation) -> tuple[str, str, float | None]:
    """What the controller reports about the release."""
    condition = find_condition(reservation.status.conditions, ConditionType.RELEASED)
    if condition is None or condition.status == "True" or condition.reason == Reason.HELD:
        return Why.WITHDRAWN, f"the controller has not ended the hold yet (its log: {_LOG})", None
    grace = float(reservation.spec.force_deleted_pod_grace_seconds)
    after = grace if condition.reason == Reason.HISTORY_UNKNOWN else None
    return condition.reason, condition.message, after


# -- claims without a ClaimReservation


def _claims(scan: Scan, times: WatchTimes, watched: float, run: float) -> Iterator[Leftover]:
    for scanned in scan.claims:
        if scanned.reserved:
            continue
        meta = scanned.claim.metadata
        for reason, message, after in _left_in(scanned, scan, times, watched, run):
            yield Leftover(RESOURCECLAIMS.kind, meta.namespace, meta.name, reason, message, after)


def _left_in(
    scanned: ScannedClaim, scan: Scan, times: WatchTimes, watched: float, run: float
) -> Iterator[tuple[str, str, float | None]]:
    orphan = judge(scanned, times)
    freed = partial(_freed, scanned, orphan, times, watched, run)
    if own_holds(scanned.claim):
        yield Why.HOLD, *freed()
    elif any(map(is_tombstone, scanned.claim.status.reserved_for)):
        finished = _finished(scanned)
        if orphan is not None:
            yield Why.TOMBSTONES, *freed()
        else:
            yield finished or (Why.TOMBSTONES, "their pods are gone: they are about to go", None)
    elif orphan is not None and orphan.cause in CAUSES:
        yield orphan.cause, *freed()
    if lost_owners(scanned.claim, scan.reservations):
        yield Why.OWNER, "is owned by a ClaimReservation that does not exist", None


def _freed(
    scanned: ScannedClaim, orphan: Orphan | None, times: WatchTimes, watched: float, run: float
) -> tuple[str, float | None]:
    """Why the claim is not freed yet, and for how long it is watched before.

    A hold beside running pods also stays while a scheduler may be binding a pod that waited.
    """
    if orphan is None:
        return "goes after the annotation of its workload is removed", None
    snapshot = snapshot_of(scanned, times)
    pending = snapshot.consumers.pending.values()
    binding = max((binding_seconds(snapshot, pod) for pod in pending), default=0.0)
    if orphan.blockers:
        left = max(times.settle_seconds + binding - run, 0.0) if binding else 0.0
        return "; ".join(blocker.message for blocker in orphan.blockers), left or None
    left = max(times.settle_seconds + max(times.grace_seconds, binding) - watched, 0.0)
    goes = "they go" if orphan.cause is Cause.LISTED_AHEAD else "the claim is freed"
    return f"{orphan.message}; {goes} after it was watched", _longer(orphan.wait, left)


def _longer(wait: Blocker | None, left: float) -> float:
    return max(wait.after or 0.0, left) if wait is not None else left


def lost_owners(
    claim: ResourceClaim, reservations: Iterable[ClaimReservation]
) -> tuple[OwnerReference, ...]:
    """The claim's owners that are ClaimReservations and do not exist.

    If ClaimReservations are served again one day, garbage collection would delete the claim.
    """
    known = {reservation.metadata.uid for reservation in reservations}
    return tuple(
        owner
        for owner in claim.metadata.owner_references
        if owner.api_version == CLAIMRESERVATIONS.api_version and owner.uid not in known
    )


# -- PodGroups and DowngradePlans


def may_lose_finalizer(group: PodGroup, scan: Scan, watched: float) -> bool:
    """Whether the command may remove the finalizer itself, because no controller can run.

    The rules are those of ``reservation.pod_groups.lifecycle``. kube-controller-manager may
    deallocate the claim of a group that is gone, so a pod that vanished gets its grace.
    """
    using = group_pods(group, scan)
    if group.metadata.deleting:
        return not using
    return bool(using) or not listing(group, scan.claims) or watched >= GRACE_SECONDS


def guarded_groups(scan: Scan) -> tuple[PodGroup, ...]:
    return tuple(group for group in scan.groups if FINALIZER in group.metadata.finalizers)


def _group(group: PodGroup, scan: Scan, watched: float) -> Leftover:
    meta = group.metadata
    message, after = _why_guarded(group, scan, watched)
    return Leftover(PODGROUPS.kind, meta.namespace, meta.name, Why.GUARDED, message, after)


def _why_guarded(group: PodGroup, scan: Scan, watched: float) -> tuple[str, float | None]:
    if group.metadata.deleting and (using := group_pods(group, scan)):
        names = listed(sorted(pod.metadata.name for pod in using))
        return f"is being deleted, and pods use it: {names}", None
    if any(shares(group, reservation.spec.resource_claim_name) for reservation in _in(group, scan)):
        return "loses its finalizer with the ClaimReservations of its claims", None
    if listing(group, scan.claims) and not group_pods(group, scan):
        text = "pods of it may have vanished while running; its finalizer goes when the grace is"
        return f"{text} over", max(GRACE_SECONDS - watched, 0.0)
    return "its finalizer is about to go", None


def _in(group: PodGroup, scan: Scan) -> Iterator[ClaimReservation]:
    namespace = group.metadata.namespace
    return (
        reservation
        for reservation in scan.reservations
        if reservation.metadata.namespace == namespace
    )


def group_pods(group: PodGroup, scan: Scan) -> tuple[Pod, ...]:
    """The pods that run, or may be scheduled, through this group on its claims."""
    namespace, claims = group.metadata.namespace, _claims_of(group)
    pods = {
        pod.metadata.uid: pod
        for claim in scan.claims
        if claim.claim.metadata.namespace == namespace
        for pod in claim.live.pods
        if group_of(pod.spec) == group.metadata.name and claims & claim_names(pod)
    }
    return tuple(pod for pod in pods.values() if not is_done(pod))


def _claims_of(group: PodGroup) -> frozenset[str]:
    return frozenset(
        entry.resource_claim_name
        for entry in group.spec.resource_claims
        if entry.resource_claim_name
    )


def listing(group: PodGroup, claims: Iterable[ScannedClaim]) -> tuple[Reference, ...]:
    """The entries of the group in the lists of claims."""
    uid = group.metadata.uid
    return tuple(
        entry for claim in claims for entry in claim.claim.status.reserved_for if entry.uid == uid
    )


def _tainted(node: str, taint: Taint) -> Leftover:
    text = f"has the taint {taint.key}={taint.value} of a run of claimctl reschedule"
    return Leftover(NODES.kind, "", node, Why.TAINTED, text)


def _avoiding(record: str) -> Leftover:
    text = "keeps pods off nodes, or makes them wait, for claimctl reschedule"
    return Leftover(RESCHEDULERECORDS.kind, "", record, Why.AVOIDS, text)


def _braked(pod: PodRef) -> Leftover:
    text = "waits for claimctl reschedule to remove the scheduling gate claimctl.io/brake"
    return Leftover(PODS.kind, pod.namespace, pod.name, Why.BRAKED, text)


def _plan(plan: DowngradePlan) -> Leftover:
    text = "its downgrade is under way: wait until it has ended, or delete the plan"
    return Leftover(DOWNGRADEPLANS.kind, "", plan.metadata.name, Why.UNDER_WAY, text)
