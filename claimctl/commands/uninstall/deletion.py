"""Deletes what ``claimctl install`` applies: every object of every component that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from claimctl.commands.install.apply import HELM_NAMESPACE, HELM_RELEASE, MANAGER
from claimctl.commands.install.components import NAMESPACE, every_document
from claimctl.kube.documents import DocumentClient
from claimctl.kube.errors import ApiError, NotServed
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport


class OfHelm(Exception):
    """A Helm release has installed claimctl. The text is one line."""


class Deletion:
    """The objects of claimctl in a cluster, and their deletion.

    Args:
        namespace: the namespace of the controller.
    """

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._client = DocumentClient(transport, MANAGER)
        self._documents = in_order_of_deletion(every_document(namespace))

    async def present(self) -> list[Object]:
        """The objects that are there, in the order in which they go.

        Raises:
            OfHelm: a Helm release owns one of them.
            ApiError: the caller may not read one of them.
        """
        there = []
        for document in self._documents:
            existing = await self._read(document)
            if existing is not None:
                _refuse_helm(existing)
                there.append(document)
        return there

    async def delete(self, documents: Iterable[Object], report: Callable[[str], None]) -> None:
        """Delete the objects; ``report`` gets the name of each.

        Raises:
            ApiError: the caller may not delete one of them.
        """
        for document in documents:
            meta = document["metadata"]
            place = meta.get("namespace", "")
            try:
                await self._client.delete(_kind(document), place, meta["name"])
            except ApiError as error:
                if error.status != 404:
                    raise
            report(name_of(document))

    async def _read(self, document: Object) -> Object | None:
        meta = document["metadata"]
        try:
            return await self._client.get(_kind(document), meta.get("namespace", ""), meta["name"])
        except NotServed:
            return None
        except ApiError as error:
            if error.status == 404:
                return None
            raise


def in_order_of_deletion(documents: Sequence[Object]) -> list[Object]:
    """Each object once, the last component first, so that the CRDs go last.

    A namespace that others may use, too, is left out.
    """
    once = {(*_kind(document), name_of(document)): document for document in reversed(documents)}
    return [
        document
        for document in once.values()
        if document["kind"] != "Namespace" or document["metadata"]["name"] == NAMESPACE
    ]


def name_of(document: Object) -> str:
    """Kind, namespace and name, as ``claimctl install`` prints them."""
    meta = document["metadata"]
    name = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
    return f"{document['kind']} {name}"


def _kind(document: Object) -> tuple[str, str]:
    return document["apiVersion"], document["kind"]


def _refuse_helm(existing: Object) -> None:
    notes = existing["metadata"].get("annotations") or {}
    release = notes.get(HELM_RELEASE)
    if release is not None:
        place = notes.get(HELM_NAMESPACE, "")
        raise OfHelm(
            f"the Helm release {release} in namespace {place} has installed claimctl: "
            f"use helm uninstall {release} -n {place}"
        )
