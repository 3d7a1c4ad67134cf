"""Find by the history the pods that vanished while their containers may have been running."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kube_in_process.storage.store import Revision

from claimctl.wire.base import decode
from claimctl.wire.nodes import Node, NodeSystemInfo
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl_witness.world import Key, as_pod, claims_of, is_bound_consumer

GUARD = "claimctl.io/release"
"""The finalizer of a ClaimReservation. claimctl removes it when its release work is done."""

ENDED = "claimctl.io/ended-pods"
"""The annotation of a ClaimReservation with what people state about vanished pods."""
WORK_SECONDS = 12.0
"""Beyond its grace period, a vanished pod counts for so long at least, whatever its node shows."""
Graces = dict[str, float | None]
"""By UID of each reservation with that finalizer: its grace in seconds; None if its vanished pods
count until signs of life show that they have ended."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """A vanished pod that was bound and not done. ``at`` is in seconds of the server's clock."""

    pod: str
    uid: str
    revision: int
    node: str
    booted: NodeSystemInfo
    at: float
    owed: Graces
    """The graces that the pod must get: of the reservations at that time, as last updated."""
    least: float
    """What it must get where no grace is fixed: its own grace period, and the kubelet's work."""

    def due(self) -> float:
        """The longest grace that the pod must get."""
        graces = (self.least if grace is None else grace for grace in self.owed.values())
        return max(graces, default=0.0)

    def is_stated(self, statements: Iterable[str]) -> bool:
        """Whether a statement says that the pod has ended."""
        names = {f"pod/{name}" for name in (self.pod, self.uid, "*")} | {f"node/{self.node}"}
        for subject, _, version in (entry.partition("@") for entry in statements):
            if subject == self.uid or (subject in names and self.revision <= int(version)):
                return True
        return False


@dataclass(slots=True)
class Vanishings:
    """The vanished pods by claim. A deallocation drops them: the next allocation is another one.

    Args:
        users: the user names that claimctl writes under.
    """

    users: Collection[str]
    by_claim: defaultdict[Key, list[Vanished]] = field(default_factory=lambda: defaultdict(list))
    _booted: dict[str, NodeSystemInfo] = field(default_factory=dict)
    _graces: defaultdict[Key, Graces] = field(default_factory=lambda: defaultdict(dict))

    def notice(self, revision: Revision) -> None:
        """Read one revision of a pod, a node or a reservation; ignore other kinds."""
        if revision.plural == "claimreservations":
            self._note_grace(revision)
        if revision.group:
            return
        if revision.plural == "nodes" and revision.type != "DELETED":
            node = decode(revision.data, Node)
            self._booted[revision.name] = node.status.node_info
        elif revision.plural == "pods" and _replaced_or_gone(revision):
            assert revision.previous is not None
            self._gone(revision, decode(revision.previous, Pod))

    def _note_grace(self, revision: Revision) -> None:
        """Update the graces that vanished pods must get.

        If claimctl removes the finalizer of a reservation while others stay, the longest grace
        stays due: a grace that is longer than the graces of all others is kept. If it was the
        last reservation, its grace ends, because the claim is left to kube-controller-manager,
        which knows no grace. If another user removes the finalizer, the grace ends too: that user
        takes the risk.
        """
        one = decode(revision.data, ClaimReservation)
        claim, uid = (revision.namespace, one.spec.resource_claim_name), one.metadata.uid
        self._believe(claim, one)
        graces, vanished = self._graces[claim], self.by_claim.get(claim, ())
        if revision.previous is not None:
            earlier = decode(revision.previous, ClaimReservation).metadata.uid
            if earlier != uid:
                # a restore of etcd: that object never was
                graces.pop(earlier, None)
                for each in vanished:
                    each.owed.pop(earlier, None)
        if revision.type != "DELETED" and GUARD in one.metadata.finalizers:
            graces[uid] = one.spec.force_deleted_pod_grace_seconds
            for each in vanished:
                if uid in each.owed:
                    each.owed[uid] = graces[uid]
        elif uid in graces:
            asked = graces.pop(uid)
            if revision.actor in self.users and _is_longest(asked, graces):
                return
            for each in vanished:
                each.owed.pop(uid, None)

    def _believe(self, claim: Key, one: ClaimReservation) -> None:
        """Drop the pods of which somebody states that they have ended: by UID, or by name or node
        and the revision up to which the statement counts."""
        stated = (one.metadata.annotation(ENDED) or "").split(",")
        if stated != [""] and claim in self.by_claim:
            self.by_claim[claim] = [
                each for each in self.by_claim[claim] if not each.is_stated(stated)
            ]

    def _gone(self, revision: Revision, last: Pod) -> None:
        if not is_bound_consumer(last):
            return
        node = last.spec.node_name
        for claim in sorted(claims_of(last)):
            key = (revision.namespace, claim)
            owed = dict(self._graces.get(key, {}))
            booted = self._booted.get(node, NodeSystemInfo())
            own = last.spec.termination_grace_period_seconds
            least = WORK_SECONDS + (30 if own is None else own)
            vanished = Vanished(
                revision.name,
                last.metadata.uid,
                revision.number,
                node,
                booted,
                revision.at,
                owed,
                least,
            )
            self.by_claim[key].append(vanished)

    def forget(self, claim: Key) -> None:
        self.by_claim.pop(claim, None)

    def within(self, claim: Key, grace: float, now: float) -> list[str]:
        """Names of the vanished pods that may still use the claim at ``now``.

        Args:
            grace: the longest grace of the present reservations, in seconds. Earlier reservations
                may have asked for a longer one.
        """
        return [
            each.pod
            for each in self.by_claim.get(claim, ())
            if now - each.at < max(grace, each.due())
            and not _rebooted(each.booted, self._booted.get(each.node, each.booted))
        ]


def _is_longest(asked: float | None, others: Graces) -> bool:
    """Whether no other reservation asks for that grace or a longer one."""
    if not others or asked is None:
        return bool(others) and None not in others.values()
    return all(grace is None or grace < asked for grace in others.values())


def _replaced_or_gone(revision: Revision) -> bool:
    pod = as_pod(revision)
    if revision.previous is None:
        return False
    return pod is None or pod.metadata.uid != decode(revision.previous, Pod).metadata.uid


def _rebooted(before: NodeSystemInfo, now: NodeSystemInfo) -> bool:
    """Whether the same machine was booted anew."""
    return before.machine == now.machine and before.boot_id != now.boot_id
