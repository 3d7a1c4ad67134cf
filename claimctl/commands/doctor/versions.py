"""The versions of the client, the controller and the CRDs, whether they go together, and the
document of ``claimctl version``."""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from enum import StrEnum

from claimctl import __version__
from claimctl.cli.documents import Document, Names, Part, by_names
from claimctl.commands.claims.election import ControllerState
from claimctl.commands.doctor.account import ControllerAccount, read_installation
from claimctl.installation import VERSION_LABEL
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.live_objects import list_if_allowed
from claimctl.reservation.facts.dialects import recorded_dialect
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import CLAIMRESERVATIONS, Resource
from claimctl.wire.seams import Clock

_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    ObjectHeader,
    namespaced=False,
)


class Skew(StrEnum):
    NONE = "None"
    DIFFERENT = "Different"
    """Two of them differ in major or minor version."""
    UNKNOWN = "Unknown"
    """Neither the controller's nor the CRDs' version may be read, or has the form of one."""


class ControllerImage(Part, frozen=True):
    namespace: str
    deployment: str
    images: Names
    ready: int
    wanted: int


class SkewState(Part, frozen=True):
    verdict: Skew
    message: str


class ServerVersions(Part, frozen=True):
    kubernetes: str
    served_versions: dict[str, Names]
    crds_from: str | None
    controller: ControllerImage | None
    lease: ControllerState
    dialect: str | None
    skew: SkewState


class Version(Document, frozen=True):
    """``claimctl version``"""

    claimctl: str
    python: str
    server: ServerVersions | None


def skew_of(account: ControllerAccount | None, crds_release: str) -> tuple[Skew, str]:
    """Whether all known parts have the same major and minor version, with a sentence."""
    images = account.images if account is not None else ()
    tags = [release for release in map(release_of, images) if release]
    texts = {"client": __version__, "crds": crds_release, "controller": (*tags, "")[0]}
    known = {part: text for part, text in texts.items() if text}
    if len(known) == 1:
        return Skew.UNKNOWN, "neither the controller's nor the CRDs' version is known"
    parts = ", ".join(f"{part} {release}" for part, release in known.items())
    if len({tuple(release.split(".")[:2]) for release in known.values()}) == 1:
        return Skew.NONE, f"they go together: {parts}"
    return Skew.DIFFERENT, f"they differ: {parts}; upgrade the older ones"


def release_of(image: str) -> str:
    """The version in the tag of an image, without 'v'; '' if the tag is not a version."""
    match = re.search(r":v?(\d+\.\d+\.\d+[^@/]*)(@|$)", image)
    return match[1] if match else ""


async def read_versions(client: Client, clock: Clock) -> ServerVersions:
    """Read the versions of a cluster. A missing right is no error."""
    there = await read_installation(client, clock)
    release = await read_crds_release(client)
    served = await Discovery(client).versions(CLAIMRESERVATIONS.group)
    reservations = await list_if_allowed(client, CLAIMRESERVATIONS)
    verdict, message = skew_of(there.account, release)
    return ServerVersions(
        kubernetes=".".join(map(str, there.kubernetes)),
        served_versions={**there.served_versions, CLAIMRESERVATIONS.group: served},
        crds_from=release or None,
        controller=by_names(there.account, ControllerImage) if there.account else None,
        lease=by_names(there.election, ControllerState),
        dialect=recorded_dialect(reservations.items) or None,
        skew=SkewState(verdict=verdict, message=message),
    )


def version_of(server: ServerVersions | None) -> Version:
    python = platform.python_version()
    return Version(claimctl=__version__, python=python, server=server)


async def read_crds_release(client: Client) -> str:
    """The version of claimctl that the CRDs are from; '' if it may not be read."""
    with suppress(Forbidden, NotFound):
        name = f"{CLAIMRESERVATIONS.plural}.{CLAIMRESERVATIONS.group}"
        labels = (await client.get(_DEFINITIONS, name)).metadata.labels or {}
        return labels.get(VERSION_LABEL, "")
    return ""
