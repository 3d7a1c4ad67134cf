"""Pods that vanished while their containers may still have been running, by the history alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from claimctl.demo.world import Key, as_pod, claims_of, is_bound_consumer
from claimctl.embedded.store import Revision
from claimctl.wire.base import decode
from claimctl.wire.nodes import Node
from claimctl.wire.pods import Pod


@dataclass(frozen=True, slots=True)
class Vanished:
    """A pod that was last seen bound and not done. ``at`` is in seconds of the server's clock."""

    pod: str
    node: str
    boot: str
    at: float


@dataclass(slots=True)
class Vanishings:
    """Who vanished, by claim; a deallocation forgets them, since the devices are others then."""

    by_claim: defaultdict[Key, list[Vanished]] = field(default_factory=lambda: defaultdict(list))
    _boots: dict[str, str] = field(default_factory=dict)

    def notice(self, revision: Revision) -> None:
        """Take in one revision of a pod or a node."""
        if revision.group:
            return
        if revision.plural == "nodes" and revision.type != "DELETED":
            node = decode(revision.data, Node)
            self._boots[revision.name] = node.status.node_info.boot_id
        elif revision.plural == "pods" and _replaced_or_gone(revision):
            assert revision.previous is not None
            self._gone(revision, decode(revision.previous, Pod))

    def _gone(self, revision: Revision, last: Pod) -> None:
        if not is_bound_consumer(last):
            return
        node = last.spec.node_name
        found = Vanished(revision.name, node, self._boots.get(node, ""), revision.at)
        for claim in sorted(claims_of(last)):
            self.by_claim[revision.namespace, claim].append(found)

    def forget(self, claim: Key) -> None:
        self.by_claim.pop(claim, None)

    def within(self, claim: Key, grace: float, now: float) -> list[str]:
        """Names of the pods that may still use the claim at ``now``."""
        return [
            each.pod
            for each in self.by_claim.get(claim, ())
            if now - each.at < grace and self._boots.get(each.node, "") == each.boot
        ]


def _replaced_or_gone(revision: Revision) -> bool:
    pod = as_pod(revision)
    if revision.previous is None:
        return False
    return pod is None or pod.metadata.uid != decode(revision.previous, Pod).metadata.uid
