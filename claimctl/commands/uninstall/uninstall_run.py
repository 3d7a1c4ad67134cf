"""``claimctl uninstall run``: takes claimctl out of the cluster, all of it."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption
from claimctl.cli.timing import Timing, TimingOption, waits
from claimctl.commands.uninstall.flags import TIMEOUT, LeaseNamespaceOption, TimeoutOption

EXAMPLES = (
    "claimctl uninstall run --dry-run",
    "claimctl uninstall run --timeout 10m",
)
TIMES = ("settle_seconds", "binding_seconds", "slow_binding_seconds")


@connecting_patiently
def command(
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = TIMEOUT,
    timing: TimingOption = Timing.NORMAL,
    lease_namespace: LeaseNamespaceOption = "claimctl-system",
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Prepare, stop the controller, and delete what `claimctl install` has installed.

    Running pods go on. Nothing is deleted while something is left that would block anything (exit
    code 3); another run continues. A namespace other than claimctl-system stays.
    """
    from claimctl.commands.uninstall.work import Mode, uninstall, wanted_by

    times = waits(timing, **dict.fromkeys(TIMES))
    wanted = wanted_by((), lease_namespace, times, timeout=timeout)
    mode = Mode(dry_run=dry_run, stop=not dry_run, delete=True)
    return uninstall(access, wanted, output, mode)
