"""``claimctl downgrade-restore``: lets the replaced workload references return."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption
from claimctl.commands.downgrade.flags import ParallelismOption, TimeoutOption

EXAMPLES = (
    "claimctl downgrade-restore --dry-run",
    "claimctl downgrade-restore",
)


@connecting_patiently
def command(
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Let the workload references return that downgrade-prepare replaced, and end its freeze.

    Use it when the feature is on again in every component. The references come from the record in
    the DowngradePlan. The plan is deleted when all of them have returned. Exit code 3: some cannot
    return; they stay on record.
    """
    from claimctl.commands.downgrade.restore_work import restore

    return restore(access, parallelism, timeout, output, dry_run=dry_run)
