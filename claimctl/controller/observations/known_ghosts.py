"""The ghosts that this process knows, by claim, by namespace and by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from claimctl.controller.keys import ClaimKey
from claimctl.reservation.users.several import is_several, with_longer_grace
from claimctl.wire.meta import reaches
from claimctl.wire.reservations import ForceDeletedPod

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class KnownGhost:
    """A ghost of one claim."""

    pod: ForceDeletedPod
    since: float
    """When this process noted that the pod was gone, by its monotonic clock."""
    vanished_at: str = ""
    """The version of the pod's deletion; '' if unknown."""
    gone_by: str = ""
    """A version of the cluster at which the pod was certainly gone; '' if unknown."""
    noted_at: str | None = None
    """For a listed pod that the cache did not show: the version of the list. None for others."""
    recorded: bool = False
    """Whether the ghost was seen in a reservation's status."""
    ended: bool = False
    """Whether it has ended by the signs of life of its node."""
    over: bool = False
    """Whether it does not count any more. While a status has it, it is kept, so that its grace does
    not start again."""

    @property
    def signs_count_from(self) -> str:
        """The version of the deletion, for which signs of life may be compared. Of several pods the
        first may have vanished at any time."""
        return "" if is_several(self.pod) else self.vanished_at

    def absorb(self, other: KnownGhost) -> None:
        """Count for one more pod, at least as long as that one alone would."""
        self.pod = with_longer_grace(self.pod, other.pod)
        self.since = max(self.since, other.since)
        self.vanished_at = _later(self.vanished_at, other.vanished_at)
        self.gone_by = _later(self.gone_by, other.gone_by)
        self.recorded = self.ended = self.over = False


def _later(version: str, other: str) -> str:
    """The later one of two versions; '' if one is unknown."""
    if not version or not other:
        return ""
    return version if reaches(version, other) else other


class GhostIndex:
    """The store. A ghost that has ended, or is over, is on no node."""

    def __init__(self) -> None:
        self._by_claim: dict[ClaimKey, dict[str, KnownGhost]] = {}
        self._on_node: dict[str, dict[str, dict[tuple[ClaimKey, str], KnownGhost]]] = {}
        """By node and namespace."""
        self._claims: dict[str, dict[ClaimKey, None]] = {}
        """By namespace: the claims that have ghosts."""
        self._count = Counter[str]()
        """By namespace: the number of ghosts."""

    def __bool__(self) -> bool:
        return bool(self._by_claim)

    def __iter__(self) -> Iterator[KnownGhost]:
        return (ghost for ghosts in self._by_claim.values() for ghost in ghosts.values())

    def of(self, key: ClaimKey) -> Mapping[str, KnownGhost]:
        """The ghosts of a claim, by UID."""
        return self._by_claim.get(key, {})

    def on(self, node: str) -> tuple[tuple[ClaimKey, KnownGhost], ...]:
        """The ghosts on a node, each with its claim."""
        spaces = self._on_node.get(node, {}).values()
        return tuple((key, ghost) for ghosts in spaces for (key, _), ghost in ghosts.items())

    def spaces_on(self, node: str) -> Iterator[tuple[str, Iterable[KnownGhost]]]:
        """The ghosts on a node by namespace."""
        return ((name, ghosts.values()) for name, ghosts in self._on_node.get(node, {}).items())

    def nodes(self) -> tuple[str, ...]:
        return tuple(self._on_node)

    def count(self, namespace: str) -> int:
        """How many ghosts the claims of a namespace have."""
        return self._count[namespace]

    def claims_in(self, namespace: str) -> tuple[ClaimKey, ...]:
        """The claims of a namespace that have ghosts."""
        return tuple(self._claims.get(namespace, ()))

    def put(self, key: ClaimKey, ghost: KnownGhost) -> None:
        """Add a ghost, or note that it counts again, or does not count on its node any more."""
        uid, node = ghost.pod.uid, ghost.pod.node_name
        ghosts = self._by_claim.setdefault(key, {})
        if uid not in ghosts:
            ghosts[uid] = ghost
            self._count[key.namespace] += 1
            self._claims.setdefault(key.namespace, {})[key] = None
        if node and not ghost.ended and not ghost.over:
            spaces = self._on_node.setdefault(node, {})
            spaces.setdefault(key.namespace, {})[key, uid] = ghost
        else:
            self._leave(node, key, uid)

    def drop(self, key: ClaimKey, uid: str) -> None:
        """Forget a ghost, if it is known."""
        ghost = self._by_claim.get(key, {}).pop(uid, None)
        if ghost is None:
            return
        self._leave(ghost.pod.node_name, key, uid)
        self._count[key.namespace] -= 1
        if not self._by_claim[key]:
            del self._by_claim[key]
            _remove(self._claims, key.namespace, key)
        if not self._count[key.namespace]:
            del self._count[key.namespace]

    def _leave(self, node: str, key: ClaimKey, uid: str) -> None:
        if (spaces := self._on_node.get(node)) is not None:
            _remove(spaces, key.namespace, (key, uid))
            if not spaces:
                del self._on_node[node]


def rest_of(namespace: str) -> ClaimKey:
    """The key of the ghosts that count for every claim of a namespace."""
    return ClaimKey(namespace, "")


def _remove(index: dict[str, dict[K, V]], name: str, item: K) -> None:
    items = index.get(name, {})
    items.pop(item, None)
    if not items:
        index.pop(name, None)
