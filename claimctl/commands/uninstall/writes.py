"""The writes of an uninstall: each takes one thing of claimctl out of one object.

Each write carries the version that it was decided on. An object that another client has changed
meanwhile is left to the next round.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from claimctl.commands.orphans.adoption import adopt
from claimctl.commands.orphans.model import Orphan, ScannedClaim
from claimctl.commands.uninstall.judge import lost_owners
from claimctl.commands.uninstall.model import AnnotatedWorkload, Removed, Scan
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound, Unchangeable
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.references import describe
from claimctl.text import listed
from claimctl.wire.base import to_plain
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS

T = TypeVar("T")

PARALLELISM = 8
"""The most objects that are written at the same time."""


class UninstallWriter:
    """Makes the writes, notes what it has removed, and reports a line for each."""

    def __init__(self, client: Client, report: Callable[[str], None]) -> None:
        self._client = client
        self._report = report
        self.removed: list[Removed] = []
        self.refused: dict[tuple[str, str], str] = {}
        """By namespace and name: why the API server refuses every change of a claim."""

    async def for_all(self, work: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
        """Do the work for each item; one that another client changed is left to the next round."""

        async def guarded(item: T) -> None:
            with suppress(Conflict, NotFound):
                await work(item)

        await in_parallel(guarded, items, PARALLELISM)

    async def remove_annotations(self, workload: AnnotatedWorkload) -> None:
        """Change the workload's own metadata. Its pod template stays, so no pod is replaced."""
        meta, gone = workload.meta, dict.fromkeys(workload.annotations)
        await self._client.merge_patch(workload.resource, meta, {"metadata": {"annotations": gone}})
        annotations = ", ".join(map("=".join, sorted(workload.annotations.items())))
        self.note(workload.resource.kind, meta.namespace, meta.name, f"annotations {annotations}")

    async def withdraw(self, reservation: ClaimReservation) -> None:
        """Delete a ClaimReservation. A claim that it owns stays, because pods may use it."""
        meta, owns = reservation.metadata, reservation.spec.resource_claim_template_name
        await self._client.delete(
            CLAIMRESERVATIONS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            propagation="Orphan" if owns else "Background",
        )
        text = f"of claim {reservation.spec.resource_claim_name}"
        if owns:
            text += ", which stays: delete it with its workload"
        self.note(CLAIMRESERVATIONS.kind, meta.namespace, meta.name, text)

    async def free_of_owner(self, scan: Scan, scanned: ScannedClaim) -> None:
        meta = scanned.claim.metadata
        gone = {owner.uid for owner in lost_owners(scanned.claim, scan.reservations)}
        if not gone or scanned.reserved or meta.key in self.refused:
            return
        owners = [to_plain(owner) for owner in meta.owner_references if owner.uid not in gone]
        patch = {"metadata": {"ownerReferences": owners or None}}
        with self._claim(meta):
            await self._client.merge_patch(RESOURCECLAIMS, meta, patch)
            self.note(RESOURCECLAIMS.kind, meta.namespace, meta.name, "owner that does not exist")

    async def adopt(self, wanted: tuple[ScannedClaim, Orphan], grace: float | None) -> None:
        """Hand the traces of claimctl in a claim over to a controller."""
        scanned, orphan = wanted
        meta = scanned.claim.metadata
        await adopt(self._client, scanned.claim, orphan, grace)
        names = listed(map(describe, orphan.entries))
        what = f"{names}, without" if names else "entries without"
        self.note(RESOURCECLAIMS.kind, meta.namespace, meta.name, f"{what} a ClaimReservation")

    @contextmanager
    def _claim(self, meta: ObjectMeta) -> Iterator[None]:
        """Write a claim, or note that nothing can change it: then it is not tried again."""
        try:
            yield
        except Unchangeable as error:
            self.refused[meta.key] = error.message

    def note(self, kind: str, namespace: str, name: str, what: str) -> None:
        """Remember and report that something was removed."""
        self.removed.append(Removed(kind, namespace, name, what))
        self._report(f"{kind} {namespace}/{name}: removed {what}")
