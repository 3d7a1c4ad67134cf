"""Whether a controller is elected, as its Lease shows it from outside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from claimctl.cli.documents import Part
from claimctl.installation import LEASE_NAME, Address, controller_lease, find_address
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.live_objects import is_held
from claimctl.text import duration
from claimctl.wire.coordination import Lease, renewed_at
from claimctl.wire.times import moment

SKEW_SECONDS = 30.0
"""Allowance for the difference between the controller's clock and the clock of this machine. An
older Lease counts as not renewed."""


class State(StrEnum):
    ACTING = "Acting"
    NOT_ACTING = "NotActing"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Election:
    """Whether the Lease shows an elected controller."""

    state: State
    message: str
    readable: bool = True
    """Whether the caller may read the Lease."""
    since: datetime | None = None
    """Since when the controller that acts has led."""


class ControllerState(Part, frozen=True):
    """Whether a controller acts, as documents say it."""

    state: State
    message: str


async def election(client: Client, now: datetime, address: Address | None = None) -> Election:
    """Read the Lease at the address of the installation, which is looked up if it is None."""
    try:
        address = address or await find_address(client)
        return election_by(await controller_lease(client, address), now)
    except (Forbidden, NotFound):
        return Election(State.UNKNOWN, "you may not read Leases", readable=False)
    except UnreadableObject as error:
        return Election(State.UNKNOWN, error.unreadable.describe(), readable=False)


def election_by(lease: Lease | None, now: datetime) -> Election:
    """Whether the controller's Lease is held and was renewed in time before ``now``."""
    if lease is None:
        text = f"no Lease {LEASE_NAME}: no controller runs, or one without --leader-elect"
        return Election(State.UNKNOWN, text)
    where = f"Lease {lease.metadata.namespace}/{lease.metadata.name}"
    if not lease.spec.holder_identity:
        return Election(State.NOT_ACTING, f"the {where} has no holder")
    held = f"the {where} is held by {lease.spec.holder_identity}"
    if not is_held(lease, now, SKEW_SECONDS):
        silent = duration((now - renewed_at(lease)).total_seconds())
        text = f"{held} and has not been renewed for {silent}"
        return Election(State.NOT_ACTING, text)
    return Election(State.ACTING, held, since=moment(lease.spec.acquire_time))
