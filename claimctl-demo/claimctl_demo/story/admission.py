"""claimctl's admission policies, for the time of a step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from claimctl.commands.install.components import documents
from claimctl.kube.errors import NotServed
from claimctl.wire.base import Object
from claimctl_demo.story.stage import Stage


@asynccontextmanager
async def installed(stage: Stage, component: str) -> AsyncIterator[bool]:
    """Within the block, the component is installed if the cluster serves admission policies."""
    made: list[Object] = []
    try:
        for document in documents(component):
            try:
                await stage.user.create(document)
            except NotServed:
                break
            made.append(document)
        yield bool(made)
    finally:
        for document in reversed(made):
            kind = (document["apiVersion"], document["kind"])
            await stage.user.delete(kind, "", document["metadata"]["name"])
