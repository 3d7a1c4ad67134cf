"""What a command does with a DowngradePlan: preview it, begin or continue it, follow and end it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from claimctl.downgrade import prepare, restore
from claimctl.downgrade.records import PlanPhase, is_carried_out, is_over
from claimctl.downgrade.scope import described, same_claims
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, NotFound
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import (
    DOWNGRADE_PLAN_NAME,
    RESTORE,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from claimctl.wire.resources import DOWNGRADEPLANS, NAMESPACES
from claimctl.wire.seams import Clock

Progress = Callable[[DowngradePlanStatus], None]

LOOK_SECONDS = 1.0
"""How often the command looks at the plan, and whether a controller acts."""


class PlanRefused(Exception):
    """The plan cannot be begun or followed. The message is one line: why, and what to do."""


class NoSuchNamespace(Exception):
    """The namespace, whose name is the only argument, does not exist."""


async def find(client: Client) -> DowngradePlan | None:
    """The plan, of which there is at most one. PlanRefused if the cluster does not know
    DowngradePlans."""
    try:
        return next(iter((await client.list(DOWNGRADEPLANS)).items), None)
    except NotFound:
        raise PlanRefused(
            "the cluster does not serve DowngradePlans (claimctl.io/v1alpha1): install the CRDs "
            "first"
        ) from None


async def begin(client: Client, spec: DowngradePlanSpec) -> DowngradePlan:
    """Create a plan, or ask for another run of the existing plan for the same claims.

    The existing plan gets the given list of skipped claims and the given parallelism.

    Raises:
        PlanRefused: a plan for other claims exists, the plan is being deleted, or the cluster does
            not know DowngradePlans.
        NoSuchNamespace: there is no plan yet, and one of the namespaces does not exist.
    """
    if (plan := await find(client)) is not None:
        refuse_another(plan, spec)
        return await _next_run(client, plan, spec)
    await require_namespaces(client, spec.namespaces)
    body = {"metadata": {"name": DOWNGRADE_PLAN_NAME}, "spec": to_plain(spec)}
    return await client.create(DOWNGRADEPLANS, body)


def refuse_another(plan: DowngradePlan, spec: DowngradePlanSpec) -> None:
    """Raise PlanRefused if the plan is for other claims or for another upgrade, or if it is being
    deleted."""
    if not same_claims(plan.spec, spec) or plan.metadata.deleting:
        raise PlanRefused(_in_the_way(plan))


def _in_the_way(plan: DowngradePlan) -> str:
    name = plan.metadata.name
    if plan.metadata.deleting:
        return f"DowngradePlan {name} is being deleted: run again when it is gone"
    return (
        f"DowngradePlan {name} exists already, for {described(plan.spec)}, and only one can exist: "
        "give the same namespaces and labels to continue it, or delete it (kubectl delete "
        f"downgradeplan {name})"
    )


async def begin_restore(client: Client, parallelism: int | None) -> DowngradePlan | None:
    """Ask for the way back; None if there is no plan. PlanRefused if it is being deleted, or as
    ``find`` does."""
    if (plan := await find(client)) is None:
        return None
    if plan.metadata.deleting:
        raise PlanRefused(_in_the_way(plan))
    spec = replace(plan.spec, action=RESTORE, parallelism=parallelism)
    return await _next_run(client, plan, spec)


async def preview_restore(client: Client, clock: Clock, dialect: str) -> DowngradePlanStatus | None:
    """The status that the way back would reach; None if there is no plan. Writes nothing.
    PlanRefused as ``find`` does."""
    plan = await find(client)
    return None if plan is None else await restore.preview(client, plan, clock, dialect)


async def end(client: Client) -> None:
    """Delete the plan, if it still says that all references have returned. PlanRefused if another
    client wrote it meanwhile, or as ``find`` does."""
    if (plan := await find(client)) is None:
        return
    meta = plan.metadata
    overtaken = PlanRefused(f"another client wrote DowngradePlan {meta.name}: run again")
    if plan.status.phase != PlanPhase.RESTORED or plan.spec.action != RESTORE:
        raise overtaken
    try:
        await client.delete_as_read(DOWNGRADEPLANS, meta)
    except Conflict:
        raise overtaken from None


async def _next_run(
    client: Client, plan: DowngradePlan, wanted: DowngradePlanSpec
) -> DowngradePlan:
    """Give the plan this action, list of skipped claims and parallelism, and ask for a run.

    A changed spec asks for a run, and so does an empty phase. The records of earlier runs stay.
    """
    known = plan.spec
    patch: dict[str, Any] = {}
    if known.action != wanted.action:
        patch["action"] = wanted.action
    if known.parallelism != wanted.parallelism:
        patch["parallelism"] = wanted.parallelism
    if set(known.skip) != set(wanted.skip):
        patch["skip"] = [to_plain(name) for name in wanted.skip]
    if not patch and not is_over(plan.status):
        return plan
    return await client.merge_patch(
        DOWNGRADEPLANS,
        plan.metadata,
        {"spec": patch} if patch else {"status": {"phase": ""}},
        subresource="" if patch else "status",
    )


async def preview(client: Client, spec: DowngradePlanSpec) -> DowngradePlanStatus:
    """The status that the plan would reach. Writes nothing.

    The references that an existing plan has on record count, as they would for a run.

    Raises:
        PlanRefused: only for an upgrade, if a plan for something else exists, or if the plan is
            being deleted: an upgrade begins only after a preview that finds nothing in its way. A
            downgrade may be previewed beside any plan; ``begin`` refuses it.
        NoSuchNamespace: as ``begin`` does.
    """
    known = None
    with suppress(PlanRefused):  # no CRDs: nothing is recorded yet, and a preview records nothing
        known = await find(client)
    if known is None:
        await require_namespaces(client, spec.namespaces)
    elif spec.upgrade_to:
        refuse_another(known, spec)
    earlier = known.status if known is not None else DowngradePlanStatus()
    return await prepare.preview(client, DowngradePlan(spec=spec, status=earlier))


async def require_namespaces(client: Client, names: Iterable[str]) -> None:
    """Raise NoSuchNamespace if a namespace does not exist, as far as they may be read."""
    for name in names:
        try:
            await client.get(NAMESPACES, name)
        except Forbidden:
            continue  # without this right, nothing is found in a namespace that is missing
        except NotFound:
            raise NoSuchNamespace(name) from None


async def follow(
    client: Client,
    plan: DowngradePlan,
    progress: Progress,
    *,
    ensure: Callable[[], Awaitable[None]] | None = None,
    patience_seconds: float = 60.0,
) -> DowngradePlanStatus:
    """Wait while a controller carries the plan out.

    Args:
        progress: called with the status after changes.
        ensure: called at every look: makes sure that a controller acts.

    Raises:
        PlanRefused: the controller wrote nothing to the plan for ``patience_seconds``, or the
            plan was deleted.
    """
    name, now = plan.metadata.name, client.clock.monotonic
    seen, since = "", now()
    while True:
        present = await client.find(DOWNGRADEPLANS, name)
        if present is None:
            raise PlanRefused(f"DowngradePlan {name} was deleted while it was followed")
        if present.metadata.resource_version != seen:
            seen, since = present.metadata.resource_version, now()
            progress(present.status)
        if is_carried_out(present):
            return present.status
        if now() - since >= patience_seconds:
            raise PlanRefused(
                f"the controller has not continued DowngradePlan {name} for {patience_seconds:g} s "
                f"(phase {present.status.phase or 'none yet'}): look at its log; the plan stays, "
                "and another run continues it"
            )
        if ensure is not None:
            await ensure()
        await client.clock.sleep(LOOK_SECONDS)
