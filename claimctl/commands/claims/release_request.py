"""The request of a release: as an annotation of ClaimReservations, and as a document.

All that ``claimctl release`` does to ClaimReservations is to annotate each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from claimctl.cli.documents import Document, Names, ReasonToWait, by_names, says
from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import print_text
from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.controller_health import Trouble
from claimctl.commands.claims.explanation import Explanation
from claimctl.kube.client import Client
from claimctl.live_objects import change_object
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS


class ReleaseRequest(Document, frozen=True, kw_only=True):
    """``claimctl release``"""

    dry_run: bool
    cancelled: Annotated[bool, says("whether the request was withdrawn")] = False
    namespace: str
    name: str
    uid: str
    reservations: Annotated[Names, says("names of the ClaimReservations that are asked")]
    blockers: Annotated[tuple[ReasonToWait, ...], says("what the release waits for")]
    troubles: Annotated[tuple[Trouble, ...], says("why no controller acts on it now")]


@dataclass(frozen=True, slots=True)
class ReleaseWanted:
    """What is to be done; ``wait`` is for how many seconds to wait, None for not at all."""

    claim: str
    dry_run: bool
    wait: float | None
    output: Output
    cancel: bool = False
    """Withdraw the request instead."""
    node_is_off: str = ""
    """State that this node is off instead; '' for no statement."""
    pod_has_ended: str = ""
    """State that this pod has ended instead; '' for no statement."""


def show(lines: list[str], explanation: Explanation, wanted: ReleaseWanted) -> None:
    """Print the lines, or the document of the request."""
    document = request_of(explanation, dry_run=wanted.dry_run, cancelled=wanted.cancel)
    print_text(wanted.output, lines, document, (resource_name(CLAIM, explanation.view.name),))


def request_of(
    explanation: Explanation, *, dry_run: bool, cancelled: bool = False
) -> ReleaseRequest:
    view = explanation.view
    return ReleaseRequest(
        dry_run=dry_run,
        cancelled=cancelled,
        namespace=view.namespace,
        name=view.name,
        uid=view.claim.metadata.uid,
        reservations=tuple(reservation.metadata.name for reservation in view.reservations),
        blockers=by_names(explanation.obstacles, tuple[ReasonToWait, ...]),
        troubles=explanation.troubles,
    )


def check_reserved(explanation: Explanation) -> None:
    """Raise CommandFailed if no ClaimReservation names the claim."""
    view = explanation.view
    if not view.reservations:
        raise CommandFailed(
            f"no ClaimReservation names claim {view.namespace}/{view.name}, so claimctl does not "
            f"hold it: {advice(explanation)[0].rstrip('.')}"
        )


async def annotate_each(
    client: Client, explanation: Explanation, annotation: str, changed: Callable[[str], str]
) -> None:
    """Change the annotation of every ClaimReservation of the claim; '' means that it is absent."""

    def patch(current: ClaimReservation) -> dict[str, Any]:
        known = current.metadata.annotation(annotation) or ""
        value = changed(known)
        change = {"metadata": {"annotations": {annotation: value or None}}}
        return {} if value == known else change

    for reservation in explanation.view.reservations:
        meta = reservation.metadata
        await change_object(client, CLAIMRESERVATIONS, meta.name, patch, meta.namespace)
