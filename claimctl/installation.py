"""Where claimctl is installed: the one namespace whose Lease and Deployment count; and the bindings
of its policy for sticky claims.

Anybody can make a Lease or a Deployment with claimctl's names in a namespace of their own. Only an
administrator can write the ClusterRoleBinding that gives a ServiceAccount the rights of the
controller. So the binding says which namespace is meant, and everything elsewhere is a stranger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import ApiError, Forbidden
from claimctl.live_objects import is_held, served_resource
from claimctl.wire.access_reviews import OWN_IDENTITY
from claimctl.wire.base import Wire
from claimctl.wire.coordination import Lease
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import LEASES, Resource, kind_of, read_as
from claimctl.wire.seams import Clock

INSTALLED = "claimctl-system"
"""The namespace of the controller, if it was installed as README.md says."""
LEASE_NAME = "claimctl-controller"
VERSION_LABEL = "app.kubernetes.io/version"
"""On what is installed: the version of claimctl that it is from."""
BINDINGS = ("claimctl-controller", "claimctl-controller-reader")
"""The ClusterRoleBinding of the controller, and that of one that serves a single namespace."""


class BoundSubject(Wire, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class ClusterRoleBinding(ObjectHeader, frozen=True, kw_only=True):
    subjects: tuple[BoundSubject, ...] = ()


_CONTROLLER = re.compile("system:serviceaccount:([^:]+):claimctl-controller")
_BINDINGS = kind_of("rbac.authorization.k8s.io/v1", ClusterRoleBinding, namespaced=False)


@dataclass(frozen=True, slots=True)
class Address:
    """The namespace and the ServiceAccount of the controller."""

    namespace: str = INSTALLED
    service_account: str = "claimctl-controller"
    assumed: str = ""
    """Why no ClusterRoleBinding confirms the address; '' if one does."""


async def find_address(client: Client, namespace: str = INSTALLED) -> Address:
    """The address that the ClusterRoleBinding names; else the given namespace is assumed.

    The controller itself may not read its binding. Where a caller has the name of its
    ServiceAccount, as in ``helm test``, the caller's namespace is assumed.
    """
    for name in BINDINGS:
        try:
            binding = await client.find(_BINDINGS, name)
        except Forbidden:
            why = f"you may not read the ClusterRoleBinding {name}"
            own = _CONTROLLER.fullmatch(await own_name(client))
            return Address(own[1] if own else namespace, assumed=why)
        subjects = binding.subjects if binding is not None else ()
        accounts = [subject for subject in subjects if subject.kind == "ServiceAccount"]
        if accounts:
            here = [account for account in accounts if account.namespace == namespace]
            account = (here or accounts)[0]
            return Address(account.namespace, account.name)
    return Address(namespace, assumed=f"there is no ClusterRoleBinding {BINDINGS[0]}")


async def own_name(client: Client) -> str:
    """The user name that the API server sees, by SelfSubjectReview; '' if it does not say."""
    try:
        review = await client.create(OWN_IDENTITY, {})
    except ApiError:
        return ""
    return review.status.user_info.username


async def controller_lease(client: Client, address: Address) -> Lease | None:
    """The controller's Lease; None if there is none."""
    return await client.find(LEASES, LEASE_NAME, address.namespace)


async def controller_runs(client: Client, clock: Clock, namespace: str = INSTALLED) -> bool:
    """Whether a controller holds its Lease and has renewed it in time.

    Args:
        namespace: where the controller is, if no ClusterRoleBinding says that.
    """
    lease = await controller_lease(client, await find_address(client, namespace))
    return lease is not None and is_held(lease, clock.now())


STICKY_POLICY = "claimctl-sticky-claims"
"""The name of the policy that gives new pods the names of sticky claims."""
STICKY_POLICIES = (STICKY_POLICY, f"{STICKY_POLICY}-by-rule")
"""That policy, and the one for kinds whose WorkloadKind names the labels of the ordinals."""
POLICY_GROUP = "admissionregistration.k8s.io"


class PolicyBindingSpec(Wire, frozen=True, kw_only=True):
    policy_name: str = ""


class PolicyBinding(ObjectHeader, frozen=True, kw_only=True):
    """What puts a MutatingAdmissionPolicy in force."""

    spec: PolicyBindingSpec = PolicyBindingSpec()


async def policy_bindings(discovery: Discovery) -> Resource[PolicyBinding] | None:
    """The resource of the bindings in the version that the server serves; None if there is none."""
    plural = "mutatingadmissionpolicybindings"
    resource = await served_resource(discovery, POLICY_GROUP, plural)
    return read_as(resource, PolicyBinding) if resource is not None else None
