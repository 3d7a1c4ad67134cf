"""Plays claimctl with planted bugs on a real control plane: the judge must notice each bug.

``python -m labs mutants-real [NAME ...]`` plants each bug in turn, plays waves for
``BUDGET`` seconds (240) or until something is found, and fails if a bug was not noticed. The
options are those of ``make torture-real``. Without a bug the same waves must have no finding.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

BUGS = ("leave the finalizer", "deallocate in two writes", "ignore ghosts")
"""The bugs that one wave reveals. The others need rare moments, which the embedded cluster can
produce at will (``make torture-mutants``)."""
FOUND = 1


def main(names: Sequence[str]) -> int:
    missed = 0
    for bug in names or BUGS:
        code, told = _hunted(bug)
        missed += code != FOUND
        print(f"{'caught' if code == FOUND else 'MISSED'} {bug}: {told[:200]}", flush=True)
    print(f"{len(names or BUGS) - missed} of {len(names or BUGS)} caught")
    return 1 if missed else 0


def _hunted(bug: str) -> tuple[int, str]:
    """The exit code and the first finding."""
    environment = {**os.environ, "BUG": bug, "BUDGET": os.environ.get("BUDGET") or "240"}
    command = (sys.executable, "-m", "labs", "torture-real")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if "logs are kept" not in line]
    return done.returncode if lines else 0, lines[0] if lines else "nothing was found"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
