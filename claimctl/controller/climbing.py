"""Reads the owners of owners that no cache shows, so that the chains of pods become known."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from claimctl.controller.caches.chains import Chains, group_of
from claimctl.controller.keys import WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.wire.meta import ObjectHeader, OwnerReference
from claimctl.wire.resources import read_as

log = structlog.get_logger(__name__)


class Climber:
    """Reads one owner at a time, when a pod that names a claim has an owner that is not known."""

    def __init__(self, client: Client, chains: Chains) -> None:
        self.chains = chains
        self.resolved: Callable[[str, OwnerReference], None] = lambda namespace, owner: None
        """Called when the owner of an object has become known."""
        self._client = client
        self._asked: dict[WorkloadKey, OwnerReference] = {}

    def ask(self, key: WorkloadKey, reference: OwnerReference) -> None:
        """Note which incarnation to read when the key is reconciled."""
        self._asked[key] = reference

    async def read(self, key: WorkloadKey) -> bool:
        """Read the owner of an object that was asked for; False if it was not.

        An object that is gone, or that the controller may not read, ends its chain.

        Raises:
            KubeError: a request failed.
        """
        reference = self._asked.get(key)
        if reference is None:
            return False
        discovery = Discovery(self._client)
        owner = await read_owner(self._client, discovery, reference, key.namespace)
        del self._asked[key]
        self.chains.remember(reference.uid, owner)
        self.resolved(key.namespace, reference)
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
        resource = await discovery.workload((group_of(reference), reference.kind))
        if resource is None or not resource.namespaced:
            return None
        header = read_as(resource, ObjectHeader)
        live = await client.get(header, reference.name, namespace)
    except NotFound:
        return None
    except (Forbidden, UnreadableObject) as error:
        log.info("chain ends", kind=reference.kind, name=reference.name, error=str(error))
        return None
    return live.metadata.controller() if live.metadata.uid == reference.uid else None
