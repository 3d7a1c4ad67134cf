"""Reads the owners of owners that no cache shows, so that the chains of pods become known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import structlog

from claimctl.controller.caches.chains import Chains, group_of
from claimctl.controller.keys import WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.wire.meta import ObjectHeader, OwnerReference
from claimctl.wire.resources import read_as

log = structlog.get_logger(__name__)


PodKey = tuple[str, str]
"""Name and namespace."""


class Climber:
    """Reads one owner at a time, when a pod that names a claim has an owner that is not known."""

    def __init__(self, client: Client, chains: Chains) -> None:
        self.chains = chains
        self.resolved: Callable[[Iterable[PodKey]], None] = lambda pods: None
        """Called with the pods that asked, when the owner of an object has become known."""
        self._client = client
        self._discovery = Discovery(client)
        self._asked: dict[WorkloadKey, tuple[OwnerReference, set[PodKey]]] = {}

    def ask(self, key: WorkloadKey, reference: OwnerReference, pod: PodKey) -> None:
        """Note which incarnation to read when the key is reconciled, and for which pod.

        A pod under an earlier incarnation asks again when the later one has become known.
        """
        _, pods = self._asked.get(key, (None, set[PodKey]()))
        self._asked[key] = (reference, {*pods, pod})

    async def read(self, key: WorkloadKey) -> bool:
        """Read the owner of an object that was asked for; False if it was not.

        An object that is gone, or that the controller may not read, ends its chain.

        Raises:
            KubeError: a request failed.
        """
        if key not in self._asked:
            return False
        reference, _ = self._asked[key]
        owner = await read_owner(self._client, self._discovery, reference, key.namespace)
        self.chains.remember(reference.uid, owner)
        _, pods = self._asked.pop(key)
        self.resolved(pods)
        return True


async def read_owner(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> OwnerReference | None:
    """The controller of the object that the reference names. None if it has none, is gone, or may
    not be read.

    Raises:
        KubeError: a request failed.
    """
    try:
        live = await _header(client, discovery, reference, namespace)
        if live is None:
            # the server may serve another version by now, and answers 404 for the old one
            discovery.forget()
            live = await _header(client, discovery, reference, namespace)
    except (Forbidden, UnreadableObject) as error:
        log.info("chain ends", kind=reference.kind, name=reference.name, error=str(error))
        return None
    if live is None or live.metadata.uid != reference.uid:
        return None
    return live.metadata.controller()


async def _header(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> ObjectHeader | None:
    """The object that the reference names; None if the server has none."""
    resource = await discovery.workload((group_of(reference), reference.kind))
    if resource is None or not resource.namespaced:
        return None
    with suppress(NotFound):
        return await client.get(read_as(resource, ObjectHeader), reference.name, namespace)
    return None
