"""The data of ``claimctl doctor``: what was seen of a cluster, and the findings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from claimctl.cli.documents import Part
from claimctl.commands.claims.matters import Matter
from claimctl.commands.orphans.model import Orphan
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.coordination import Event
from claimctl.wire.nodes import Node
from claimctl.wire.reservations import ClaimReservation, DowngradePlan
from claimctl.wire.unreadable import Unreadable

STICKY_CHECK = "sticky-claims"
NOT_INSTALLED = "claimctl is not installed"
OUTSIDE = "the controller that acts has no Deployment here, so its user is not known"
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
    """UIDs of the ClaimReservations whose status is behind their spec, also after some seconds."""
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


def about_claim(
    claim: ResourceClaim, check: str, message: str, verdict: CheckVerdict = CheckVerdict.PROBLEM
) -> Finding:
    """The finding of a check about one claim."""
    return Finding(check, message, claim.metadata.namespace, claim.metadata.name, verdict)
