"""Ghosts: pods that vanished while their containers may still have been running, such as
force-deleted pods and pods of lost nodes.

The ledger finds ghosts in the changes of the pod cache, even while another replica leads. The
statuses of reservations keep them over a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from cachetools import LRUCache
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.facts.pods import claim_names, is_done, vanishes_as_ghost
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.users.ghosts import has_ended
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta, precedes, reaches
from claimctl.wire.nodes import OUT_OF_SERVICE, Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

RETENTION_SECONDS = 24 * 3600.0
"""How long a ghost without a record is remembered, in seconds, for a reservation still to come."""
REMEMBERED_UIDS = 50_000
"""How many UIDs are remembered of pods that were done before they vanished."""
REMEMBERED_NODES = 10_000
_DEFAULT_GRACE = 30
"""The API server writes this ``terminationGracePeriodSeconds`` into pods that have none."""


class BootIds:
    """The last boot ID of each node, and the machine of each boot, also after the Node object is
    gone: that of a lost node may be deleted before its pods."""

    def __init__(self) -> None:
        self._ids: LRUCache[str, str] = LRUCache(REMEMBERED_NODES)
        self._machines: LRUCache[str, tuple[str, str]] = LRUCache(2 * REMEMBERED_NODES)

    def observe(self, node: Node) -> bool:
        """Note a node; return whether it has another boot ID than when it was last seen."""
        name, info = node.metadata.name, node.status.node_info
        before = self._ids.get(name, "")
        if info.boot_id:
            self._ids[name] = info.boot_id
            self._machines[info.boot_id] = info.machine
        return bool(before) and bool(info.boot_id) and before != info.boot_id

    def of(self, node_name: str) -> str:
        """The last boot ID seen on the node, or ''."""
        return self._ids.get(node_name, "")

    def rebooted(self, node_name: str, boot_id: str) -> bool:
        """Whether the machine that had this boot ID has another one now.

        Another machine may have the node's name now, and the old one may still run. So nothing is
        proven by a boot ID that this process has not seen itself, as in an earlier one's record.
        """
        now = self.of(node_name)
        machine = self._machines.get(boot_id, ("", ""))
        return now != boot_id and any(machine) and machine == self._machines.get(now)

    def replaced(self, node_name: str, boot_id: str) -> bool:
        """Whether the node has had another boot since this one, perhaps of another machine, whose
        kubelet ends no pod of the earlier one."""
        now = self.of(node_name)
        return bool(boot_id) and bool(now) and now != boot_id


@dataclass(frozen=True, slots=True)
class Ghosts:
    """The ghosts of one claim, sorted by UID, each with the seconds for which it is known."""

    pods: tuple[ForceDeletedPod, ...] = ()
    ages: tuple[tuple[str, float], ...] = ()
    once_recorded: frozenset[str] = frozenset()
    """UIDs of the ghosts that were seen in a reservation's status."""
    signs: tuple[tuple[str, SignsOfLife], ...] = ()
    """By UID of a ghost whose node has a Lease: the signs of life of its kubelet."""


