"""Stand-ins for etcd and kube-apiserver as programs: they take the arguments of the real ones.

The API server is the embedded one alone, without any component, behind TLS and a token.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import stat
import sys
from pathlib import Path

from claimctl.embedded.authn import Door
from claimctl.embedded.handler import Handler
from claimctl.embedded.http import serve
from claimctl.embedded.options import Authorization, ClusterOptions, Dialect
from claimctl.embedded.requests import MASTERS, Actor
from claimctl.embedded.server import api_server
from claimctl.kube.clock import LoopClock

_SCRIPT = """#!/bin/sh
exec {python} -m tests.e2e.fakes {program} "$@"
"""


def install(folder: Path, *programs: str) -> None:
    """Put the named programs into a folder."""
    for program in programs:
        path = folder / program
        path.write_text(_SCRIPT.format(python=sys.executable, program=program))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _arguments(given: list[str]) -> dict[str, str]:
    pairs = (each.removeprefix("--").partition("=") for each in given)
    return {name: value for name, _, value in pairs}


async def _api_server(arguments: dict[str, str]) -> None:
    options = ClusterOptions(dialect=Dialect.HOLD, authorization=Authorization.RBAC)
    handler = api_server(options, LoopClock())
    for name in ("default", "kube-system"):
        handler.api.create(
            handler.actor, handler.api.kinds.named("namespaces"), "", {"metadata": {"name": name}}
        )
    _let_in(handler, Path(arguments["token-auth-file"]))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(arguments["tls-cert-file"], arguments["tls-private-key-file"])
    server = await serve(
        handler.transport(Actor("system:anonymous", ("system:unauthenticated",))),
        port=int(arguments["secure-port"]),
        tls=tls,
    )
    await _signalled()
    await server.close()


def _let_in(handler: Handler, tokens: Path) -> None:
    token, user, *_ = tokens.read_text().strip().split(",")
    assert isinstance(handler.guard, Door)
    handler.guard.tokens.static[token] = Actor(user, (MASTERS, "system:authenticated"))


async def _signalled() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


if __name__ == "__main__":
    program, *given = sys.argv[1:]
    if program == "kube-apiserver":
        asyncio.run(_api_server(_arguments(given)))
    else:
        asyncio.run(_signalled())
