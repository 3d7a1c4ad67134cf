"""The installation: the controller as its Deployment and its Lease show it, its rights, and the
kinds of workloads that it cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.controller_health import Election, election
from claimctl.commands.doctor.cluster_checks import Finding
from claimctl.controller.caches.kinds import AGGREGATE, VERBS
from claimctl.controller.preflight import QUESTIONS_AT_ONCE, wanted_rights
from claimctl.installation import LEASE_NAME, Address, find_address
from claimctl.kube.client import Client
from claimctl.kube.discovery import Served, look, server_version
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import list_if_allowed
from claimctl.parallel import mapped, side_by_side
from claimctl.wire.access_reviews import OWN_ACCESS, Right
from claimctl.wire.base import Wire
from claimctl.wire.meta import HasMetadata, ObjectHeader
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import DEPLOYMENTS, LEASES, WORKLOADS, Resource, read_as
from claimctl.wire.seams import Clock
from claimctl.wire.workloads import CustomWorkload

ACCESS_OF_OTHERS = replace(OWN_ACCESS, plural="subjectaccessreviews", kind="SubjectAccessReview")
SELECTOR = "app.kubernetes.io/name=claimctl,app.kubernetes.io/component=controller"
"""The labels of the controller's Deployment, however it was installed."""


class _Container(Wire, frozen=True, kw_only=True):
    image: str = ""


class _DeploymentPodSpec(Wire, frozen=True, kw_only=True):
    service_account_name: str = ""
    containers: tuple[_Container, ...] = ()


class _DeploymentTemplate(Wire, frozen=True, kw_only=True):
    spec: _DeploymentPodSpec = _DeploymentPodSpec()


class _DeploymentSpec(Wire, frozen=True, kw_only=True):
    replicas: int | None = None
    template: _DeploymentTemplate = _DeploymentTemplate()


class _DeploymentStatus(Wire, frozen=True, kw_only=True):
    ready_replicas: int = 0


class _Deployment(ObjectHeader, frozen=True, kw_only=True):
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()


_DEPLOYMENTS = read_as(DEPLOYMENTS, _Deployment)


@dataclass(frozen=True, slots=True)
class ControllerAccount:
    """The controller's Deployment. The defaults are those of ``deploy/``."""

    namespace: str
    service_account: str = "claimctl-controller"
    deployment: str = "claimctl-controller"
    images: tuple[str, ...] = ()
    wanted: int = 0
    ready: int = 0

    @property
    def user(self) -> str:
        """The user name of the ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"


@dataclass(frozen=True, slots=True)
class Deployments:
    """The controller's Deployment, and what looks like one in other namespaces."""

    account: ControllerAccount | None
    strangers: tuple[str, ...] = ()


async def deployments_of(client: Client, address: Address) -> Deployments:
    """The Deployments with the controller's labels; those elsewhere if the user may list them.
    Forbidden if the user may not list those of the controller's namespace."""
    try:
        listed = await client.list(_DEPLOYMENTS, label_selector=SELECTOR, partial=True)
    except Forbidden:
        listed = await client.list(
            _DEPLOYMENTS, address.namespace, label_selector=SELECTOR, partial=True
        )
    here = [it for it in listed.items if it.metadata.namespace == address.namespace]
    strangers = _elsewhere("Deployment", listed.items, address)
    if not here:
        return Deployments(None, strangers)
    deployment = max(here, key=lambda deployment: deployment.status.ready_replicas)
    pods = deployment.spec.template.spec
    account = ControllerAccount(
        namespace=deployment.metadata.namespace,
        service_account=pods.service_account_name or "default",
        deployment=deployment.metadata.name,
        images=tuple(container.image for container in pods.containers),
        wanted=1 if deployment.spec.replicas is None else deployment.spec.replicas,
        ready=deployment.status.ready_replicas,
    )
    return Deployments(account, strangers)


def _elsewhere(kind: str, objects: Iterable[HasMetadata], address: Address) -> tuple[str, ...]:
    """The objects of other namespaces than the controller's, for people."""
    metas = (it.metadata for it in objects if it.metadata.namespace != address.namespace)
    return tuple(sorted(f"{kind} {meta.namespace}/{meta.name}" for meta in metas))


