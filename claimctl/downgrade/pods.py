"""The pods that use some claims of a namespace, from one live LIST.

The LIST is read page by page. Only these pods are kept; of a pod that names a claim, only the parts
that decisions read. If there are too many of them, the pods of some claims wait for another LIST.
So the memory that a run needs does not grow with the number of pods in the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from claimctl.kube.client import PAGE, Client
from claimctl.kube.errors import Gone
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable

KEPT = 20_000
"""How many pods of several claims are kept at a time. A pod counts for each claim."""


@dataclass(frozen=True, slots=True)
class PodsOfClaims:
    """By claim: the pods that name the claim, and those that its list names.

    A pod that is not among them is gone, unless ``unreadable`` has it.
    """

    by_claim: dict[str, list[Pod]]
    """By the claim's name."""
    unreadable: tuple[Unreadable, ...]
    """The pods of the namespace that cannot be read."""

    def of(self, claim: ResourceClaim) -> Collection[Pod]:
        return self.by_claim.get(claim.metadata.name, ())


async def with_pods(
    client: Client, claims: Sequence[ResourceClaim], kept: int = KEPT
) -> AsyncIterator[tuple[list[ResourceClaim], PodsOfClaims]]:
    """Chunks of the claims, each with a LIST of its pods.

    The pods of a chunk are forgotten when the next chunk is asked for.

    Args:
        claims: sorted by namespace, and read before.
        kept: how many pods may be kept at a time, unless one claim has more.
    """
    for namespace, group in groupby(claims, key=lambda claim: claim.metadata.namespace):
        left = list(group)
        while left:
            pods, whole = await _list_some(client, namespace, left, kept)
            yield left[:whole], pods
            pods.by_claim.clear()  # or else they would be in memory beside the next ones
            left = left[whole:]


async def _list_some(
    client: Client, namespace: str, claims: Sequence[ResourceClaim], kept: int
) -> tuple[PodsOfClaims, int]:
    """The pods of the first claims, and how many claims that are."""

    async def gather(limit: int) -> tuple[PodsOfClaims, int]:
        gathering, unreadable = _Gathering.of(claims, kept), list[Unreadable]()
        async for page in client.pages(PODS, namespace, limit=limit):
            unreadable += page.unreadable
            for pod in page.items:
                gathering.add(pod)
            del page  # or else it would be in memory beside the next one
        return PodsOfClaims(gathering.by_claim, tuple(unreadable)), len(gathering.names)

    try:
        return await gather(PAGE)
    except Gone:
        return await gather(0)


@dataclass
class _Gathering:
    """The pods of claims, by the name of the claim. The last claims give way to the first.

    Attributes:
        names: the claims of which all pods so far are kept, in the order of the claims.
        listed_by: the claims that list a pod, by its UID.
        kept: the greatest number of pods, unless one claim has more.
    """

    names: dict[str, None]
    listed_by: dict[str, frozenset[str]]
    kept: int
    by_claim: dict[str, list[Pod]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0

    @classmethod
    def of(cls, claims: Sequence[ResourceClaim], kept: int) -> _Gathering:
        listed_by: dict[str, frozenset[str]] = {}
        for claim in claims:
            alone = frozenset({claim.metadata.name})
            for entry in claim.status.reserved_for:
                known = listed_by.get(entry.uid)
                listed_by[entry.uid] = alone if known is None else known | alone
        return cls(dict.fromkeys(claim.metadata.name for claim in claims), listed_by, kept)

    def add(self, pod: Pod) -> None:
        using = claim_names(pod) | self.listed_by.get(pod.metadata.uid, frozenset())
        concerned = using & self.names.keys()
        if not concerned:
            return
        slim = slim_pod(pod) or pod
        for name in concerned:
            self.by_claim[name].append(slim)
        self.count += len(concerned)
        while self.count > self.kept and len(self.names) > 1:
            name, _ = self.names.popitem()
            self.count -= len(self.by_claim.pop(name, ()))
