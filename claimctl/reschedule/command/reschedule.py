"""``claimctl reschedule``: moves pods to better nodes, and knows which claims keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.objects import object_name
from claimctl.cli.options import named, namespace_name, switch
from claimctl.reschedule.command.wanted import DryRun, RescheduleOptions

EXAMPLES = (
    "claimctl reschedule --policy-config-file policy.yaml --dry-run=client",
    "claimctl reschedule --policy-config-file policy.yaml --dry-run=client --plan-out plan.json",
    "claimctl reschedule --policy-config-file policy.yaml --plan plan.json",
    "claimctl reschedule --policy-config-file policy.yaml --why default/train-0",
    "claimctl reschedule --release-taints",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    policy: Annotated[
        Path | None,
        named(
            "--policy-config-file FILE",
            "The DeschedulerPolicy: descheduler/v1alpha2 or v1alpha1.",
            "none",
        ),
    ] = None,
    dry_run: Annotated[
        DryRun | None,
        typer.Option(
            "--dry-run",
            help="Print the plan and evict nothing. --dry-run=server also asks the server whether "
            "it would accept each eviction. [default: off]",
        ),
    ] = None,
    skip_unsupported: Annotated[
        bool,
        switch(
            "--skip-unsupported",
            "Leave out the plugins that claimctl does not have, instead of refusing the policy.",
        ),
    ] = False,
    record: Annotated[
        str,
        named("--record NAME", "The RescheduleRecord that remembers the moves.", check=object_name),
    ] = "claimctl",
    output: OutputOption = Output.TABLE,
    plan_out: Annotated[
        Path | None,
        named(
            "--plan-out FILE",
            "Write the plan to this file, for --plan; only with --dry-run.",
            "none",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        named("--plan FILE", "Execute this plan, which is at most 10 minutes old.", "make a plan"),
    ] = None,
    interval: Annotated[
        float,
        duration_option(
            "--descheduling-interval",
            "Run again and again with this pause, while this process has the Lease; 0: once. "
            "With --dry-run each run logs its plan.",
        ),
    ] = Seconds(0),
    deadline: Annotated[
        float,
        duration_option("--deadline", "How long refused evictions of a run are tried again."),
    ] = Seconds(300),
    why: Annotated[
        str,
        named(
            "--why NAMESPACE/POD",
            "Say why the policy moves this pod or not, and evict nothing.",
            "none",
        ),
    ] = "",
    release_taints: Annotated[
        bool,
        switch(
            "--release-taints",
            "Remove every taint of 'claimctl reschedule' from the nodes, and nothing else.",
        ),
    ] = False,
    lease_namespace: Annotated[
        str,
        named(
            "--lease-namespace NAME",
            "Namespace of the controller's Lease, which tells whether it gives held claims "
            "up, and of the Lease of --descheduling-interval.",
            check=namespace_name,
        ),
    ] = "claimctl-system",
    bind_address: Annotated[
        str,
        named(
            "--bind-address HOST:PORT",
            "Address of health and metrics with --descheduling-interval; '' serves none.",
        ),
    ] = "",
    access: Access = DEFAULT,
) -> int:
    """Evict pods so that they run on better nodes, by a policy file of the descheduler.

    Exit code 3: some planned evictions were refused, or a pod for which room was to be made has
    none.
    """
    from claimctl.reschedule.command.work import carry_out

    wanted = RescheduleOptions(
        policy=policy,
        dry_run=dry_run,
        skip_unsupported=skip_unsupported,
        record=record,
        output=output,
        plan_out=plan_out,
        plan=plan,
        interval=interval,
        deadline=deadline,
        why=why,
        release_taints=release_taints,
        lease_namespace=lease_namespace,
        bind_address=bind_address,
    )
    _check(wanted)
    return carry_out(wanted, access)


def _check(wanted: RescheduleOptions) -> None:
    """Raise UsageError for flags that do not go together."""
    from claimctl.cli.errors import UsageError

    modes = {
        "--plan": wanted.plan is not None,
        "--why": bool(wanted.why),
        "--release-taints": wanted.release_taints,
        "--descheduling-interval": wanted.interval > 0,
    }
    given = [flag for flag, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} exclude each other")
    if wanted.dry_run is not None and {"--why", "--release-taints"} & set(given):
        raise UsageError(f"{given[0]} and --dry-run exclude each other")
    if wanted.dry_run is DryRun.SERVER and wanted.interval > 0:
        raise UsageError("--descheduling-interval: only with --dry-run=client, not with server")
    if wanted.policy is None and not wanted.release_taints:
        raise UsageError("--policy-config-file is missing: name a DeschedulerPolicy file")
    if wanted.plan_out is not None and (wanted.dry_run is None or given):
        raise UsageError("--plan-out: only with --dry-run, and without --plan")
    if wanted.why and wanted.why.count("/") != 1:
        raise UsageError(f"--why: {wanted.why!r} is not NAMESPACE/POD")
    if wanted.deadline <= 0:
        raise UsageError("--deadline: more than 0 is expected, such as 5m")
