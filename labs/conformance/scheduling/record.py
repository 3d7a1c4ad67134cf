"""``python -m labs record-scheduling 1.36 [CASE...]``: record on real servers.

``KUBEBUILDER_ASSETS`` names the programs, or a folder with one folder for each version.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl_demo.real_servers.plane import ControlPlane, running
from claimctl_demo.real_servers.programs import CannotStart
from labs.conformance.scheduling.cases import CASES
from labs.conformance.scheduling.playing import make_namespace, recorded, recording_of
from labs.conformance.scheduling.stage import Case, Stage
from labs.differential.assets import programs_of


async def _play(
    plane: ControlPlane, cases: list[Case], found: dict[str, object], file: Path
) -> None:
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        client = DocumentClient(transport, "people")
        await make_namespace(client)
        for case in cases:
            stage = Stage(client)
            await case(stage)
            found[case.__name__] = stage.found
            _write(file, found)
            print(case.__name__, flush=True)
            await stage.clear()


def _write(file: Path, found: dict[str, object]) -> None:
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def main(arguments: list[str]) -> int:
    version, *names = arguments
    cases = [each for each in CASES if not names or each.__name__ in names]
    try:
        programs = programs_of(version)
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 2
    file = recording_of(version)
    found = recorded(version) if names and file.exists() else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(ControlPlane(programs, Path(folder))) as plane,
    ):
        asyncio.run(_play(plane, cases, found, file))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
