"""The checks of ``claimctl doctor``: pure functions from an observed cluster to findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from claimctl.cli.documents import Part
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.whereabouts import Obstruction, ObstructionKind, Places, whereabouts
from claimctl.commands.doctor.kubelet_faults import kubelet_faults
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import Cause, Orphan, ScannedClaim
from claimctl.downgrade.crossing import OLD, TARGET
from claimctl.downgrade.look import PREPARE_FAILED
from claimctl.downgrade.under_way import describe_plan
from claimctl.kube.codec import Listing
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import ConditionType, Reason, RetentionPolicy
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT, describe, is_tombstone
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference, ResourceClaim, ResourceSlice
from claimctl.wire.coordination import Event
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import Node
from claimctl.wire.releases import knows_pod_groups
from claimctl.wire.reservations import (
    DRIVER_CHECK_LABEL,
    RELEASE_ANNOTATION,
    ClaimReservation,
    DowngradePlan,
)
from claimctl.wire.unreadable import Unreadable

NOT_INSTALLED = "claimctl is not installed"
"""Why a check of the installation is not made; the user's rights are not the reason."""


class CheckVerdict(StrEnum):
    OK = "ok"
    FACT = "fact"
    """Neither good nor bad."""
    UNKNOWN = "unknown"
    """The user may not read what the check needs."""
    PROBLEM = "problem"


class Finding(Part, frozen=True, kw_only=False):
    """One line of the result; ``object`` is a claim, a node, a workload, a right, or ''."""

    check: str
    message: str
    namespace: str = ""
    object: str = ""
    verdict: CheckVerdict = CheckVerdict.PROBLEM


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """The state of the cluster, read live. ``refused`` says by the name of a check why it could not
    be made."""

    dialect: str
    claims: tuple[ResourceClaim, ...] = ()
    orphans: Mapping[str, Orphan] = field(default_factory=dict)
    """The orphans by claim UID."""
    uids: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """UIDs of all objects of the resources that were listed, by API group and plural name."""
    nodes: tuple[Node, ...] = ()
    events: tuple[Event, ...] = ()
    missing_rights: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    annotations: tuple[Finding, ...] = ()
    """What is wrong with the annotations of workloads."""
    kinds: tuple[Finding, ...] = ()
    """The kinds of workloads whose state the controller cannot know."""
    reservations: tuple[ClaimReservation, ...] = ()
    plans: tuple[DowngradePlan, ...] = ()
    behind: frozenset[str] = frozenset()
    """UIDs of the ClaimReservations whose status was behind their spec at two reads."""
    obstructions: tuple[tuple[str, str, Obstruction], ...] = ()
    """What keeps pods from held claims, with the namespace and name of each claim."""
    slices: tuple[ResourceSlice, ...] = ()
    more_checks: Mapping[str, str] = field(default_factory=dict)
    """The checks of extensions, and what there is to say about each without a problem."""
    more_problems: tuple[Finding, ...] = ()
    """What these checks found."""
    old_groups: int = 0
    """How many PodGroups the next Kubernetes release would not serve any more."""
    refused: Mapping[str, str] = field(default_factory=dict)


def checks(observed: ObservedCluster) -> tuple[Finding, ...]:
    """One line at least for each check: its problems, or that there is none, or why not known."""
    problems = findings(observed)
    with_problems = {problem.check for problem in problems}
    rest = tuple(
        _without_problem(name, summary, observed)
        for name, summary in _summaries(observed).items()
        if name not in with_problems
    )
    facts = (*_kubelet_faults(observed), *_upgrade(observed), *_releases_asked(observed))
    return (*_drivers(observed), *facts, *rest, *problems)


def _without_problem(name: str, summary: str, observed: ObservedCluster) -> Finding:
    refused = observed.refused.get(name)
    if refused is not None:
        verdict = CheckVerdict.FACT if refused == NOT_INSTALLED else CheckVerdict.UNKNOWN
        return Finding(name, f"not checked: {refused}", verdict=verdict)
    return Finding(name, summary, verdict=CheckVerdict.OK)


