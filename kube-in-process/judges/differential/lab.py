"""Compares kube-in-process with a real control plane.

Plays the same requests, and the same actions, on a real control plane (the programs in
``KUBEBUILDER_ASSETS``) and on the embedded one. Every difference that ``allowed.yaml`` does not
name is shown once, as the fewest requests that lead to it with both answers.

Exit codes: 0 nothing differs, 1 something differs or a server failed, 2 bad arguments.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kube_in_process.real.flags import Parser, number
from kube_in_process.real.servers.programs import CannotStart

from judges.differential import requests
from judges.differential.actions import part
from judges.differential.ledger import allowances, allowed
from judges.differential.outcome import PartOutcome, Run
from judges.processes import quiet

Part = Callable[[Run], PartOutcome]
PARTS: dict[str, tuple[Part, float]] = {
    "requests": (requests.compare, 0.4),
    "actions": (part.compare, 0.6),
}
"""The parts, each with its share of the budget if all parts run."""


def _parser() -> Parser:
    parser = Parser("judges differential", __doc__)
    parser.add_version()
    seconds = number(1, kind=float)
    parser.add_argument("--budget", type=seconds, default=600.0, help="seconds for all parts")
    parser.add_argument("--seed", type=number(), default=0)
    parser.add_argument("--only", choices=sorted(PARTS), help="one part, with the whole budget")
    parser.add_argument("--keep", type=Path, help="add all transcripts to this file")
    return parser


def _report(outcome: PartOutcome) -> int:
    """Print new differences; returns the number of kinds that are not allowed."""
    rules = allowances()
    new = {kind for kind in outcome.kinds if not allowed(kind, rules)}
    for kind in sorted(new, key=lambda pair: -outcome.kinds[pair]):
        print(f"\n=== {outcome.kinds[kind]} x {kind}\n{outcome.findings[kind].shown}")
    print(
        f"{outcome.part}: {outcome.compared} {outcome.unit} compared, "
        f"{len(new)} kinds of difference ({sum(outcome.kinds[k] for k in new)} in all), "
        f"{len(outcome.kinds) - len(new)} kinds allowed"
    )
    for remark in outcome.remarks:
        print(f"{outcome.part}: {remark}")
    if outcome.refused:
        print(f"{outcome.part}: refused as not emulated: {dict(outcome.refused.most_common(20))}")
    return len(new)


def main(arguments: Sequence[str]) -> int:
    quiet()
    parser = _parser()
    wanted = parser.parse_args(arguments)
    chosen = {name: part for name, part in PARTS.items() if wanted.only in (None, name)}
    whole = sum(share for _, share in chosen.values())
    new = 0
    programs = parser.programs(wanted.version)
    try:
        print(f"{programs.text} in {programs.directory}, seed {wanted.seed}", flush=True)
        for part, share in chosen.values():
            begun = time.monotonic()
            seconds = wanted.budget * share / whole
            outcome = part(Run(programs, seconds, wanted.seed, wanted.keep))
            new += _report(outcome)
            print(f"{outcome.part}: {time.monotonic() - begun:.0f} s", flush=True)
    except CannotStart as error:
        print(f"differential: {error}", file=sys.stderr)
        return 1
    return 1 if new else 0
