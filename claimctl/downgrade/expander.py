"""Expanding one claim on the API server, under the version it was decided on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from claimctl.downgrade.records import failed, told
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound, RequestTimeout
from claimctl.reservation.consumers import claim_names
from claimctl.reservation.expansion import Expanded, Unchanged, expand
from claimctl.wire.base import to_plain
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradedClaim
from claimctl.wire.resources import PODS, RESOURCECLAIMS

ATTEMPTS = 10
"""How often a claim is read again after somebody else wrote it."""


@dataclass(frozen=True, slots=True)
class Expander:
    """``tended``: a controller runs and goes on looking after tombstones."""

    client: Client
    tended: bool = True

    async def expand(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: Sequence[Pod]
    ) -> DowngradedClaim:
        """Write the claim's holders as pods and tell what came of it.

        Args:
            claim: as read before ``pods`` were listed; the first attempt is made with these.
            pods: all of the claim's namespace.
        """
        for _ in range(ATTEMPTS):
            try:
                return await self._once(record, claim, pods)
            except (Conflict, RequestTimeout):
                # Somebody else wrote, or our own write may have arrived: decide afresh.
                found = await self._read(record)
                if found is None:
                    return told(record, Unchanged())
                claim, pods = found
            except NotFound:
                return told(record, Unchanged())
            except (Forbidden, Invalid) as error:
                return failed(record, error.reason, str(error))
        return failed(record, "Conflict", f"changed by somebody else {ATTEMPTS} times: run again")

    async def _once(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: Sequence[Pod]
    ) -> DowngradedClaim:
        expansion = expand(claim, consumers_of(claim, pods), again=True, tombstones=self.tended)
        if isinstance(expansion, Expanded):
            await self.client.merge_patch(
                RESOURCECLAIMS,
                claim.metadata.name,
                {"status": {"reservedFor": to_plain(expansion.reserved_for)}},
                claim.metadata.namespace,
                resource_version=claim.metadata.resource_version,
                subresource="status",
            )
        return told(record, expansion)

    async def _read(self, record: DowngradedClaim) -> tuple[ResourceClaim, Sequence[Pod]] | None:
        """The claim, and then the pods: a LIST proves something only for what was read before."""
        try:
            claim = await self.client.get(RESOURCECLAIMS, record.name, record.namespace)
        except NotFound:
            return None
        if claim.metadata.uid != record.uid:
            return None
        return claim, (await self.client.list(PODS, record.namespace)).items


def consumers_of(claim: ResourceClaim, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if claim.metadata.name in claim_names(pod))
