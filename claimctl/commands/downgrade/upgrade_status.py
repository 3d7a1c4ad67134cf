"""``claimctl upgrade status``: the next step of an upgrade that ``upgrade prepare`` has begun."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption

EXAMPLES = ("claimctl upgrade status", "claimctl upgrade status -o json")


@connecting_patiently
def command(output: OutputOption = Output.TABLE, access: Access = DEFAULT) -> int:
    """Show the next step of an upgrade, and the claims and PodGroups that block it.

    Exit code 3: something blocks the next step.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.downgrade.status_work import run

    return in_session(access, run, None, frozenset(), output, watch=False)
