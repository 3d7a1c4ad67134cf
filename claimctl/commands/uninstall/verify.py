"""``claimctl uninstall verify``: shows what is left of claimctl."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.commands.uninstall.flags import NamespacesOption

EXAMPLES = (
    "claimctl uninstall verify",
    "claimctl uninstall verify -n ml -o json",
)


@connecting_patiently
def command(
    namespaces: NamespacesOption = None,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show what is left of claimctl that would block anything; write nothing.

    Exit code 0: nothing is left, and claimctl can be deleted. Exit code 3: something is.
    """
    from claimctl.commands.uninstall.work import Mode, uninstall, wanted_by

    wanted = wanted_by(namespaces or ())
    return uninstall(access, wanted, output, Mode(verify=True))
