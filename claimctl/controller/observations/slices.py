"""Which drivers have ResourceSlices on the nodes of ghosts, and since when.

A kubelet deletes the slices of a driver that has been away for 30 s, and those of all drivers when
it starts. So a driver whose slices stand was there a moment ago. A slice has a UID of its own: one
that two looks show has stood all the time between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.wire.claims import ResourceSlice
from claimctl.wire.seams import Clock


@dataclass(slots=True)
class _Look:
    """The last look at the slices of a node."""

    began: float
    pieces: dict[str, frozenset[str]] = field(default_factory=dict)
    """By driver: the UIDs of its slices."""
    since: dict[str, float] = field(default_factory=dict)
    """By driver: since when looks have shown slices of it without a gap."""


class SlicesOnNodes:
    """The slices of each node on which a ghost may run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: dict[str, _Look] = {}

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all other nodes: nobody looks at them any more."""
        self._looks = {name: look for name, look in self._looks.items() if name in nodes}

    def look(self, node: str, pieces: Iterable[ResourceSlice], began: float) -> bool:
        """Note what a read of a node's slices shows; return whether one of them is gone since.

        Args:
            began: when the read began.
        """
        there: dict[str, set[str]] = {}
        for piece in pieces:
            there.setdefault(piece.spec.driver, set()).add(piece.metadata.uid)
        before, now = self._looks.get(node, _Look(began)), self._clock.monotonic()
        look = _Look(began, {driver: frozenset(uids) for driver, uids in there.items()})
        for driver, uids in look.pieces.items():
            stood = uids & before.pieces.get(driver, frozenset())
            look.since[driver] = before.since[driver] if stood else now
        self._looks[node] = look
        return any(uids - there.get(driver, set()) for driver, uids in before.pieces.items())

    def drivers(self, node: str) -> frozenset[str]:
        """The drivers that have slices on the node, as the last look shows."""
        look = self._looks.get(node)
        return frozenset(look.since) if look is not None else frozenset()

    def beside(self, signs: SignsOfLife, node: str, drivers: Collection[str]) -> SignsOfLife:
        """The signs of life of a node, with what is known of the drivers of a ghost's devices."""
        if not drivers:
            return signs
        look, now = self._looks.get(node), self._clock.monotonic()
        if look is None:
            return replace(signs, stood=(0.0, 0.0))
        away = tuple(sorted(driver for driver in drivers if driver not in look.since))
        since = max((look.since[driver] for driver in drivers if driver in look.since), default=now)
        return replace(signs, away=away, stood=(now - since, now - look.began))
