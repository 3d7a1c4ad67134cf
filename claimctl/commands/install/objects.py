"""The objects of manifests in a cluster, read and written as plain documents."""

from __future__ import annotations

from contextlib import suppress

from claimctl.cli.errors import CommandFailed
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import NotFound, NotServed
from claimctl.wire.base import Object
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Clock, Transport

MANAGER = "claimctl-install"
"""The field manager of the installation."""
HELM_RELEASE = "meta.helm.sh/release-name"
HELM_NAMESPACE = "meta.helm.sh/release-namespace"


class Objects:
    """The objects that documents name by apiVersion, kind, namespace and name."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._client = Client(transport, clock, field_manager=MANAGER)
        self._discovery = Discovery(self._client)

    async def find(self, document: Object) -> Object | None:
        """The object as it is; None if it is not there, or if its kind is not served."""
        with suppress(NotFound, NotServed):
            resource = await self._discovery.of_kind(document["apiVersion"], document["kind"])
            meta = document["metadata"]
            return await self._client.get(resource, meta["name"], meta.get("namespace", ""))
        return None

    async def apply(self, document: Object, *, dry_run: bool) -> Object:
        """Apply the document on the server's side; raises NotServed if its kind is not served."""
        resource = await self._discovery.of_kind(document["apiVersion"], document["kind"])
        return await self._client.apply(resource, document, dry_run=dry_run)

    async def delete(self, document: Object) -> None:
        """Delete the object. One that is gone is no error."""
        resource = await self._discovery.of_kind(document["apiVersion"], document["kind"])
        meta = document["metadata"]
        with suppress(NotFound):
            await self._client.delete(resource, meta["name"], meta.get("namespace", ""))

    async def pods(self, namespace: str) -> list[Object]:
        return (await self._client.get_document(PODS.path(namespace), Object)).get("items") or []


def name_of(document: Object) -> str:
    """Kind, namespace and name, for people."""
    meta = document["metadata"]
    return f"{document['kind']} {'/'.join(filter(None, (meta.get('namespace'), meta['name'])))}"


def check_helm(existing: Object, verb: str) -> None:
    """Raise CommandFailed if a Helm release owns the object. ``verb`` is what helm does instead,
    such as uninstall."""
    annotations = existing["metadata"].get("annotations") or {}
    release, namespace = annotations.get(HELM_RELEASE), annotations.get(HELM_NAMESPACE, "")
    if release is not None:
        raise CommandFailed(
            f"the Helm release {release} in namespace {namespace} has installed claimctl: "
            f"use helm {verb} {release} -n {namespace}"
        )
