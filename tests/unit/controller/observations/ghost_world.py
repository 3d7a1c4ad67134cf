"""A ledger of ghosts, with what it is told of nodes."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.boots import BootIds
from claimctl.controller.observations.ghosts import (
    MOST_APART,
    GhostLedger,
)
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import ghost_blockers
from claimctl.reservation.users.several import is_several
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    reservation,
    running,
)
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)


def pod(name: str, *, on: str = "node-0", grace: int = 30) -> Pod:
    made: Pod = running(name, node=on)
    return replace(made, spec=replace(made.spec, termination_grace_period_seconds=grace))


class GhostWorld:
    """A ledger of a cluster with two nodes."""

    def __init__(self, most_apart: int = MOST_APART) -> None:
        self.version, self.clock, boots = 1, HandClock(), BootIds()
        self.kubelets = Kubelets(self.clock)
        self.slices = SlicesOnNodes(self.clock)
        self.ghosts = GhostLedger(self.clock, boots, self.kubelets, most_apart, self.slices)
        self.nodes, self.boots = {"node-0", "node-1"}, boots
        self.ghosts.signs.is_node = self.nodes.__contains__

    def vanish(self, gone: Pod) -> None:
        meta = replace(gone.metadata, resource_version=self.written())
        self.ghosts.observe(replace(gone, metadata=meta), None)

    def written(self) -> str:
        """The version of another write."""
        self.version += 1
        return str(self.version)

    def crowd(self, number: int = MOST_APART) -> None:
        """So many pods vanish that further ones are not told apart."""
        for one in range(number):
            self.vanish(pod(f"early-{one}"))

    def renew(self) -> None:
        for name in sorted(self.nodes):
            spec = LeaseSpec(renew_time=micro_time(after(self.clock.time)))
            lease = Lease(metadata=ObjectMeta(resource_version=self.written()), spec=spec)
            self.kubelets.read_lease(name, lease, self.clock.time)
            self.ghosts.signs.judge(name)

    def several(self) -> list[ForceDeletedPod]:
        return [ghost.pod for ghost in self.ghosts.of(KEY) if is_several(ghost.pod)]

    def waits(self) -> bool:
        """Whether a ghost keeps the claim."""
        snapshot = Snapshot(
            now=NOW,
            namespace=NAMESPACE,
            name=CLAIM,
            claim=claim(),
            reservations=(Held(reservation(), WorkloadState(WorkloadPhase.ABSENT)),),
            ghosts=self.ghosts.of(KEY),
        )
        return bool(list(ghost_blockers(snapshot)))
