"""Carry out a DowngradePlan: one run after the other, until one has come to its end.

A controller does this, the cluster's or the one inside a command. Two of them may do it at once, as
while a Lease passes on. Then the status of the plan decides: each write of it carries the version
that was read, and the run whose write is refused starts over from the present status, as after a
crash. So a run always reads a claim after the plan that it records the claim in, and an older
record never overwrites the record of a write that is under way.
"""

from __future__ import annotations

from claimctl.downgrade.prepare import run_plan
from claimctl.downgrade.records import is_carried_out
from claimctl.downgrade.restore import restore_plan
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.reservations import RESTORE
from claimctl.wire.resources import DOWNGRADEPLANS
from claimctl.wire.seams import Clock

REST_SECONDS = 5.0
"""A run that is alive writes at least every settle time and so many seconds."""


async def carry_out(
    client: Client, name: str, clock: Clock, rules: Rules, *, tombstones: bool = True
) -> None:
    """Carry out the plan of this name, unless that is done, or the plan is gone.

    A run that was overtaken waits before it starts over. Without that, two that start over at each
    other's writes would never end.

    Args:
        rules: the dialect and the waiting times.
        tombstones: whether a controller stays that will remove the tombstones later.
    """
    while True:
        plan = await client.find(DOWNGRADEPLANS, name)
        if plan is None or plan.metadata.deleting or is_carried_out(plan):
            return
        try:
            if plan.spec.action == RESTORE:
                await restore_plan(client, plan, clock, rules.dialect)
            else:
                await run_plan(client, plan, clock, rules=rules, tombstones=tombstones)
        except Conflict:
            await clock.sleep(rules.settle_seconds + REST_SECONDS)
        except NotFound:
            return
        else:
            return
