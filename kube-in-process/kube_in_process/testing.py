"""A cluster that serves HTTP in a thread of its own, beside a test that is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from kube_in_process.clock import LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.objects import Object
from kube_in_process.options import ClusterOptions
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig
from kube_in_process.serving.serve import access_for, listen, secured

T = TypeVar("T")
_Ready: TypeAlias = "Future[tuple[ServedCluster, asyncio.Event]]"
_LOOK_SECONDS = 0.02


class NotInTime(AssertionError):
    """A condition did not come true."""


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """A cluster that programs and clients reach.

    Attributes:
        url: where it listens.
        kubeconfig: a file with one context, of the administrator ``kubernetes-admin``.
    """

    url: str
    kubeconfig: Path
    _access: Access
    _cluster: Cluster
    _loop: asyncio.AbstractEventLoop

    def call(self, function: Callable[[Cluster], T]) -> T:
        """Call a function with the cluster, in the cluster's thread.

        For what no request can do, such as ``cluster.pause("kubelet")`` or a fault of the API
        server (``cluster.handler.fault``).
        """
        answer: Future[T] = Future()

        def answered() -> None:
            try:
                answer.set_result(function(self._cluster))
            except Exception as error:
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(answered)
        return answer.result()

    def apply(self, source: Path | str) -> list[Object]:
        """Apply the objects of a file, of a folder or of a text, as ``kubectl apply`` does.

        Raises: as ``Cluster.apply``.
        """
        work = self._cluster.apply(source)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for another user, who may do what roles allow to that name and its groups.

        The name may be that of a ServiceAccount: ``system:serviceaccount:NAMESPACE:NAME``.
        """
        access = self.call(lambda cluster: access_for(cluster, self._access, name, groups))
        of_user = "-".join(quote(part, safe="") for part in (name, *groups))
        file = self.kubeconfig.with_name(f"{self.kubeconfig.name}-{of_user}")
        write_kubeconfig(file, access)
        return file

    def wait_until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Ask again and again until the condition is true.

        Raises:
            NotInTime: it was still false after ``seconds``.
        """
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise NotInTime(f"{condition} is not true after {seconds:g} s")
            time.sleep(_LOOK_SECONDS)


@contextmanager
def served(directory: Path, options: ClusterOptions | None = None) -> Iterator[ServedCluster]:
    """Run a cluster until the block ends. Its kubeconfig is in ``directory``.

    It is under RBAC and behind TLS, unless the options say ``authorization=ALWAYS_ALLOW``.

    Raises:
        ExceptionGroup: a component failed, at the end of the block.
    """
    ready: _Ready = Future()
    work = (
        Cluster(secured(options or ClusterOptions()), LoopClock()),
        directory / "kubeconfig",
        ready,
    )
    thread = threading.Thread(target=_run, args=work, name="kube-in-process", daemon=True)
    thread.start()
    cluster, stopped = ready.result()
    try:
        yield cluster
    finally:
        failures = cluster.call(lambda cluster: list(cluster.failures))
        cluster.call(lambda _: stopped.set())
        thread.join()
    if failures:
        raise ExceptionGroup("components of the cluster failed", failures)


def _run(cluster: Cluster, kubeconfig: Path, ready: _Ready) -> None:
    try:
        asyncio.run(_play(cluster, kubeconfig, ready))
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _play(cluster: Cluster, kubeconfig: Path, ready: _Ready) -> None:
    stopped = asyncio.Event()
    await cluster.start()
    try:
        server, access = await listen(cluster, 0)
        try:
            write_kubeconfig(kubeconfig, access)
            loop = asyncio.get_running_loop()
            served = ServedCluster(server.url, kubeconfig, access, cluster, loop)
            ready.set_result((served, stopped))
            await stopped.wait()
        finally:
            await server.close()
    finally:
        await cluster.stop()
