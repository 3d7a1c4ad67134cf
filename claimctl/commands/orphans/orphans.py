"""``claimctl doctor orphans``: finds and frees claims that nothing else will free."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import (
    AllNamespacesOption,
    DryRunOption,
    NamespaceOption,
    place_of,
    switch,
)
from claimctl.cli.timing import WATCH_WAITS, WatchWaits

BelievingOption = Annotated[
    bool,
    switch(
        "--believe-managed-fields",
        "Count a hold whose workload exists as claimctl's if the claim's managedFields say so. "
        "Every user who may update a claim may write them.",
    ),
]

EXAMPLES = (
    "claimctl doctor orphans -A              # list them; nothing is written",
    "claimctl doctor orphans -n ml --yes     # free them",
    "claimctl doctor orphans -A -o name",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    yes: Annotated[
        bool, typer.Option("--yes", help="Free the orphans. [default: only list them]")
    ] = False,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    waits: WatchWaits = WATCH_WAITS,
    believing: BelievingOption = False,
    access: Access = DEFAULT,
) -> int:
    """List the allocated claims that no component will release; free them with --yes.

    No ClaimReservation names such a claim and no pod uses it. Exit code 3: some orphans are left.
    """
    place = place_of(namespace, all_namespaces=all_namespaces)

    from claimctl.cli.session import in_session
    from claimctl.commands.orphans.work import run

    write = yes and not dry_run
    return in_session(access, run, place, waits, output, write=write, believing=believing)
