"""Programs that ask a real API server, and record what it answers."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kube_in_process.real.flags import Parser, Servers
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart
from kube_in_process.real.transport import HttpTransport

T = TypeVar("T")
_JSON = {"content-type": "application/json"}


async def answer(
    transport: HttpTransport,
    method: str,
    path: str,
    body: object,
    headers: Mapping[str, str] = _JSON,
) -> tuple[int, Any]:
    """The status and the body of an answer. The path may have a query."""
    path, _, query = path.partition("?")
    pairs = [
        (name, value) for name, _, value in (it.partition("=") for it in query.split("&")) if name
    ]
    data = json.dumps(body).encode()
    response = await transport.send(method, path, pairs, dict(headers), data)
    text = b"".join([part async for part in response.body])
    return response.status, json.loads(text)


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
