"""The checks of ``claimctl doctor``: pure functions from an observed cluster to findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from claimctl.downgrade.look import PREPARE_FAILED
from claimctl.kube.codec import Listing
from claimctl.orphans.judge import judge
from claimctl.orphans.model import Orphan, ScannedClaim, WatchTimes
from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.release.blockers import describe
from claimctl.reservation.reserved_for.references import (
    LIMIT,
    NEAR_LIMIT,
    is_tombstone,
)
from claimctl.text import listed
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.coordination import Event
from claimctl.wire.nodes import Node
from claimctl.wire.releases import knows_pod_groups
from claimctl.wire.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem to act on; ``object`` is a claim, a node, a right, or ''."""

    check: str
    message: str
    namespace: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of the cluster, read live."""

    dialect: str
    claims: tuple[ResourceClaim, ...] = ()
    orphans: Mapping[str, Orphan] = field(default_factory=dict)
    """The orphans by claim UID."""
    uids: dict[str, frozenset[str]] = field(default_factory=dict)
    """UIDs of all objects that claims can list, by resource: pods, podgroups, deployments, ..."""
    nodes: tuple[Node, ...] = ()
    events: tuple[Event, ...] = ()
    missing_rights: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def findings(observed: Observed) -> tuple[Finding, ...]:
    return (
        *_rights(observed),
        *_unread(observed),
        *_claims(observed),
        *_kubelets(observed),
        *_refused(observed),
    )


def _rights(observed: Observed) -> Iterator[Finding]:
    for right in observed.missing_rights:
        yield Finding("permissions", f"not permitted: {right}; see rbac/", object=right)


def _unread(observed: Observed) -> Iterator[Finding]:
    for each in observed.unreadable:
        text = f"{each.describe()}; claimctl makes no decision about claims that it concerns"
        yield Finding("unreadable-objects", text, each.namespace, each.name)


def _claims(observed: Observed) -> Iterator[Finding]:
    """Findings about each claim. An orphan's finding covers its dangling references."""
    for claim in observed.claims:
        yield from _places(claim)
        orphan = observed.orphans.get(claim.metadata.uid)
        yield from _orphan(claim, orphan) if orphan else _dangling(claim, observed)


def _places(claim: ResourceClaim) -> Iterator[Finding]:
    count = len(claim.status.reserved_for)
    if count >= NEAR_LIMIT:
        text = f"{count} of {LIMIT} entries are in use; dialects podgroup and native need 1 or 2"
        yield _about(claim, "near-limit", text)


def orphans(claims: Iterable[ScannedClaim]) -> dict[str, Orphan]:
    """The orphans by claim UID, as ``claimctl orphans`` finds them."""
    found = {scanned.claim.metadata.uid: judge(scanned, WatchTimes()) for scanned in claims}
    return {uid: orphan for uid, orphan in found.items() if orphan is not None}


def _orphan(claim: ResourceClaim, orphan: Orphan) -> Iterator[Finding]:
    command = f"claimctl orphans -n {claim.metadata.namespace}"
    yield _about(claim, "orphans", f"{orphan.cause}: {orphan_text(orphan)}; see `{command}`")


def orphan_text(orphan: Orphan) -> str:
    """Why a claim is an orphan, and what blocks freeing it."""
    blockers = "; ".join(f"{one.reason}: {one.message}" for one in orphan.blockers)
    return f"{orphan.message}; {blockers}" if blockers else orphan.message


def _dangling(claim: ResourceClaim, observed: Observed) -> Iterator[Finding]:
    gone = [each for each in claim.status.reserved_for if _is_gone(each, observed)]
    if gone:
        text = f"listed but gone: {listed(map(describe, gone))}"
        yield _about(claim, "dangling-references", text)


def _is_gone(reference: Reference, observed: Observed) -> bool:
    """Whether the object is known to be gone.

    This is unknown if the resource was not listed, or if an object of the LIST has no readable UID.
    """
    known = observed.uids.get("pods" if is_tombstone(reference) else reference.resource)
    return known is not None and "" not in known and reference.uid not in known


def _about(claim: ResourceClaim, check: str, message: str) -> Finding:
    return Finding(check, message, claim.metadata.namespace, claim.metadata.name)


def _kubelets(observed: Observed) -> Iterator[Finding]:
    if not DIALECTS[observed.dialect].groups:
        return
    for node in observed.nodes:
        if not knows_pod_groups(node):
            version = node.status.node_info.kubelet_version
            text = f"kubelet {version} refuses pods that share a claim through a PodGroup"
            yield Finding("mixed-versions", text, object=node.metadata.name)


def _refused(observed: Observed) -> Iterator[Finding]:
    """Pods that kubelets refused: feature gates of the kubelet and the API server may differ."""
    counts = Counter(
        (event.regarding.namespace, event.note)
        for event in observed.events
        if event.reason == PREPARE_FAILED
    )
    for (namespace, note), count in sorted(counts.items()):
        yield Finding("refused-pods", f"{note} ({count} events)", namespace)


def uids(found: Listing[Any]) -> frozenset[str]:
    """The UIDs of all objects, with '' for an object whose UID cannot be read."""
    return frozenset(
        (
            *(each.metadata.uid for each in found.items),
            *(each.uid for each in found.unreadable),
        )
    )
