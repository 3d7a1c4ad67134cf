"""``claimctl controller``: run the reconcilers until SIGTERM or SIGINT.

A new flag is a parameter of ``command``. If the reconcilers need it, it is also a field of
``claimctl.controller.settings.Settings``, which checks its value. Only the flags for how long to
wait, which other commands have too, are fields of ``ControllerWaits`` in ``claimctl.cli.timing``;
``waits.seconds`` has their values.
"""

from __future__ import annotations

import asyncio
import signal
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.access import Access
from claimctl.cli.durations import duration_option
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.flags import spread
from claimctl.cli.options import (
    AsOption,
    ContextOption,
    KubeconfigOption,
    driver_names,
    named,
    namespace_names,
    switch,
)
from claimctl.cli.timing import CONTROLLER_WAITS, ControllerWaits
from claimctl.telemetry.logs import Format, Level, configure

EXAMPLES = (
    "claimctl controller                     # with the current kubeconfig, to try it",
    "claimctl controller --bind-address :8080 --log-format json",
)


@spread
def command(  # noqa: PLR0913 - typer makes an option of every parameter
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
    identity: Annotated[
        str,
        named(
            "--identity NAME",
            "Unique identity of this process in the Lease.",
            "host name and a random part",
        ),
    ] = "",
    pod_uid: Annotated[
        str,
        named(
            "--pod-uid UID",
            "UID of the pod in which this runs as the only controller. After a restart of its "
            "container, it takes the Lease over from its predecessor at once.",
            "none",
        ),
    ] = "",
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Reconcile only while holding the Lease."
        ),
    ] = True,
    lease_namespace: Annotated[
        str, named("--lease-namespace NAME", "Namespace of the Lease.")
    ] = "claimctl-system",
    lease_name: Annotated[
        str, named("--lease-name NAME", "Name of the Lease that the replicas share.")
    ] = "claimctl-controller",
    lease_seconds: Annotated[
        float,
        duration_option(
            "--lease-seconds",
            "Time without a renewal after which another replica takes the Lease over. The leader "
            "stops its work when it could not renew the Lease for two thirds of it.",
            hidden=True,
        ),
    ] = 15.0,
    namespaces: Annotated[
        list[str] | None,
        named(
            "--namespace NAME",
            "Hold claims in this namespace only; may be repeated. Then DowngradePlans are not "
            "carried out.",
            "all namespaces",
            check=namespace_names,
        ),
    ] = None,
    dialect: Annotated[
        str,
        typer.Option(
            "--reservation-mode",
            help="Reservation API of the cluster: auto, native, podgroup or hold.",
        ),
    ] = "auto",
    waits: ControllerWaits = CONTROLLER_WAITS,
    known_scheduler: Annotated[
        list[str] | None,
        named(
            "--known-scheduler NAME",
            "schedulerName of a scheduler without Permit plugins; may be repeated.",
            "default-scheduler",
        ),
    ] = None,
    one_pod_driver: Annotated[
        list[str] | None,
        named(
            "--one-pod-driver NAME",
            "DRA driver that wants one pod in the list of a claim, so that a hold may not stand "
            "beside a pod that starts; may be repeated. claimctl knows some, and finds out others.",
            "none besides those that claimctl knows",
            check=driver_names,
        ),
    ] = None,
    max_seconds_without_pods: Annotated[
        float | None,
        duration_option(
            "--max-seconds-without-pods",
            "For how long a claim may be held while no pod uses it, whatever its ClaimReservation "
            "says. Then it is released. [default: without a limit]",
            least=1,
            most=10 * 365 * 86_400,
        ),
    ] = None,
    list_ahead: Annotated[
        bool,
        typer.Option(
            "--list-ahead/--no-list-ahead",
            help="List the pending pods of a held claim in one write, so that the scheduler does "
            "not add them one by one.",
        ),
    ] = True,
    checkpoint: Annotated[
        bool,
        typer.Option(
            "--checkpoint/--no-checkpoint",
            help="Note in the Lease up to which version everything is on record, so that a "
            "controller that starts waits for no grace of force-deleted pods.",
        ),
    ] = True,
    allow_template_injection: Annotated[
        bool,
        switch(
            "--allow-template-injection",
            "Add a PodGroup to pod templates that ask for it by annotation.",
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", help="Number of claims reconciled concurrently.")
    ] = 16,
    batch_seconds: Annotated[
        float,
        duration_option(
            "--batch-seconds",
            "Time in which changes of a claim are collected into one reconcile.",
            hidden=True,
        ),
    ] = 0.2,
    drain_seconds: Annotated[
        float,
        duration_option(
            "--drain-seconds",
            "Time that running reconciles have to finish after SIGTERM.",
            hidden=True,
        ),
    ] = 10.0,
    bind_address: Annotated[
        str, named("--bind-address HOST:PORT", "Address of health and metrics; '' serves none.")
    ] = ":8080",
    tls_cert_file: Annotated[
        Path | None,
        named(
            "--tls-cert-file FILE",
            "Certificate (PEM) with which health and metrics are served by HTTPS; the file may be "
            "replaced.",
            "none, plain HTTP",
        ),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None, named("--tls-private-key-file FILE", "Its key (PEM).", "none")
    ] = None,
    log_format: Annotated[
        Format, typer.Option("--log-format", help="Format of the log.")
    ] = Format.AUTO,
    log_level: Annotated[
        Level, typer.Option("--log-level", help="Lowest level that is logged.")
    ] = Level.INFO,
    trace_console: Annotated[bool, switch("--trace-console", "Print spans on stderr.")] = False,
) -> int:
    """Run the controller: hold claims for workloads and release them when the workloads end."""
    from claimctl.cli.process import container_of, serve, who_am_i
    from claimctl.controller.dialect import DialectUnknown
    from claimctl.controller.manager import NotSynced
    from claimctl.controller.preflight import NotReady
    from claimctl.controller.settings import BadSettings, Settings
    from claimctl.kube.leases import LeadershipLost
    from claimctl.telemetry.settings import TelemetrySettingError, from_environment

    configure(log_format, log_level, final=True)
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together: give both")
    pair = (tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None
    access = Access(kubeconfig, context, as_user=as_user)
    try:
        settings = Settings.checked(
            identity=identity or who_am_i(pod_uid),
            container=container_of(pod_uid),
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            lease_name=lease_name,
            lease_seconds=round(lease_seconds),
            namespaces=frozenset(namespaces or ()),
            dialect=dialect,
            known_schedulers=frozenset(known_scheduler or ["default-scheduler"]),
            one_pod_drivers=frozenset(one_pod_driver or ()),
            max_seconds_without_pods=max_seconds_without_pods or inf,
            list_ahead=list_ahead,
            checkpoint=checkpoint,
            allow_template_injection=allow_template_injection,
            workers=workers,
            batch_seconds=batch_seconds,
            drain_seconds=drain_seconds,
            **waits.seconds,
        )
        telemetry = from_environment(trace_console=trace_console)
        received = asyncio.run(serve(access, settings, telemetry, bind_address, pair))
    except (BadSettings, TelemetrySettingError) as error:
        raise UsageError(str(error)) from error
    except (NotReady, NotSynced, DialectUnknown, LeadershipLost) as error:
        raise CommandFailed(str(error)) from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK
