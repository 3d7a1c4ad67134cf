"""Plays stories of user actions on real servers and on kube-in-process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from kube_in_process.real.flags import Parser, number

from judges.differential.actions.runs import Result, Session
from judges.differential.actions.servers import real_servers


def _say(result: Result) -> None:
    if result.differences:
        print(result.shown(), end="\n\n", flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges stories", __doc__)
    parser.add_version()
    parser.add_argument("--seed", type=number(), default=0)
    parser.add_argument("--seconds", type=number(1, kind=float), default=240.0)
    parser.add_argument("--count", type=number(1), help="how many stories")
    parser.add_argument("--slots", type=number(1), default=56, help="how many at once")
    parser.add_argument("--theme", default="")
    parser.add_argument("--numbers", default="", help="such as 3,17: only these stories")
    parser.add_argument("--no-pod-groups", action="store_true", help="1.36 without the gates")
    parser.add_argument("--once", action="store_true", help="do not try again what differs")
    wanted = parser.parse_args(arguments)
    programs = parser.programs(wanted.version)
    groups = programs.version >= (1, 36) and not wanted.no_pod_groups
    numbers = tuple(int(text) for text in wanted.numbers.split(",") if text)
    begun = time.monotonic()
    with real_servers(programs, pod_groups=groups) as plane:
        session = Session(
            (programs.version, groups),
            plane.files.kubeconfig(),
            wanted.seed,
            wanted.seconds,
            slots=wanted.slots,
            count=wanted.count,
            theme=wanted.theme,
            numbers=numbers,
            once=wanted.once,
            said=_say,
        )
        asyncio.run(session.run())
    kinds: Counter[str] = Counter()
    for result in session.results:
        kinds.update({difference.kind for difference in result.differences})
    for kind, count in kinds.most_common():
        print(f"{count:4} x {kind}")
    different = sum(1 for result in session.results if result.differences)
    unsteady = sum(1 for result in session.results if result.unsteady)
    print(
        f"{len(session.results)} stories in {time.monotonic() - begun:.0f} s, "
        f"{different} differ, {unsteady} differed once only, canary {session.slowness:.2f} s"
    )
    for result in session.results:
        for difference in result.unsteady:
            print(f"  unsteady {result.number}: {difference.shown()[:4000]}")
    return 1 if different else 0
