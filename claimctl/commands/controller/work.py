"""Runs ``claimctl controller`` with the values of its flags."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.process import Launch, container_of, serve, who_am_i
from claimctl.controller.dialect.probe import DialectUnknown
from claimctl.controller.manager import NotSynced
from claimctl.controller.preflight import NotReady
from claimctl.controller.settings import BadSettings, Settings
from claimctl.kube.leases import LeadershipLost
from claimctl.telemetry.settings import TelemetrySettingError, from_environment


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that are no settings of the controller itself."""

    access: Access
    bind_address: str
    certificate: Path | None
    key: Path | None
    trace_console: bool
    pod_uid: str
    identity: str


def run_controller(flags: Flags, **settings: Any) -> int:
    """Run until a signal; the exit code. ``settings`` are those of ``Settings``."""
    if (flags.certificate is None) != (flags.key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together: give both")
    pair = (flags.certificate, flags.key) if flags.certificate and flags.key else None
    try:
        checked = Settings.checked(
            identity=flags.identity or who_am_i(flags.pod_uid),
            container=container_of(flags.pod_uid),
            **settings,
        )
        telemetry = from_environment(trace_console=flags.trace_console)
        launch = Launch(flags.access, checked, telemetry, flags.bind_address, pair)
        received = asyncio.run(serve(launch))
    except (BadSettings, TelemetrySettingError) as error:
        raise UsageError(str(error)) from error
    except (NotReady, NotSynced, DialectUnknown, LeadershipLost) as error:
        raise CommandFailed(str(error)) from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK
