"""The check of ``claimctl doctor`` where pod templates ask for sticky claims: whether their policy
is in force, and whether the controller may make the claims."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.model import STICKY_CHECK, Finding
from claimctl.commands.doctor.rights import may
from claimctl.controller.preflight import GRANT, QUESTIONS_AT_ONCE
from claimctl.installation import POLICY_GROUP, STICKY_POLICY, policy_bindings
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import served_resource
from claimctl.parallel import mapped
from claimctl.reservation.facts.ordinals import asked_entries
from claimctl.text import listed
from claimctl.wire.access_reviews import Right
from claimctl.wire.ordinals import has_ordinals
from claimctl.wire.resources import RESOURCECLAIMS, RESOURCECLAIMTEMPLATES
from claimctl.wire.workloads import Workload, template_of

INSTALL = "claimctl install --component sticky-claims"
NOT_SERVED = (
    "this server does not serve MutatingAdmissionPolicies, as Kubernetes 1.36 and newer do; on "
    "1.34 and 1.35 they are a beta that is off by default"
)
_GROUP = RESOURCECLAIMS.group
RIGHTS = (
    Right("get", _GROUP, RESOURCECLAIMTEMPLATES.plural),
    Right("create", _GROUP, RESOURCECLAIMS.plural),
    Right("delete", _GROUP, RESOURCECLAIMS.plural),
)
"""The further rights of a controller that makes claims from templates."""


def asks(workload: Workload) -> bool:
    """Whether the pods of the workload would get sticky claims by the policy."""
    return has_ordinals(workload) and bool(asked_entries(template_of(workload)))


async def sticky_problems(
    client: Client, account: ControllerAccount | None, asking: Iterable[str]
) -> tuple[Finding, ...]:
    """What keeps the workloads that ask for sticky claims from them.

    Args:
        account: the controller's; None if its rights are not to be asked about.

    Raises:
        Forbidden: the user may not read the policy or its bindings.
    """
    who = listed(asking, 3)
    if why := await _not_in_force(client):
        text = f"pods get generated claims although {who} ask for sticky ones: {why}"
        return (Finding(STICKY_CHECK, text),)
    if lacking := await _lacking(client, account):
        rights = listed(map(str, lacking), len(RIGHTS))
        text = (
            f"the pods of {who} wait: the controller may not {rights}; `{GRANT}` applies its roles"
        )
        return (Finding(STICKY_CHECK, text),)
    return ()


async def _not_in_force(client: Client) -> str:
    """Why no policy names the claims of new pods; '' if one does."""
    discovery = Discovery(client)
    resource = await policy_bindings(discovery)
    plural = "mutatingadmissionpolicies"
    policies = await served_resource(discovery, POLICY_GROUP, plural)
    if resource is None or policies is None:
        return NOT_SERVED
    bindings = (await client.list(resource, partial=True)).items
    bound = any(binding.spec.policy_name == STICKY_POLICY for binding in bindings)
    if bound and await client.find(policies, STICKY_POLICY) is not None:
        return ""
    what = f"the policy {STICKY_POLICY}"
    missing = f"{what} has no binding" if not bound else f"{what} is missing"
    return f"{missing}; run `{INSTALL}`, then delete these pods, and the next ones get them"


async def _lacking(client: Client, account: ControllerAccount | None) -> list[Right]:
    """The rights that the controller lacks; none if the user may not ask about others: the check of
    permissions says that."""
    if account is None:
        return []
    try:
        answers = await mapped(partial(may, client, account), RIGHTS, QUESTIONS_AT_ONCE)
    except Forbidden:
        return []
    return [right for right, allowed in zip(RIGHTS, answers, strict=True) if not allowed]
