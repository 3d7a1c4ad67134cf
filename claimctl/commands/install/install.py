"""``claimctl install``: applies the manifests and waits until the controller runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import DryRunOption
from claimctl.commands.install.manifests import (
    ComponentOption,
    InstallNamespaceOption,
    RunbookOption,
    chosen_by,
)
from claimctl.commands.install.rescheduling_flags import (
    EvictOption,
    RescheduleOption,
    ScheduleOption,
    rescheduling_of,
)

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.commands.install.apply import Applied
    from claimctl.commands.install.components import Choice
    from claimctl.wire.base import Object

ANSWER_SECONDS = 60
"""How long all requests together may take, without the time of --wait."""


EXAMPLES = (
    "claimctl install --dry-run -o yaml --image registry.example.com/claimctl:0.1.0",
    "claimctl install --image registry.example.com/claimctl:0.1.0 --wait",
    "claimctl install --image registry.example.com/claimctl:0.1.0 --reschedule policy.yaml",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    components: ComponentOption = None,
    namespace: InstallNamespaceOption = "claimctl-system",
    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="IMAGE",
            help="Image of the controller, in a registry that the cluster can pull from. Needed "
            "for the component controller and for --reschedule. [default: none]",
        ),
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the controller is available. [default: off]")
    ] = False,
    timeout: Annotated[
        int,
        typer.Option("--timeout", metavar="SECONDS", min=1, help="How long --wait waits."),
    ] = 120,
    runbook_url: RunbookOption = "",
    reschedule: RescheduleOption = None,
    schedule: ScheduleOption = "",
    evict: EvictOption = False,
    dry_run: DryRunOption = False,
    output: Annotated[Output, output_option("table", "wide", "name")] = Output.TABLE,
    access: Access = DEFAULT,
) -> None:
    """Install or upgrade claimctl: CRDs, rights and controller, by server-side apply.

    With --dry-run, -o json and the like print the manifests.

    It needs the rights of a cluster administrator. Running it again changes only what differs.
    """
    from claimctl.cli.errors import UsageError

    if not output.for_people and not dry_run:
        raise UsageError(f"--output {output}: only with --dry-run")
    if wait and dry_run:
        raise UsageError("--wait and --dry-run exclude each other")
    choice = replace(
        chosen_by(components, namespace, image, runbook_url),
        rescheduling=rescheduling_of(reschedule, schedule, evicts=evict),
    )
    if ("controller" in choice.components or choice.rescheduling is not None) and not image:
        raise UsageError(
            "--image is missing: name the image of the controller, in a registry that the cluster "
            "can pull from (`make image` builds it)"
        )
    plan = _Plan(choice, seconds=timeout if wait else 0, dry_run=dry_run, output=output)
    _install(access, plan)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done. With ``seconds`` 0 the command does not wait."""

    choice: Choice
    seconds: int
    dry_run: bool
    output: Output


def _install(access: Access, plan: _Plan) -> None:
    from claimctl.cli.errors import CommandFailed
    from claimctl.cli.session import in_session
    from claimctl.commands.install.apply import InstallFailed, NotOurs
    from claimctl.commands.install.components import ManifestsMissing, chosen
    from claimctl.kube.documents import NotServed, Refused

    async def work(session: Session) -> None:
        await _carried_out(session, plan, documents)

    try:
        documents = chosen(plan.choice)
        in_session(access, work)
    except (InstallFailed, NotOurs, ManifestsMissing, NotServed, Refused) as error:
        raise CommandFailed(str(error)) from error
    except TimeoutError as error:
        raise CommandFailed(f"the server did not answer within {ANSWER_SECONDS} s") from error


async def _carried_out(session: Session, plan: _Plan, documents: list[Object]) -> None:
    import asyncio

    from claimctl.cli.progress import progress
    from claimctl.commands.install.apply import MANAGER, Installer
    from claimctl.commands.install.manifests import print_manifests
    from claimctl.kube.documents import DocumentClient

    client = DocumentClient(session.transport, MANAGER)
    silent = not plan.output.for_people
    installer = Installer(client, session.clock, _ignore if silent else _teller(plan.dry_run))
    async with asyncio.timeout(ANSWER_SECONDS):
        await installer.check(documents)
        await installer.apply(documents, dry_run=plan.dry_run)
    if silent:
        print_manifests(documents, plan.output)
    if plan.seconds:
        with progress("waiting until the controller is available"):
            async with asyncio.timeout(plan.seconds + ANSWER_SECONDS):
                await installer.wait(documents, plan.seconds)
        typer.echo("claimctl is installed and runs", err=True)


def _ignore(applied: Applied) -> None:
    return None


def _teller(dry_run: bool) -> Callable[[Applied], None]:
    """Prints each result as kubectl does."""
    suffix = " (dry run)" if dry_run else ""

    def tell(applied: Applied) -> None:
        name = "/".join(filter(None, (applied.namespace, applied.name)))
        typer.echo(f"{applied.kind} {name} {applied.outcome}{suffix}")

    return tell
