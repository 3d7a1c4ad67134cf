"""Serve an embedded cluster over HTTP until a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kube_in_process.auth.authn import ANONYMOUS, all_groups
from kube_in_process.cluster import Cluster
from kube_in_process.http.listener import ServerHandle, Users, serve
from kube_in_process.options import Authorization, ClusterOptions
from kube_in_process.seams import Clock, Transport
from kube_in_process.serving import context
from kube_in_process.serving.kubeconfig import NAME, Access
from kube_in_process.serving.tls import loopback_identity, user_of
from kube_in_process.storage.requests import Actor

HISTORY_LIMIT = 20_000
"""The number of revisions that a served cluster keeps, so that it can run for days."""


class CannotListen(Exception):
    """The port cannot be used. The text is one line."""


class CannotWrite(Exception):
    """The kubeconfig cannot be written. The text is one line."""


@dataclass(frozen=True, slots=True)
class Serving:
    """``port`` 0 means any free port. ``kubeconfig`` has the cluster's context while it serves."""

    cluster: ClusterOptions
    port: int
    kubeconfig: Path
    ready: Callable[[str], None]
    """Called with the URL when the kubeconfig exists."""
    silent_node: str = ""
    """The node that SIGUSR1 cuts off, and the next SIGUSR1 connects again; '' for none."""


async def serve_until_signal(serving: Serving, clock: Clock) -> signal.Signals:
    """Serve until SIGTERM or SIGINT; return the signal.

    Raises:
        CannotListen: the port cannot be used.
        CannotWrite: the kubeconfig cannot be written (found out before anything starts), or the
            context could not be removed at the end.
    """
    with _writing(f"cannot write {serving.kubeconfig}"):
        context.check(serving.kubeconfig)
    cluster = Cluster(serving.cluster, clock)
    server: ServerHandle | None = None
    stopped = _stop_signals()
    await cluster.start()
    if serving.silent_node:
        _silence_by_signal(cluster, serving.silent_node)
    try:
        server, access = await listen(cluster, serving.port)
        with _in_kubeconfig(serving.kubeconfig, access):
            serving.ready(server.url)
            return await stopped
    finally:
        if server is not None:
            await server.close()
        await cluster.stop()


def _stop_signals() -> asyncio.Future[signal.Signals]:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(received: signal.Signals) -> None:
        if not stopped.done():
            stopped.set_result(received)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return stopped


def _silence_by_signal(cluster: Cluster, node: str) -> None:
    silent = False

    def turn() -> None:
        nonlocal silent
        silent = not silent
        (cluster.lose_node if silent else cluster.restore_node)(node)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, turn)


def secured(options: ClusterOptions) -> ClusterOptions:
    """The options of a cluster that others reach: under RBAC, unless they say otherwise."""
    if options.authorization is not None:
        return options
    return replace(options, authorization=Authorization.RBAC)


async def listen(cluster: Cluster, port: int) -> tuple[ServerHandle, Access]:
    """The server, and the administrator's access to it: under RBAC by TLS, with a certificate."""
    if cluster.options.authorization is not Authorization.RBAC:
        server = await _serve(cluster.handler, port)
        return server, Access(server.url)
    identity = loopback_identity()
    users = Users(
        identity.context,
        lambda certificate, encoded: cluster.handler.transport(user_of(certificate, encoded)),
    )
    server = await _serve(cluster.handler.transport(ANONYMOUS), port, users)
    return server, Access(
        server.url,
        certificate=identity.authority,
        client_certificate=identity.certificate,
        client_key=identity.key,
    )


def access_for(cluster: Cluster, access: Access, user: str, groups: Sequence[str]) -> Access:
    """The access of another user, by a token that is valid while the cluster runs."""
    actor = Actor(user, tuple(all_groups(user, groups)))
    token = cluster.handler.guard.tokens.add_static(actor)
    return Access(access.url, token, access.certificate)


async def _serve(transport: Transport, port: int, users: Users | None = None) -> ServerHandle:
    try:
        return await serve(transport, port=port, users=users)
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotListen(f"cannot listen on 127.0.0.1:{port}: {why}") from error


@contextmanager
def _in_kubeconfig(path: Path, access: Access) -> Iterator[None]:
    """Keep the cluster's context in the kubeconfig."""
    with _writing(f"cannot write {path}"):
        context.join(path, access)
    try:
        yield
    finally:
        with _writing(f"the context {NAME} stays in {path}"):
            context.leave(path, access)


@contextmanager
def _writing(failed: str) -> Iterator[None]:
    """Raise CannotWrite for what goes wrong with the kubeconfig."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{failed}: {error.strerror}") from error
    except context.NotUsable as error:
        raise CannotWrite(str(error)) from error
