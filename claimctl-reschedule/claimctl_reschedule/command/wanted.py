"""The flags of one ``claimctl reschedule``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.objects import object_name
from claimctl.cli.options import named, namespace_name, switch


class DryRun(StrEnum):
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class RescheduleOptions:
    """Times are in seconds; an interval of 0 means a single run."""

    policy: Annotated[
        Path | None,
        named(
            "--policy-config-file FILE",
            "The DeschedulerPolicy: descheduler/v1alpha2 or v1alpha1.",
            "none",
        ),
    ] = None
    dry_run: Annotated[
        DryRun | None,
        typer.Option(
            "--dry-run",
            help="Print the plan and evict nothing. --dry-run=server also asks the server whether "
            "it would accept each eviction. [default: off]",
        ),
    ] = None
    skip_unsupported: Annotated[
        bool,
        switch(
            "--skip-unsupported",
            "Leave out the plugins that claimctl does not have, instead of refusing the policy.",
        ),
    ] = False
    record: Annotated[
        str,
        named("--record NAME", "The RescheduleRecord that remembers the moves.", check=object_name),
    ] = "claimctl"
    output: OutputOption = Output.TABLE
    plan_out: Annotated[
        Path | None,
        named(
            "--plan-out FILE",
            "Write the plan to this file, for --plan; only with --dry-run.",
            "none",
        ),
    ] = None
    plan: Annotated[
        Path | None,
        named("--plan FILE", "Execute this plan, which is at most 10 minutes old.", "make a plan"),
    ] = None
    interval: Annotated[
        float,
        duration_option(
            "--descheduling-interval",
            "Run again and again with this pause, while this process has the Lease; 0: once. "
            "With --dry-run each run logs its plan.",
        ),
    ] = Seconds(0)
    deadline: Annotated[
        float,
        duration_option("--deadline", "How long refused evictions of a run are tried again."),
    ] = Seconds(300)
    why: Annotated[
        str,
        named(
            "--why NAMESPACE/POD",
            "Say why the policy moves this pod or not, and evict nothing.",
            "none",
        ),
    ] = ""
    release_taints: Annotated[
        bool,
        switch(
            "--release-taints",
            "Remove every taint of 'claimctl reschedule' from the nodes, and nothing else.",
        ),
    ] = False
    lease_namespace: Annotated[
        str,
        named(
            "--lease-namespace NAME",
            "Namespace of the controller's Lease, which tells whether it gives held claims "
            "up, and of the Lease of --descheduling-interval.",
            check=namespace_name,
        ),
    ] = "claimctl-system"
    bind_address: Annotated[
        str,
        named(
            "--bind-address HOST:PORT",
            "Address of health and metrics with --descheduling-interval; '' serves none.",
        ),
    ] = ""

    def __post_init__(self) -> None:
        """Raise UsageError for flags that do not go together."""
        modes = {
            "--plan": self.plan is not None,
            "--why": bool(self.why),
            "--release-taints": self.release_taints,
            "--descheduling-interval": self.interval > 0,
        }
        given = [flag for flag, is_given in modes.items() if is_given]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} exclude each other")
        if self.dry_run is not None and {"--why", "--release-taints"} & set(given):
            raise UsageError(f"{given[0]} and --dry-run exclude each other")
        if self.dry_run is DryRun.SERVER and self.interval > 0:
            raise UsageError("--descheduling-interval: only with --dry-run=client, not with server")
        if self.policy is None and not self.release_taints:
            raise UsageError("--policy-config-file is missing: name a DeschedulerPolicy file")
        if self.plan_out is not None and (self.dry_run is None or given):
            raise UsageError("--plan-out: only with --dry-run, and without --plan")
        if self.why and self.why.count("/") != 1:
            raise UsageError(f"--why: {self.why!r} is not NAMESPACE/POD")
        if self.deadline <= 0:
            raise UsageError("--deadline: more than 0 is expected, such as 5m")
