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
from claimctl.commands.uninstall.sticky import fate
from claimctl.installation import PolicyBinding
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound, Unchangeable
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.references import describe
from claimctl.text import listed
from claimctl.wire.base import to_plain
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import STICKY_CLAIMS_ANNOTATION, ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS, Resource

T = TypeVar("T")

PARALLELISM = 8
"""The most objects that are written at the same time."""


def _owner(pod: Pod) -> dict[str, str]:
    meta = pod.metadata
    return {"apiVersion": "v1", "kind": PODS.kind, "name": meta.name, "uid": meta.uid}


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
        values = ", ".join(map("=".join, sorted(workload.annotations.items())))
        what = f"{'annotation' if len(gone) == 1 else 'annotations'} {values}"
        self.note(workload.resource.kind, meta.namespace, meta.name, what)

    async def unbind(self, resource: Resource[PolicyBinding], binding: PolicyBinding) -> None:
        """Put the policy for sticky claims out of force. Pods that are created then get generated
        claims."""
        meta = binding.metadata
        await self._client.delete_as_read(resource, meta)
        self.note(resource.kind, "", meta.name, "the binding; new pods get generated claims")

    async def remove_note(self, pod: Pod) -> None:
        """Let controllers forget that the pod's claims are sticky."""
        meta, gone = pod.metadata, {STICKY_CLAIMS_ANNOTATION: None}
        await self._client.merge_patch(PODS, meta, {"metadata": {"annotations": gone}})
        self.note(PODS.kind, meta.namespace, meta.name, f"annotation {STICKY_CLAIMS_ANNOTATION}")

    async def withdraw(self, scan: Scan, reservation: ClaimReservation) -> None:
        """Delete a ClaimReservation. A claim that it owns stays, because pods may use it; that of
        an ordinal goes with its pods."""
        meta, spec = reservation.metadata, reservation.spec
        owns, text = spec.resource_claim_template_name, fate(reservation, scan)
        if text:
            await self._entrust(scan.claim_of[meta.namespace, spec.resource_claim_name])
        await self._client.delete(
            CLAIMRESERVATIONS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            propagation="Orphan" if owns else "Background",
        )
        what = f"of claim {spec.resource_claim_name}"
        if text:
            what += f"; {text}"
        elif owns:
            what += ", which stays: delete it with its workload"
        self.note(CLAIMRESERVATIONS.kind, meta.namespace, meta.name, what)

    async def _entrust(self, scanned: ScannedClaim) -> None:
        """Let the pods that name the claim own it. Without pods it is deleted: nobody would name it
        again."""
        meta, pods = scanned.claim.metadata, scanned.live.pods
        if not pods:
            if not (meta.deleting or scanned.live.unreadable):
                await self._client.delete_as_read(RESOURCECLAIMS, meta)
            return
        present = {owner.uid for owner in meta.owner_references}
        owners = [to_plain(owner) for owner in meta.owner_references]
        owners += [_owner(pod) for pod in pods if pod.metadata.uid not in present]
        patch = {"metadata": {"ownerReferences": owners}}
        with self._claim(meta):
            await self._client.merge_patch(RESOURCECLAIMS, meta, patch)

    async def free_of_owner(self, scan: Scan, scanned: ScannedClaim) -> None:
        """Remove the owners of a claim that are ClaimReservations and do not exist; not yet while a
        ClaimReservation names the claim, and not again if nobody can change it."""
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