def _summaries(observed: ObservedCluster) -> dict[str, str]:
    """The checks in the order of their lines, and what there is to say about each without problem.
    A check that does not concern the cluster is absent."""
    summaries = {
        "permissions": "the controller has its rights",
        "reservations": f"{counted(len(observed.reservations), 'ClaimReservation')}, all ready",
        "plans": "no downgrade and no upgrade is under way",
        "kinds": "the kind of every workload has a rule, and the controller may read it",
        "annotations": "every annotation of a workload names claims of its pods",
        "orphans": f"{counted(len(observed.claims), 'claim')}, none is an orphan",
        "held-devices": "every held device is published, and its node takes pods",
        "listed-ahead": "no claim lists waiting pods that claimctl has left in it",
        "near-limit": f"no list has {NEAR_LIMIT} of {LIMIT} entries or more",
        "dangling-references": "every listed object is there",
        "mixed-versions": "every kubelet knows PodGroups",
        "refused-pods": "no Event of a kubelet that refuses a pod",
        "unreadable-objects": "every object can be read",
        **observed.more_checks,
    }
    if observed.dialect not in DIALECTS or not DIALECTS[observed.dialect].groups:
        del summaries["mixed-versions"]
    return summaries


def findings(observed: ObservedCluster) -> tuple[Finding, ...]:
    """The problems."""
    return (
        *_rights(observed),
        *_reservations(observed),
        *_plans(observed),
        *observed.kinds,
        *observed.annotations,
        *_unreadable(observed),
        *_held_devices(observed),
        *_claims(observed),
        *_kubelets(observed),
        *_refused_pods(observed),
        *observed.more_problems,
    )


def _unreadable(observed: ObservedCluster) -> Iterator[Finding]:
    for unread in observed.unreadable:
        text = f"{unread.describe()}; claimctl makes no decision about claims that it concerns"
        yield Finding("unreadable-objects", text, unread.namespace, unread.name)


def _upgrade(observed: ObservedCluster) -> Iterator[Finding]:
    """Whether the cluster can be upgraded as it is."""
    if observed.old_groups:
        text = (
            f"not ready for {TARGET}, which does not serve scheduling.k8s.io/{OLD}: "
            f"{counted(observed.old_groups, 'PodGroup')} must be gone before. "
            f"`claimctl upgrade prepare --to {TARGET} --dry-run` says what is in the way"
        )
        yield Finding("upgrade", text, verdict=CheckVerdict.FACT)


def _releases_asked(observed: ObservedCluster) -> Iterator[Finding]:
    """Releases that users have asked for and that are not done: they outlive rollouts."""
    allocated = {
        claim.metadata.key: claim.metadata.uid
        for claim in observed.claims
        if claim.status.allocation is not None
    }
    for reservation in observed.reservations:
        place, name = reservation.metadata.namespace, reservation.spec.resource_claim_name
        uid = allocated.get((place, name))
        if uid is not None and reservation.metadata.annotation(RELEASE_ANNOTATION) == uid:
            text = (
                f"a release is asked for and waits: `claimctl explain {name} -n {place}` says for "
                f"what; `claimctl release --cancel {name} -n {place}` withdraws it"
            )
            yield Finding("releases", text, place, name, CheckVerdict.FACT)


def _drivers(observed: ObservedCluster) -> Iterator[Finding]:
    """How many devices the drivers offer. Without any, no claim can be allocated."""
    if "drivers" in observed.refused:
        yield _without_problem("drivers", "", observed)
        return
    devices: Counter[str] = Counter()
    for piece in observed.slices:
        devices[piece.spec.driver] += len(piece.spec.devices or ())
    for driver, count in sorted(devices.items()):
        text = f"{counted(count, 'device')} in ResourceSlices"
        yield Finding("drivers", text, object=driver, verdict=CheckVerdict.OK)
    if not devices:
        text = "no DRA driver offers devices: there is no ResourceSlice"
        yield Finding("drivers", text, verdict=CheckVerdict.FACT)


def _kubelet_faults(observed: ObservedCluster) -> Iterator[Finding]:
    """What the cluster's kubelets do wrong with held claims. Most have a fault, so it is a fact."""
    text = "no kubelet has a known fault that pods of held claims meet"
    faults = () if "kubelets" in observed.refused else tuple(kubelet_faults(observed.nodes))
    yield from (Finding("kubelets", fault, verdict=CheckVerdict.FACT) for fault in faults)
    if not faults:
        yield _without_problem("kubelets", text, observed)


def _plans(observed: ObservedCluster) -> Iterator[Finding]:
    """A plan under way is for an administrator to end: meanwhile claims or PodGroups are missed."""
    for plan in observed.plans:
        yield Finding("plans", describe_plan(plan), object=plan.metadata.name)


