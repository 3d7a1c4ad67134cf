"""What a controller has recorded of what only it can know, and what nodes and drivers show now.

It knows which pods vanished, since when a claim is closed to pods, and which drivers refuse a hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from claimctl.commands.claims.election import Election, election
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.reservation.facts.memory import Memory, Openings, SeenGhost, SignsOfLife
from claimctl.reservation.facts.pods import evicts_a_pod
from claimctl.reservation.facts.pools import drivers_on, pools_of
from claimctl.reservation.facts.reasons import ConditionType, Reason, ReleaseStep
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire import resources as wire
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import renewal_seconds, renewed_at
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import NODE_LEASES
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, ForceDeletedPod, ReleaseProgress


@dataclass(frozen=True, slots=True)
class Recorded:
    """The statuses of a claim's ClaimReservations; ``pods`` are those that name the claim."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    reservations: tuple[ClaimReservation, ...]

    @property
    def ghosts(self) -> tuple[ForceDeletedPod, ...]:
        """The pods that vanished while they ran."""
        return tuple(ghost for it in self.reservations for ghost in it.status.force_deleted_pods)

    @property
    def releases(self) -> tuple[ReleaseProgress, ...]:
        """The releases under way."""
        return tuple(it.status.release for it in self.reservations if it.status.release)

    @property
    def refusing_drivers(self) -> frozenset[str]:
        """The claim's drivers, if a controller found that a hold may not stand beside each pod."""
        conditions = (made.status.conditions for made in self.reservations)
        reserved = (find_condition(known, ConditionType.RESERVED) for known in conditions)
        late = (Reason.HELD_BETWEEN_PODS, Reason.DRIVER_REFUSES_HOLD)
        is_late = any(condition is not None and condition.reason in late for condition in reserved)
        return frozenset(device.driver for device in self.claim.devices if is_late)

    async def watched_since(
        self, client: Client, now: datetime, elected: Awaitable[Election] | None
    ) -> datetime | None:
        """When the controller that acts began to lead, if that was after it would have to count
        from. It may have watched before, as a standby, so it counts from then at the latest.

        Args:
            elected: what the controller's Lease shows. If it is None, the Lease is read, but only
                where something is counted.
        """
        if not self.ghosts and not self.releases:
            return None
        began = (await (elected or election(client, now))).since
        recorded = (*(it.since for it in self.ghosts), *(it.since for it in self.releases))
        known = [since for since in recorded if since is not None]
        return began if began is not None and any(since < began for since in known) else None

    def memory(self, now: datetime, watched_since: datetime | None) -> Memory:
        """What the controller remembers, as far as it can be known."""
        # the controller measures a little less: from the fence, and not from before its own start
        fenced = (it for it in self.releases if it.step == ReleaseStep.FENCED)
        closed = [_age(it.since, now, watched_since) for it in fenced if it.since is not None]
        return Memory(
            evicting=evicts_a_pod(self.claim, self.pods),
            openings=Openings(watched_age=max(min(closed, default=0.0), 0.0)),
        )

    async def ghosts_seen(
        self, client: Client, now: datetime, watched_since: datetime | None
    ) -> tuple[SeenGhost, ...]:
        """The ghosts as a controller knows them, and what one look at the Leases of their nodes
        shows; nothing of a node without a Lease.

        The controller looks again and again, so only it knows whether a ghost has ended.
        """
        leases: dict[str, SignsOfLife] = {}
        for node in {ghost.node_name for ghost in self.ghosts if ghost.node_name}:
            try:
                lease = await client.get(wire.LEASES, node, NODE_LEASES)
                ages = (max((now - renewed_at(lease)).total_seconds(), 0.0),)
                leases[node] = SignsOfLife(ages, renewal_seconds=renewal_seconds(lease))
            except Forbidden:
                leases[node] = SignsOfLife((0.0,))
            except NotFound:
                continue
        return tuple(
            SeenGhost(
                ghost, _age(ghost.since or now, now, watched_since), leases.get(ghost.node_name)
            )
            for ghost in self.ghosts
        )


def _age(since: datetime, now: datetime, watched_since: datetime | None) -> float:
    """Seconds since then. A controller that has started since counts from its own start."""
    return (now - max(since, watched_since or since)).total_seconds()


def with_drivers(snapshot: Snapshot) -> Iterator[SeenGhost]:
    """The ghosts with the drivers that are away from their nodes, as the slices show.

    Since when the slices of the others stand, only the controller knows.
    """
    claim = snapshot.claim
    assert claim is not None
    there = {(piece.spec.node_name, piece.spec.driver) for piece in snapshot.slices}
    for ghost in snapshot.ghosts:
        node, signs = ghost.pod.node_name, ghost.signs
        is_named = node in claim.nodes_named
        drivers = drivers_on(node, pools_of(claim), snapshot.slices, is_named=is_named)
        if signs is not None and drivers:
            away = tuple(sorted(name for name in drivers if (node, name) not in there))
            signs = replace(signs, away=away, stood=(inf, 0.0))
        yield replace(ghost, signs=signs)
