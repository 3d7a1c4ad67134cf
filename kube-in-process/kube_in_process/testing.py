"""A cluster that serves HTTP in a thread of its own, beside a test that is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from kube_in_process.clock import LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions
from kube_in_process.serving.kubeconfig import write_kubeconfig
from kube_in_process.serving.serve import listen

T = TypeVar("T")
_Ready: TypeAlias = "Future[tuple[ServedCluster, asyncio.Event]]"
_LOOK_SECONDS = 0.02


class NotInTime(AssertionError):
    """A condition did not come true."""


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """``kubeconfig`` names a file with one context, for the URL ``url``."""

    url: str
    kubeconfig: Path
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

    Raises:
        ExceptionGroup: a component failed, at the end of the block.
    """
    ready: _Ready = Future()
    work = (
        Cluster(options or ClusterOptions(), LoopClock()),
        directory / "kubeconfig",
        ready,
    )
    thread = threading.Thread(target=_run, args=work, name="kube-in-process", daemon=True)
    thread.start()
    cluster, stopped = ready.result()
    try:
        yield cluster
    finally:
        failures = cluster.call(lambda each: list(each.failures))
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
            ready.set_result((ServedCluster(server.url, kubeconfig, cluster, loop), stopped))
            await stopped.wait()
        finally:
            await server.close()
    finally:
        await cluster.stop()
