"""The checks of ``claimctl doctor``: pure functions from an observed cluster to findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from claimctl.cli.documents import Part
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.judgement import judgement
from claimctl.commands.claims.matters import OF_DEVICES, Matter, MatterKind
from claimctl.commands.claims.places import Places
from claimctl.commands.doctor.dangling import dangling, in_words, waits
from claimctl.commands.doctor.kubelet_faults import kubelet_faults
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import Cause, Orphan, ScannedClaim
from claimctl.downgrade.crossing import OLD, TARGET
from claimctl.downgrade.look import PREPARE_FAILED
from claimctl.downgrade.under_way import describe_plan
from claimctl.kube.codec import Listing
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT
from claimctl.text import counted, listed
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.coordination import Event
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import Node
from claimctl.wire.releases import knows_pod_groups
from claimctl.wire.reservations import (
    DRIVER_CHECK_LABEL,
    ClaimReservation,
    DowngradePlan,
)
from claimctl.wire.unreadable import Unreadable

STICKY_CHECK = "sticky-claims"
NOT_INSTALLED = "claimctl is not installed"
"""Why a check of the installation is not made; the user's rights are not the reason."""


class CheckVerdict(StrEnum):
    OK = "ok"
    FACT = "fact"
    """Neither good nor bad."""
    UNKNOWN = "unknown"
    """The user may not read what the check needs."""
    WAITS = "waits"
    """Something waits, and may go on by itself."""
    PROBLEM = "problem"


class Finding(Part, frozen=True, kw_only=False):
    """One line of the result; ``object`` is a claim, a node, a workload, a right, or ''."""

    check: str
    message: str
    namespace: str = ""
    object: str = ""
    verdict: CheckVerdict = CheckVerdict.PROBLEM


@dataclass(frozen=True, slots=True)
class ClaimMatter:
    """What is wrong with one claim."""

    namespace: str
    claim: str
    matter: Matter
    reserved: bool = True
    """Whether a ClaimReservation names the claim."""


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
    asking_sticky: tuple[str, ...] = ()
    """The workloads whose pod templates ask for sticky claims, as namespace/kind/name."""
    sticky: tuple[Finding, ...] = ()
    """What keeps them from sticky claims."""
    kinds: tuple[Finding, ...] = ()
    """The kinds of workloads whose state the controller cannot know."""
    reservations: tuple[ClaimReservation, ...] = ()
    plans: tuple[DowngradePlan, ...] = ()
    behind: frozenset[str] = frozenset()
    """UIDs of the ClaimReservations whose status was behind their spec at two reads."""
    in_use: frozenset[str] = frozenset()
    """UIDs of the claims that a bound pod uses."""
    matters: tuple[ClaimMatter, ...] = ()
    """What is wrong with claims."""
    starting: frozenset[str] | None = None
    """UIDs of the pods with claims that have a node and do not run; None if that is not known."""
    missing_claims: tuple[Finding, ...] = ()
    """What pods wait for that does not exist."""
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
    facts = (*_kubelet_faults(observed), *_upgrade(observed))
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
        STICKY_CHECK: "the policy that names them is in force, and the controller may make them",
        "orphans": f"{counted(len(observed.claims), 'claim')}, none is an orphan",
        "held-devices": "every held device is published, and its node takes pods",
        "waiting-pods": "no pod waits for a claim, or with one",
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
    if not observed.asking_sticky:
        del summaries[STICKY_CHECK]
    return summaries


