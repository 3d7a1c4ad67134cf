"""Replace the workload references of one claim by pod references on the API server.

The plan's status records the references before the claim's list is written. The write to the
claim carries the resourceVersion that was recorded, so it removes only recorded references, and
a crash between the two writes loses nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from claimctl.downgrade.claims import write_list
from claimctl.downgrade.expansion import Expanded, Expansion, expand
from claimctl.downgrade.pods import PodsOfClaims
from claimctl.downgrade.records import (
    announced,
    expanded_record,
    failed,
    is_announced,
    over,
    uncertain_uids,
    withdrawn,
)
from claimctl.kube.client import Client
from claimctl.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestTimeout,
)
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import DowngradedClaim


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one try to write a claim's list.

    Attributes:
        again: the claim was not written, or it is not known whether it was. Read it and try again.
        uncertain: UIDs of the references that an earlier write may have removed.
    """

    record: DowngradedClaim
    again: bool = False
    uncertain: Collection[str] = ()


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
        pods: PodsOfClaims,
        uncertain: Collection[str] = (),
    ) -> Attempt:
        """Replace the claim's workload references by pod references, if the claim is as read.

        Args:
            claim: the claim, read before ``pods`` were listed.
            uncertain: UIDs of references that an earlier write may have removed.
        """
        expansion = self._decided(record, claim, pods)
        if not isinstance(expansion, Expanded):
            return Attempt(expanded_record(record, claim, expansion, uncertain))
        if expansion.removed and not is_announced(record, claim):
            record = announced(record, claim)
            await self.announce(record)
        try:
            await write_list(self.client, claim, expansion.reserved_for)
        except Conflict:
            return Attempt(withdrawn(record, claim, uncertain), True, uncertain)
        except RequestTimeout:
            # The server may have carried out our write, or may still do so.
            return Attempt(record, True, uncertain_uids(record))
        except NotFound:
            return Attempt(over(record))
        except (Forbidden, Invalid) as error:
            left = withdrawn(record, claim, uncertain)
            return Attempt(failed(left, error.reason, str(error)))
        return Attempt(expanded_record(record, claim, expansion))

    def _decided(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: PodsOfClaims
    ) -> Expansion:
        return expand(
            claim,
            pods.of(claim),
            on_record=self.on_record,
            again=True,
            opened_by=record.replaced_references,
            tombstones=self.tended,
            unreadable=pods.unreadable,
        )
