"""What ``claimctl doctor`` makes of a cluster: pure functions from what is there to findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.references import (
    LIMIT,
    NEAR_LIMIT,
    is_pod,
    is_pod_group,
    is_tombstone,
)
from claimctl.reservation.verdict import describe
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.coordination import Event
from claimctl.wire.nodes import Node
from claimctl.wire.reservations import ClaimReservation

PODGROUPS_FROM = (1, 36)
"""Older kubelets refuse pods that are listed by their PodGroup alone."""
PREPARE_FAILED = "FailedPrepareDynamicResources"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to act on; ``object`` is a claim, a node, a right, or ''."""

    check: str
    message: str
    namespace: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was read of the cluster, live."""

    dialect: str
    claims: tuple[ResourceClaim, ...] = ()
    reservations: tuple[ClaimReservation, ...] = ()
    uids: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of all objects that can be listed in claims, by resource: pods, podgroups, deployments..."""
    nodes: tuple[Node, ...] = ()
    events: tuple[Event, ...] = ()
    missing_rights: tuple[str, ...] = ()


def findings(observed: Observed) -> tuple[Finding, ...]:
    return (
        *_rights(observed),
        *_claims(observed),
        *_kubelets(observed),
        *_refused(observed),
    )


def _rights(observed: Observed) -> Iterator[Finding]:
    for right in observed.missing_rights:
        yield Finding("permissions", f"not permitted: {right}; see rbac/", object=right)


def _claims(observed: Observed) -> Iterator[Finding]:
    reserved = {
        (one.metadata.namespace, one.spec.resource_claim_name) for one in observed.reservations
    }
    for claim in observed.claims:
        key = (claim.metadata.namespace, claim.metadata.name)
        yield from _places(claim)
        yield from _leak(claim, is_reserved=key in reserved)
        yield from _dangling(claim, observed)


def _places(claim: ResourceClaim) -> Iterator[Finding]:
    count = len(claim.status.reserved_for)
    if count >= NEAR_LIMIT:
        text = f"{count} of {LIMIT} places are taken; dialects podgroup and native need one or two"
        yield _of(claim, "near-limit", text)


def _leak(claim: ResourceClaim, *, is_reserved: bool) -> Iterator[Finding]:
    """Nobody deallocates a claim with an empty list until a pod uses it again, or it is deleted."""
    empty = claim.status.allocation is not None and not claim.status.reserved_for
    if empty and not claim.metadata.deleting and not is_reserved:
        text = "allocated and reserved for nobody: its devices are leaked; delete the claim"
        yield _of(claim, "leaks", text)


def _dangling(claim: ResourceClaim, observed: Observed) -> Iterator[Finding]:
    gone = [each for each in claim.status.reserved_for if _is_gone(each, observed)]
    if gone:
        names = ", ".join(describe(each) for each in gone[:3])
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        yield _of(claim, "dangling-references", f"listed and not there: {names}{more}")


def _is_gone(reference: Reference, observed: Observed) -> bool:
    """Of resources that were not read, nothing is known."""
    if is_tombstone(reference):
        return reference.uid not in observed.uids.get("pods", {reference.uid})
    if is_pod(reference) or is_pod_group(reference) or reference.resource in observed.uids:
        return reference.uid not in observed.uids.get(reference.resource, {reference.uid})
    return False


def _of(claim: ResourceClaim, check: str, message: str) -> Finding:
    return Finding(check, message, claim.metadata.namespace, claim.metadata.name)


def _kubelets(observed: Observed) -> Iterator[Finding]:
    if not DIALECTS[observed.dialect].groups:
        return
    for node in observed.nodes:
        version = node.status.node_info.kubelet_version
        found = re.match(r"v(\d+)\.(\d+)", version)
        if found and (int(found[1]), int(found[2])) < PODGROUPS_FROM:
            text = f"kubelet {version} refuses pods that share through a PodGroup"
            yield Finding("mixed-versions", text, object=node.metadata.name)


def _refused(observed: Observed) -> Iterator[Finding]:
    """Kubelets that refuse pods: their gates may differ from the API server's."""
    counts = Counter(
        (event.regarding.namespace, event.note)
        for event in observed.events
        if event.reason == PREPARE_FAILED
    )
    for (namespace, note), count in sorted(counts.items()):
        yield Finding("refused-pods", f"{note} ({count} events)", namespace)


def uids(objects: Iterable[object]) -> frozenset[str]:
    return frozenset(getattr(each, "metadata").uid for each in objects)  # noqa: B009
