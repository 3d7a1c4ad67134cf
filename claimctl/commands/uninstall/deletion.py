"""Deletes what ``claimctl install`` applies: every object of every component that is there."""

from __future__ import annotations

from collections.abc import Sequence

from claimctl.commands.install.components import NAMESPACE, every_document
from claimctl.commands.install.objects import Objects, check_helm, name_of
from claimctl.wire.base import Object


async def present(objects: Objects, namespace: str) -> list[Object]:
    """claimctl's objects that are there, in the order in which they go. CommandFailed if a Helm
    release owns one of them. ``namespace`` is that of the controller."""
    there = []
    for document in in_order_of_deletion(every_document(namespace)):
        existing = await objects.find(document)
        if existing is not None:
            check_helm(existing, "uninstall")
            there.append(document)
    return there


def in_order_of_deletion(documents: Sequence[Object]) -> list[Object]:
    """Each object once, the last component first, so that the CRDs go last. A namespace that others
    may use, too, is left out."""
    once = {(last["apiVersion"], name_of(last)): last for last in reversed(documents)}
    return [
        document
        for document in once.values()
        if document["kind"] != "Namespace" or document["metadata"]["name"] == NAMESPACE
    ]
