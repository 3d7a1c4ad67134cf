"""What commands say about an object that does not exist, with the claims that there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from claimctl.cli.errors import CommandFailed
from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError, NotFound
from claimctl.text import listed
from claimctl.wire.resources import RESOURCECLAIMS


@asynccontextmanager
async def naming(
    client: Client, kind: str, namespace: str, name: str, about: str = "", fix: str = ""
) -> AsyncIterator[None]:
    """Raise CommandFailed if the object does not exist, with a plain sentence that begins with
    ``about`` and ends with ``fix``."""
    try:
        yield
    except NotFound as error:
        if f'"{name}" not found' not in error.message:
            raise
        what = "claim" if kind == "ResourceClaim" else kind
        others = await others_than(client, namespace) if what == "claim" else ""
        raise CommandFailed(f"{about}{what} {namespace}/{name} not found{others}{fix}") from error


async def others_than(client: Client, namespace: str) -> str:
    """The claims that there are, for a user who has mistyped one."""
    try:
        claims = (await client.list(RESOURCECLAIMS, namespace, partial=True)).items
    except KubeError:
        return ""
    names = sorted(claim.metadata.name for claim in claims)
    return f"; there are: {listed(names, 5)}" if names else "; there is no claim in the namespace"