@dataclass(frozen=True, slots=True)
class Installation:
    """What serves claims in the cluster, as far as the user may read it."""

    kubernetes: tuple[int, int]
    served: Served
    account: ControllerAccount | None
    """None if there is no Deployment, or if it may not be read."""
    refused: str
    """Why ``account`` may not be read; '' if it may."""
    election: Election
    address: Address
    strangers: tuple[str, ...] = ()
    """Leases and Deployments that look like the controller's and are in other namespaces."""

    @property
    def served_versions(self) -> dict[str, tuple[str, ...]]:
        """The versions by API group, or by resource and group."""
        return {
            "resource.k8s.io": tuple(self.served.claims),
            "podgroups.scheduling.k8s.io": tuple(self.served.groups),
        }


async def read_installation(client: Client, clock: Clock) -> Installation:
    lease = f"metadata.name={LEASE_NAME}"
    async with side_by_side() as group:
        version = group.create_task(server_version(client))
        served = group.create_task(look(client))
        leases = group.create_task(list_if_allowed(client, LEASES, field_selector=lease))
        address = await find_address(client)
        elected = group.create_task(election(client, clock.now(), address))
        deployments, refused = Deployments(None), ""
        try:
            deployments = await deployments_of(client, address)
        except Forbidden:
            refused = f"you may not list Deployments in namespace {address.namespace}"
    return Installation(
        version.result(),
        served.result(),
        deployments.account,
        refused,
        elected.result(),
        address,
        (*_elsewhere("Lease", leases.result().items, address), *deployments.strangers),
    )


async def missing_rights_of(
    client: Client, account: ControllerAccount, *, binding: bool, groups: bool
) -> tuple[str, ...]:
    """The rights that the controller's ServiceAccount lacks, by SubjectAccessReview. Forbidden if
    the user may not ask about others."""
    rights = wanted_rights(binding=binding, groups=groups)
    allowed = await mapped(partial(may, client, account), rights, QUESTIONS_AT_ONCE)
    return tuple(str(right) for right, may_ in zip(rights, allowed, strict=True) if not may_)


async def may(client: Client, account: ControllerAccount, right: Right) -> bool:
    """Whether the controller has the right in all namespaces; Forbidden if the user may not ask."""
    spec = {
        "user": account.user,
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{account.namespace}",
            "system:authenticated",
        ],
        "resourceAttributes": right.attributes(),
    }
    return (await client.create(ACCESS_OF_OTHERS, {"spec": spec})).status.allowed


async def kind_problems(
    client: Client, account: ControllerAccount, reservations: Iterable[ClaimReservation]
) -> tuple[Finding, ...]:
    """The kinds that a ClaimReservation or a WorkloadKind names and that the controller cannot
    know."""
    kinds = KindReader(client)
    refs = {reservation.spec.workload_ref for reservation in reservations}
    named = {(ref.api_group, ref.kind) for ref in refs} | (await kinds.rules()).keys()
    problems = []
    for kind in sorted(named - WORKLOADS.keys()):
        state = await kinds.state(kind)
        problem = state.problem
        if not problem and state.resource is not None:
            problem = await _missing_role(client, account, state.resource)
        if problem:
            problems.append(Finding("kinds", problem, object=f"{kind[1]}.{kind[0]}"))
    return tuple(problems)


async def _missing_role(
    client: Client, account: ControllerAccount, resource: Resource[CustomWorkload]
) -> str:
    """The rights that the controller lacks, with the commands that give them; '' if none, or if
    the user may not ask."""
    plural, group = resource.plural, resource.group
    try:
        rights = [Right(verb, group, plural) for verb in VERBS]
        lacking = [it.verb for it in rights if not await may(client, account, it)]
    except Forbidden:
        return ""
    if not lacking:
        return ""
    role = f"claimctl-workloads-{plural}"
    return (
        f"the controller may not {', '.join(lacking)} {plural}.{group}; apply: "
        f"kubectl create clusterrole {role} --verb={','.join(VERBS)} --resource={plural}.{group} "
        f"&& kubectl label clusterrole {role} {AGGREGATE}=true"
    )
