"""``claimctl upgrade prepare``: takes claims and PodGroups out of the way of an upgrade."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption, named
from claimctl.commands.downgrade.flags import ParallelismOption, TimeoutOption

ToOption = Annotated[
    str,
    named(
        "--to VERSION",
        "The Kubernetes version to upgrade to: 1.37, which drops the PodGroups of 1.36.",
    ),
]


EXAMPLES = (
    "claimctl upgrade prepare --to 1.37 --dry-run",
    "claimctl upgrade prepare --to 1.37",
)


@connecting_patiently
def command(
    to: ToOption,
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Replace PodGroup references by pod references, and remove claimctl's PodGroups of v1alpha2.

    Workloads keep their claims. Until `upgrade restore`, new pods of a PodGroup wait. Exit code 3:
    something is in the way, and it is named; with a claim that has too many pods, or with PodGroups
    of others, nothing is written.
    """
    from claimctl.commands.downgrade.upgrade_work import prepare_upgrade

    return prepare_upgrade(access, to, parallelism, timeout, output, dry_run=dry_run)
