"""Say what is left of claimctl in the cluster, and why it cannot go yet.

``leftovers`` is a pure function of one ``Scan``. Nothing that it does not name blocks anything: a
cluster without leftovers can lose the controller, its namespace and its CRDs at once. What stays
and blocks nothing is said by ``notes``.

A new kind of leftover is read by ``scan``, gets a reason in ``Why``, and a case in
``_other_leftovers``. Why a ClaimReservation is still there although it is deleted is said by
``_why_reserved``, case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.commands.orphans.adoption import is_handed_over
from claimctl.commands.orphans.judge import (
    judge,
    orphaned_holds,
    own_holds,
    snapshot_of,
    unproven_holds,
    unproven_text,
)
from claimctl.commands.orphans.model import PASSING, Cause, Orphan, ScannedClaim
from claimctl.commands.uninstall import sticky
from claimctl.commands.uninstall.model import Leftover, Scan, Why
from claimctl.downgrade.records import is_carried_out
from claimctl.installation import LEASE_NAME
from claimctl.reservation.facts.dialects import PodGroupDialect
from claimctl.reservation.facts.pods import Consumers, claim_names, is_done
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import is_tombstone
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.users.blockers import binding_seconds
from claimctl.text import counted, listed
from claimctl.wire import resources as wire
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference, find_condition
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, ClaimReservation
from claimctl.wire.traces import RECORDS

CAUSES = frozenset((Cause.LISTED_AHEAD, Cause.ORPHANED_HOLD, Cause.ORPHANED_TOMBSTONES))
"""The orphans that claimctl itself has caused."""


def passes(left: Leftover) -> bool:
    """Whether time alone may help."""
    return bool(left.after) or left.reason in PASSING


def is_for_user(left: Leftover) -> bool:
    """Whether it is certain that neither a controller nor time takes it away."""
    return left.reason in (Reason.FINISHED_PODS_LEFT, Reason.UNREADABLE)


_RULES = Rules(dialect=PodGroupDialect.name)


def leftovers(
    scan: Scan, rules: Rules = _RULES, watched_seconds: float = 0.0
) -> tuple[Leftover, ...]:
    """What is left of claimctl, by kind, namespace and name.

    Args:
        rules: how long pods may be bound to a claim.
        watched_seconds: for how long the run has watched the cluster.
    """
    left = (
        *_reservations(scan, rules, watched_seconds),
        *_claims(scan),
        *(
            _about(it.metadata, wire.PODGROUPS.kind, Why.GUARDED, _why_guarded(it, scan))
            for it in guarded_groups(scan)
        ),
        *(_about(*it) for it in sticky.left(scan)),
        *_other_leftovers(scan),
    )
    return tuple(sorted(left, key=lambda leftover: leftover.identity))


def _about(
    meta: ObjectMeta, kind: str, reason: str, message: str, after: float | None = None
) -> Leftover:
    return Leftover(kind, meta.namespace, meta.name, reason, message, after)


_KINDS_WITH_TRACES = (wire.RESOURCECLAIMS.kind, wire.CLAIMRESERVATIONS.kind, wire.PODGROUPS.kind)
"""Besides workloads: an object of theirs that cannot be read may have something of claimctl."""


def _other_leftovers(scan: Scan) -> Iterator[Leftover]:
    """What is left in workloads, plans, nodes, records of ``claimctl reschedule`` and pods."""
    for workload in scan.workloads:
        seen = listed(sorted(workload.annotations))
        what = "annotation" if len(workload.annotations) == 1 else "annotations"
        text = f"has the {what} {seen}; if it comes back, remove it where the manifest is kept"
        yield _about(workload.meta, workload.resource.kind, Why.ANNOTATED, text)
    for plan in scan.plans:
        if not is_carried_out(plan):
            text = "its downgrade is under way: wait until it has ended, or delete the plan"
            yield Leftover(wire.DOWNGRADEPLANS.kind, "", plan.metadata.name, Why.UNDER_WAY, text)
    for node, taint in scan.tainted:
        text = f"has the taint {taint.key}={taint.value} of a run of claimctl reschedule"
        yield Leftover(wire.NODES.kind, "", node, Why.TAINTED, text)
    for record in scan.avoiding:
        text = "keeps pods off nodes, or makes them wait, for claimctl reschedule"
        yield Leftover(RECORDS.kind, "", record, Why.AVOIDS, text)
    for pod in scan.braked:
        text = "waits for claimctl reschedule to remove the scheduling gate claimctl.io/brake"
        yield Leftover(wire.PODS.kind, pod.namespace, pod.name, Why.BRAKED, text)
    if controller_runs_without_crds(scan):
        yield Leftover(wire.LEASES.kind, "", LEASE_NAME, Why.CONTROLLER_RUNS, _CONTROLLER_RUNS)
    for unread in scan.unreadable:
        # nobody knows what it has of claimctl; of workloads, only the metadata is read
        kind, is_workload = unread.resource.kind, unread.resource.type is ObjectHeader
        if is_workload or kind in _KINDS_WITH_TRACES:
            reason, text = Reason.UNREADABLE, unread.describe()
            yield Leftover(kind, unread.namespace, unread.name, reason, text)


def controller_runs_without_crds(scan: Scan) -> bool:
    """Whether a controller runs that knows ClaimReservations which do not exist any more."""
    return scan.tended and not scan.served


_CONTROLLER_RUNS = (
    "a controller runs although the CRDs are gone, and may add holds again: stop it (kubectl -n "
    "claimctl-system scale deployment/claimctl-controller --replicas=0)"
)


def notes(scan: Scan) -> tuple[str, ...]:
    """What stays, blocks nothing, and should be known before the CRDs are deleted."""
    unproven = [
        (scanned.claim, unproven_text(holds))
        for scanned in scan.claims
        if (holds := unproven_holds(scanned))
    ]
    return (
        *(
            f"CronJob {meta.namespace}/{meta.name} puts annotations of claimctl on its Jobs "
            "(spec.jobTemplate.metadata.annotations): remove them there before its next Job"
            for meta in scan.cron_jobs
        ),
        *(
            f"DowngradePlan {plan.metadata.name} is the record of a downgrade; it is deleted with "
            "its CRD: run `claimctl downgrade restore` before, if references should return"
            for plan in scan.plans
            if is_carried_out(plan)
        ),
        *(
            f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name} stays held: {why}"
            for claim, why in unproven
        ),
        *((_NODES_UNREADABLE,) if scan.nodes_unreadable else ()),
    )


_NODES_UNREADABLE = (
    "nodes may not be listed, so a taint of claimctl reschedule may be left: an administrator runs "
    "`claimctl reschedule --release-taints`"
)


# -- ClaimReservations


_Left = tuple[str, str, float | None]
"""The reason, the message, and after how many seconds it may go by time alone."""


def _reservations(scan: Scan, rules: Rules, watched_seconds: float) -> Iterator[Leftover]:
    for reservation in scan.reservations:
        meta = reservation.metadata
        if meta.deleting:
            claim = scan.claim_of.get((meta.namespace, reservation.spec.resource_claim_name))
            why = _why_reserved(reservation, claim, scan, rules, watched_seconds)
        else:
            now = "holds until `claimctl uninstall prepare` deletes it"
            text = "; ".join(filter(None, (now, sticky.fate(reservation, scan))))
            why = Why.NOT_WITHDRAWN, text, None
        yield _about(meta, wire.CLAIMRESERVATIONS.kind, *why)


def _why_reserved(
    reservation: ClaimReservation,
    claim: ScannedClaim | None,
    scan: Scan,
    rules: Rules,
    watched_seconds: float,
) -> _Left:
    """Why a ClaimReservation that is deleted is still there."""
    meta = reservation.metadata
    if others := [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]:
        return Reason.FOREIGN_FINALIZER, f"waits for the owner of {listed(others)}", None
    if not scan.tended:
        text = "no controller runs; `claimctl uninstall prepare` does its work"
        return Why.NO_CONTROLLER, text, None
    if claim is None or claim.claim.status.allocation is None:
        return Reason.SETTLING, "goes when the settle time is over", None
    if (ghost := _ghost(reservation, scan)) is not None:
        return ghost
    recorded = reservation.status.reserved_for
    holds = own_holds(claim.claim) | ({recorded.uid} if recorded is not None else set())
    is_held = any(entry.uid in holds for entry in claim.claim.status.reserved_for)
    why = _using(claim, rules, watched_seconds) if is_held else _blocking_tombstones(claim)
    return why or _controllers_reason(reservation)


def _ghost(reservation: ClaimReservation, scan: Scan) -> _Left | None:
    """The pods that vanished while running, and may still run."""
    grace = reservation.spec.fixed_grace_seconds
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


def _blocking_tombstones(claim: ScannedClaim) -> _Left | None:
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


def _using(claim: ScannedClaim, rules: Rules, watched_seconds: float) -> _Left | None:
    """The pods that run because of the hold. For pods that are not bound, the controller knows.

    Beside pods that a scheduler may still bind, the hold stays for the binding time.
    """
    pods = Consumers.of(claim.live.pods)
    using = sorted(pod.metadata.name for pod in pods.bound.values())
    if not using:
        return None
    name = claim.claim.metadata.name
    users = counted(len(using), "pod uses", "pods use")
    where = "in Kubernetes before 1.34 and in mode native"
    advice = f"{where} its hold stays until they have ended: wait, or scale the workload down"
    snapshot = snapshot_of(claim, rules)
    binding = max((binding_seconds(snapshot, pod) for pod in pods.pending.values()), default=0.0)
    left = max(rules.settle_seconds + binding - watched_seconds, 0.0) if binding else 0.0
    text = f"{users} claim {name}: {listed(using)}; {advice}"
    return Reason.CONSUMERS_LEFT, text, left or None


_LOG = "kubectl -n claimctl-system logs deployment/claimctl-controller"


def _controllers_reason(reservation: ClaimReservation) -> _Left:
    """What the controller reports about the release."""
    condition = find_condition(reservation.status.conditions, ConditionType.RELEASED)
    if condition is None or condition.status == "True" or condition.reason == Reason.HELD:
        return Why.WITHDRAWN, f"the controller has not ended the hold yet (its log: {_LOG})", None
    grace = reservation.spec.fixed_grace_seconds
    after = grace if condition.reason == Reason.HISTORY_UNKNOWN else None
    return condition.reason, condition.message, after


# -- claims without a ClaimReservation


def adoptable(scanned: ScannedClaim) -> Orphan | None:
    """The traces of claimctl in a claim that nobody answers for, as an orphan to be adopted; None
    if there are none, or if a controller has them in hand.

    Pods and other holders keep the claim: what is withdrawn leaves it to them.
    """
    adopted, claim = scanned.adoptions, scanned.claim
    if scanned.reserved or (adopted and all(is_handed_over(it, claim) for it in adopted)):
        return None
    orphan = judge(scanned)
    if orphan is not None and orphan.cause in CAUSES and not orphan.blockers:
        return orphan
    if holds := orphaned_holds(scanned):
        return Orphan(Cause.ORPHANED_HOLD, "", entries=holds)
    if claim.status.allocation is not None and not _has_hold(scanned) and _has_tombstone(claim):
        return Orphan(Cause.ORPHANED_TOMBSTONES, "")
    return None


def _has_hold(scanned: ScannedClaim) -> bool:
    """Whether the list has a hold of claimctl, by more than managedFields."""
    return bool(own_holds(scanned.claim) - {hold.uid for hold in unproven_holds(scanned)})


def _has_tombstone(claim: ResourceClaim) -> bool:
    return any(map(is_tombstone, claim.status.reserved_for))


def _claims(scan: Scan) -> Iterator[Leftover]:
    for scanned in scan.claims:
        if scanned.reserved:
            continue
        for reason, message in _traces_in(scanned, scan):
            yield _about(scanned.claim.metadata, wire.RESOURCECLAIMS.kind, reason, message)


def _traces_in(scanned: ScannedClaim, scan: Scan) -> Iterator[tuple[str, str]]:
    """What claimctl has left in a claim that no ClaimReservation names: reason and message."""
    orphan, claim = adoptable(scanned), scanned.claim
    # while a ClaimReservation adopts the claim, that one is named for the list
    if not scanned.adoptions or orphan is not None:
        yield from _traces_in_list(scanned, orphan)
    if lost_owners(claim, scan.reservations):
        yield Why.OWNER, "is owned by a ClaimReservation that does not exist"


def _traces_in_list(scanned: ScannedClaim, orphan: Orphan | None) -> Iterator[tuple[str, str]]:
    goes = "goes when `claimctl uninstall prepare` hands it over to a controller"
    if _has_hold(scanned):
        later = "goes after the annotation of its workload is removed"
        yield Why.HOLD, goes if orphan is not None else later
    elif _has_tombstone(scanned.claim):
        yield Why.TOMBSTONES, goes
    elif orphan is not None:
        yield orphan.cause, f"{orphan.message}; {goes}"


def lost_owners(
    claim: ResourceClaim, reservations: Iterable[ClaimReservation]
) -> tuple[OwnerReference, ...]:
    """The claim's owners that are ClaimReservations and do not exist. If ClaimReservations are
    served again one day, garbage collection would delete the claim."""
    known = {reservation.metadata.uid for reservation in reservations}
    return tuple(
        owner
        for owner in claim.metadata.owner_references
        if owner.api_version == wire.CLAIMRESERVATIONS.api_version and owner.uid not in known
    )


# -- PodGroups


def guarded_groups(scan: Scan) -> tuple[PodGroup, ...]:
    """The PodGroups that have claimctl's finalizer."""
    return tuple(group for group in scan.groups if FINALIZER in group.metadata.finalizers)


def _why_guarded(group: PodGroup, scan: Scan) -> str:
    if group.metadata.deleting and (using := group_pods(group, scan)):
        names = listed(sorted(pod.metadata.name for pod in using))
        return f"is being deleted, and pods use it: {names}"
    place = group.metadata.namespace
    here = (made.spec for made in scan.reservations if made.metadata.namespace == place)
    if any(group.shares(spec.resource_claim_name) for spec in here):
        return "loses its finalizer with the ClaimReservations of its claims"
    return "a controller removes its finalizer"


def group_pods(group: PodGroup, scan: Scan) -> tuple[Pod, ...]:
    """The pods that run, or may be scheduled, through this group on its claims."""
    namespace, spec = group.metadata.namespace, group.spec
    claims = {entry.resource_claim_name for entry in spec.resource_claims} - {None, ""}
    pods = {
        pod.metadata.uid: pod
        for claim in scan.claims
        if claim.claim.metadata.namespace == namespace
        for pod in claim.live.pods
        if pod.spec.group_name == group.metadata.name and claims & claim_names(pod)
    }
    return tuple(pod for pod in pods.values() if not is_done(pod))
