"""``make switching``: PodGroups go off and on again on a busy real control plane.

Claims are shared by the pods of Deployments through PodGroups, while users scale the Deployments
and delete pods. The commands of docs/runbooks/downgrade.md are run word for word, and every gate is
switched where the page says so. With ORDER=naive nothing is prepared. Exit code 1 if a kubelet
refused a pod, a pod ran without an allocation, or the end differs from the beginning.
"""

from __future__ import annotations

import asyncio
import sys

from claimctl.kube.connection import load_connection
from claimctl.kube.transport import HttpTransport
from claimctl_demo.real_servers.plane import ControlPlane, Wanted, running
from claimctl_demo.real_servers.programs import CannotStart
from labs.switching.options import Options
from labs.switching.report import report
from labs.switching.run import Run
from labs.torture_real.controllers import Controllers
from tests.support.directories import kept_or_temporary
from tests.support.variables import BadOption


def main() -> int:
    try:
        options = Options.given()
        with kept_or_temporary(options.keep, "switching-") as directory:
            wanted = Wanted(pod_groups=True)
            with running(ControlPlane(options.programs, directory, wanted)) as plane:
                run = asyncio.run(_run(options, plane))
    except BadOption as error:
        print(error, file=sys.stderr)
        return 2
    except (CannotStart, TimeoutError, AssertionError) as error:
        # an assertion: a command of the page ended with another exit code than the page says
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if report(run) else 0


async def _run(options: Options, plane: ControlPlane) -> Run:
    controllers = Controllers(plane.files, plane.directory)
    connection = load_connection(str(plane.files.kubeconfig()))
    async with HttpTransport(connection) as transport:
        run = Run(options, plane, transport)
        try:
            await run.play(controllers)
        finally:
            await asyncio.to_thread(controllers.stop_all)
    run.wrong += controllers.tracebacks()
    return run


if __name__ == "__main__":
    sys.exit(main())
