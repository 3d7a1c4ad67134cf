"""Plays claimctl with planted bugs on a real control plane: the judge must notice each bug.

Each bug is planted in turn. Waves are played for ``--budget`` seconds (240) or until something is
found; a bug that was not noticed is a failure. The other flags are those of ``torture-real``.
Without a bug the same waves must have no finding.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from kube_in_process.real.flags import Parser

from labs.hunting import CAUGHT, MISSED, hunt_all
from labs.torture.mutants import MUTANTS
from labs.torture_real.lab import parser as torture_real

BUGS = ("leave the finalizer", "deallocate in two writes", "ignore ghosts")
"""The bugs that one wave reveals. The others need rare moments, which the embedded cluster can
produce at will (``make torture-mutants``)."""
FOUND = 1


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs torture-real-mutants", __doc__)
    known = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--name", action="append", choices=known, help="instead of the usual three")
    options, flags = parser.parse_known_args(arguments)
    torture_real().parse_args(flags)
    return hunt_all(options.name or BUGS, partial(_hunt, flags))


def _hunt(flags: Sequence[str], bug: str) -> tuple[int, str]:
    """Whether the bug is caught, and the first finding."""
    command = (sys.executable, "-m", "labs", "torture-real", "--budget=240", *flags, "--bug", bug)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if "logs are kept" not in line]
    caught = lines and done.returncode == FOUND
    return CAUGHT if caught else MISSED, lines[0][:200] if lines else "nothing was found"
