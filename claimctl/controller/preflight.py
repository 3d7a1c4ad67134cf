"""Checks before the start: the cluster serves the watched resources and grants the rights."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.controller.caches.informers import WATCHED
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery, use_served_versions
from claimctl.kube.errors import ApiError
from claimctl.parallel import mapped
from claimctl.telemetry.face import LateLogger
from claimctl.wire.access_reviews import Right
from claimctl.wire.resources import CLAIMRESERVATIONS, PODGROUPS

log = LateLogger(__name__)


QUESTIONS_AT_ONCE = 8
"""How many rights are asked about at a time."""


class NotReady(Exception):
    """The cluster lacks an API or a right that the controller needs. The message is one line."""


_CLAIMS, _CLAIMCTL = "resource.k8s.io", CLAIMRESERVATIONS.group

_WATCH_VERBS = ("list", "watch")
_OF_CLUSTER = (
    Right("patch", _CLAIMCTL, "downgradeplans", "status"),
    Right("patch", _CLAIMCTL, "workloadkinds", "status"),
)
"""Writes of objects without a namespace. A controller of some namespaces does without them."""
ACTION_RIGHTS = (
    Right("patch", _CLAIMS, "resourceclaims"),
    Right("patch", _CLAIMS, "resourceclaims", "status"),
    Right("get", _CLAIMCTL, "claimreservations"),
    Right("patch", _CLAIMCTL, "claimreservations"),
    Right("patch", _CLAIMCTL, "claimreservations", "status"),
    Right("create", _CLAIMCTL, "claimreservations"),
    Right("delete", _CLAIMCTL, "claimreservations"),
    *_OF_CLUSTER,
    Right("get", "", "pods"),
)
"""For the writes of the controller, and for the live reads before them (get). It runs without such
a right, and reports it for each claim."""
BINDING = Right("patch", _CLAIMS, "resourceclaims", "binding")
"""Needed from Kubernetes 1.36, besides resourceclaims/status, cluster-wide."""
GROUP_WATCH_RIGHTS = tuple(Right(verb, PODGROUPS.group, PODGROUPS.plural) for verb in _WATCH_VERBS)
GROUP_ACTION_RIGHTS = tuple(
    Right(verb, PODGROUPS.group, PODGROUPS.plural) for verb in ("get", "create", "patch", "delete")
)
"""Needed in dialect podgroup."""

GRANT = "claimctl install --component rbac"
"""The command that grants all rights of the controller."""
DEFINE = "claimctl install --component crds"
"""The command that creates claimctl's CustomResourceDefinitions."""


async def check_served(client: Client) -> None:
    """Check that the cluster serves every watched resource in a version that claimctl supports.

    Raises:
        NotReady: a resource is not served. For claimctl's own, the message says how to install it.
    """
    await use_served_versions(client)
    discovery = Discovery(client)
    for resource in map(client.served, WATCHED):
        if resource.plural in await discovery.plurals(resource.group, resource.version):
            continue
        if resource.group == CLAIMRESERVATIONS.group:
            name = f"{resource.plural}.{resource.group}"
            raise NotReady(f"the CustomResourceDefinition {name} is missing: {DEFINE}")
        raise NotReady(f"the cluster does not serve {resource.plural} of {resource.api_version}")


async def may_follow_groups(client: Client) -> bool:
    """Whether PodGroups may be watched; yes if the server does not answer access reviews."""
    try:
        return all([await client.allowed(right) for right in GROUP_WATCH_RIGHTS])
    except ApiError:
        return True


async def check_rights(
    client: Client, *, binding: bool, groups: bool = False, namespaces: frozenset[str] = frozenset()
) -> None:
    """Check that all resources may be watched, and log the actions that are not permitted. Nothing
    is checked if the server does not answer access reviews.

    Args:
        namespaces: where the controller acts; empty means everywhere.

    Raises:
        NotReady: watching is forbidden; the message names verb and resource.
    """
    rights = wanted_rights(binding=binding, groups=groups)
    watches = [right for right in rights if right.verb in _WATCH_VERBS]
    actions = [right for right in rights if right.verb not in _WATCH_VERBS]
    try:
        unwatched = [right for right in watches if not await client.allowed(right)]
        forbidden = [right for right in actions if not await _allowed_in(client, right, namespaces)]
    except ApiError as error:
        log.warning("rights are not checked", error=str(error))
        return
    if unwatched:
        raise NotReady(f"not permitted: {', '.join(map(str, unwatched))}: {GRANT}")
    if forbidden:
        missing = ", ".join(map(str, forbidden))
        log.warning("not permitted, some claims cannot be served", missing=missing)


def wanted_rights(*, binding: bool, groups: bool) -> tuple[Right, ...]:
    """All rights of the controller, those to watch first."""
    return (
        *(Right(verb, item.group, item.plural) for item in WATCHED for verb in _WATCH_VERBS),
        *(GROUP_WATCH_RIGHTS if groups else ()),
        *ACTION_RIGHTS,
        *((BINDING,) if binding else ()),
        *(GROUP_ACTION_RIGHTS if groups else ()),
    )


async def missing_rights(client: Client, *, binding: bool, groups: bool) -> tuple[str, ...]:
    """The rights of the controller that the caller lacks, by SelfSubjectAccessReview."""
    rights = wanted_rights(binding=binding, groups=groups)
    allowed = await mapped(client.allowed, rights, QUESTIONS_AT_ONCE)
    return tuple(str(right) for right, may in zip(rights, allowed, strict=True) if not may)


async def _allowed_in(client: Client, right: Right, namespaces: Iterable[str]) -> bool:
    """Whether an action is permitted in all the namespaces; in the whole cluster if there are none,
    and for ``BINDING``."""
    places = tuple(sorted(namespaces))
    if not places or right == BINDING:
        return await client.allowed(right)
    if right in _OF_CLUSTER:
        return True  # it carries out no plan, and WorkloadKinds keep the statuses they have
    return all([await client.allowed(right, place) for place in places])
