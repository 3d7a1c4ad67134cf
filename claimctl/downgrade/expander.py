"""Replace the workload references of one claim by pod references on the API server.

The plan's status records the references before the claim's list is written. The write to the
claim carries the resourceVersion that was recorded, so it removes only recorded references, and
a crash between the two writes loses nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from claimctl.downgrade.expansion import Expanded, Expansion, expand
from claimctl.downgrade.records import (
    announced,
    expanded_record,
    failed,
    is_announced,
    over,
    uncertain_uids,
    unread,
    withdrawn,
)
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestTimeout,
    UnreadableObject,
)
from claimctl.wire.base import to_plain
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradedClaim
from claimctl.wire.resources import PODS, RESOURCECLAIMS
from claimctl.wire.unreadable import Unreadable

ATTEMPTS = 10
"""How often a claim is tried. After a conflict the claim is read again."""


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands claims one by one.

    Attributes:
        announce: stores the record in the plan; awaited before the claim is written.
        on_record: UIDs of the references that the statuses of reservations record.
        tended: whether a controller runs and will remove the tombstones later.
    """

    client: Client
    announce: Callable[[DowngradedClaim], Awaitable[None]]
    on_record: Collection[str] = frozenset()
    tended: bool = True

    async def expand(
        self,
        record: DowngradedClaim,
        claim: ResourceClaim,
        pods: Listing[Pod],
        uncertain: Collection[str] = (),
    ) -> DowngradedClaim:
        """Replace the claim's workload references by pod references; return the new record.

        Args:
            claim: the claim, read before ``pods`` were listed. The first attempt uses both.
            pods: all pods of the claim's namespace.
            uncertain: UIDs of references that an earlier run may have removed.
        """
        for _ in range(ATTEMPTS):
            expansion = self._decided(record, claim, pods)
            if not isinstance(expansion, Expanded):
                return expanded_record(record, claim, expansion, uncertain)
            if expansion.removed and not is_announced(record, claim):
                record = announced(record, claim)
                await self.announce(record)
            try:
                await self._write(claim, expansion)
                return expanded_record(record, claim, expansion)
            except Conflict:
                record = withdrawn(record, claim, uncertain)
            except RequestTimeout:
                # The server may have carried out our write, or may still do so.
                uncertain = uncertain_uids(record)
            except NotFound:
                return over(record)
            except (Forbidden, Invalid) as error:
                return failed(withdrawn(record, claim, uncertain), error.reason, str(error))
            found = await self._read(record)
            if not isinstance(found, tuple):
                return over(record) if found is None else unread(record, found)
            claim, pods = found
        text = f"another client changed the claim {ATTEMPTS} times: run again"
        return failed(withdrawn(record, claim, uncertain), "Conflict", text)

    def _decided(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: Listing[Pod]
    ) -> Expansion:
        return expand(
            claim,
            pods.items,
            on_record=self.on_record,
            again=True,
            opened_by=record.replaced_references,
            tombstones=self.tended,
            unreadable=pods.unreadable,
        )

    async def _write(self, claim: ResourceClaim, expansion: Expanded) -> None:
        """Write the list. If the answer cannot be read, the write has succeeded nevertheless."""
        with suppress(UnreadableObject):
            await self.client.merge_patch(
                RESOURCECLAIMS,
                claim.metadata.name,
                {"status": {"reservedFor": to_plain(expansion.reserved_for)}},
                claim.metadata.namespace,
                resource_version=claim.metadata.resource_version,
                subresource="status",
            )

    async def _read(
        self, record: DowngradedClaim
    ) -> tuple[ResourceClaim, Listing[Pod]] | Unreadable | None:
        """Read the claim first, then list the pods.

        In this order, a pod that is missing from the LIST was gone at the claim's version.
        """
        try:
            claim = await self.client.get(RESOURCECLAIMS, record.name, record.namespace)
        except NotFound:
            return None
        except UnreadableObject as error:
            return error.found
        if claim.metadata.uid != record.uid:
            return None
        return claim, await self.client.list(PODS, record.namespace, partial=True)