class GhostLedger:
    """Ghosts by claim."""

    def __init__(self, clock: Clock, boots: BootIds, kubelets: Kubelets | None = None) -> None:
        self._clock = clock
        self._boots = boots
        self._kubelets = kubelets or Kubelets(clock)
        self.news = asyncio.Event()
        """Set when there may be a ghost whose node has to be watched for signs of life."""
        self._ended: LRUCache[str, None] = LRUCache(REMEMBERED_UIDS)
        """UIDs of ghosts that have ended by the signs of life of their nodes."""
        self._by_claim: dict[ClaimKey, dict[str, ForceDeletedPod]] = {}
        self._known_since: dict[ClaimKey, dict[str, float]] = {}
        self._once_recorded: dict[ClaimKey, set[str]] = {}
        self._outlived: dict[ClaimKey, None] = {}
        self._done: LRUCache[str, None] = LRUCache(REMEMBERED_UIDS)
        self._vanished_at: LRUCache[str, str] = LRUCache(REMEMBERED_UIDS)
        self._noted_at: LRUCache[tuple[ClaimKey, str], str] = LRUCache(REMEMBERED_UIDS)
        """By claim and UID of a listed pod that the cache did not show: the list's version."""

    def observe(self, old: Pod | None, new: Pod | None, *, relist: bool = False) -> None:
        """Note one change in the pod cache.

        Args:
            old: the last known state. If a relist shows that the pod is gone, the pod may have been
                bound after that state.
        """
        if new is not None:
            self._drop_ghosts_of(new)
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
        """Note that an unreadable pod is gone: it may have been running.

        Args:
            keys: the claims that it may have used.
        """
        if pod.uid in self._done:
            return
        node = pod.read("spec.nodeName", str, "") or ""
        ghost = ForceDeletedPod(
            uid=pod.uid,
            name=pod.name,
            node_name=node,
            boot_id=self._boots.of(node),
            since=self._clock.now(),
        )
        self._vanished_at[ghost.uid] = ""
        for key in keys:
            self._add(key, ghost)
            self._known_since[key][ghost.uid] = self._clock.monotonic()

    def node_booted(self, node: Node, *, relist: bool) -> None:
        """Note a reboot of a node. It ends a ghost only if it is younger than the pod's deletion.

        The caches of nodes and pods are not in step: a reboot that is seen late may have happened
        before the pod was bound. If the machine is another one, too, no reboot ends the ghost.
        """
        boot_id, version = node.status.node_info.boot_id, node.metadata.resource_version
        for ghosts in self._by_claim.values():
            for uid, ghost in ghosts.items():
                vanished_at = self._vanished_at.get(uid, "")
                if ghost.node_name == node.metadata.name and (
                    relist or not precedes(vanished_at, version)
                ):
                    same = self._boots.rebooted(ghost.node_name, ghost.boot_id)
                    ghosts[uid] = replace(ghost, boot_id=boot_id if same else "")

    def pods_listed(self, before: str) -> None:
        """Note a LIST of all pods. A listed pod that the cache never showed may have existed until
        this LIST, unless the cache had reached the version of the claim that listed the pod. Its
        grace begins now.

        Args:
            before: the version that the pod cache had reached before; '' if none.
        """
        now = self._clock.monotonic()
        for (key, uid), version in list(self._noted_at.items()):
            since = self._known_since.get(key, {})
            if uid in since and not (before and version and reaches(before, version)):
                since[uid] = now

    def history_lost(self) -> None:
        """Note that etcd was restored: no version tells any more when a pod vanished."""
        for uid in self._vanished_at:
            self._vanished_at[uid] = ""
        for noted in self._noted_at:
            self._noted_at[noted] = ""

    def forget_record(self, key: ClaimKey) -> None:
        """Note that the claim's last reservation is gone: the next one records its ghosts anew."""
        self._once_recorded.pop(key, None)

    def observe_list(
        self,
        key: ClaimKey,
        references: Iterable[Reference],
        present: Container[str],
        version: str = "",
    ) -> None:
        """Note listed pods that this process never saw: it is unknown how they ended.

        Usually the pod cache is late, and ``observe`` removes them again. This is called with every
        ``version`` of the claim, so that no pod is overlooked that was listed for a moment.
        """
        for reference in references:
            uid = reference.uid
            if is_pod(reference) and uid not in present and uid not in self._done:
                unseen = ForceDeletedPod(uid=uid, name=reference.name, since=self._clock.now())
                self._add(key, unseen)
                self._noted_at.setdefault((key, uid), version)

    def _drop_ghosts_of(self, pod: Pod) -> None:
        if not self._by_claim and not self._noted_at:
            return
        for name in claim_names(pod):
            key = ClaimKey(pod.metadata.namespace, name)
            self._noted_at.pop((key, pod.metadata.uid), None)
            if self._by_claim.get(key, {}).pop(pod.metadata.uid, None) is not None:
                del self._known_since[key][pod.metadata.uid]
                self._once_recorded.get(key, set()).discard(pod.metadata.uid)

    def observe_record(self, key: ClaimKey, recorded: Iterable[ForceDeletedPod]) -> None:
        """Note the ghosts in the statuses of the claim's reservations, and drop ended ones."""
        on_record = {ghost.uid: ghost for ghost in recorded}
        for ghost in on_record.values():
            self._add(key, ghost)
        if on_record:
            self._outlived.pop(key, None)
            self._once_recorded.setdefault(key, set()).update(on_record)
        self._drop_ended(key, on_record)

    def of(self, key: ClaimKey) -> Ghosts:
        """The claim's ghosts as last observed."""
        ghosts = self._by_claim.get(key, {})
        since, now = self._known_since.get(key, {}), self._clock.monotonic()
        return Ghosts(
            pods=tuple(ghosts[uid] for uid in sorted(ghosts)),
            ages=tuple((uid, now - since[uid]) for uid in sorted(ghosts)),
            once_recorded=frozenset(self._once_recorded.get(key, set()) & ghosts.keys()),
            signs=tuple(self._signs(key)),
        )

    def _signs(self, key: ClaimKey) -> Iterator[tuple[str, SignsOfLife]]:
        since = self._known_since.get(key, {})
        for uid, ghost in sorted(self._by_claim.get(key, {}).items()):
            if uid in self._ended:
                yield uid, SignsOfLife(ended=True)
            elif not self._boots.replaced(ghost.node_name, ghost.boot_id):
                at = self._vanished_at.get(uid, "")
                known = self._kubelets.signs(ghost.node_name, since[uid], at)
                if known is not None:
                    yield uid, known

    def nodes_to_watch(self) -> frozenset[str]:
        """The nodes whose signs of life matter: of the ghosts that have not ended by them."""
        return frozenset(
            ghost.node_name
            for ghosts in self._by_claim.values()
            for uid, ghost in ghosts.items()
            if ghost.node_name
            and uid not in self._ended
            and not self._boots.replaced(ghost.node_name, ghost.boot_id)
        )

    def judge_signs(self, node_name: str) -> frozenset[ClaimKey]:
        """Note which ghosts of a node have ended by its signs of life; return their claims."""
        ending = tuple(self._ending(node_name))
        self._ended.update((uid, None) for _, uid in ending)
        return frozenset(key for key, _ in ending)

    def _ending(self, node_name: str) -> Iterator[tuple[ClaimKey, str]]:
        now = self._clock.monotonic()
        for key in self.claims_on(node_name):
            ghosts, since = self._by_claim[key], self._known_since[key]
            for uid, signs in self._signs(key):
                on_node = ghosts[uid].node_name == node_name and not signs.ended
                if on_node and has_ended(ghosts[uid], now - since[uid], signs):
                    yield key, uid

    def node_is_off(self, node: Node) -> None:
        """Note that an administrator has tainted a node as out of service: nothing runs there."""
        if any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
            for ghosts in self._by_claim.values():
                ended = [uid for uid, pod in ghosts.items() if pod.node_name == node.metadata.name]
                self._ended.update(dict.fromkeys(ended))

    def done(self, references: Iterable[Reference]) -> frozenset[str]:
        """UIDs of the references whose pods are gone and were done, or never bound, before."""
        return frozenset(entry.uid for entry in references if entry.uid in self._done)

    def claims_on(self, node_name: str) -> Iterator[ClaimKey]:
        """The claims with a ghost on the node."""
        for key, ghosts in self._by_claim.items():
            if any(ghost.node_name == node_name for ghost in ghosts.values()):
                yield key

    def forget(self, key: ClaimKey, deleted_at: str) -> None:
        """Note that a claim was deleted at this version, and drop the ghosts from before.

        The caches of pods and claims are not in step: a pod that vanished after this version may
        have used the next claim of the same name, so its ghost stays. The versions come from one
        etcd (``precedes``).
        """
        for uid in list(self._by_claim.get(key, {})):
            vanished_at = self._vanished_at.get(uid, "")
            if vanished_at and reaches(deleted_at, vanished_at):
                del self._by_claim[key][uid]
        self._outlived[key] = None
        for outlived in list(self._outlived):
            self._drop_ended(outlived, ())

    def _ghost(self, pod: Pod) -> ForceDeletedPod:
        meta: ObjectMeta = pod.metadata
        node = pod.spec.node_name
        return ForceDeletedPod(
            uid=meta.uid,
            name=meta.name,
            node_name=node,
            boot_id=self._boots.of(node),
            since=self._clock.now(),
            termination_grace_period_seconds=_longest_grace(pod),
        )

    def _add(self, key: ClaimKey, ghost: ForceDeletedPod) -> None:
        known = self._by_claim.setdefault(key, {})
        since = self._known_since.setdefault(key, {})
        if ghost.uid not in since:
            since[ghost.uid] = self._clock.monotonic()
            known[ghost.uid] = ghost
            if ghost.node_name:
                self.news.set()

    def _drop_ended(self, key: ClaimKey, on_record: Container[str]) -> None:
        """Drop the ghosts whose machine was rebooted since: their containers cannot be running.
        While a status has such a ghost, the time when it was first known is kept, so that its grace
        does not start again."""
        ghosts, since = self._by_claim.get(key, {}), self._known_since.get(key, {})
        now = self._clock.monotonic()
        for uid, ghost in list(ghosts.items()):
            old = now - since[uid] > RETENTION_SECONDS and uid not in on_record
            if old or self._boots.rebooted(ghost.node_name, ghost.boot_id):
                del ghosts[uid]
        for uid in [uid for uid in since if uid not in ghosts and uid not in on_record]:
            del since[uid]
        self._once_recorded.get(key, set()).intersection_update(since)
        if not since:
            for known in (self._by_claim, self._known_since, self._once_recorded, self._outlived):
                known.pop(key, None)


def _longest_grace(pod: Pod) -> int:
    """The pod's grace period, or the longer one with which somebody deleted it before; seconds."""
    own = pod.spec.termination_grace_period_seconds
    asked = pod.metadata.deletion_grace_period_seconds or 0
    return max(_DEFAULT_GRACE if own is None else own, asked, 0)
