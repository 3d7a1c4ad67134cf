"""Ghosts: pods that vanished while their containers may still have been running, such as
force-deleted pods and pods of lost nodes.

The ledger finds ghosts in the changes of the pod cache, even while another replica leads. The
statuses of reservations keep them over a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator

from cachetools import LRUCache
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.boots import BootIds
from claimctl.controller.observations.ghost_signs import GhostSigns
from claimctl.controller.observations.known_ghosts import GhostIndex, KnownGhost, rest_of
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.reservation.facts.memory import SeenGhost
from claimctl.reservation.facts.pods import claim_names, is_done, vanishes_as_ghost
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.users.ghosts import MOST
from claimctl.reservation.users.several import is_several, several, with_longer_grace
from claimctl.wire.claims import Reference
from claimctl.wire.limits import TEN_YEARS
from claimctl.wire.meta import ObjectMeta, precedes, reaches
from claimctl.wire.nodes import OUT_OF_SERVICE, Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

RETENTION_SECONDS = 24 * 3600.0
"""How long a ghost without a record is remembered, in seconds, for a reservation still to come."""
SWEEP_SECONDS = 60.0
"""Least time between two searches of a namespace for ghosts that are older than that."""
REMEMBERED_UIDS = 50_000
"""How many UIDs are remembered of pods that were done before they vanished."""
MOST_APART = 100
"""Up to so many ghosts of a claim stay separate. Then those of one boot of a node become one ghost
(``reservation.users.several``)."""
MOST_IN_NAMESPACE = 5_000
"""Up to so many ghosts of a namespace count for their own claims. Further ones count for all claims
of the namespace."""
_DEFAULT_GRACE = 30
"""The API server writes this ``terminationGracePeriodSeconds`` into pods that have none."""


class GhostLedger:
    """Ghosts by claim.

    A namespace can make other namespaces neither wait nor compute: a claim has a bounded number of
    ghosts, and so has a namespace. What is beyond that counts for every claim of the namespace, and
    is kept under a claim without a name (``rest_of``).
    """

    def __init__(
        self,
        clock: Clock,
        boots: BootIds,
        kubelets: Kubelets | None = None,
        most_apart: int = MOST_APART,
        slices: SlicesOnNodes | None = None,
    ) -> None:
        self._most_apart = most_apart
        self._clock = clock
        self._boots = boots
        self.news = asyncio.Event()
        """Set when there may be a ghost whose node has to be watched for signs of life."""
        self._known = GhostIndex()
        self.signs = GhostSigns(
            clock,
            boots,
            kubelets or Kubelets(clock),
            slices or SlicesOnNodes(clock),
            self._known,
        )
        """What the nodes of the ghosts say."""
        self._merged: dict[ClaimKey, set[str]] = {}
        """By claim: UIDs that a status names and that count among several pods here."""
        self._swept: dict[str, float] = {}
        self._done: LRUCache[str, None] = LRUCache(REMEMBERED_UIDS)
        self._listed_at = ""
        """The version of the last LIST of all pods."""

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
            version = "" if relist else old.metadata.resource_version
            for name in sorted(claim_names(old)):
                known = self._add(ClaimKey(old.metadata.namespace, name), ghost, version, version)
                if not is_several(known.pod):
                    known.vanished_at = known.gone_by = version
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
        for key in keys:
            known = self._add(key, ghost)
            known.since = self._clock.monotonic()
            known.vanished_at = known.gone_by = ""

    def node_booted(self, node: Node, *, relist: bool) -> None:
        """Note a reboot of a node. It ends a ghost only if it is younger than the pod's deletion.

        The caches of nodes and pods are not in step: a reboot that is seen late may have happened
        before the pod was bound. If the machine is another one, too, no reboot ends the ghost.
        """
        boot_id, version = node.status.node_info.boot_id, node.metadata.resource_version
        for key, known in self._known.on(node.metadata.name):
            if relist or not precedes(known.vanished_at, version):
                ghost = known.pod
                same = self._boots.rebooted(ghost.node_name, ghost.boot_id)
                ghost = replace(ghost, boot_id=boot_id if same else "")
                if not is_several(ghost):
                    known.pod = ghost
                elif ghost != known.pod:
                    # some may have run before it, and some after it
                    self._merge(key, ghost, known.since, known.vanished_at, known.gone_by)

    def pods_listed(self, before: str, version: str = "") -> None:
        """Note a LIST of all pods. A listed pod that the cache never showed may have existed until
        this LIST, unless the cache had reached the version of the claim that listed the pod. Its
        grace begins now.

        Args:
            before: the version that the pod cache had reached before; '' if none.
            version: the version of the LIST.
        """
        now, self._listed_at = self._clock.monotonic(), version
        for known in self._known:
            known.gone_by = known.gone_by or version
            at = known.noted_at
            if at is not None and not (before and at and reaches(before, at)):
                known.since = now

    def history_lost(self) -> None:
        """Note that etcd was restored: no version tells any more when a pod vanished."""
        self._listed_at = ""
        for known in self._known:
            known.vanished_at = known.gone_by = ""
            known.noted_at = None if known.noted_at is None else ""

    def forget_record(self, key: ClaimKey) -> None:
        """Note that the claim's last reservation is gone: the next one records its ghosts anew."""
        self._merged.pop(key, None)
        for known in self._known.of(key).values():
            known.recorded = False

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
                known = self._add(key, unseen)
                known.noted_at = version if known.noted_at is None else known.noted_at

    def _drop_ghosts_of(self, pod: Pod) -> None:
        if self._known:
            for name in claim_names(pod):
                self._known.drop(ClaimKey(pod.metadata.namespace, name), pod.metadata.uid)

    def observe_record(
        self, key: ClaimKey, recorded: Iterable[ForceDeletedPod], version: str = ""
    ) -> None:
        """Note the ghosts in the statuses of the claim's reservations, and drop ended ones.

        Args:
            version: of the latest one of the reservations.
        """
        on_record = {ghost.uid: ghost for ghost in recorded}
        merged = self._merged.pop(key, set()) & on_record.keys()
        # an earlier leader's pods had vanished when this process listed the pods
        gone_by = version if precedes(self._listed_at, version) else self._listed_at
        for uid, ghost in on_record.items():
            if uid in merged:
                continue
            known = self._add(key, ghost, gone_by=gone_by)
            if known.pod.uid != uid:
                merged.add(uid)
                continue
            known.recorded = True
            if is_several(ghost):
                known.pod = with_longer_grace(known.pod, ghost)
        if merged:
            self._merged[key] = merged
        self._drop_ended(key, on_record)

    def of(self, key: ClaimKey) -> tuple[SeenGhost, ...]:
        """The claim's ghosts as last observed, sorted by UID."""
        now = self._clock.monotonic()
        return tuple(
            SeenGhost(
                known.pod,
                age=now - known.since,
                signs=self.signs.of(key, known),
                gone_by=known.gone_by,
                once_recorded=known.recorded,
            )
            for known in self._of(key)
        )

    def any_of(self, key: ClaimKey) -> bool:
        """Whether the claim has a ghost."""
        return next(self._of(key), None) is not None

    def _of(self, key: ClaimKey) -> Iterator[KnownGhost]:
        """The ghosts that count for the claim, sorted by UID."""
        rest = self._known.of(rest_of(key.namespace))
        for _, known in sorted({**rest, **self._known.of(key)}.items()):
            if not known.over:
                yield known

    def node_changed(self, node: Node) -> None:
        """Note a node: its ghosts have ended if an administrator has tainted it as out of service,
        since nothing runs there. If it is new, signs of its life matter from now on."""
        on_node = self._known.on(node.metadata.name)
        if any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
            self.signs.end(on_node)
        elif on_node:
            self.news.set()

    def done(self, references: Iterable[Reference]) -> frozenset[str]:
        """UIDs of the references whose pods are gone and were done, or never bound, before."""
        return frozenset(entry.uid for entry in references if entry.uid in self._done)

    def claims_on(self, node_name: str) -> frozenset[ClaimKey]:
        """The claims with a ghost on the node that may be running. One without a name stands for
        all claims of its namespace."""
        return frozenset(key for key, _ in self._known.on(node_name))

    def forget(self, key: ClaimKey, deleted_at: str) -> None:
        """Note that a claim was deleted at this version, and drop the ghosts from before.

        The caches of pods and claims are not in step: a pod that vanished after this version may
        have used the next claim of the same name, so its ghost stays. The versions come from one
        etcd (``precedes``).
        """
        for uid, known in tuple(self._known.of(key).items()):
            if known.vanished_at and reaches(deleted_at, known.vanished_at):
                self._known.drop(key, uid)
        self.forget_record(key)
        self._sweep(key.namespace)

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

    def _add(
        self, key: ClaimKey, ghost: ForceDeletedPod, vanished_at: str = "", gone_by: str = ""
    ) -> KnownGhost:
        """The ghost as it is known, or that of several pods among which it counts from now on."""
        own, now = self._known.of(key), self._clock.monotonic()
        if (known := own.get(ghost.uid)) is not None:
            return known
        if ghost.node_name:
            self.news.set()
        if self._is_full(key.namespace):
            return self._merge(rest_of(key.namespace), ghost, now, vanished_at, gone_by)
        # most pods that are listed and that the cache never showed appear later, and are no ghosts
        most = self._most_apart if ghost.node_name else MOST
        if len(own) < most or is_several(ghost):
            known = KnownGhost(ghost, now, vanished_at, gone_by)
            self._known.put(key, known)
            return known
        return self._merge(key, ghost, now, vanished_at, gone_by)

    def _merge(
        self, key: ClaimKey, ghost: ForceDeletedPod, since: float, vanished_at: str, gone_by: str
    ) -> KnownGhost:
        """Count a ghost among several of the same boot of its node; return the one for all."""
        # users can write any node name into a pod: the nodes that never were count as one
        if not self.signs.was_there(ghost.node_name):
            ghost = replace(ghost, node_name="", boot_id="")
        merged = several(ghost, of_namespace=not key.name)
        new = KnownGhost(merged, since, vanished_at, gone_by)
        known = self._known.of(key).get(merged.uid)
        if known is None:
            known = new
        else:
            known.absorb(new)
        self._known.put(key, known)
        return known

    def _is_full(self, namespace: str) -> bool:
        if self._known.count(namespace) < MOST_IN_NAMESPACE:
            return False
        self._sweep(namespace)
        return self._known.count(namespace) >= MOST_IN_NAMESPACE

    def _sweep(self, namespace: str) -> None:
        """Forget the ghosts of a namespace that no status has had, and that are old or over."""
        now = self._clock.monotonic()
        if now - self._swept.get(namespace, -SWEEP_SECONDS) < SWEEP_SECONDS:
            return
        self._swept[namespace] = now
        for key in self._known.claims_in(namespace):
            for uid, known in tuple(self._known.of(key).items()):
                rebooted = self._boots.rebooted(known.pod.node_name, known.pod.boot_id)
                old = now - known.since > RETENTION_SECONDS
                if not known.recorded and (old or rebooted):
                    self._known.drop(key, uid)
        if not self._known.count(namespace):
            del self._swept[namespace]

    def _drop_ended(self, key: ClaimKey, on_record: Container[str]) -> None:
        """Drop the ghosts that are over: the machine was rebooted since, so that no container can
        be running, or the ghost is old and in no status. While a status has a ghost that is over,
        the time when it was first known is kept, so that its grace does not start again."""
        now = self._clock.monotonic()
        for uid, known in tuple(self._known.of(key).items()):
            old = now - known.since > RETENTION_SECONDS and uid not in on_record
            if old or self._boots.rebooted(known.pod.node_name, known.pod.boot_id):
                known.over = True
                self._known.put(key, known)
            if known.over and uid not in on_record:
                self._known.drop(key, uid)


def _longest_grace(pod: Pod) -> int:
    """The pod's grace period, or the longer one with which somebody deleted it before; seconds. The
    API server takes 68 years; a status takes ten."""
    own = pod.spec.termination_grace_period_seconds
    asked = pod.metadata.deletion_grace_period_seconds or 0
    return min(max(_DEFAULT_GRACE if own is None else own, asked, 0), TEN_YEARS)
