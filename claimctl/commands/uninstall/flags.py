"""The flags that the commands of ``claimctl uninstall`` share."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.options import namespace_name, namespace_names

NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="A namespace that claimctl is taken out of; may be repeated. [default: all "
        "namespaces]",
        callback=namespace_names,
    ),
]
TimeoutOption = Annotated[
    float,
    duration_option(
        "--timeout",
        "Time after which the command lists what is left and ends. Another run continues.",
        least=1,
    ),
]
TIMEOUT = Seconds(900)
LeaseNamespaceOption = Annotated[
    str,
    typer.Option(
        "--lease-namespace",
        metavar="NAME",
        help="Namespace of the controller and of its Lease.",
        callback=namespace_name,
    ),
]
