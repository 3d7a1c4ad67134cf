"""Programs that ask a real API server, and record what it answers."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kube_in_process.real.flags import Parser, Servers
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart

T = TypeVar("T")


def record(
    arguments: Sequence[str],
    program: str,
    help_: str | None,
    ask: Callable[[ControlPlane], Coroutine[Any, Any, T]],
    keep: Callable[[T, str], str],
) -> int:
    """Start an API server of the version that the flags name, ask it, and keep the answers.

    Args:
        keep: writes the answers of this version, like 1.36, to a file, and says what it wrote.

    Returns:
        the exit code: 1 if the server cannot start.
    """
    parser = Parser(f"judges {program}", help_)
    parser.add_version()
    wanted = parser.parse_args(arguments)
    servers = Servers(programs=parser.programs(wanted.version))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="judges-") as folder,
            running(ControlPlane(servers.programs, Path(folder), Wanted())) as plane,
        ):
            answers = asyncio.run(ask(plane))
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    print(keep(answers, ".".join(map(str, servers.programs.version))))
    return 0
