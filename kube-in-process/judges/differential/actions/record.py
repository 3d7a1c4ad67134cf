"""Records stories on real servers.

Plays stories of ``classics.py``, or the story in ``--story FILE``, and writes each to
judges/conformance/behaviour as ``S-NAME-vVERSION.json``, where the tests replay it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kube_in_process.real.flags import Parser
from kube_in_process.real.transport import HttpTransport
from kube_in_process.serving.kubeconfig import read_kubeconfig

from judges.conformance.behaviour.trace import HERE
from judges.differential.actions.classics import classic, classics_of
from judges.differential.actions.clusters import RealCluster
from judges.differential.actions.judge import differences
from judges.differential.actions.recording import load, recorded
from judges.differential.actions.rehearsal import on_embedded
from judges.differential.actions.runs import Comparer, processes
from judges.differential.actions.servers import real_servers
from judges.differential.actions.story import Story, read

_ABOUT = "A story of user actions, played on a real control plane; kubelets are played by a client."


async def _record(
    stories: dict[str, Story], kubeconfig: Path, version: tuple[int, int], server: str
) -> list[Path]:
    groups = version >= (1, 36)
    text = ".".join(map(str, version))
    with processes(1) as pool:
        async with HttpTransport(read_kubeconfig(kubeconfig)) as transport:
            real = RealCluster(transport, version, groups)
            await real.start()
            comparer = Comparer(real, pool)
            try:
                played = await asyncio.gather(
                    *(comparer.on_real(story) for story in stories.values())
                )
            finally:
                await real.stop()
    written = []
    for (name, story), theirs in zip(stories.items(), played, strict=True):
        path = HERE / f"S-{name}-v{text}.json"
        story = story.without(len(theirs.segments), len(story.steps))
        path.write_text(recorded(path.stem, _ABOUT, server, story, theirs))
        written.append(path)
    return written


def _check(path: Path) -> int:
    version, story, theirs = load(path)
    differing = differences(theirs, on_embedded((version, version >= (1, 36)), story, "s0"))
    print(f"{path.name}: {len(differing)} differences, {path.stat().st_size // 1024} kB")
    for difference in differing:
        print(f"  after step {difference.step}: {difference.shown()[:1500]}")
    return len(differing)


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges stories-record", __doc__)
    parser.add_version()
    parser.add_argument("--story", type=Path, help="a file with a story, instead of NAMEs")
    parser.add_argument("names", nargs="*", metavar="NAME")
    wanted = parser.parse_args(arguments)
    programs = parser.programs(wanted.version)
    if wanted.story is not None:
        stories = {wanted.story.stem: read(wanted.story.read_text())}
    else:
        names = wanted.names or classics_of(programs.version)
        stories = {name: classic(name, programs.version) for name in names}
    with real_servers(programs, pod_groups=programs.version >= (1, 36)) as plane:
        kubeconfig = plane.files.kubeconfig()
        written = asyncio.run(_record(stories, kubeconfig, programs.version, programs.text))
    return 1 if sum(map(_check, written)) else 0
