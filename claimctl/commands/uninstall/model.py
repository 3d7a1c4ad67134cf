"""The data of ``claimctl uninstall prepare``: a scan of the cluster, and what is left in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from claimctl.cli.documents import Document, Names, Part
from claimctl.commands.orphans.model import ScannedClaim
from claimctl.installation import PolicyBinding
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Taint
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, DowngradePlan
from claimctl.wire.resources import Resource
from claimctl.wire.unreadable import Unreadable

ANNOTATIONS = "claimctl.io/"
"""All annotations of claimctl begin with this."""


class Why(StrEnum):
    """Why an object is left. Where the controller's own word fits, it is used (see ``Reason``)."""

    ANNOTATED = "Annotated"
    """The workload or the pod has annotations by which claimctl makes ClaimReservations."""
    NOT_WITHDRAWN = "NotWithdrawn"
    """Nobody has deleted the ClaimReservation yet."""
    WITHDRAWN = "Withdrawn"
    """The ClaimReservation is deleted, and a controller is at work on its claim."""
    NO_CONTROLLER = "NoController"
    """The ClaimReservation is deleted, and no controller runs. ``claimctl uninstall prepare`` does
    its work."""
    HOLD = "HoldWithoutReservation"
    """claimctl's hold is in the list, and no ClaimReservation names the claim."""
    TOMBSTONES = "TombstonesWithoutReservation"
    """Tombstones are in the list, and no ClaimReservation names the claim."""
    OWNER = "OwnerIsGone"
    """The claim is owned by a ClaimReservation that does not exist."""
    GUARDED = "Guarded"
    """The PodGroup has claimctl's finalizer."""
    CONTROLLER_RUNS = "ControllerRuns"
    """A controller holds its Lease although the CRDs are gone. It knows ClaimReservations that do
    not exist any more, and would add their holds again."""
    TAINTED = "Tainted"
    """The node has a taint of ``claimctl reschedule``."""
    AVOIDS = "KeepsPodsOff"
    """The RescheduleRecord keeps pods off nodes, by the policy claimctl-avoidance."""
    BRAKED = "Braked"
    """The pod waits for ``claimctl reschedule`` to remove its scheduling gate."""
    NAMES_CLAIMS = "NamesClaims"
    """The policy for sticky claims is in force."""
    WAITS_FOR_CLAIM = "WaitsForClaim"
    """The pod names a sticky claim that does not exist."""
    UNDER_WAY = "DowngradeUnderWay"
    """A DowngradePlan is being carried out."""


@dataclass(frozen=True, slots=True)
class AnnotatedWorkload:
    """A workload with annotations of claimctl."""

    resource: Resource[Any]
    meta: ObjectMeta

    @property
    def annotations(self) -> dict[str, str]:
        return own_annotations(self.meta)


def own_annotations(meta: ObjectMeta) -> dict[str, str]:
    """claimctl's annotations of an object."""
    annotations = (meta.annotations or {}).items()
    return {key: value for key, value in annotations if key.startswith(ANNOTATIONS)}


@dataclass(frozen=True)
class Scan:
    """Everything of claimctl in the cluster, or in some namespaces, read live."""

    now: datetime
    workloads: tuple[AnnotatedWorkload, ...] = ()
    reservations: tuple[ClaimReservation, ...] = ()
    claims: tuple[ScannedClaim, ...] = ()
    """All claims."""
    groups: tuple[PodGroup, ...] = ()
    """All PodGroups."""
    plans: tuple[DowngradePlan, ...] = ()
    tainted: tuple[tuple[str, Taint], ...] = ()
    """Names of nodes with a taint of ``claimctl reschedule``."""
    nodes_unreadable: bool = False
    """Whether the user may not read nodes, so that nobody knows their taints."""
    avoiding: tuple[str, ...] = ()
    """Names of the RescheduleRecords that keep pods off nodes."""
    tainting: tuple[str, ...] = ()
    """Names of the RescheduleRecords that have entries of taints."""
    braked: tuple[ObjectMeta, ...] = ()
    """Pods with the scheduling gate of ``claimctl reschedule``."""
    bindings: tuple[PolicyBinding, ...] = ()
    """Those that put the policy for sticky claims in force. In a scan of namespaces, none where
    these have no sticky claims."""
    noted: tuple[Pod, ...] = ()
    """The pods that have the note of this policy, and have not ended."""
    scoped: bool = False
    """Whether only some namespaces were scanned."""
    cron_jobs: tuple[ObjectMeta, ...] = ()
    """CronJobs whose Jobs get annotations of claimctl."""
    unreadable: tuple[Unreadable, ...] = ()
    served: bool = True
    """Whether the cluster serves ClaimReservations."""
    tended: bool = False
    """Whether a controller holds its Lease and renews it."""

    @cached_property
    def claim_of(self) -> Mapping[tuple[str, str], ScannedClaim]:
        """The claims by namespace and name."""
        return {scanned.claim.metadata.key: scanned for scanned in self.claims}


class Removed(Part, frozen=True, kw_only=False):
    """One thing that the run removed."""

    kind: str
    namespace: str
    name: str
    what: str


class Leftover(Part, frozen=True, kw_only=False):
    """One object in which something of claimctl is left.

    Args:
        reason: a ``Why`` or a ``Reason``, for programs.
        after: seconds until it may go by time alone; None if that is not known, or if time alone
            does not help.
    """

    kind: str
    namespace: str
    name: str
    reason: str
    message: str
    after: float | None = msgspec.field(default=None, name="afterSeconds")

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.kind, self.namespace, self.name, self.reason


class UninstallReport(Document, frozen=True):
    """``claimctl uninstall prepare``"""

    dry_run: bool
    namespaces: Names
    clean: bool
    removed: tuple[Removed, ...]
    left: tuple[Leftover, ...]
    notes: Names
