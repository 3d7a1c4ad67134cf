"""The options of one ``claimctl reschedule``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from claimctl.cli.formats import Output


class DryRun(StrEnum):
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class RescheduleOptions:
    """The flags. Times are in seconds; an interval of 0 means a single run."""

    policy: Path | None
    dry_run: DryRun | None
    skip_unsupported: bool
    record: str
    output: Output
    plan_out: Path | None
    plan: Path | None
    interval: float
    deadline: float
    why: str
    release_taints: bool
    lease_namespace: str
    bind_address: str
