"""The flags that the commands of ``claimctl uninstall`` share."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.options import named, namespace_name, namespace_names

NamespacesOption = Annotated[
    list[str] | None,
    named(
        "--namespace -n NAME",
        "A namespace that claimctl is taken out of; may be repeated.",
        "all namespaces",
        check=namespace_names,
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
    named(
        "--lease-namespace NAME",
        "Namespace of the controller and of its Lease.",
        check=namespace_name,
    ),
]
