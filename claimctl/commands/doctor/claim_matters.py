"""What is wrong with claims, as lines of ``claimctl doctor``: one for each kind of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.judgement import judgement
from claimctl.commands.claims.matters import OF_DEVICES, Matter, MatterKind
from claimctl.commands.claims.places import Places
from claimctl.commands.doctor.model import CheckVerdict, ClaimMatter, Finding
from claimctl.commands.orphans.model import ScannedClaim
from claimctl.text import counted, listed
from claimctl.wire.reservations import ClaimReservation

_CHECKS = {
    MatterKind.NOT_READY: "reservations",
    MatterKind.HOLD_OFF: "reservations",
    MatterKind.RELEASE_WAITS: "releases",
    MatterKind.PODS_WAIT: "waiting-pods",
    MatterKind.NO_DEVICE_CLASS: "waiting-pods",
    MatterKind.TOO_MANY_DEVICES: "waiting-pods",
}
"""The check that reports a kind of matter; others are of held devices."""


def matter_findings(matters: Iterable[ClaimMatter]) -> Iterator[Finding]:
    """One line for each kind of what is wrong with claims, with the step for one claim."""
    by_kind: dict[tuple[CheckVerdict, MatterKind], list[ClaimMatter]] = {}
    for entry in sorted(matters, key=lambda entry: (entry.namespace, entry.claim)):
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
