"""``claimctl upgrade restore``: puts PodGroups and their references back after an upgrade."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption
from claimctl.commands.downgrade.flags import ParallelismOption, TimeoutOption

EXAMPLES = ("claimctl upgrade restore --dry-run", "claimctl upgrade restore")


@connecting_patiently
def command(
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Let the PodGroups return that `upgrade prepare` removed, and end its freeze.

    Use it when the whole cluster is upgraded. The controller makes the PodGroups again. Exit code
    3: some references cannot return yet; they stay on record, and another run goes on.
    """
    from claimctl.commands.downgrade.restore_work import restore

    return restore(access, parallelism, timeout, output, dry_run=dry_run)
