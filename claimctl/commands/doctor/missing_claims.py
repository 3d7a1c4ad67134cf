"""Pods that wait for claims that do not exist. No claim shows them, so ``doctor`` looks for them.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from claimctl.commands.claims.judgement import waiting_among, waiting_text
from claimctl.commands.doctor.model import Finding
from claimctl.commands.orphans.scan import ClaimScan
from claimctl.reservation.facts.ordinals import sticky_entries
from claimctl.reservation.facts.pods import Consumers, awaited_templates
from claimctl.text import counted, listed
from claimctl.wire.pods import Pod
from claimctl.wire.resources import RESOURCECLAIMS

Lines = dict[tuple[str, str], str]
"""By namespace and name of what is missing: which pods wait, and what to do."""


def missing_claims(scan: ClaimScan, now: datetime) -> tuple[Finding, ...]:
    """One line for all claims that pods name, with the pods of one, and one for all templates from
    which no claim is made."""
    there = {it.claim.metadata.key for it in scan.claims}
    named: Lines = {}
    for key, users in sorted(scan.users.items()):
        text, see = _waiting(users, now)
        if text and key not in there and not _may_exist(scan, *key):
            ours = any(it.claim == key.name for user in users for it in sticky_entries(user))
            help_ = f"claimctl has to make it: {see}" if ours else f"create the claim, or {see}"
            named[key] = f"{text}; {help_}"
    awaiting: dict[tuple[str, str], list[Pod]] = {}
    for pod in scan.awaiting:
        for template in awaited_templates(pod):
            awaiting.setdefault((pod.metadata.namespace, template), []).append(pod)
    templates: Lines = {}
    for (namespace, template), pods in sorted(awaiting.items()):
        text, see = _waiting(pods, now)
        if text:
            templates[namespace, f"resourceclaimtemplate/{template}"] = f"{text}; {see}"
    return (
        *_line(named, "the claim does not exist", f"{counted(len(named), 'claim')} do not exist"),
        *_line(templates, "no claim is made from it", f"no claim is made from {len(templates)}"),
    )


def _waiting(users: Iterable[Pod], now: datetime) -> tuple[str, str]:
    """Which of the pods have waited for longer than usual, and where to see why; '' for none."""
    waits = waiting_among(Consumers.of(users))
    text = waiting_text(waits, now)
    if not text:
        return "", ""
    first = min((pod.metadata for pod in waits), key=lambda meta: meta.name)
    return text, f"see `claimctl explain pod/{first.name} -n {first.namespace}`"


def _line(lines: Lines, alone: str, several: str) -> tuple[Finding, ...]:
    if not lines:
        return ()
    (namespace, name), text = next(iter(lines.items()))
    if len(lines) == 1:
        return (Finding("waiting-pods", f"{alone}; {text}", namespace, name),)
    names = listed(f"{place}/{missing}" for place, missing in lines)
    return (Finding("waiting-pods", f"{several}: {names}; for the first one, {text}"),)


def _may_exist(scan: ClaimScan, namespace: str, name: str) -> bool:
    """Whether it may be one of the claims that cannot be read."""
    return any(
        unread.may_be_in(namespace) and unread.name in ("", name)
        for unread in scan.unreadable
        if unread.resource.plural == RESOURCECLAIMS.plural
    )
