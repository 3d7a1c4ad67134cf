"""Which ghosts have ended by the signs of life of their nodes, and which nodes have to be watched.

A kubelet that renews its Lease ends the pods that it does not find in the API. The drivers of their
devices show by their slices that they are there to take part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from cachetools import TTLCache

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.boots import REMEMBERED_NODES, BootIds
from claimctl.controller.observations.known_ghosts import GhostIndex, KnownGhost, rest_of
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.users.ghosts import has_ended
from claimctl.reservation.users.several import is_of_namespace
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.seams import Clock

ALL_CLAIMS_SECONDS = 10.0
"""For how long the drivers of all claims of a namespace on a node are remembered, because it takes
time to read many claims. A ghost takes longer to end. So a claim that is allocated in these seconds
cannot be one of a ghost that ends in them."""


class GhostSigns:
    """What the nodes say of the ghosts in a ``GhostIndex``."""

    def __init__(
        self,
        clock: Clock,
        boots: BootIds,
        kubelets: Kubelets,
        slices: SlicesOnNodes,
        known: GhostIndex,
    ) -> None:
        self._clock = clock
        self._boots = boots
        self._kubelets = kubelets
        self._slices = slices
        self._known = known
        self.is_node: Callable[[str], bool] = lambda name: True
        """Whether there is a Node of this name. A pod may name a node that never was."""
        self.drivers_on: Callable[[ClaimKey, str], frozenset[str]] = lambda key, node: frozenset()
        """The drivers of a claim's devices that belong to a node."""
        self._of_all: TTLCache[tuple[str, str], frozenset[str]] = TTLCache(
            REMEMBERED_NODES, ALL_CLAIMS_SECONDS, clock.monotonic
        )

    def of(self, key: ClaimKey, known: KnownGhost) -> SignsOfLife | None:
        """The signs of life for a ghost of a claim; None where the machine is another one by now,
        or nothing is known of its kubelet."""
        node, boot = known.pod.node_name, known.pod.boot_id
        if known.ended:
            return SignsOfLife(ended=True)
        if self._boots.has_another_boot(node, boot):
            return None
        signs = self._kubelets.signs(node, known.since, known.signs_count_from)
        if signs is None:
            return None
        return self._slices.beside(signs, node, self._drivers_on(key, known.pod))

    def _drivers_on(self, key: ClaimKey, ghost: ForceDeletedPod) -> frozenset[str]:
        """The drivers for which a ghost of the claim waits."""
        if not is_of_namespace(ghost):
            return self.drivers_on(key, ghost.node_name)
        at = key.namespace, ghost.node_name
        if (drivers := self._of_all.get(at)) is None:
            drivers = self.drivers_on(rest_of(key.namespace), ghost.node_name)
            self._of_all[at] = drivers
        return drivers

    def nodes_to_watch(self) -> dict[str, int]:
        """The nodes whose signs of life matter: of the ghosts that have not ended by them.

        Nothing is known of the kubelet of a node that never was, so its ghosts count for a fixed
        time. With each node comes its crowd: on so many nodes the ghosts of a namespace wait. If
        ghosts of several namespaces wait on the node, it is the least of their numbers.
        """
        namespaces = {
            node: {
                name
                for name, ghosts in self._known.spaces_on(node)
                if any(
                    not self._boots.has_another_boot(node, known.pod.boot_id) for known in ghosts
                )
            }
            for node in self._known.nodes()
            if self.was_there(node)
        }
        crowds = Counter(name for names in namespaces.values() for name in names)
        return {
            node: min(crowds[name] for name in names) for node, names in namespaces.items() if names
        }

    def was_there(self, node: str) -> bool:
        """Whether the node is there, or was."""
        return self.is_node(node) or bool(self._boots.of(node))

    def judge(self, node_name: str) -> frozenset[ClaimKey]:
        """Note which ghosts of a node have ended by its signs of life; return their claims."""
        ended, now = [], self._clock.monotonic()
        for key, known in self._known.on(node_name):
            signs = self.of(key, known)
            if signs is not None and has_ended(known.pod, now - known.since, signs):
                ended.append((key, known))
        return self.end(ended)

    def wait_for_drivers(self, node_name: str) -> bool:
        """Whether each ghost of a node waits for a driver that is away."""
        on_node = self._known.on(node_name)
        all_signs = (self.of(key, known) for key, known in on_node)
        return bool(on_node) and all(signs.away for signs in all_signs if signs is not None)

    def end(self, ghosts: Iterable[tuple[ClaimKey, KnownGhost]]) -> frozenset[ClaimKey]:
        """Note that these ghosts have ended; return their claims."""
        keys = set()
        for key, known in ghosts:
            known.ended = True
            self._known.put(key, known)
            keys.add(key)
        return frozenset(keys)