def findings(observed: ObservedCluster) -> tuple[Finding, ...]:
    """The problems, and what waits."""
    return (
        *_rights(observed),
        *_reservations(observed),
        *_plans(observed),
        *observed.kinds,
        *observed.annotations,
        *observed.sticky,
        *_unreadable(observed),
        *_matters(observed),
        *observed.missing_claims,
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
    for reservation in observed.reservations:
        meta = reservation.metadata
        ready = find_condition(reservation.status.conditions, ConditionType.READY)
        if ready is not None and ready.reason == Reason.FROZEN:
            continue  # a matter of the claim
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


_CHECKS = {
    MatterKind.NOT_READY: "reservations",
    MatterKind.HOLD_OFF: "reservations",
    MatterKind.RELEASE_WAITS: "releases",
    MatterKind.PODS_WAIT: "waiting-pods",
    MatterKind.NO_DEVICE_CLASS: "waiting-pods",
    MatterKind.TOO_MANY_DEVICES: "waiting-pods",
}
"""The check that reports a kind of matter; others are of held devices."""


def _matters(observed: ObservedCluster) -> Iterator[Finding]:
    """One line for each kind of what is wrong with claims, with the step for one claim."""
    by_kind: dict[tuple[CheckVerdict, MatterKind], list[ClaimMatter]] = {}
    for entry in sorted(observed.matters, key=lambda entry: (entry.namespace, entry.claim)):
        if (verdict := _verdict(entry)) is not None:
            by_kind.setdefault((verdict, entry.matter.kind), []).append(entry)
    for (verdict, kind), entries in by_kind.items():
        place, name, first = entries[0].namespace, entries[0].claim, entries[0].matter
        claims = list(dict.fromkeys(f"{entry.namespace}/{entry.claim}" for entry in entries))
        see = f"see `claimctl explain {name} -n {place}`"
        check = _CHECKS.get(kind, "held-devices")
        if len(claims) == 1:
            text = "; ".join((str(first), *map(_quoted, first.steps), see))
            yield Finding(check, text, place, name, verdict)
        else:
            count = counted(len(claims), "claim")
            yield Finding(check, f"{kind}: {count}, {listed(claims)}; {see}", verdict=verdict)


_COMMAND = re.compile(r"(?<=: )(?:claimctl|kubectl) .+")
_OR = re.compile(r" or (?=(?:claimctl|kubectl) )")


def _quoted(step: str) -> str:
    """The step with its commands in backquotes: more words follow it in the line."""

    def quoted(match: re.Match[str]) -> str:
        return " or ".join(f"`{command}`" for command in _OR.split(match[0]))

    return _COMMAND.sub(quoted, step)


def _verdict(entry: ClaimMatter) -> CheckVerdict | None:
    """What a matter is for the cluster; None if another line reports it."""
    if entry.matter.kind in OF_DEVICES and not entry.reserved:
        return CheckVerdict.FACT  # a claim of others; pods that wait have a line of their own
    match entry.matter.kind:
        case MatterKind.NOT_READY:
            return None
        case MatterKind.RELEASE_WAITS:
            return CheckVerdict.WAITS
        case MatterKind.PODS_WAIT:
            # devices that others use become free; pods of a held claim wait where it is
            return CheckVerdict.PROBLEM if entry.reserved else CheckVerdict.WAITS
    return CheckVerdict.PROBLEM


def matters_of(
    claims: Sequence[ScannedClaim],
    reservations: Iterable[ClaimReservation],
    places: Places,
    now: datetime,
) -> tuple[ClaimMatter, ...]:
    """What is wrong with the claims."""
    names: dict[tuple[str, str], list[ClaimReservation]] = {}
    for made in reservations:
        names.setdefault((made.metadata.namespace, made.spec.resource_claim_name), []).append(made)
    matters: list[ClaimMatter] = []
    for scanned in claims:
        key = scanned.claim.metadata.key
        of_it = tuple(names.get(key, ()))
        view = ClaimView(scanned.claim, scanned.live.pods, of_it)
        held = bool(of_it) and view.claim.status.allocation is not None
        wrong = judgement(view, places, now)
        if held or not any(matter.kind in OF_DEVICES for matter in wrong):
            wrong = _with_waiting_pods(wrong)
        matters += [ClaimMatter(*key, matter, reserved=held) for matter in wrong]
    return tuple(matters)


def _with_waiting_pods(matters: tuple[Matter, ...]) -> tuple[Matter, ...]:
    """The matters, of which the first one says which pods wait: one line for a claim."""
    waits = next((it for it in matters if it.kind is MatterKind.PODS_WAIT), None)
    causes = [it for it in matters if it.kind not in (MatterKind.PODS_WAIT, MatterKind.NOT_READY)]
    if waits is None or not causes:
        return matters
    first = replace(causes[0], text=f"{causes[0].text}; {waits.text}")
    return tuple(first if it is causes[0] else it for it in matters if it is not waits)


def orphans(claims: Iterable[ScannedClaim]) -> dict[str, Orphan]:
    """The orphans by claim UID, as ``claimctl doctor orphans`` finds them."""
    judged = {scanned.claim.metadata.uid: judge(scanned) for scanned in claims}
    return {uid: orphan for uid, orphan in judged.items() if orphan is not None}


def _dangling(claim: ResourceClaim, observed: ObservedCluster) -> Iterator[Finding]:
    """One line each for the entries whose objects are gone: those that somebody wants, those that
    leave by themselves, and the others, which are a problem."""
    where = f"{claim.metadata.name} -n {claim.metadata.namespace}"
    see = f"see `claimctl explain {where}`"
    kept, leaving, left = dangling(claim, observed)
    if kept:
        free = f"`claimctl release {where}` frees them"
        text = f"{in_words(kept)} is gone; a ClaimReservation keeps the devices: {free}"
        yield _dangles(claim, text, CheckVerdict.FACT)
    if leaving:
        text = f"{in_words(leaving)} is gone, and the claim is released when nothing uses it; {see}"
        verdict = CheckVerdict.WAITS if waits(claim, observed) else CheckVerdict.FACT
        yield _dangles(claim, text, verdict)
    if left:
        yield _dangles(claim, f"listed but gone: {in_words(left)}; {see}", CheckVerdict.PROBLEM)


def _dangles(claim: ResourceClaim, text: str, verdict: CheckVerdict) -> Finding:
    finding = _about(claim, "dangling-references", text)
    return msgspec.structs.replace(finding, verdict=verdict)


def in_doubt(observed: ObservedCluster) -> tuple[ResourceClaim, ...]:
    """The claims whose list may just be behind: they list objects that are gone."""
    judged = (claim for claim in observed.claims if claim.metadata.uid not in observed.orphans)
    return tuple(claim for claim in judged if dangling(claim, observed).left)


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
    """Pods that kubelets refused: feature gates of the kubelet and the API server may differ. What
    is over is a fact: Events stay for an hour."""
    counts = Counter(
        (event.metadata.namespace, event.note, _still_starts(event, observed))
        for event in observed.events
        if event.reason == PREPARE_FAILED
    )
    for (namespace, note, starts), count in sorted(counts.items()):
        text = f"{note} ({counted(count, 'event')})"
        if starts:
            yield Finding("refused-pods", text, namespace)
        else:
            text = f"over, its pod runs or is gone: {text}"
            yield Finding("refused-pods", text, namespace, verdict=CheckVerdict.FACT)


def _still_starts(event: Event, observed: ObservedCluster) -> bool:
    """Whether the pod of the Event still does not run; also if that is not known."""
    return observed.starting is None or event.regarding.uid in observed.starting


def uids(listing: Listing[Any]) -> frozenset[str]:
    """The UIDs of all objects, with '' for an object whose UID cannot be read."""
    known = frozenset(item.metadata.uid for item in listing.items)
    return known | {unread.uid for unread in listing.unreadable}
