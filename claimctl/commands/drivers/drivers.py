"""``claimctl doctor driver NAME``: tries what a DRA driver does with a held and a shared claim."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.formats import FactsOption, Output
from claimctl.cli.objects import object_name
from claimctl.cli.options import NamespaceOption, named

EXAMPLES = (
    "claimctl doctor driver gpu.example.com",
    "claimctl doctor driver gpu.example.com -n default --node node-1",
    "claimctl doctor driver gpu.nvidia.com --class mig.nvidia.com",
    "claimctl doctor driver dra.net --image registry.example.com/pause:3.10 -o yaml",
)
IMAGE = "registry.k8s.io/pause:3.10"
STEP_SECONDS = Seconds(120)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    driver: Annotated[
        str,
        typer.Argument(
            metavar="DRIVER",
            help="The name of the driver, as in ResourceSlices.",
            callback=object_name,
        ),
    ],
    namespace: NamespaceOption = None,
    node: Annotated[
        str, named("--node NAME", "Check one node.", "each node with a device of the driver")
    ] = "",
    device_class: Annotated[
        str,
        named("--class NAME", "The DeviceClass to ask for.", "the one that selects this driver"),
    ] = "",
    image: Annotated[
        str, named("--image IMAGE", "The image of the pods; it need not do anything.")
    ] = IMAGE,
    timeout: Annotated[
        float,
        duration_option(
            "--timeout", "How long a pod may take to start, and how long to end.", least=1
        ),
    ] = STEP_SECONDS,
    output: FactsOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Try on each node what a driver does with a held and a shared claim; exit code 3 with news.

    It takes one free device a node for a minute. Its pods, claims and its Job have the label
    claimctl.io/driver-check and go when it ends. If it is killed, Kubernetes removes them
    a minute later, and the next run what that leaves.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.drivers.work import CheckWanted, run

    wanted = CheckWanted(driver, node, device_class, image, timeout)
    return in_session(access, run, namespace, wanted, output)
