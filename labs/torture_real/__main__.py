"""``make torture-real``: plays schedules on a real control plane while its servers are killed.

Exit code 1 if anything was found; prints its seed and history.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl_demo.real_servers.history import HistoryLost
from claimctl_demo.real_servers.plane import ControlPlane, Wanted, running
from claimctl_demo.real_servers.programs import CannotStart
from labs.torture_real.controllers import USER, Controllers, install, token
from labs.torture_real.judge import Verdict
from labs.torture_real.options import Options
from labs.torture_real.report import Tally, report
from labs.torture_real.stage import Stage
from labs.torture_real.wave import Wave
from tests.support.directories import kept_or_temporary
from tests.support.variables import BadOption

INTERRUPTED = 130
MANAGERS = {
    "claimctl": USER,
    "kube-scheduler": "system:kube-scheduler",
    "kube-controller-manager": "system:kube-controller-manager",
}


def main() -> int:
    try:
        options = Options.given()
        with kept_or_temporary(options.keep, "torture-real-") as directory:
            wanted = Wanted(pod_groups=options.pod_groups, taint_rules=True, history=True)
            with running(ControlPlane(options.programs, directory, wanted)) as plane:
                tally = asyncio.run(_run(options, plane))
    except BadOption as error:
        print(error, file=sys.stderr)
        return 2
    except (CannotStart, HistoryLost) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # before anything was played
        return INTERRUPTED
    report(options, tally)
    if tally.bad:
        return 1
    return INTERRUPTED if tally.interrupted else 0


async def _run(options: Options, plane: ControlPlane) -> Tally:
    """Play waves until the budget is used up. A signal ends the current wave."""
    end, tally = time.monotonic() + options.seconds, Tally(tell=options.tell)
    history = plane.history(MANAGERS)
    connection = load_connection(str(plane.files.kubeconfig()))
    async with HttpTransport(connection) as transport:
        stage = Stage(plane, transport, history, options.pod_groups)
        history.subscribe(stage.sight.notice)
        following = asyncio.create_task(history.run(), name="history")
        controllers = Controllers(plane.files, plane.directory, options.bug)
        waves = asyncio.create_task(_waves(options, stage, controllers, tally, end))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, waves.cancel)
        watched = {waves, following}
        if options.bug:
            # One finding is enough to notice the bug.
            watched.add(asyncio.create_task(_end(waves, stage.found)))
        try:
            await asyncio.wait({waves, following}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            try:
                await waves
            except asyncio.CancelledError:
                tally.interrupted = True
        finally:
            for task in watched:
                task.cancel()
            await asyncio.gather(*watched, return_exceptions=True)
            for name in list(controllers.running):
                controllers.kill(name)
    for text in (*controllers.crashes, *controllers.tracebacks()):
        tally.bad.append(Verdict("claimctl", violations=[text]))
    tally.ended = controllers.ended
    return tally


async def _end(waves: asyncio.Task[None], found: asyncio.Event) -> None:
    await found.wait()
    waves.cancel()


async def _waves(
    options: Options, stage: Stage, controllers: Controllers, tally: Tally, end: float
) -> None:
    client = DocumentClient(stage.transport, "administrator")
    await install(client)
    controllers.prepare(await token(stage.transport))
    seed = options.seed
    while (left := end - time.monotonic()) > 0:
        await Wave(stage, controllers, seed, options.namespaces).play(left, tally)
        seed += options.namespaces


if __name__ == "__main__":
    sys.exit(main())
