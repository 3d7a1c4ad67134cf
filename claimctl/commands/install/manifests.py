"""``claimctl manifests``: prints what ``claimctl install`` applies."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.formats import Output
from claimctl.commands.install.flags import (
    ComponentOption,
    EvictOption,
    InstallNamespaceOption,
    ManifestsOption,
    RescheduleOption,
    RunbookOption,
    ScheduleOption,
)

EXAMPLES = (
    "claimctl manifests --component crds | kubectl apply --server-side -f -",
    "claimctl manifests --image registry.example.com/claimctl:0.1.0",
    "claimctl manifests --component crds --reschedule policy.yaml",
)


def command(  # noqa: PLR0913 - one parameter per flag
    components: ComponentOption = None,
    namespace: InstallNamespaceOption = "claimctl-system",
    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="IMAGE",
            help="Image of the controller, with tag or digest. [default: claimctl:VERSION, which "
            "no registry has]",
        ),
    ] = "",
    runbook_url: RunbookOption = "",
    reschedule: RescheduleOption = None,
    schedule: ScheduleOption = "",
    evict: EvictOption = False,
    output: ManifestsOption = Output.YAML,
) -> None:
    """Print the manifests that install claimctl, for kubectl apply -f - or for your repository.

    They come from the package itself: no clone of the repository is needed, and no cluster.
    """
    from claimctl.commands.install.choice import choose, print_choice

    rescheduling = (reschedule, schedule, evict)
    print_choice(choose(components, namespace, image, runbook_url, rescheduling), output)
