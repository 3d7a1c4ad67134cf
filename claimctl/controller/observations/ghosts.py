"""Pods that vanished while their containers may still have been running.

Force-deleted pods, pods of lost nodes, pods that PodGC swept: the API server has forgotten them,
their node may not have. The ledger notes them from the pod cache's changes, also while another
replica leads, and the reservation's status carries them over a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from cachetools import LRUCache
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.kube.versions import reaches
from claimctl.reservation.pods import claim_names, is_done, vanishes_as_ghost
from claimctl.reservation.reserved_for.references import is_pod
from claimctl.reservation.unreadable import node_of
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

RETENTION_SECONDS = 24 * 3600.0
"""How long a ghost is remembered that no reservation has on record, for one still to come."""


REMEMBERED_UIDS = 50_000
"""How many pods that were seen to be done before they went are remembered."""


REMEMBERED_NODES = 10_000


class BootIds:
    """The boot ID each node showed last.

    A lost node's object may be gone before the pods on it are, and that it is gone proves nothing.
    """

    def __init__(self) -> None:
        self._ids: LRUCache[str, str] = LRUCache(REMEMBERED_NODES)

    def observe(self, node: Node) -> bool:
        """Note what a node shows; True when it has booted since it was last seen."""
        name, boot_id = node.metadata.name, node.status.node_info.boot_id
        before = self._ids.get(name, "")
        if boot_id:
            self._ids[name] = boot_id
        return bool(before) and bool(boot_id) and before != boot_id

    def of(self, node_name: str) -> str:
        """The last boot ID seen on the node, or ''."""
        return self._ids.get(node_name, "")


@dataclass(frozen=True, slots=True)
class Ghosts:
    """The ghosts of one claim, sorted by UID, and since how many seconds each is known."""

    pods: tuple[ForceDeletedPod, ...] = ()
    ages: tuple[tuple[str, float], ...] = ()
    told: frozenset[str] = frozenset()
    """UIDs of those that were seen on a reservation's record."""


