"""The pods that matter to some claims of a namespace, from one live LIST.

The LIST is read page by page, and only pods that matter are kept. So the memory that a run needs
does not depend on the number of pods in the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from claimctl.kube.client import PAGE, Client
from claimctl.kube.errors import Gone
from claimctl.reservation.pods import claim_names
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable

CHUNK = 100
"""How many claims of a namespace share one LIST of pods. This limits the pods in memory."""


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
    client: Client, claims: Iterable[ResourceClaim]
) -> AsyncIterator[tuple[list[ResourceClaim], PodsOfClaims]]:
    """Chunks of the claims, which are sorted by namespace, each with a LIST of its pods."""
    for namespace, group in groupby(claims, key=lambda claim: claim.metadata.namespace):
        members = list(group)
        for start in range(0, len(members), CHUNK):
            chunk = members[start : start + CHUNK]
            yield chunk, await list_pods_of(client, namespace, chunk)


async def list_pods_of(
    client: Client, namespace: str, claims: Iterable[ResourceClaim]
) -> PodsOfClaims:
    """List the pods of these claims, which must be of this namespace and read before.

    If a page token expires, everything is read again in one piece.

    Raises:
        KubeError: a request failed.
    """
    names, listed_by = set(), defaultdict(set)
    for claim in claims:
        names.add(claim.metadata.name)
        for entry in claim.status.reserved_for:
            listed_by[entry.uid].add(claim.metadata.name)
    try:
        return await _gather(client, namespace, names, listed_by, PAGE)
    except Gone:
        return await _gather(client, namespace, names, listed_by, 0)


async def _gather(
    client: Client,
    namespace: str,
    names: set[str],
    listed_by: dict[str, set[str]],
    limit: int,
) -> PodsOfClaims:
    by_claim: dict[str, list[Pod]] = defaultdict(list)
    unreadable: list[Unreadable] = []
    async for page in client.pages(PODS, namespace, limit=limit, partial=True):
        unreadable += page.unreadable
        for pod in page.items:
            concerned = (claim_names(pod) & names) | listed_by.get(pod.metadata.uid, set())
            for name in concerned:
                by_claim[name].append(pod)
    return PodsOfClaims(by_claim, tuple(unreadable))
