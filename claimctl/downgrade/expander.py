"""Replace the workload references of one claim by pod references on the API server.

The plan's status records the references before the claim's list is written. The write to the
claim carries the resourceVersion that was recorded, so it removes only recorded references, and
a crash between the two writes loses nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from claimctl.downgrade import records
from claimctl.downgrade.expansion import Expanded, Expansion, ExpansionRefused, expand_recorded
from claimctl.downgrade.plan_run import write_list
from claimctl.downgrade.pods import PodsOfClaims
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound, RequestTimeout
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.reservation.users.blockers import binding_seconds
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradedClaim
from claimctl.wire.seams import Clock

_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one try to write a claim's list.

    Attributes:
        again: the claim was not written, or it is not known whether it was. Read it and try again.
        uncertain: UIDs of the references that an earlier write may have removed.
        wait: for how many seconds the workload references have to stay. A scheduler may still be
            binding pods whose entries have left the list.
    """

    record: DowngradedClaim
    _: KW_ONLY
    again: bool = False
    uncertain: Collection[str] = ()
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands claims one by one.

    Attributes:
        clock: the source of the present time.
        announce: stores the record in the plan; awaited before the claim is written.
        on_record: UIDs of the references that the statuses of reservations record.
        tombstones: whether a controller stays that will remove the tombstones later.
        rules: the binding times.
    """

    client: Client
    clock: Clock
    announce: Callable[[DowngradedClaim], Awaitable[None]]
    on_record: Collection[str] = frozenset()
    tombstones: bool = True
    rules: Rules = _RULES

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
        expansion = self._expansion(record, claim, pods)
        if not isinstance(expansion, Expanded):
            return Attempt(records.expanded_record(record, claim, expansion, uncertain))
        if expansion.ahead:
            record = records.held_back(record, self.binding_left(claim, pods))
            await self.announce(record)
            return await self._take_out(record, claim, pods, expansion.ahead, uncertain)
        if expansion.removed and not records.is_announced(record, claim):
            record = records.announced(record, claim)
            await self.announce(record)
        try:
            refused = await self._write(record, claim, expansion.reserved_for, uncertain)
        except Conflict:
            return Attempt(
                records.withdrawn(record, claim, uncertain), again=True, uncertain=uncertain
            )
        except RequestTimeout:
            # The server may have carried out our write, or may still do so.
            return Attempt(record, again=True, uncertain=records.uncertain_uids(record))
        return refused or Attempt(records.expanded_record(record, claim, expansion))

    def _expansion(
        self, record: DowngradedClaim, claim: ResourceClaim, pods: PodsOfClaims
    ) -> Expansion:
        known, marks = self.on_record, self.tombstones
        return expand_recorded(claim, pods, record, on_record=known, tombstones=marks)

    async def _write(
        self,
        record: DowngradedClaim,
        claim: ResourceClaim,
        entries: Iterable[Reference],
        uncertain: Collection[str],
    ) -> Attempt | None:
        """Write the list; the attempt of a claim that is gone or whose write is refused.

        Raises:
            Conflict, RequestTimeout: read the claim and try again.
        """
        try:
            await write_list(self.client, claim, entries)
        except NotFound:
            return Attempt(records.over(record))
        except (Forbidden, Invalid) as error:
            left = records.withdrawn(record, claim, uncertain)
            return Attempt(records.failed(left, error.reason, str(error)))
        return None

    async def list_beside_groups(
        self,
        record: DowngradedClaim,
        claim: ResourceClaim,
        pods: PodsOfClaims,
        uncertain: Collection[str] = (),
    ) -> Attempt:
        """Add the pods of the claim's PodGroups to its list; the groups stay listed.

        If there was nothing to add, no further attempt is asked for.

        Schedulers go on binding pods of a group while its object exists. So the object goes before
        the reference does: a kubelet refuses a pod if neither the pod nor its group is listed.
        """
        expansion = self._expansion(record, claim, pods)
        if isinstance(expansion, ExpansionRefused):
            return Attempt(records.expanded_record(record, claim, expansion, uncertain))
        listed = {entry.uid: entry for entry in claim.status.reserved_for}
        added = expansion.reserved_for if isinstance(expansion, Expanded) else ()
        entries = {**listed, **{entry.uid: entry for entry in added}}
        if len(entries) == len(listed) or len(entries) > LIMIT:
            return Attempt(record)
        refused = None
        with suppress(Conflict, RequestTimeout):
            refused = await self._write(record, claim, entries.values(), uncertain)
        return refused or Attempt(record, again=True, uncertain=uncertain)

    async def _take_out(
        self,
        record: DowngradedClaim,
        claim: ResourceClaim,
        pods: PodsOfClaims,
        ahead: Collection[str],
        uncertain: Collection[str],
    ) -> Attempt:
        """Take the pods out that were listed ahead; the workload references stay."""
        kept = [entry for entry in claim.status.reserved_for if entry.uid not in ahead]
        refused = None
        try:
            refused = await self._write(record, claim, kept, uncertain)
        except Conflict:
            return Attempt(record, again=True, uncertain=uncertain)
        except RequestTimeout:
            pass  # The server may have carried out our write: wait as if it had.
        left = self.binding_left(claim, pods)
        return refused or Attempt(record, again=True, uncertain=uncertain, wait=left)

    def binding_left(self, claim: ResourceClaim, pods: PodsOfClaims) -> float:
        """Seconds for which a scheduler may bind pending pods of a claim that is just closed."""
        snapshot = Snapshot(
            now=self.clock.now(),
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            claim=claim,
            pods=tuple(pods.of(claim)),
            rules=self.rules,
            binding_conditions=True,  # nobody has asked, so devices may have some
        )
        pending = snapshot.consumers.pending.values()
        return max((binding_seconds(snapshot, pod) for pod in pending), default=0.0)
