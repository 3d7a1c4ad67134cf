"""Plants bugs about sticky claims, one at a time; the judge must find each of them.

Without a name all bugs are listed as found or missed. With a name that bug is planted in this
process, and seeds are played until the judge finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial

from kube_in_process.real.flags import Parser, number

from labs.hunting import ended, first_finding, hunt_all, in_process, named, passes_elsewhere
from labs.planting import Mutant, plant

SEEDS = 60
"""How many seeds are played for one bug."""

OBJECTS = "claimctl.reservation.release.objects"
ORDINALS = "claimctl.reservation.facts.ordinals"
MUTANTS = (
    Mutant(
        "hold no sticky claim",
        "claimctl.reservation.assessment.retention",
        "_refusal",
        "held.reservation.spec.sticky is not None and not held.has_made(claim)",
        "held.reservation.spec.sticky is not None",
    ),
    Mutant(
        "count ordinals from 1",
        "claimctl.wire.ordinals",
        "ordinal_wish",
        "ordinal not in workload.spec.wanted_ordinals",
        "ordinal + 1 not in workload.spec.wanted_ordinals",
    ),
    Mutant(
        "count an ordinal too many",
        "claimctl.wire.ordinals",
        "ordinal_wish",
        "ordinal not in workload.spec.wanted_ordinals",
        "ordinal - 1 not in workload.spec.wanted_ordinals",
    ),
    Mutant(
        "delete whatever is scaled away",
        ORDINALS,
        "is_superfluous",
        "wish is OrdinalWish.NOT_NOW and sticky.when_scaled == DELETE",
        "wish is OrdinalWish.NOT_NOW",
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
        "keep what nobody will use again",
        OBJECTS,
        "is_over",
        "held.workload.claim_over",
        "False",
    ),
    Mutant(
        "ask for no size of groups",
        ORDINALS,
        "_wish",
        "zip(sticky.whose, workload.verdict.ordinals, strict=False)",
        "zip(sticky.whose[:1], workload.verdict.ordinals, strict=False)",
    ),
    Mutant(
        "take a group that is away for one that asks for nothing",
        ORDINALS,
        "_asks",
        """
        if facts.part is None:
            return True
        """,
        """
        if facts.part is None:
            return False
        """,
    ),
    Mutant(
        "look for workers among the leaders",
        "claimctl.wire.ordinals",
        "part_for",
        'f"{name}-{ordinal.number}"',
        "name",
    ),
)
"""That a claim is deleted only after a LIST of pods is in test_lifecycle_sticky.py: no seed has met
the moment in which a cache misses a pod."""


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
    size = StickySize()
    flags = [f"--{each.name}={getattr(size, each.name)}" for each in fields(size)]

    def passes(seed: int) -> bool:
        return passes_elsewhere("labs", "sticky", *flags, f"--seed={seed}", "--seeds=1")

    return ended(first_finding(partial(play, size=size), range(given.seeds), passes))
