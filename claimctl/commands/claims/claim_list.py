"""The document of ``claimctl get``, whose items other documents have, too.

``get`` is asked often, so this module imports nothing that explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from claimctl.cli.documents import (
    Document,
    Names,
    Part,
    ReasonText,
    says,
    utc,
)
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.matters import reasons_of
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.claims import Reference


class ListCounts(Part, frozen=True):
    """How many entries the claim's list (status.reservedFor) has, by kind."""

    pods: int
    finished_pods: int
    pods_listed_ahead: int
    workloads: tuple[Reference, ...]
    limit: int


class ConsumerCounts(Part, frozen=True):
    """How many pods use the claim, listed or not."""

    bound: int
    pending: int


class IdleDevices(Part, frozen=True):
    """Devices that a workload holds while no pod uses them."""

    since: str | None
    until: Annotated[str, says("a time, or what has to happen before")]
    waiting_pods: Annotated[
        Names | None,
        says("namespace/name of pods that wait for devices of the same classes; only with --idle"),
    ]


class ClaimSummary(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    state: Literal["Pending", "Held", "InUse", "Allocated", "Releasing", "Deleting"]
    problems: Annotated[tuple[ReasonText, ...], says("what is wrong with it, causes first")]
    allocated: bool
    devices: Annotated[Names, says("pool/device")]
    classes: Annotated[Names, says("DeviceClasses of its devices, or that it asks for")]
    nodes: Names
    allocated_since: str | None
    used_since: Annotated[str | None, says("since when pods with a node use it")]
    unused_since: Annotated[str | None, says("since when none does")]
    references: ListCounts
    consumers: ConsumerCounts
    reservations: Annotated[Names, says("names of ClaimReservations")]
    retention_policies: Names
    ordinal: Annotated[int | None, says("of a workload, whose sticky claim it is")]
    member: Annotated[int | None, says("the pod's index in its group, where workloads have groups")]
    release_asked: Annotated[bool, says("whether a release is asked for, and waits")]
    idle: IdleDevices | None
    creation_timestamp: str | None
    age_seconds: int | None


def summary_of(view: ClaimView, now: datetime) -> ClaimSummary:
    consumers = view.consumers
    created = view.claim.metadata.creation_timestamp
    return ClaimSummary(
        namespace=view.namespace,
        name=view.name,
        uid=view.claim.metadata.uid,
        state=view.state,  # type: ignore[arg-type]  # one of the six words
        problems=reasons_of(view.matters),
        allocated=view.claim.status.allocation is not None,
        devices=view.devices,
        classes=view.classes,
        nodes=view.nodes,
        allocated_since=utc(view.allocated_since),
        used_since=utc(view.used_since),
        unused_since=utc(view.unused_since),
        references=ListCounts(
            pods=len(view.listed_pods),
            finished_pods=len(view.tombstones),
            pods_listed_ahead=len(view.listed_ahead),
            workloads=view.workloads,
            limit=LIMIT,
        ),
        consumers=ConsumerCounts(bound=len(consumers.bound), pending=len(consumers.pending)),
        reservations=tuple(reservation.metadata.name for reservation in view.reservations),
        retention_policies=tuple(
            reservation.spec.retention_policy for reservation in view.reservations
        ),
        ordinal=view.ordinal.number if view.ordinal is not None else None,
        member=view.ordinal.member if view.ordinal is not None else None,
        release_asked=view.release_asked,
        idle=IdleDevices(since=utc(view.idle_since), until=end_of(view), waiting_pods=view.waiting)
        if view.is_idle
        else None,
        creation_timestamp=utc(created),
        age_seconds=int((now - created).total_seconds()) if created else None,
    )


def end_of(view: ClaimView) -> str:
    """Until when the devices of an idle claim are held: a time, or what has to happen before."""
    end = view.held_until()
    return end if isinstance(end, str) else f"{utc(end)}"


class ClaimList(Document, frozen=True):
    """``claimctl get``"""

    items: tuple[ClaimSummary, ...]


def list_of(shown: Iterable[ClaimView], now: datetime) -> ClaimList:
    return ClaimList(items=tuple(summary_of(view, now) for view in shown))
