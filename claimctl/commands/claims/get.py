"""``claimctl get``: lists claims with their holders."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import (
    AllNamespacesOption,
    NamespaceOption,
    SelectorOption,
    WatchOption,
    claim_names,
    named,
    place_of,
    switch,
)

SORTABLE = ("name", "state", "devices", "node", "holders", "retention", "age", "consumers")


def sort_option(value: str) -> str:
    """Check the column before anything is read."""
    if value and value.lower() not in SORTABLE:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(SORTABLE)}")
    return value.lower()


EXAMPLES = (
    "claimctl get                            # the claims of the context's namespace",
    "claimctl get -A -o wide",
    "claimctl get train-slice -n ml -o json",
    "claimctl get -A --idle                  # devices that are held without a pod, and until when",
    "claimctl get -w                         # and again after every change",
    "claimctl get -o name | xargs -n1 claimctl explain",
)


SortOption = Annotated[
    str,
    named(
        "--sort-by COLUMN",
        f"Sort by this column: {', '.join(SORTABLE[:-1])} or {SORTABLE[-1]}.",
        "by name",
        check=sort_option,
    ),
]


@connecting
def command(  # noqa: PLR0913 - one parameter per flag
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM]...",
            help="Claims to show: NAME or claim/NAME. [default: all]",
            callback=claim_names,
        ),
    ] = None,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
    sort_by: SortOption = "",
    idle: Annotated[
        bool,
        switch(
            "--idle",
            "Show only claims whose devices are held while no pod uses them: since when, until "
            "when, and which pods wait for devices of the same classes.",
        ),
    ] = False,
    no_headers: Annotated[bool, switch("--no-headers", "Print no titles of columns.")] = False,
    access: Access = DEFAULT,
) -> int:
    """List claims with their state, devices, nodes, holders and retention."""
    place = place_of(namespace, all_namespaces=all_namespaces)
    if names and (all_namespaces or selector):
        raise UsageError("names of claims cannot be given together with -A or -l")

    from claimctl.cli.session import in_session
    from claimctl.commands.claims.get_work import ClaimsWanted, get

    wanted = ClaimsWanted("", tuple(names or ()), selector, sort_by, not no_headers, idle)
    return in_session(access, get, place, wanted, output, watch=watch)
