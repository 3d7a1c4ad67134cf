"""``claimctl demo cluster``: a cluster in one process, served over HTTP."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.errors import ExitCode, UsageError


class DialectName(StrEnum):
    NATIVE = "native"
    PODGROUP = "podgroup"
    HOLD = "hold"


class VersionName(StrEnum):
    V1_32 = "1.32"
    V1_33 = "1.33"
    V1_34 = "1.34"
    V1_35 = "1.35"
    V1_36 = "1.36"
    V1_37 = "1.37"


class AuthorizationName(StrEnum):
    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"


EXAMPLES = (
    "claimctl demo cluster --kubeconfig ./embedded.kubeconfig",
    "claimctl demo cluster --kubeconfig ./embedded.kubeconfig --nodes 1 --devices 2",
)


def command(  # noqa: PLR0913 - typer makes an option of every parameter
    kubeconfig: Annotated[
        Path,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            help="Kubeconfig that gets a context 'embedded' while the cluster runs. "
            "What is in the file stays.",
        ),
    ],
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 means any free port."),
    ] = 0,
    dialect: Annotated[
        DialectName,
        typer.Option(
            "--reservation-mode",
            help="Reservation API that the cluster serves: hold (Kubernetes as it is), podgroup "
            "(1.36 and newer with alpha features) or native (KEP-5194; no released Kubernetes).",
        ),
    ] = DialectName.HOLD,
    kubernetes_version: Annotated[
        VersionName, typer.Option("--kubernetes-version", help="Kubernetes version to emulate.")
    ] = VersionName.V1_36,
    nodes: Annotated[int, typer.Option("--nodes", min=0, max=1000, help="Number of nodes.")] = 3,
    devices: Annotated[
        int, typer.Option("--devices", min=0, max=128, help="Number of devices on each node.")
    ] = 4,
    authorization: Annotated[
        AuthorizationName, typer.Option("--authorization", help="Authorization mode.")
    ] = AuthorizationName.RBAC,
    silence: Annotated[
        str,
        typer.Option(
            "--silence",
            metavar="NODE",
            help="The node that falls silent at SIGUSR1, as if it were cut off, and is heard again "
            "at the next one. [default: none]",
            show_default=False,
        ),
    ] = "",
    conflict_storm: Annotated[
        bool,
        typer.Option(
            "--conflict-storm", help="Emulate conflicts between concurrent binds. [default: off]"
        ),
    ] = False,
) -> int:
    """Serve an embedded cluster until SIGTERM or Ctrl-C, with a context in a kubeconfig."""
    import asyncio
    import signal

    from kube_in_process.options import Authorization, ClusterOptions, Heartbeats
    from kube_in_process.serving.serve import (
        HISTORY_LIMIT,
        CannotListen,
        CannotWrite,
        Serving,
        serve_until_signal,
    )

    from claimctl.kube.clock import LoopClock
    from claimctl_demo.story.presets import PRESETS

    major, _, minor = kubernetes_version.partition(".")
    if dialect is DialectName.PODGROUP and int(minor) < 36:
        raise UsageError(
            "--reservation-mode: PodGroups share claims from Kubernetes 1.36; with "
            f"--kubernetes-version {kubernetes_version} choose hold"
        )
    if silence and silence not in {f"node-{number}" for number in range(nodes)}:
        raise UsageError(
            f"--silence: there is no node {silence}; there are node-0 to node-{nodes - 1}"
        )
    options = ClusterOptions(
        preset=PRESETS[dialect],
        kubernetes_version=(int(major), int(minor)),
        nodes=nodes,
        devices_per_node=devices,
        authorization=Authorization(authorization),
        conflict_storm=conflict_storm,
        heartbeats=Heartbeats(),
        history_limit=HISTORY_LIMIT,
    )
    serving = Serving(
        options, port, kubeconfig, lambda url: _announce(url, kubeconfig, silence), silence
    )
    try:
        received = asyncio.run(serve_until_signal(serving, LoopClock()))
    except CannotWrite as error:
        raise UsageError(f"--kubeconfig: {error}") from error
    except CannotListen as error:
        raise UsageError(f"--port: {error}") from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK


def _announce(url: str, kubeconfig: Path, silence: str) -> None:
    import os

    from kube_in_process.serving.kubeconfig import NAME

    typer.echo(f"cluster at {url}, context {NAME} in kubeconfig {kubeconfig}")
    typer.echo(f"try: kubectl --kubeconfig {kubeconfig} get nodes,resourceslices")
    if silence:
        typer.echo(f"{silence} falls silent, or is heard again: kill -USR1 {os.getpid()}")
