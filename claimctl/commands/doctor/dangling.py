"""Entries of a claim's list whose objects are gone, as lines of ``claimctl doctor``. Pure.

Some are wanted, some leave by themselves, and the others are a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from claimctl.commands.claims.claim_view import release_reported
from claimctl.commands.doctor.model import CheckVerdict, Finding, ObservedCluster, about_claim
from claimctl.kube.codec import Listing
from claimctl.reservation.facts.reasons import ConditionType, Reason, RetentionPolicy
from claimctl.reservation.facts.references import describe, is_tombstone
from claimctl.text import listed
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ClaimReservation

_CHECK = "dangling-references"


class Dangling(NamedTuple):
    """The entries of a list whose objects are gone."""

    kept: tuple[Reference, ...]
    """A ClaimReservation keeps them by its policy."""
    leaving: tuple[Reference, ...]
    """The controller takes them out in its usual course."""
    left: tuple[Reference, ...]
    """Nobody is known to take them out."""


def dangling(claim: ResourceClaim, seen: ObservedCluster) -> Dangling:
    """Sort the entries whose objects are known to be gone."""
    kept, leaving, left = list[Reference](), list[Reference](), list[Reference]()
    for entry in claim.status.reserved_for:
        if not _is_gone(entry, seen):
            continue
        if _is_kept(entry, claim, seen):
            kept.append(entry)
        elif _leaves(entry, claim, seen):
            leaving.append(entry)
        else:
            left.append(entry)
    return Dangling(tuple(kept), tuple(leaving), tuple(left))


def dangling_findings(claim: ResourceClaim, observed: ObservedCluster) -> Iterator[Finding]:
    """One line each for the entries whose objects are gone: those that somebody wants, those that
    leave by themselves, and the others, which are a problem."""
    where = f"{claim.metadata.name} -n {claim.metadata.namespace}"
    see = f"see `claimctl explain {where}`"
    kept, leaving, left = dangling(claim, observed)
    if kept:
        free = f"`claimctl release {where}` frees them"
        text = f"{_in_words(kept)} is gone; a ClaimReservation keeps the devices: {free}"
        yield about_claim(claim, _CHECK, text, CheckVerdict.FACT)
    if leaving:
        then = "the claim is released when nothing uses it"
        text = f"{_in_words(leaving)} is gone, and {then}; {see}"
        verdict = CheckVerdict.WAITS if _waits(claim, observed) else CheckVerdict.FACT
        yield about_claim(claim, _CHECK, text, verdict)
    if left:
        yield about_claim(claim, _CHECK, f"listed but gone: {_in_words(left)}; {see}")


def in_doubt(observed: ObservedCluster) -> tuple[ResourceClaim, ...]:
    """The claims whose list may just be behind: they list objects that are gone."""
    judged = (claim for claim in observed.claims if claim.metadata.uid not in observed.orphans)
    return tuple(claim for claim in judged if dangling(claim, observed).left)


def _in_words(entries: Iterable[Reference]) -> str:
    """The entries in words."""
    return listed(map(describe, entries))


def _is_kept(entry: Reference, claim: ResourceClaim, seen: ObservedCluster) -> bool:
    """Whether the policy of a ClaimReservation keeps the hold of a workload that is gone."""
    return any(
        made.spec.retention_policy == RetentionPolicy.MANUAL and not made.metadata.deleting
        for made in _recorders(entry, claim, seen)
    )


def _leaves(entry: Reference, claim: ResourceClaim, seen: ObservedCluster) -> bool:
    """Whether the controller takes the entry out in its usual course: in a release, which may wait
    for minutes, or, if it is the hold of a workload that is gone, when its last pods have ended."""
    mine = [made for made in seen.reservations if made.status.claim_uid == claim.metadata.uid]
    if any(made.status.release or release_reported(made, claim) for made in mine):
        return True
    recorders = list(_recorders(entry, claim, seen))
    if claim.metadata.uid in seen.in_use and recorders:
        return True
    # it holds for the pods of a workload that were left to themselves
    said = (find_condition(made.status.conditions, ConditionType.RESERVED) for made in recorders)
    return any(held is not None and held.status == "True" for held in said)


def _waits(claim: ResourceClaim, seen: ObservedCluster) -> bool:
    """Whether something has to end before the controller takes out the entries that leave: pods
    still run, or the release has a blocker. Else it is a matter of a moment."""
    if claim.metadata.uid in seen.in_use:
        return True
    reported = (release_reported(made, claim) for made in seen.reservations)
    return any(said is not None and said.reason not in _UNDER_WAY for said in reported)


_UNDER_WAY = frozenset({Reason.RELEASING, Reason.SETTLING})
"""What the controller says of a release that nothing blocks."""


def _recorders(
    entry: Reference, claim: ResourceClaim, seen: ObservedCluster
) -> Iterator[ClaimReservation]:
    """The ClaimReservations whose hold the entry is."""
    for made in seen.reservations:
        recorded = made.status.reserved_for
        is_of_claim = made.status.claim_uid == claim.metadata.uid
        if is_of_claim and recorded is not None and recorded.uid == entry.uid:
            yield made


def _is_gone(reference: Reference, seen: ObservedCluster) -> bool:
    """Whether the object is known to be gone. This is unknown if the resource was not listed, or if
    an object of the LIST has no readable UID."""
    pod = is_tombstone(reference)
    resource = ("", "pods") if pod else (reference.api_group, reference.resource)
    known = seen.uids.get(resource)
    return known is not None and "" not in known and reference.uid not in known


def uids(listing: Listing[Any]) -> frozenset[str]:
    """The UIDs of all objects, with '' for an object whose UID cannot be read."""
    known = frozenset(item.metadata.uid for item in listing.items)
    return known | {unread.uid for unread in listing.unreadable}


def still_listed(before: ResourceClaim, now: ResourceClaim | None) -> tuple[Reference, ...]:
    """The entries that the list had before and has now."""
    if now is None or now.metadata.uid != before.metadata.uid:
        return ()
    return tuple(entry for entry in before.status.reserved_for if entry in now.status.reserved_for)
