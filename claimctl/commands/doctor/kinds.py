"""Kinds of workloads whose state the controller cannot know, and what to apply."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.cli.kinds import KindReader
from claimctl.commands.doctor.account import ControllerAccount, may
from claimctl.controller.kind_states import AGGREGATE, VERBS
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.wire.access_reviews import Right
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import WORKLOADS, Resource
from claimctl.wire.workloads import CustomWorkload


async def kind_problems(
    client: Client, account: ControllerAccount, reservations: Iterable[ClaimReservation]
) -> tuple[tuple[str, str], ...]:
    """The kinds that a ClaimReservation or a WorkloadKind names, and what is wrong with each."""
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
            problems.append((f"{kind[1]}.{kind[0]}", problem))
    return tuple(problems)


async def _missing_role(
    client: Client, account: ControllerAccount, resource: Resource[CustomWorkload]
) -> str:
    """The rights that the controller lacks, with the commands that give them; '' if none, or if
    the user may not ask."""
    plural, group = resource.plural, resource.group
    try:
        lacking = [
            verb for verb in VERBS if not await may(client, account, Right(verb, group, plural))
        ]
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
