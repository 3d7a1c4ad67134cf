"""The versions of the client, the controller and the CRDs, and whether they go together."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from claimctl import __version__
from claimctl.commands.claims.explanation import recorded_dialect
from claimctl.commands.doctor.account import (
    ControllerAccount,
    Installation,
    read_installation,
)
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.live_objects import list_if_allowed
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import CLAIMRESERVATIONS, Resource
from claimctl.wire.seams import Clock

VERSION_LABEL = "app.kubernetes.io/version"
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


@dataclass(frozen=True, slots=True)
class Versions:
    """What runs in the cluster, as far as the user may read it."""

    there: Installation
    crds: tuple[str, ...]
    """The served versions of claimctl.io; empty if claimctl is not installed."""
    crds_release: str
    """The version of claimctl that the CRDs are from; '' if it may not be read."""
    dialect: str
    """The dialect that a controller recorded in a ClaimReservation; '' if there is none."""

    @property
    def skew(self) -> tuple[Skew, str]:
        """Whether all known parts go together, with a sentence."""
        return skew_of(self.there.account, self.crds_release)


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


async def versions(client: Client, clock: Clock) -> Versions:
    """Read the versions of a cluster. A missing right is no error."""
    return Versions(
        there=await read_installation(client, clock),
        crds=await Discovery(client).versions(CLAIMRESERVATIONS.group),
        crds_release=await read_crds_release(client),
        dialect=recorded_dialect((await list_if_allowed(client, CLAIMRESERVATIONS)).items),
    )


async def read_crds_release(client: Client) -> str:
    """The version of claimctl that the CRDs are from; '' if it may not be read."""
    with suppress(Forbidden, NotFound):
        name = f"{CLAIMRESERVATIONS.plural}.{CLAIMRESERVATIONS.group}"
        labels = (await client.get(_DEFINITIONS, name)).metadata.labels or {}
        return labels.get(VERSION_LABEL, "")
    return ""
