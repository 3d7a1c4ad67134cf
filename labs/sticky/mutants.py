"""Plants bugs about sticky claims, one at a time; the judge must find each of them.

Without a name all bugs are listed as found or missed. With a name that bug is planted in this
process, and seeds are played until the judge finds it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from kube_in_process.real.flags import Parser, number

from labs.torture.planting import Mutant, plant

FOUND, MISSED = 0, 1
SEEDS = 60
"""How many seeds are played for one bug."""

OBJECTS = "claimctl.reservation.release.objects"
MUTANTS = (
    Mutant(
        "hold no sticky claim",
        "claimctl.reservation.assessment.retention",
        "_as_asked",
        "held.reservation.spec.sticky is not None and not held.has_made(claim)",
        "held.reservation.spec.sticky is not None",
    ),
    Mutant(
        "count ordinals from 1",
        "claimctl.wire.workloads",
        "ordinal_wish",
        "ordinal not in workload.spec.wanted_ordinals",
        "ordinal + 1 not in workload.spec.wanted_ordinals",
    ),
    Mutant(
        "count an ordinal too many",
        "claimctl.wire.workloads",
        "ordinal_wish",
        "ordinal not in workload.spec.wanted_ordinals",
        "ordinal - 1 not in workload.spec.wanted_ordinals",
    ),
    Mutant(
        "delete whatever is scaled away",
        "claimctl.reservation.facts.ordinals",
        "is_superfluous",
        "still is OrdinalWish.NOT_NOW and sticky.when_scaled == DELETE",
        "still is OrdinalWish.NOT_NOW",
    ),
    Mutant(
        "delete a claim that pods name",
        OBJECTS,
        "is_over",
        """
        return (
            held.reservation.spec.sticky is not None
            and not held.reservation.metadata.deleting
            and held.workload.claim_over
            and not snapshot.consumers.alive
        )
        """,
        """
        return (
            held.reservation.spec.sticky is not None
            and not held.reservation.metadata.deleting
            and held.workload.claim_over
        )
        """,
    ),
    Mutant(
        "delete a claim without a LIST of pods",
        OBJECTS,
        "tidy",
        """
        if live is None:
            decision.needs = (ListLivePods(meta.resource_version, vanished=False),)
        elif not snapshot.table_of(live.pods).alive and not live.unreadable:
            decision.write = DeleteClaim(meta.uid, meta.resource_version)
        """,
        """
        decision.write = DeleteClaim(meta.uid, meta.resource_version)
        """,
    ),
    Mutant(
        "keep what nobody will use again",
        OBJECTS,
        "is_over",
        "held.workload.claim_over",
        "False",
    ),
)


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs sticky-mutants", __doc__)
    parser.add_argument("--seeds", type=number(1), default=SEEDS, help="for a bug (%(default)s)")
    parser.add_argument("name", nargs="?", choices=[mutant.name for mutant in MUTANTS])
    given = parser.parse_args(arguments)
    if given.name is None:
        return _hunt_all(given.seeds)
    plant(next(mutant for mutant in MUTANTS if mutant.name == given.name))
    finding = _hunt(given.seeds)
    print(finding[:200] or "-")
    return FOUND if finding else MISSED


def _hunt(seeds: int) -> str:
    """The first finding; '' if there was none."""
    from labs import frame
    from labs.sticky.lab import play
    from labs.sticky.users import StickySize

    frame.quiet()
    for seed in range(seeds):
        verdict = play(seed, StickySize()).verdict
        if not verdict.good:
            return f"{verdict.name}: {verdict.texts()[0]}"
    return ""


def _hunt_all(seeds: int) -> int:
    missed = 0
    for mutant in MUTANTS:
        command = (sys.executable, "-m", "labs", "sticky-mutants", f"--seeds={seeds}", mutant.name)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        word = {FOUND: "found", MISSED: "MISSED"}.get(done.returncode, "BROKEN")
        missed += done.returncode != FOUND
        print(f"{word:7} {mutant.name}: {(done.stdout or done.stderr).strip()[-200:]}", flush=True)
    return 1 if missed else 0
