"""``claimctl uninstall prepare``: leaves nothing of claimctl that would block anything."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption, switch
from claimctl.cli.timing import (
    BindingOption,
    GraceOption,
    SettleOption,
    SlowBindingOption,
    Timing,
    TimingOption,
    waits,
)
from claimctl.commands.uninstall.flags import (
    TIMEOUT,
    LeaseNamespaceOption,
    NamespacesOption,
    TimeoutOption,
)

EXAMPLES = (
    "claimctl uninstall prepare --dry-run",
    "claimctl uninstall prepare",
    "claimctl uninstall prepare -n ml --timeout 10m",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    dry_run: DryRunOption = False,
    stop: Annotated[
        bool,
        switch(
            "--stop-controller",
            "When nothing is left, scale the controller to 0, stop claimctl reschedule in the "
            "cluster, and look once more: from then on nothing makes another hold or taint.",
        ),
    ] = False,
    timeout: TimeoutOption = TIMEOUT,
    timing: TimingOption = Timing.NORMAL,
    settle_seconds: SettleOption = None,
    binding_seconds: BindingOption = None,
    slow_binding_seconds: SlowBindingOption = None,
    grace_seconds: GraceOption = 300.0,
    lease_namespace: LeaseNamespaceOption = "claimctl-system",
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Remove everything of claimctl that would block anything, before it is uninstalled.

    Running pods go on. Exit code 3: something has to stay for now; another run continues.
    """
    if stop and (dry_run or namespaces):
        raise UsageError("--stop-controller: not with --dry-run or --namespace")
    from claimctl.commands.uninstall.work import Mode, uninstall, wanted_by

    times = waits(
        timing,
        settle_seconds=settle_seconds,
        binding_seconds=binding_seconds,
        slow_binding_seconds=slow_binding_seconds,
    )
    wanted = wanted_by(namespaces or (), lease_namespace, times, grace_seconds, timeout)
    return uninstall(access, wanted, output, Mode(dry_run=dry_run, stop=stop))
