"""Expanding one claim on the API server, under the version it was decided on.

What goes is on record first: the write carries the version of the claim whose list was recorded,
so it takes out nothing else, and a crash between the two loses nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from claimctl.downgrade.expansion import Expanded, Expansion, expand
from claimctl.downgrade.records import (
    announced,
    failed,
    in_doubt,
    is_announced,
    over,
    told,
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
"""How often a claim is read again after somebody else wrote it."""


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands claims one by one.

    Attributes:
        announce: stores the record in the plan; awaited before the claim is written.
        on_record: UIDs of the references that reservations made.
        tended: a controller runs and goes on looking after tombstones.
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
        doubtful: Collection[str] = (),
    ) -> DowngradedClaim:
        """Write the claim's holders as pods and tell what came of it.

        Args:
            claim: as read before ``pods`` were listed; the first attempt is made with these.
            pods: all of the claim's namespace.
            doubtful: UIDs of references that an earlier run may have taken out.
        """
        for _ in range(ATTEMPTS):
            expansion = self._decided(record, claim, pods)
            if not isinstance(expansion, Expanded):
                return told(record, claim, expansion, doubtful)
            if expansion.removed and not is_announced(record, claim):
                record = announced(record, claim)
                await self.announce(record)
            try:
                await self._write(claim, expansion)
                return told(record, claim, expansion)
            except Conflict:
                record = withdrawn(record, claim, doubtful)
            except RequestTimeout:
                # Our own write may have arrived, or may arrive yet.
                doubtful = in_doubt(record)
            except NotFound:
                return over(record)
            except (Forbidden, Invalid) as error:
                return failed(withdrawn(record, claim, doubtful), error.reason, str(error))
            found = await self._read(record)
            if not isinstance(found, tuple):
                return over(record) if found is None else unread(record, found)
            claim, pods = found
        text = f"changed by somebody else {ATTEMPTS} times: run again"
        return failed(withdrawn(record, claim, doubtful), "Conflict", text)

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
        """A claim that cannot be read in the answer has been written all the same."""
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
        """The claim, and then the pods: a LIST proves something only for what was read before."""
        try:
            claim = await self.client.get(RESOURCECLAIMS, record.name, record.namespace)
        except NotFound:
            return None
        except UnreadableObject as error:
            return error.found
        if claim.metadata.uid != record.uid:
            return None
        return claim, await self.client.list(PODS, record.namespace, partial=True)
