"""``claimctl controller``: run the reconcilers until SIGTERM."""

from __future__ import annotations

from typing import Annotated

import typer

from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.options import AsOption, ContextOption, KubeconfigOption
from claimctl.telemetry.logs import Format, Level


def command(  # noqa: PLR0913 - typer makes an option of every parameter
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
    identity: Annotated[
        str,
        typer.Option(
            "--identity",
            metavar="NAME",
            help="Identity in the Lease; else host name and a random part.",
        ),
    ] = "",
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Reconcile only while holding the Lease."
        ),
    ] = True,
    lease_namespace: Annotated[
        str, typer.Option("--lease-namespace", metavar="NAME", help="Namespace of the Lease.")
    ] = "claimctl-system",
    lease_name: Annotated[
        str,
        typer.Option(
            "--lease-name", metavar="NAME", help="Name of the Lease that the replicas share."
        ),
    ] = "claimctl-controller",
    lease_seconds: Annotated[
        int,
        typer.Option(
            "--lease-seconds",
            help="Another takes over after so long without a sign of life; "
            "the leader ends after two thirds of it.",
        ),
    ] = 15,
    dialect: Annotated[
        str, typer.Option("--dialect", help="auto, native, podgroup or hold: the API spoken.")
    ] = "auto",
    settle_seconds: Annotated[
        float,
        typer.Option(
            "--settle-seconds",
            help="Seconds to wait after the fence; must exceed the lag of schedulers' caches.",
        ),
    ] = 5.0,
    binding_seconds: Annotated[
        float,
        typer.Option(
            "--binding-seconds",
            help="Seconds after which a scheduler has bound a pod that it works on.",
        ),
    ] = 60.0,
    slow_binding_seconds: Annotated[
        float,
        typer.Option(
            "--slow-binding-seconds",
            help="The same for pods with volumes, gangs, other schedulers.",
        ),
    ] = 600.0,
    known_scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--known-scheduler",
            metavar="NAME",
            help="A schedulerName without Permit plugins; may be repeated. "
            "Default: default-scheduler.",
        ),
    ] = None,
    dead_reference_seconds: Annotated[
        float,
        typer.Option(
            "--dead-reference-seconds",
            help="Seconds that kube-controller-manager may take to remove a dead pod.",
        ),
    ] = 10.0,
    allow_template_injection: Annotated[
        bool,
        typer.Option(
            "--allow-template-injection", help="Put pods into PodGroups where a workload asks."
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", help="Number of claims reconciled concurrently.")
    ] = 4,
    batch_seconds: Annotated[
        float,
        typer.Option("--batch-seconds", help="Seconds within which changes are answered together."),
    ] = 0.2,
    drain_seconds: Annotated[
        float, typer.Option("--drain-seconds", help="Seconds that work may take to end at a stop.")
    ] = 10.0,
    bind_address: Annotated[
        str,
        typer.Option("--bind-address", metavar="HOST:PORT", help="Health and metrics; '' is off."),
    ] = ":8080",
    log_format: Annotated[
        Format, typer.Option("--log-format", help="Format of the log.")
    ] = Format.AUTO,
    log_level: Annotated[
        Level, typer.Option("--log-level", help="Least level that is logged.")
    ] = Level.INFO,
    trace_console: Annotated[
        bool, typer.Option("--trace-console", help="Print spans on stderr.")
    ] = False,
) -> int:
    """Run the controller: hold claims for workloads and release them when these have ended."""
    import asyncio
    import signal

    from claimctl.cli.controller_process import Launch, serve, who_am_i
    from claimctl.cli.session import Access
    from claimctl.controller.dialect.probe import DialectUnknown
    from claimctl.controller.manager import NotSynced
    from claimctl.controller.preflight import NotReady
    from claimctl.controller.settings import BadSettings, Settings
    from claimctl.kube.leases import LeadershipLost
    from claimctl.telemetry.logs import configure
    from claimctl.telemetry.settings import TelemetrySettingError, from_environment

    configure(log_format, log_level)
    try:
        settings = Settings.checked(
            identity=identity or who_am_i(),
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            lease_name=lease_name,
            lease_seconds=lease_seconds,
            dialect=dialect,
            settle_seconds=settle_seconds,
            binding_seconds=binding_seconds,
            slow_binding_seconds=slow_binding_seconds,
            known_schedulers=frozenset(known_scheduler or ["default-scheduler"]),
            dead_reference_seconds=dead_reference_seconds,
            allow_template_injection=allow_template_injection,
            workers=workers,
            batch_seconds=batch_seconds,
            drain_seconds=drain_seconds,
        )
        launch = Launch(
            access=Access(kubeconfig, context, as_user),
            settings=settings,
            telemetry=from_environment(trace_console=trace_console),
            bind_address=bind_address,
        )
        received = asyncio.run(serve(launch))
    except (BadSettings, TelemetrySettingError) as error:
        raise UsageError(str(error)) from error
    except (NotReady, NotSynced, DialectUnknown, LeadershipLost) as error:
        raise CommandFailed(str(error)) from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK
