"""``make slow-scheduler``: is a pod bound on a claim that claimctl has deallocated meanwhile?

Many tries side by side on a real control plane, each in a namespace of its own. The scheduler is
fast until every claim is held; then it is slow, pods come, and the claims are to be released.
Exit code 1 when a pod was bound on a claim without allocation, or a claim is not released.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl_demo.real_servers.kubelet import Kubelets
from claimctl_demo.real_servers.nodes import NODE, Fleet
from claimctl_demo.real_servers.plane import ControlPlane, Wanted, running
from claimctl_demo.real_servers.programs import SCHEDULER, CannotStart
from labs.slow_scheduler.options import VOLUME, Options
from labs.slow_scheduler.tries import STORAGE_CLASS, Act, Try
from labs.torture_real.controllers import Controllers, install, token
from tests.support.directories import kept_or_temporary
from tests.support.variables import BadOption

READY = 240.0
"""Seconds for every claim to be held, and for every claim to be freed in the end."""
RATE = 20
"""Requests a second of the slow scheduler."""
BUSY = 38.0
"""Seconds for which it is busy with other pods."""
BEGUN = 6.0
"""Seconds after which it has begun with the pods of the tries."""
VOLUMES_AFTER = 35.0
WATCHED = 110.0
"""Seconds in which all pods are bound that will be."""
AT_A_TIME = 16
ELSEWHERE = "a-busy-place"
"""Where the other pods are: a scheduler that starts takes pods by the names of their namespaces."""


@dataclass
class Run:
    """One cluster with all tries in it."""

    options: Options
    plane: ControlPlane
    transport: HttpTransport
    tries: list[Try] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """What the stand-in for the kubelets found wrong."""
    unreleased: list[str] = field(default_factory=list)
    _client: DocumentClient = field(init=False)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))

    def __post_init__(self) -> None:
        self._client = DocumentClient(self.transport, "people")

    async def play(self, controllers: Controllers) -> None:
        """Raises TimeoutError when something does not come about that has to."""
        acts, count = list(Act), self.options.tries
        fleet = Fleet(self.options.programs.version, count=count * len(acts) + 1, devices=1)
        self.tries = [
            Try(self._client, self.options, fleet, acts[each % len(acts)], each)
            for each in range(count * len(acts))
        ]
        groups = self.options.pod_groups
        kubelets = Kubelets(self.transport, fleet, pod_groups=groups)
        joined = asyncio.Event()
        playing = asyncio.create_task(kubelets.run(joined))
        try:
            await joined.wait()
            await install(self._client)
            controllers.prepare(await token(self.transport))
            controllers.start("one")
            await self._prepare()
            await self._slow(fleet)
            await self._watch()
            self.seen = [f"{finding.pod}: {finding.rule}" for finding in kubelets.findings]
            await self._conclude()
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    async def _prepare(self) -> None:
        if self.options.cause == VOLUME:
            await self._client.create(_storage_class())
        await self._each(Try.prepare)
        if self.options.cause == VOLUME:
            await self._each(lambda each: self._client.create(each.volume_claim()))
        await self._until(Try.held)
        await self._each(Try.empty)
        await self._until(Try.is_empty)
        await self._each(Try.list_ahead)

    async def _slow(self, fleet: Fleet) -> None:
        if self.options.cause == VOLUME:
            await self._each(Try.begin)
            await asyncio.sleep(BEGUN)
            await self._release()
            return
        server = self.plane.servers[SCHEDULER]
        limits = (f"--kube-api-qps={RATE}", f"--kube-api-burst={RATE}")
        server.command = (*server.command, *limits)
        await asyncio.to_thread(server.stop)
        busy = fleet.names[-1]
        meta = {"name": ELSEWHERE}
        await self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        await self._gathered(
            self._client.create(_other_pod(number, busy)) for number in range(int(BUSY * RATE))
        )
        await self._each(Try.begin)
        server.start()
        await asyncio.sleep(BEGUN)
        await self._release()

    async def _release(self) -> None:
        await self._each(lambda each: each.release(time.monotonic()))
        _say("the claims are to be released")

    async def _watch(self) -> None:
        """Note when each pod is bound, for as long as one may be."""
        began, delivered = time.monotonic(), self.options.cause != VOLUME
        while time.monotonic() - began < WATCHED:
            await asyncio.sleep(0.5)
            if not delivered and time.monotonic() - began > VOLUMES_AFTER:
                delivered = True
                await self._each(Try.deliver)
            await self._each(lambda each: each.look(time.monotonic()))
            if all(each.bound for each in self.tries):
                break
        await asyncio.sleep(BEGUN)

    async def _conclude(self) -> None:
        """With the pods gone every claim is freed."""
        _say("the pods go")
        for each in self.tries:
            if each.act is Act.REALLOCATED:
                await self._client.patch(NODE, "", each.node, {"spec": {"unschedulable": None}})
        await self._each(Try.clear)
        try:
            await self._until(Try.freed)
        except TimeoutError:
            self.unreleased = [each.namespace for each in self.tries if not await each.freed()]

    # All of them

    async def _each(self, act: Callable[[Try], Awaitable[object]]) -> None:
        await self._gathered(act(each) for each in self.tries)

    async def _gathered(self, acts: Iterator[Awaitable[object]]) -> None:
        async def one(act: Awaitable[object]) -> None:
            async with self._slots:
                await act

        async with asyncio.TaskGroup() as group:
            for act in acts:
                group.create_task(one(act))

    async def _until(self, holds: Callable[[Try], Awaitable[bool]]) -> None:
        left = list(self.tries)
        end = time.monotonic() + READY
        while left and time.monotonic() < end:
            found = await self._asked(holds, left)
            left = [each for each, is_so in zip(left, found, strict=True) if not is_so]
            await asyncio.sleep(1.0 if left else 0.0)
        if left:
            raise TimeoutError

    async def _asked(
        self, holds: Callable[[Try], Awaitable[bool]], tries: Sequence[Try]
    ) -> list[bool]:
        async def one(each: Try) -> bool:
            async with self._slots:
                return await holds(each)

        return await asyncio.gather(*map(one, tries))


def _storage_class() -> dict[str, object]:
    """There is no provisioner: the scheduler waits until the test creates the volume."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "example.com/nobody",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _other_pod(number: int, node: str) -> dict[str, object]:
    """A pod that has nothing to do with any claim."""
    container = {"name": "main", "image": "other"}
    selector = {"kubernetes.io/hostname": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-{number}", "namespace": ELSEWHERE},
        "spec": {"containers": [container], "nodeSelector": selector},
    }


def main() -> int:
    try:
        options = Options.given()
        with kept_or_temporary(options.keep, "slow-scheduler-") as directory:
            wanted = Wanted(pod_groups=options.pod_groups)
            with running(ControlPlane(options.programs, directory, wanted)) as plane:
                run = asyncio.run(_run(options, plane))
    except BadOption as error:
        print(error, file=sys.stderr)
        return 2
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"not every claim was held within {READY:g} s", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    _report(run)
    wrong = run.seen or run.unreleased or any(each.stranded for each in run.tries)
    return 1 if wrong else 0


async def _run(options: Options, plane: ControlPlane) -> Run:
    controllers = Controllers(plane.files, plane.directory, flags=options.flags)
    connection = load_connection(str(plane.files.kubeconfig()))
    async with HttpTransport(connection) as transport:
        run = Run(options, plane, transport)
        try:
            await run.play(controllers)
        finally:
            await asyncio.to_thread(controllers.stop_all)
    return run


def _report(run: Run) -> None:
    options = run.options
    rule = "as usual" if options.binding is None else f"for {options.binding:g} s"
    print(f"slow-scheduler      {options.label}, slow by {options.cause}")
    print(f"pods waited for     {rule}")
    for act in Act:
        print(f"{act:19} {_line([each for each in run.tries if each.act is act])}")
    print(f"seen by kubelets    {len(run.seen)} {' '.join(run.seen[:3])}")
    print(f"not released        {len(run.unreleased)} {' '.join(run.unreleased[:3])}")


def _line(tries: Sequence[Try]) -> str:
    times = [each.bound - each.acted for each in tries if each.bound] or [0.0]
    late = f"{min(times):.1f} to {max(times):.1f} s later (median {median(times):.1f})"
    bound, lost = sum(bool(each.bound) for each in tries), sum(each.stranded for each in tries)
    return f"{len(tries)} tries, {bound} pods bound {late}, {lost} on a claim without allocation"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
