"""Pods that wait for claims that do not exist. No claim shows them, so ``doctor`` looks for them.

Pure.
"""

from __future__ import annotations

from datetime import datetime

from claimctl.commands.claims.judgement import waiting_among, waiting_text
from claimctl.commands.doctor.model import Finding
from claimctl.commands.orphans.scan import ClaimScan
from claimctl.reservation.facts.ordinals import sticky_entries
from claimctl.reservation.facts.pods import Consumers
from claimctl.text import counted, listed
from claimctl.wire.resources import RESOURCECLAIMS


def missing_claims(scan: ClaimScan, now: datetime) -> tuple[Finding, ...]:
    """One line for all missing claims, with the pods of one."""
    lines: dict[tuple[str, str], str] = {}
    there = {it.claim.metadata.key for it in scan.claims}
    for key, users in sorted(scan.users.items()):
        if key in there or _may_exist(scan, *key):
            continue
        waits = waiting_among(Consumers.of(users))
        if text := waiting_text(waits, now):
            pod = min(pod.metadata.name for pod in waits)
            see = f"see `claimctl explain pod/{pod} -n {key.namespace}`"
            ours = any(it.claim == key.name for user in users for it in sticky_entries(user))
            help_ = f"claimctl has to make it: {see}" if ours else f"create the claim, or {see}"
            lines[key] = f"{text}; {help_}"
    if not lines:
        return ()
    (namespace, name), text = next(iter(lines.items()))
    if len(lines) == 1:
        return (Finding("waiting-pods", f"the claim does not exist; {text}", namespace, name),)
    names = listed(f"{place}/{claim}" for place, claim in lines)
    count = counted(len(lines), "claim")
    return (Finding("waiting-pods", f"{count} do not exist: {names}; for the first one, {text}"),)


def _may_exist(scan: ClaimScan, namespace: str, name: str) -> bool:
    """Whether it may be one of the claims that cannot be read."""
    return any(
        unread.may_be_in(namespace) and unread.name in ("", name)
        for unread in scan.unreadable
        if unread.resource.plural == RESOURCECLAIMS.plural
    )
