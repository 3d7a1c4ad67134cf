"""Records the cases of scheduling on real servers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from claimctl.kube.transport import HttpTransport
from claimctl_demo.documents import DocumentClient
from claimctl_demo.real_servers.plane import ControlPlane, Wanted
from labs import frame
from labs.conformance.scheduling.cases import CASES
from labs.conformance.scheduling.playing import make_namespace, recorded, recording_of
from labs.conformance.scheduling.stage import CaseStage
from labs.flags import Parser, Servers


def main(arguments: Sequence[str]) -> int:
    parser = Parser("scheduling-record", __doc__)
    parser.add_version()
    parser.add_argument("names", nargs="*", metavar="CASE", help="only these cases")
    wanted = parser.parse_args(arguments)
    servers = Servers(programs=parser.programs(wanted.version))
    cases = [case for case in CASES if not wanted.names or case.__name__ in wanted.names]
    version = ".".join(map(str, servers.programs.version))
    file = recording_of(version)
    known = recorded(version) if wanted.names and file.exists() else {}

    async def play(_: ControlPlane, transport: HttpTransport) -> int:
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

    return frame.on_servers(servers, Wanted(), play)
