"""Plans in files: what was reviewed is what runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from claimctl.wire.base import Wire, decode, to_plain
from claimctl_reschedule.plan.plan import Plan

API_VERSION = "cli.claimctl.io/v1alpha1"
KIND = "ReschedulePlan"
STALE_SECONDS = 600.0
"""An older plan is refused."""
_AHEAD = timedelta(seconds=60)
"""How far the clock of the machine that made the plan may be ahead."""


class PlanError(Exception):
    """The plan cannot be executed; one line."""


class _Header(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""


def document(plan: Plan) -> dict[str, Any]:
    """The plan as a document for a file."""
    return {"apiVersion": API_VERSION, "kind": KIND, **to_plain(plan)}


def parse(data: bytes) -> Plan:
    """Read a plan; raises PlanError if the data is no plan, or was edited."""
    try:
        header = decode(data, _Header)
        if (header.api_version, header.kind) != (API_VERSION, KIND):
            raise PlanError(f"is not a {KIND} of {API_VERSION}")
        plan = decode(data, Plan)
    except msgspec.MsgspecError as error:
        raise PlanError(f"is not a plan: {error}") from None
    if plan.digest != plan.computed_digest():
        raise PlanError("was edited: its digest does not fit its content; make another plan")
    return plan


def check(plan: Plan, cluster_uid: str, now: datetime) -> None:
    """Raise PlanError unless the plan is for this cluster and of the last minutes."""
    if plan.cluster_uid != cluster_uid:
        raise PlanError(
            f"is for another cluster: the UID of its kube-system is {plan.cluster_uid}, "
            f"here it is {cluster_uid}"
        )
    age = now - plan.made_at
    if age > timedelta(seconds=STALE_SECONDS):
        minutes = age.total_seconds() / 60
        limit = STALE_SECONDS / 60
        raise PlanError(
            f"is {minutes:.0f} minutes old, and at most {limit:.0f} are allowed: make another one"
        )
    if age < -_AHEAD:
        raise PlanError(f"is from the future ({plan.made_at.isoformat()}): check the clocks")
