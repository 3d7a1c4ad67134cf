"""Plants bugs about sticky claims, one at a time; the judge must find each of them.

Without a name all bugs are listed as found or missed. With a name that bug is planted in this
process, and seeds are played until the judge finds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.real.flags import Parser, number

from labs.hunting import ended, first_finding, hunt_all, in_process, named
from labs.planting import Mutant, plant

SEEDS = 60
"""How many seeds are played for one bug."""

ORDINALS = "claimctl.reservation.facts.ordinals"
LIFECYCLE = "claimctl.reservation.release.lifecycle"
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
        ORDINALS,
        "is_superfluous",
        "still is OrdinalWish.NOT_NOW and sticky.when_scaled == DELETE",
        "still is OrdinalWish.NOT_NOW",
    ),
    Mutant(
        "delete a claim that pods name",
        LIFECYCLE,
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
        LIFECYCLE,
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
        "ignore the group of a pod",
        ORDINALS,
        "_wish",
        "zip(sticky.whose, workload.verdict.ordinals, strict=False)",
        "zip(sticky.whose[1:], workload.verdict.ordinals[1:], strict=False)",
    ),
    Mutant(
        "take a pod with two sticky claims for one with another",
        ORDINALS,
        "_asks",
        "claim in claim_names(pod)",
        "claim == min(claim_names(pod))",
    ),
    Mutant(
        "keep what nobody will use again",
        LIFECYCLE,
        "is_over",
        "held.workload.claim_over",
        "False",
    ),
)


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs sticky-mutants", __doc__)
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--seeds", type=number(1), default=SEEDS, help="for a bug (%(default)s)")
    parser.add_argument("name", nargs="?", choices=names)
    given = parser.parse_args(arguments)
    if given.name is None:
        return hunt_all(names, in_process("sticky-mutants", f"--seeds={given.seeds}"))
    plant(named(MUTANTS, given.name))
    from labs import frame
    from labs.sticky.lab import play
    from labs.sticky.users import StickySize

    frame.quiet()
    return ended(first_finding(play(seed, StickySize()) for seed in range(given.seeds)))
