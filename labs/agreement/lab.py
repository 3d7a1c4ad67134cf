"""Asks explain, get, tree, doctor and the metrics about random states, and judges their answers.

Half of the states are of torture, which stops at a random moment: there, none may be calm about a
pod that waits. The others are of users who break nothing: there, none may report a problem. All
five must agree. The judge reads the objects of the cluster alone. Exit code 1 with a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kube_in_process.real.flags import Parser

from labs.agreement.playing import PLAYS, play
from labs.findings import Tally
from labs.runs import add_seeds, report, seeds, spread


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs agreement", __doc__)
    add_seeds(parser, 200, "--states")
    wanted, seen = parser.parse_args(arguments), Tally()
    for name in PLAYS:
        seen.add(spread(partial(play, name), seeds(wanted), wanted.workers))
    return report(seen, ("seeds", f"{seen.runs} from SEED={wanted.seed}"))
