"""Asks explain, get, tree, doctor and the metrics about random states, and judges their answers.

Half of the states are of torture, which stops at a random moment: there, none may be calm about a
pod that waits. The others are of users who break nothing: there, none may report a problem. All
five must agree. The judge reads the objects of the cluster alone. Exit code 1 with a finding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from kube_in_process.real.flags import Parser, number

from labs import frame
from labs.agreement.playing import PLAYS, AgreementTally, play
from labs.torture.batches import prepare

BATCH = 5


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs agreement", __doc__)
    count = "states of each half (%(default)s)"
    parser.add_argument("--states", type=number(1), default=200, help=count)
    parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    parser.add_argument("--workers", type=number(1), default=os.cpu_count() or 1)
    wanted = parser.parse_args(arguments)
    seen, end = AgreementTally(), wanted.seed + wanted.states
    batches = [range(at, min(at + BATCH, end)) for at in range(wanted.seed, end, BATCH)]
    with frame.processes(wanted.workers, prepare) as pool:
        for name in PLAYS:
            for part in pool.map(partial(play, name), batches):
                for run in part.bad:
                    frame.say(f"{run.name}: {run.violations[0][:300]}")
                seen.add(part)
    lines = [*sorted(seen.counts.items()), ("states with a finding", len(seen.bad))]
    print(frame.figures(lines))
    for run in seen.bad[:1]:
        print(run.shown())
    return 1 if seen.bad else 0
