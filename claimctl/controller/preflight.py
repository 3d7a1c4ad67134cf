"""What has to be there before anything starts: the resources to be watched and the rights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import structlog

from claimctl.controller.caches.informers import WATCHED
from claimctl.controller.dialect.api_versions import look, resources
from claimctl.kube.client import Client
from claimctl.kube.errors import ApiError
from claimctl.wire.resources import CLAIMRESERVATIONS, PODGROUPS, Resource

log = structlog.get_logger(__name__)


class NotReady(Exception):
    """The cluster lacks what the controller cannot do without; one line that says what."""


@dataclass(frozen=True, slots=True)
class Right:
    verb: str
    group: str
    resource: str
    subresource: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {name}" + (f".{self.group}" if self.group else "")


_CLAIMS, _OURS = "resource.k8s.io", CLAIMRESERVATIONS.group

WRITES = (
    Right("patch", _CLAIMS, "resourceclaims"),
    Right("patch", _CLAIMS, "resourceclaims", "status"),
    Right("patch", _OURS, "claimreservations"),
    Right("patch", _OURS, "claimreservations", "status"),
    Right("create", _OURS, "claimreservations"),
    Right("delete", _OURS, "claimreservations"),
    Right("patch", _OURS, "downgradeplans", "status"),
    Right("get", "", "pods"),
)
"""Without these the controller runs and says what it may not do, claim by claim."""

BINDING = Right("patch", _CLAIMS, "resourceclaims", "binding")
"""From 1.36 on beside resourceclaims/status, cluster-wide."""


async def check_served(client: Client) -> None:
    """See that every resource to be watched is served, in whatever version claimctl speaks.

    Raises:
        NotReady: one is not; for ours the text says how to install it.
    """
    await look(client)
    watched = [client.served(each) for each in WATCHED]
    for group, version in dict.fromkeys((each.group, each.version) for each in watched):
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        served = await resources(client, path)
        for resource in watched:
            if (resource.group, resource.version) == (group, version):
                _require(resource, served)


def _require(resource: Resource[Any], served: frozenset[str]) -> None:
    if resource.plural in served:
        return
    if resource.group == CLAIMRESERVATIONS.group:
        name = f"{resource.plural}.{resource.group}"
        raise NotReady(f"the CustomResourceDefinition {name} is missing: kubectl apply -k crds")
    raise NotReady(f"the cluster does not serve {resource.plural} of {resource.api_version}")


GROUP_READS = tuple(Right(verb, PODGROUPS.group, PODGROUPS.plural) for verb in ("list", "watch"))
GROUP_WRITES = tuple(
    Right(verb, PODGROUPS.group, PODGROUPS.plural) for verb in ("get", "create", "patch", "delete")
)
"""In dialect podgroup, beside the others; a group is read live (get) only before it is written."""

GRANT = "kubectl apply -k rbac"
"""What gives a controller all its rights."""


async def may_follow_groups(client: Client) -> bool:
    """Whether PodGroups may be read; a server that answers no such question is tried."""
    try:
        return all([await _allowed(client, right) for right in GROUP_READS])
    except ApiError:
        return True


async def check_rights(client: Client, *, binding: bool, groups: bool = False) -> None:
    """See that everything to be watched may be read, and tell what may not be written.

    Where the server answers no such question, trying will tell.

    Raises:
        NotReady: reading is forbidden; the text names verb and resource.
    """
    reads, writes = _wanted(binding=binding, groups=groups)
    try:
        unread = [right for right in reads if not await _allowed(client, right)]
        unwritten = [right for right in writes if not await _allowed(client, right)]
    except ApiError as error:
        log.warning("rights are not checked", error=str(error))
        return
    if unread:
        raise NotReady(f"not permitted: {_listed(unread)}: {GRANT}")
    if unwritten:
        log.warning("not permitted, some claims cannot be served", missing=_listed(unwritten))


def _wanted(*, binding: bool, groups: bool) -> tuple[tuple[Right, ...], tuple[Right, ...]]:
    """What a controller reads and what it writes."""
    writes = (*WRITES, *((BINDING,) if binding else ()), *(GROUP_WRITES if groups else ()))
    return (*_reads(), *(GROUP_READS if groups else ())), writes


async def missing_rights(client: Client, *, binding: bool, groups: bool) -> tuple[str, ...]:
    """What a controller needs and whoever asks may not do, by SelfSubjectAccessReview."""
    reads, writes = _wanted(binding=binding, groups=groups)
    rights = (*reads, *writes)
    return tuple([str(right) for right in rights if not await _allowed(client, right)])


def _reads() -> Iterator[Right]:
    for resource in WATCHED:
        yield Right("list", resource.group, resource.plural)
        yield Right("watch", resource.group, resource.plural)


async def _allowed(client: Client, right: Right) -> bool:
    return await client.allowed(
        right.verb, right.group, right.resource, subresource=right.subresource
    )


def _listed(rights: Iterable[Right]) -> str:
    return ", ".join(str(right) for right in rights)
