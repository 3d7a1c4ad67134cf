"""Makes new transcripts.

Takes sequences from KEPT (what ``--keep`` wrote: requests with the answers of a real server) and
writes them as one transcript in the format of ``judges/conformance/api``, so that they are tested
where no real server is. With ``--kind`` only those sequences count in which that kind of difference
is seen now, each up to the request that differs. Without, those that match. ``--live`` sends the
requests of a transcript (a file of ``judges/conformance/api``) to a real server of ``--version``
first, and records what that one answers.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kube_in_process.real.flags import Parser
from kube_in_process.real.servers.programs import CannotStart, Programs

from judges.conformance.replay import DIRECTORY
from judges.differential.again import side_of
from judges.differential.kinds import kind_of
from judges.differential.outcome import Run
from judges.differential.playing import Played, play
from judges.differential.recorder import Recorder, Sequence, Spoiled
from judges.differential.server import api_server_alone, connected, define

Kept = dict[str, Any]
_NUMBERED = re.compile(r"<(uid|rv|continue|token|gen|hash):(\d+)>")


def joined(name: str, about: str, sequences: list[Kept]) -> Kept:
    """One transcript of several sequences, each in a namespace of its own."""
    steps: list[Any] = []
    for number, kept in enumerate(sequences):
        steps += renamed(kept, f"{name}-{number}" if number else name, number)["steps"]
    whole = {"name": name, "server": sequences[0]["server"], "about": about}
    if sequences[0].get("managedFields"):
        whole["managedFields"] = True
    if "/apis/claimctl.io/" in json.dumps(steps):
        whole["definitions"] = True
    return {**whole, "steps": steps}


def renamed(kept: Kept, name: str, number: int) -> Kept:
    """A sequence under another name, its placeholders apart from those of other sequences."""
    text = json.dumps(kept)
    text = re.sub(rf"\b{re.escape(kept['name'])}(?![0-9])", name.replace(".", "-"), text)
    numbered: Kept = json.loads(
        _NUMBERED.sub(lambda match: f"<{match[1]}:{number * 1000 + int(match[2])}>", text)
    )
    return numbered


def write(transcript: Kept) -> Path:
    """Put a transcript beside the others."""
    path = DIRECTORY / f"{transcript['name']}.json"
    path.write_text(json.dumps(transcript, ensure_ascii=False, separators=(",", ":")) + "\n")
    return path


def chosen(path: Path, kind: str) -> Iterator[Kept]:
    """The sequences of a file that match, or that show a kind of difference at their end."""
    for line in path.read_text().splitlines():
        kept: Kept = json.loads(line)
        server = side_of(kept["server"]).server()
        played = play(server, kept["name"], kept["steps"], kept["managedFields"])
        wrong = next((step for step in played if step.differences), None)
        if wrong is None and not kind:
            yield kept
        elif wrong is not None and kind and kind in kind_of(wrong.step, wrong.differences):
            yield {**kept, "steps": _up_to(kept["steps"], wrong)}


def _up_to(steps: list[Any], wrong: Played) -> list[Any]:
    for index, step in enumerate(steps):
        if step is wrong.step or any(during is wrong.step for during in step.get("during", ())):
            return steps[: index + 1]
    return steps


def recorded_live(path: Path, programs: Programs) -> Kept:
    """A transcript with the answers of a real server.

    Raises:
        CannotStart: that server does not come up.
        Spoiled: it was too slow to say anything.
    """
    content: Kept = json.loads(path.read_text())
    run = Run(programs, 0, 0)
    managed = bool(content.get("managedFields"))
    sequence = Sequence(content["name"], tuple(content["steps"]), True, managed)

    async def go(plane: Any) -> list[Any]:
        async with connected(plane) as server:
            if content.get("definitions"):
                await define(server)
            return await Recorder(server, sequence).run()

    with api_server_alone(run) as plane:
        steps = asyncio.run(go(plane))
    return {**content, "server": run.programs.text, "steps": steps}


def main(arguments: list[str]) -> int:
    parser = Parser("judges differential-record", __doc__)
    parser.add_argument("kept", type=Path)
    parser.add_argument("name")
    parser.add_argument("--about", default="Found by the differential tests.")
    parser.add_argument("--kind", default="")
    parser.add_version()
    parser.add_argument("--live", action="store_true")
    wanted = parser.parse_args(arguments)
    try:
        if wanted.live:
            recording = {
                **recorded_live(wanted.kept, parser.programs(wanted.version)),
                "name": wanted.name,
            }
        else:
            sequences = list(chosen(wanted.kept, wanted.kind))
            if not sequences:
                print(f"record: no such sequence in {wanted.kept}", file=sys.stderr)
                return 1
            recording = joined(wanted.name, wanted.about, sequences)
    except (CannotStart, Spoiled) as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    print(write(recording))
    return 0
