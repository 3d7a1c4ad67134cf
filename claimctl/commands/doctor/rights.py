"""What the controller's ServiceAccount may do, and the kinds of workloads that it cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from claimctl.cli.kinds import KindReader
from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.model import Finding
from claimctl.controller.caches.kinds import AGGREGATE, VERBS
from claimctl.controller.dialect import Detection
from claimctl.controller.preflight import QUESTIONS_AT_ONCE, missing_rights, wanted_rights
from claimctl.installation import own_name
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.parallel import mapped
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.wire.access_reviews import OWN_ACCESS, Right
from claimctl.wire.releases import FROM_1_36
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import WORKLOADS, Resource
from claimctl.wire.workloads import CustomWorkload

ACCESS_OF_OTHERS = replace(OWN_ACCESS, plural="subjectaccessreviews", kind="SubjectAccessReview")


async def lacking_rights(
    client: Client,
    account: ControllerAccount,
    detection: Detection | None,
    version: tuple[int, int],
) -> tuple[tuple[str, ...], str]:
    """The rights that the controller lacks, or why that is not known."""
    groups = detection is not None and DIALECTS[detection.dialect].groups
    wanted = {"binding": version >= FROM_1_36, "groups": groups}
    try:
        return await missing_rights_of(client, account, **wanted), ""
    except Forbidden:
        if await own_name(client) == account.user:
            return await missing_rights(client, **wanted), ""
    return (), f"you may not ask which rights {account.user} has; --as {account.user} tells, too"


async def missing_rights_of(
    client: Client, account: ControllerAccount, *, binding: bool, groups: bool
) -> tuple[str, ...]:
    """The rights that the controller's ServiceAccount lacks, by SubjectAccessReview. Forbidden if
    the user may not ask about others."""
    rights = wanted_rights(binding=binding, groups=groups)
    answers = await mapped(partial(may, client, account), rights, QUESTIONS_AT_ONCE)
    return tuple(str(right) for right, allowed in zip(rights, answers, strict=True) if not allowed)


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
    client: Client, account: ControllerAccount | None, reservations: Iterable[ClaimReservation]
) -> tuple[Finding, ...]:
    """The kinds that a ClaimReservation or a WorkloadKind names and that the controller cannot
    know.

    Args:
        account: the controller's; None if its rights are not to be asked about.
    """
    kinds = KindReader(client)
    refs = {reservation.spec.workload_ref for reservation in reservations}
    named = {(ref.api_group, ref.kind) for ref in refs} | (await kinds.rules()).keys()
    problems = []
    for kind in sorted(named - WORKLOADS.keys()):
        state = await kinds.state(kind)
        problem = state.problem
        if account is not None and not problem and state.resource is not None:
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