def _reservations(observed: ObservedCluster) -> Iterator[Finding]:
    frozen = []
    for reservation in observed.reservations:
        meta = reservation.metadata
        ready = find_condition(reservation.status.conditions, ConditionType.READY)
        if ready is not None and ready.reason == Reason.FROZEN:
            frozen.append(f"{meta.namespace}/{meta.name}")
            continue
        if ready is not None and ready.status == "False":
            what = "cannot be served" if ready.reason in _NOT_WRITTEN else "not ready"
            text = f"{what} ({ready.reason}): {ready.message}"
            if ready.reason not in (*_NOT_WRITTEN, *_WITHOUT_CLAIM):
                text = f"{text}; see `claimctl explain crsv/{meta.name} -n {meta.namespace}`"
        elif meta.uid in observed.behind:
            text = "its status is older than its spec: the controller does not act on it"
        else:
            continue
        yield Finding("reservations", text, meta.namespace, meta.name)
    # without a plan, the controller is about to write another status
    if frozen and (observed.plans or "plans" in observed.refused):
        count = counted(len(frozen), "ClaimReservation")
        text = (
            f"{count} not ready ({Reason.FROZEN}): no workload holds the claims of {listed(frozen)}"
        )
        yield Finding("reservations", text)


_NOT_WRITTEN = (Reason.FORBIDDEN, Reason.INVALID)
_WITHOUT_CLAIM = (Reason.CLAIM_NOT_FOUND, Reason.TEMPLATE_NOT_FOUND, Reason.TEMPLATE_INVALID)
"""There is nothing more to explain than the message says."""


def _rights(observed: ObservedCluster) -> Iterator[Finding]:
    missing = observed.missing_rights
    if len(missing) > _FEW_RIGHTS:
        # one cause, such as a role that is not there, explains them all
        text = f"the controller lacks {len(missing)} rights, such as {listed(missing, 2)}; {_ROLES}"
        yield Finding("permissions", text)
        return
    for right in missing:
        yield Finding("permissions", f"the controller may not {right}; {_ROLES}", object=right)


_FEW_RIGHTS = 3
"""More missing rights than these are one line."""
_ROLES = "`claimctl install --component rbac` applies its roles"


def _claims(observed: ObservedCluster) -> Iterator[Finding]:
    """Findings about each claim. An orphan's finding covers its dangling references."""
    for claim in observed.claims:
        if (count := len(claim.status.reserved_for)) >= NEAR_LIMIT:
            what = "entries are in use; the modes podgroup and native need 1 or 2"
            yield _about(claim, "near-limit", f"{count} of {LIMIT} {what}")
        if _is_left_by_driver_check(claim, observed):
            text = (
                "left by a driver check that was killed: the next one in the namespace removes it"
            )
            yield _about(claim, "driver-checks", f"{text} (`claimctl doctor driver`)")
            continue
        orphan = observed.orphans.get(claim.metadata.uid)
        if orphan is None:
            yield from _dangling(claim, observed)
            continue
        command = f"claimctl doctor orphans -n {claim.metadata.namespace}"
        text = f"{orphan.cause}: {orphan.describe()}; see `{command}`"
        if orphan.cause is Cause.LISTED_AHEAD:
            text = f"{orphan.message}; take them out: `{command} --yes`"
            yield _about(claim, "listed-ahead", text)
        else:
            yield _about(claim, "orphans", text)


def _is_left_by_driver_check(claim: ResourceClaim, observed: ObservedCluster) -> bool:
    """Whether the Job is gone that owns the claim of a driver check."""
    jobs = observed.uids.get(("batch", "jobs"))
    if DRIVER_CHECK_LABEL not in (claim.metadata.labels or {}) or jobs is None or "" in jobs:
        return False
    return all(owner.uid not in jobs for owner in claim.metadata.owner_references)


def _held_devices(observed: ObservedCluster) -> Iterator[Finding]:
    """One line for each kind of what keeps pods from held claims, with the step for one claim."""
    by_kind: dict[ObstructionKind, list[tuple[str, str, Obstruction]]] = {}
    for entry in sorted(observed.obstructions, key=lambda entry: entry[:2]):
        by_kind.setdefault(entry[2].kind, []).append(entry)
    for kind, entries in by_kind.items():
        place, name, first = entries[0]
        claims = list(dict.fromkeys(f"{namespace}/{claim}" for namespace, claim, _ in entries))
        see = f"see `claimctl explain {name} -n {place}`"
        if len(claims) == 1:
            text = "; ".join((str(first), *first.steps, see))
            yield Finding("held-devices", text, place, name)
        else:
            count = counted(len(claims), "held claim")
            text = f"{kind}: {count}, {listed(claims)}; {see}"
            yield Finding("held-devices", text)


