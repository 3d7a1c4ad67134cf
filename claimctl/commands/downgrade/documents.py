"""The documents of the commands of a downgrade."""

from __future__ import annotations

from msgspec import field

from claimctl.cli.documents import Document, Names, Part
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ClaimName


class ClaimOutcome(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    pods: int
    workload_references: tuple[Reference, ...]
    replaced_references: tuple[Reference, ...]


class DowngradeReport(Document, frozen=True, kw_only=True):
    """``claimctl downgrade-prepare`` and ``downgrade-restore``"""

    dry_run: bool
    carried_out_by: str | None
    namespaces: Names = ()
    claim_selector: str = ""
    skip: tuple[ClaimName, ...] = ()
    next_step: str | None = None
    phase: str
    total: int
    done: int
    claims: tuple[ClaimOutcome, ...]


class ComponentState(Part, frozen=True):
    part: str = field(name="component")
    node: str
    switch: str = field(name="feature")
    now: str
    refuses: bool


class StandingClaim(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    standing: str = field(name="state")
    reason: str
    message: str
    command: str
    pods: int
    unlisted: int


class DowngradeStatus(Document, frozen=True):
    """``claimctl downgrade-status``"""

    step: str
    todo: str
    command: str
    clear: bool
    ready: int = field(name="readyClaims")
    components: tuple[ComponentState, ...]
    claims: tuple[StandingClaim, ...]
