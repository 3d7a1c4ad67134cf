"""Records the cases of scheduling on real servers."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kube_in_process.real.client import DocumentClient
from kube_in_process.real.flags import Parser, Servers
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart
from kube_in_process.real.transport import HttpTransport

from judges.conformance.scheduling.cases import CASES
from judges.conformance.scheduling.playing import make_namespace, recorded, recording_of
from judges.conformance.scheduling.stage import CaseStage


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges scheduling-record", __doc__)
    parser.add_version()
    parser.add_argument("names", nargs="*", metavar="CASE", help="only these cases")
    wanted = parser.parse_args(arguments)
    servers = Servers(programs=parser.programs(wanted.version))
    cases = [case for case in CASES if not wanted.names or case.__name__ in wanted.names]
    version = ".".join(map(str, servers.programs.version))
    file = recording_of(version)
    known = recorded(version) if wanted.names and file.exists() else {}

    async def play(plane: ControlPlane) -> int:
        async with HttpTransport(plane.files.access) as transport:
            client = DocumentClient(transport, "people")
            await make_namespace(client)
            for case in cases:
                stage = CaseStage(client)
                await case(stage)
                known[case.__name__] = stage.rests
                file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
                print(case.__name__, flush=True)
                await stage.clear()
        return 0

    try:
        with (
            tempfile.TemporaryDirectory(prefix="judges-") as folder,
            running(ControlPlane(servers.programs, Path(folder), Wanted())) as plane,
        ):
            return asyncio.run(play(plane))
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