class GhostLedger:
    """Ghosts by claim.

    Args:
        boot_id: tells the boot ID that a node shows now, or '' when there is no such node.
    """

    def __init__(self, clock: Clock, boot_id: Callable[[str], str]) -> None:
        self._clock = clock
        self._boot_id = boot_id
        self._by_claim: dict[ClaimKey, dict[str, ForceDeletedPod]] = {}
        self._known_since: dict[ClaimKey, dict[str, float]] = {}
        self._told: dict[ClaimKey, set[str]] = {}
        self._outlived: dict[ClaimKey, None] = {}
        self._done: LRUCache[str, None] = LRUCache(REMEMBERED_UIDS)
        self._vanished_at: LRUCache[str, str] = LRUCache(REMEMBERED_UIDS)

    def observe(self, old: Pod | None, new: Pod | None, *, relist: bool = False) -> None:
        """Take note of one change in the pod cache; ``old`` is the last state that was seen.

        A pod that only a relist shows to be gone may have been bound since that state.
        """
        if new is not None:
            self._came(new)
        if old is None or (new is not None and new.metadata.uid == old.metadata.uid):
            return
        if vanishes_as_ghost(old) or (relist and not is_done(old)):
            ghost = self._ghost(old)
            self._vanished_at[ghost.uid] = "" if relist else old.metadata.resource_version
            for name in sorted(claim_names(old)):
                self._add(ClaimKey(old.metadata.namespace, name), ghost)
        else:
            self._done[old.metadata.uid] = None

    def vanished_unread(self, pod: Unreadable, keys: Iterable[ClaimKey]) -> None:
        """Take note that a pod went while it could not be read: it may have been running.

        Args:
            keys: the claims that it may have used.
        """
        if pod.uid in self._done:
            return
        node = node_of(pod)
        ghost = ForceDeletedPod(
            uid=pod.uid,
            name=pod.name,
            node_name=node,
            boot_id=self._boot_id(node),
            since=self._clock.now(),
        )
        self._vanished_at[ghost.uid] = ""
        for key in keys:
            self._add(key, ghost)
            self._known_since[key][ghost.uid] = self._clock.monotonic()

    def node_booted(self, node: Node, *, relist: bool) -> None:
        """Take note of a new boot; a ghost that may have run under it goes on counting.

        The caches of nodes and pods are not in step: a node that was seen late may have booted
        before the pod came. Only a boot that is younger than the deletion ends a ghost.
        """
        boot_id, version = node.status.node_info.boot_id, node.metadata.resource_version
        for ghosts in self._by_claim.values():
            for uid, ghost in ghosts.items():
                vanished_at = self._vanished_at.get(uid, "")
                if ghost.node_name == node.metadata.name and (
                    relist or not _younger(version, vanished_at)
                ):
                    ghosts[uid] = replace(ghost, boot_id=boot_id)

    def observe_list(
        self, key: ClaimKey, references: Iterable[Reference], present: Container[str]
    ) -> None:
        """Take note of listed pods that nobody here ever saw: how they ended is unknown.

        Mostly the pod cache is late, and ``observe`` takes them out again.
        """
        for reference in references:
            uid = reference.uid
            if is_pod(reference) and uid not in present and uid not in self._done:
                unseen = ForceDeletedPod(uid=uid, name=reference.name, since=self._clock.now())
                self._add(key, unseen)

    def _came(self, pod: Pod) -> None:
        for name in claim_names(pod):
            key = ClaimKey(pod.metadata.namespace, name)
            if self._by_claim.get(key, {}).pop(pod.metadata.uid, None) is not None:
                del self._known_since[key][pod.metadata.uid]
                self._told.get(key, set()).discard(pod.metadata.uid)

    def observe_record(self, key: ClaimKey, recorded: Iterable[ForceDeletedPod]) -> None:
        """Take note of the ghosts in the statuses of the claim's reservations, and of boots."""
        on_record = {ghost.uid: ghost for ghost in recorded}
        for ghost in on_record.values():
            self._add(key, ghost)
        if on_record:
            self._outlived.pop(key, None)
            self._told.setdefault(key, set()).update(on_record)
        self._drop_ended(key, on_record)

    def of(self, key: ClaimKey) -> Ghosts:
        """The claim's ghosts as last observed."""
        ghosts = self._by_claim.get(key, {})
        since, now = self._known_since.get(key, {}), self._clock.monotonic()
        return Ghosts(
            pods=tuple(ghosts[uid] for uid in sorted(ghosts)),
            ages=tuple((uid, now - since[uid]) for uid in sorted(ghosts)),
            told=frozenset(self._told.get(key, set()) & ghosts.keys()),
        )

    def claims_on(self, node_name: str) -> Iterator[ClaimKey]:
        """Claims with a ghost on the node."""
        for key, ghosts in self._by_claim.items():
            if any(ghost.node_name == node_name for ghost in ghosts.values()):
                yield key

    def forget(self, key: ClaimKey, deleted_at: str) -> None:
        """Take note that a claim was deleted, by this version: who had vanished before, used it.

        The caches of pods and claims are not in step: who vanished later may have used the claim
        that came after it under its name. The versions are of one etcd (``_younger``).
        """
        for uid in list(self._by_claim.get(key, {})):
            vanished_at = self._vanished_at.get(uid, "")
            if vanished_at and reaches(deleted_at, vanished_at):
                del self._by_claim[key][uid]
        self._outlived[key] = None
        for each in list(self._outlived):
            self._drop_ended(each, ())

    def _ghost(self, pod: Pod) -> ForceDeletedPod:
        meta: ObjectMeta = pod.metadata
        node = pod.spec.node_name
        return ForceDeletedPod(
            uid=meta.uid,
            name=meta.name,
            node_name=node,
            boot_id=self._boot_id(node),
            since=self._clock.now(),
        )

    def _add(self, key: ClaimKey, ghost: ForceDeletedPod) -> None:
        known = self._by_claim.setdefault(key, {})
        since = self._known_since.setdefault(key, {})
        if ghost.uid not in since:
            since[ghost.uid] = self._clock.monotonic()
            known[ghost.uid] = ghost

    def _drop_ended(self, key: ClaimKey, on_record: Container[str]) -> None:
        """Forget ghosts whose node has booted since: nothing of them can be running.

        When each was first known is kept for as long as it is in a reservation's status, so that
        it does not begin anew.
        """
        ghosts, since = self._by_claim.get(key, {}), self._known_since.get(key, {})
        now = self._clock.monotonic()
        for uid, ghost in list(ghosts.items()):
            old = now - since[uid] > RETENTION_SECONDS and uid not in on_record
            if old or self._booted(ghost):
                del ghosts[uid]
        for uid in [uid for uid in since if uid not in ghosts and uid not in on_record]:
            del since[uid]
        self._told.get(key, set()).intersection_update(since)
        if not since:
            for known in (self._by_claim, self._known_since, self._told, self._outlived):
                known.pop(key, None)

    def _booted(self, ghost: ForceDeletedPod) -> bool:
        """Whether the node runs another boot. That there is no Node object proves nothing."""
        boot_id = self._boot_id(ghost.node_name)
        return bool(ghost.boot_id and boot_id) and boot_id != ghost.boot_id


def _younger(version: str, other: str) -> bool:
    """Whether one version was certainly made after another, maybe of another kind.

    Kinds that share an etcd, as pods and nodes do unless somebody separates them, share its
    revisions.
    """
    return version.isdecimal() and other.isdecimal() and int(version) > int(other)
