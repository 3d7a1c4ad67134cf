"""``claimctl manifests``: prints what ``claimctl install`` applies."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import namespace_name
from claimctl.commands.install.rescheduling_flags import (
    EvictOption,
    RescheduleOption,
    ScheduleOption,
    rescheduling_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from claimctl.commands.install.components import Choice
    from claimctl.wire.base import Object

ComponentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--component",
        metavar="NAME",
        help="Part of the installation; may be repeated: crds, rbac, controller, base (these "
        "three), monitoring, network-policy, admission-policy or avoidance. [default: base]",
    ),
]
InstallNamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace of the controller.",
        callback=namespace_name,
    ),
]
RunbookOption = Annotated[
    str,
    typer.Option(
        "--runbook-url",
        metavar="URL",
        help="Where you keep docs/runbooks/alerts, for the component monitoring: a URL in which "
        "{alert} stands for the name of an alert. [default: alerts name the page without a link]",
    ),
]
ManifestsOption = Annotated[Output, output_option("name")]


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
    from claimctl.cli.errors import CommandFailed
    from claimctl.commands.install.components import ManifestsMissing, chosen

    choice = replace(
        chosen_by(components, namespace, image, runbook_url),
        rescheduling=rescheduling_of(reschedule, schedule, evicts=evict),
    )
    try:
        documents = chosen(choice)
    except ManifestsMissing as missing:
        raise CommandFailed(str(missing)) from missing
    print_manifests(documents, output)


def print_manifests(documents: Sequence[Object], output: Output) -> None:
    """Print manifests: as a stream in YAML, and as a List for other formats."""
    from claimctl.cli.objects import printed_name
    from claimctl.cli.output import print_data
    from claimctl.commands.install.components import as_list, as_yaml

    if output == Output.YAML:
        typer.echo(as_yaml(documents), nl=False)
    else:
        print_data(output, as_list(documents), map(printed_name, documents))


def chosen_by(
    components: list[str] | None, namespace: str, image: str, runbook_url: str = ""
) -> Choice:
    """What the flags choose; raises UsageError for a value that cannot be."""
    from claimctl.cli.errors import UsageError
    from claimctl.commands.install.components import BASE, DEFAULT_IMAGE, FOLDERS, Choice

    wanted: list[str] = []
    for name in components or ["base"]:
        if name != "base" and name not in FOLDERS:
            known = ", ".join((*BASE, "base", *(each for each in FOLDERS if each not in BASE)))
            raise UsageError(f"--component: {name!r} is not one of {known}")
        wanted += BASE if name == "base" else [name]
    if any(letter.isspace() for letter in image) or image.endswith((":", "@", "/")):
        raise UsageError(f"--image: {image!r} is not the name of an image: REGISTRY/NAME:TAG")
    if runbook_url and not re.fullmatch(r"https?://\S*\{alert\}\S*", runbook_url):
        raise UsageError(
            f"--runbook-url: {runbook_url!r} is not a URL with the word {{alert}}, like "
            "https://docs.example.com/claimctl/{alert}"
        )
    return Choice(tuple(dict.fromkeys(wanted)), namespace, image or DEFAULT_IMAGE, runbook_url)