def held_obstructions(
    claims: Sequence[ScannedClaim],
    reservations: Iterable[ClaimReservation],
    places: Places,
) -> tuple[tuple[str, str, Obstruction], ...]:
    """What keeps pods from the claims that a ClaimReservation names."""
    pods = {scanned.claim.metadata.key: scanned.live.pods for scanned in claims}
    of_claim = {scanned.claim.metadata.key: scanned.claim for scanned in claims}
    names: dict[tuple[str, str], list[ClaimReservation]] = {}
    for made in reservations:
        names.setdefault((made.metadata.namespace, made.spec.resource_claim_name), []).append(made)
    return tuple(
        (*key, obstruction)
        for key, of_it in names.items()
        if key in of_claim
        for obstruction in whereabouts(ClaimView(of_claim[key], pods[key], tuple(of_it)), places)
    )


def orphans(claims: Iterable[ScannedClaim]) -> dict[str, Orphan]:
    """The orphans by claim UID, as ``claimctl doctor orphans`` finds them."""
    judged = {scanned.claim.metadata.uid: judge(scanned) for scanned in claims}
    return {uid: orphan for uid, orphan in judged.items() if orphan is not None}


def _dangling(claim: ResourceClaim, observed: ObservedCluster) -> Iterator[Finding]:
    gone = [entry for entry in claim.status.reserved_for if _is_gone(entry, observed)]
    kept = [entry for entry in gone if _is_kept(entry, claim, observed)]
    if kept:
        free = f"`claimctl release {claim.metadata.name} -n {claim.metadata.namespace}` frees them"
        gone_ones = listed(map(describe, kept))
        text = f"{gone_ones} is gone; a ClaimReservation keeps the devices: {free}"
        finding = _about(claim, "dangling-references", text)
        yield msgspec.structs.replace(finding, verdict=CheckVerdict.FACT)
    if left := [entry for entry in gone if entry not in kept]:
        command = f"`claimctl explain {claim.metadata.name} -n {claim.metadata.namespace}`"
        text = f"listed but gone: {listed(map(describe, left))}; see {command}"
        yield _about(claim, "dangling-references", text)


def _is_kept(entry: Reference, claim: ResourceClaim, observed: ObservedCluster) -> bool:
    """Whether the policy of a ClaimReservation keeps the hold of a workload that is gone."""
    return any(
        reservation.spec.retention_policy == RetentionPolicy.MANUAL
        and reservation.status.claim_uid == claim.metadata.uid
        and reservation.status.reserved_for is not None
        and reservation.status.reserved_for.uid == entry.uid
        and not reservation.metadata.deleting
        for reservation in observed.reservations
    )


def _is_gone(reference: Reference, observed: ObservedCluster) -> bool:
    """Whether the object is known to be gone. This is unknown if the resource was not listed, or if
    an object of the LIST has no readable UID."""
    pod = is_tombstone(reference)
    resource = ("", "pods") if pod else (reference.api_group, reference.resource)
    known = observed.uids.get(resource)
    return known is not None and "" not in known and reference.uid not in known


def _about(claim: ResourceClaim, check: str, message: str) -> Finding:
    return Finding(check, message, claim.metadata.namespace, claim.metadata.name)


def _kubelets(observed: ObservedCluster) -> Iterator[Finding]:
    if observed.dialect not in DIALECTS or not DIALECTS[observed.dialect].groups:
        return
    for node in observed.nodes:
        if not knows_pod_groups(node):
            version = node.status.node_info.kubelet_version
            text = f"kubelet {version} refuses pods that share a claim through a PodGroup"
            yield Finding("mixed-versions", text, object=node.metadata.name)


def _refused_pods(observed: ObservedCluster) -> Iterator[Finding]:
    """Pods that kubelets refused: feature gates of the kubelet and the API server may differ."""
    counts = Counter(
        (event.metadata.namespace, event.note)
        for event in observed.events
        if event.reason == PREPARE_FAILED
    )
    for (namespace, note), count in sorted(counts.items()):
        yield Finding("refused-pods", f"{note} ({counted(count, 'event')})", namespace)


def uids(listing: Listing[Any]) -> frozenset[str]:
    """The UIDs of all objects, with '' for an object whose UID cannot be read."""
    known = frozenset(item.metadata.uid for item in listing.items)
    return known | {unread.uid for unread in listing.unreadable}
