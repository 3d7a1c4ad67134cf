"""Runs ``claimctl controller`` with the values of its flags."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.process import container_of, serve, who_am_i
from claimctl.controller.dialect import DialectUnknown
from claimctl.controller.manager import NotSynced
from claimctl.controller.preflight import NotReady
from claimctl.controller.settings import BadSettings, Settings
from claimctl.kube.leases import LeadershipLost
from claimctl.telemetry.settings import TelemetrySettingError, from_environment


def run_controller(
    access: Access,
    bind_address: str,
    certificate: tuple[Path | None, Path | None],
    *,
    trace_console: bool,
    pod_uid: str,
    identity: str,
    **settings: Any,
) -> int:
    """Run until a signal; the exit code. ``settings`` are those of ``Settings``."""
    file, key = certificate
    if (file is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together: give both")
    pair = (file, key) if file and key else None
    who, container = identity or who_am_i(pod_uid), container_of(pod_uid)
    try:
        checked = Settings.checked(identity=who, container=container, **settings)
        telemetry = from_environment(trace_console=trace_console)
        received = asyncio.run(serve(access, checked, telemetry, bind_address, pair))
    except (BadSettings, TelemetrySettingError) as error:
        raise UsageError(str(error)) from error
    except (NotReady, NotSynced, DialectUnknown, LeadershipLost) as error:
        raise CommandFailed(str(error)) from error
    return ExitCode.INTERRUPTED if received is signal.SIGINT else ExitCode.OK
