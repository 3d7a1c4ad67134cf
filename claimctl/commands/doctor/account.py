"""The installation: the controller as its Deployment and its Lease show it, and what is served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from claimctl.commands.claims.election import Election, State, election
from claimctl.installation import LEASE_NAME, Address, find_address
from claimctl.kube.client import Client
from claimctl.kube.discovery import Served, server_version, use_served_versions
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import list_if_allowed
from claimctl.parallel import side_by_side
from claimctl.wire.base import Wire
from claimctl.wire.meta import HasMetadata, ObjectHeader
from claimctl.wire.resources import DEPLOYMENTS, LEASES, read_as
from claimctl.wire.seams import Clock

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
    def outside(self) -> bool:
        """Whether the controller that acts is none of a Deployment, such as one on a laptop: then
        its rights are not those of the ServiceAccount."""
        return self.account is None and not self.refused and self.election.state is State.ACTING

    @property
    def served_versions(self) -> dict[str, tuple[str, ...]]:
        """The versions by API group, or by resource and group."""
        return {
            "resource.k8s.io": tuple(self.served.claims),
            "podgroups.scheduling.k8s.io": tuple(self.served.groups),
        }


async def read_installation(client: Client, clock: Clock) -> Installation:
    """Read it. What the user may not read is left out, and ``refused`` or ``election`` says so."""
    lease = f"metadata.name={LEASE_NAME}"
    async with side_by_side() as group:
        version = group.create_task(server_version(client))
        served = group.create_task(use_served_versions(client))
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
