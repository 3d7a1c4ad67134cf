"""``claimctl uninstall-prepare``: leaves nothing of claimctl that would block anything."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption, namespace_name, namespace_names

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


def _seconds(flag: str, help_: str) -> Any:
    return duration_option(flag, help_, most=3600)


EXAMPLES = (
    "claimctl uninstall-prepare --dry-run",
    "claimctl uninstall-prepare --verify",
    "claimctl uninstall-prepare -n ml --timeout 10m",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Write nothing; exit with 0 if nothing of claimctl is left, else with 3. "
            "[default: off]",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop-controller",
            help="When nothing is left, scale the controller to 0, stop claimctl reschedule in the "
            "cluster, and look once more: from then on nothing makes another hold or taint. "
            "[default: off]",
        ),
    ] = False,
    timeout: Annotated[
        float,
        duration_option(
            "--timeout",
            "Time after which the command lists what is left and ends. Another run continues.",
            least=1,
        ),
    ] = 900.0,
    settle_seconds: Annotated[
        float, _seconds("--settle-seconds", "As for the controller, if this command replaces it.")
    ] = 5.0,
    binding_seconds: Annotated[float, _seconds("--binding-seconds", "The same.")] = 60.0,
    slow_binding_seconds: Annotated[float, _seconds("--slow-binding-seconds", "The same.")] = 600.0,
    grace_seconds: Annotated[
        float,
        duration_option(
            "--force-deleted-pod-grace-seconds",
            "How long a vanished pod may still be running, for claims without a ClaimReservation.",
            most=86400,
        ),
    ] = 300.0,
    lease_namespace: Annotated[
        str,
        typer.Option(
            "--lease-namespace",
            metavar="NAME",
            help="Namespace of the controller's Lease.",
            callback=namespace_name,
        ),
    ] = "claimctl-system",
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Remove everything of claimctl that would block anything, before it is uninstalled.

    Running pods go on. Exit code 3: something has to stay for now; another run continues.
    """
    if verify and dry_run:
        raise UsageError("--verify and --dry-run exclude each other: both write nothing")
    if stop and (verify or dry_run or namespaces):
        raise UsageError("--stop-controller: not with --verify, --dry-run or --namespace")
    from claimctl.commands.uninstall.work import Mode, prepare, wanted_by

    times = {
        "settle_seconds": settle_seconds,
        "binding_seconds": binding_seconds,
        "slow_binding_seconds": slow_binding_seconds,
    }
    wanted = wanted_by(namespaces or (), lease_namespace, times, grace_seconds, timeout)
    return prepare(access, wanted, output, Mode(verify, dry_run, stop))
