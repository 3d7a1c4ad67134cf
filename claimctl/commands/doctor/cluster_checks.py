"""The checks of ``claimctl doctor``: pure functions from an observed cluster to findings.

A new check is a name in ``_summaries``, with what is said if there is nothing to report, and a
function that ``findings`` calls. A few have no summary, since they say nothing where they do not
concern the cluster (``upgrade``, ``driver-checks``), or have a line in any case (``drivers``,
``kubelets``). ``examination`` reads what a check needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from claimctl.commands.doctor.claim_matters import matter_findings
from claimctl.commands.doctor.dangling import dangling_findings
from claimctl.commands.doctor.kubelet_faults import kubelet_faults
from claimctl.commands.doctor.model import (
    NOT_INSTALLED,
    OUTSIDE,
    STICKY_CHECK,
    CheckVerdict,
    Finding,
    ObservedCluster,
    about_claim,
)
from claimctl.commands.orphans.model import Cause
from claimctl.downgrade.crossing import OLD, TARGET
from claimctl.downgrade.under_way import describe_plan
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT
from claimctl.text import counted, listed
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import PREPARE_FAILED, Event
from claimctl.wire.meta import find_condition
from claimctl.wire.releases import knows_pod_groups
from claimctl.wire.reservations import (
    DRIVER_CHECK_LABEL,
)


def checks(observed: ObservedCluster) -> tuple[Finding, ...]:
    """One line at least for each check: its findings, or that there are none, or why not known."""
    reported = findings(observed)
    with_findings = {finding.check for finding in reported}
    rest = tuple(
        _without_problem(name, summary, observed)
        for name, summary in _summaries(observed).items()
        if name not in with_findings
    )
    facts = (*_kubelet_faults(observed), *_upgrade(observed))
    return (*_drivers(observed), *facts, *rest, *reported)


def _without_problem(name: str, summary: str, observed: ObservedCluster) -> Finding:
    refused = observed.refused.get(name)
    if refused is not None:
        verdict = CheckVerdict.FACT if refused in (NOT_INSTALLED, OUTSIDE) else CheckVerdict.UNKNOWN
        return Finding(name, f"not checked: {refused}", verdict=verdict)
    return Finding(name, summary, verdict=CheckVerdict.OK)


def _summaries(observed: ObservedCluster) -> dict[str, str]:
    """The checks in the order of their lines, and what there is to say about each without problem.
    A check that does not concern the cluster is absent."""
    summaries = {
        "permissions": "the controller has its rights",
        "reservations": f"{counted(len(observed.reservations), 'ClaimReservation')}, all ready",
        "plans": "no downgrade and no upgrade is under way",
        "kinds": "the kind of every workload has a rule",
        "annotations": "every annotation of a workload names claims of its pods",
        STICKY_CHECK: "the policy that names them is in force",
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
    """What the checks report: problems, what waits, and facts that are no problem."""
    return (
        *_rights(observed),
        *_reservations(observed),
        *_plans(observed),
        *observed.kinds,
        *observed.annotations,
        *observed.sticky,
        *_unreadable(observed),
        *matter_findings(observed.matters),
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
            yield about_claim(claim, "near-limit", f"{count} of {LIMIT} {what}")
        if _is_left_by_driver_check(claim, observed):
            text = (
                "left by a driver check that was killed: the next one in the namespace removes it"
            )
            yield about_claim(claim, "driver-checks", f"{text} (`claimctl doctor driver`)")
            continue
        orphan = observed.orphans.get(claim.metadata.uid)
        if orphan is None:
            yield from dangling_findings(claim, observed)
            continue
        command = f"claimctl doctor orphans -n {claim.metadata.namespace}"
        text = f"{orphan.cause}: {orphan.describe()}; see `{command}`"
        if orphan.cause is Cause.LISTED_AHEAD:
            text = f"{orphan.message}; take them out: `{command} --yes`"
            yield about_claim(claim, "listed-ahead", text)
        else:
            yield about_claim(claim, "orphans", text)


def _is_left_by_driver_check(claim: ResourceClaim, observed: ObservedCluster) -> bool:
    """Whether the Job is gone that owns the claim of a driver check."""
    jobs = observed.uids.get(("batch", "jobs"))
    if DRIVER_CHECK_LABEL not in (claim.metadata.labels or {}) or jobs is None or "" in jobs:
        return False
    return all(owner.uid not in jobs for owner in claim.metadata.owner_references)


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
