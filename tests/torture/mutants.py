"""Plants bugs in claimctl, one at a time; the torture tests must catch each of them.

``python -m tests.torture.mutants`` lists all bugs as caught or missed. With a name it plants that
bug in its own process and hunts it: it changes the source of one module during import, and no file.
A bug counts as caught only by a case that passes without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

CAUGHT, MISSED, BROKEN = 0, 1, 2
PATIENCE = 180.0
"""Seconds for the hunt of one bug; MUTANT_BUDGET changes it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` stands once in the module's source and becomes ``new``."""

    name: str
    module: str
    old: str
    new: str


RELEASE, VERDICT = "claimctl.reservation.release.protocol", "claimctl.reservation.release.blockers"
LIST = "claimctl.reservation.reserved_for.consistency"
MUTANTS = (
    Mutant(
        "skip the settle wait",
        RELEASE,
        """    left = snapshot.settling_left
    if left > 0:""",
        """    left = snapshot.settling_left
    if left > 0:
        return _checked(snapshot, reason, own, settled=False)
    if left > 0:""",
    ),
    Mutant(
        "deallocate without a fence",
        RELEASE,
        "            return _fence(snapshot, reason, own)",
        "            return _checked(snapshot, reason, own, settled=False)",
    ),
    Mutant(
        "drop the resourceVersion precondition",
        "claimctl.kube.client",
        """{**patch.get("metadata", {}), "resourceVersion": resource_version}""",
        """{**patch.get("metadata", {})}""",
    ),
    Mutant(
        "take the cache for a live LIST",
        "claimctl.controller.live_reads",
        """        caught_up = await self._cache.catch_up(version, CATCH_UP_SECONDS)
""",
        """        pods, uids = list(snapshot.pods), {pod.metadata.uid for pod in snapshot.pods}
        caught_up = True
""",
    ),
    Mutant(
        "deallocate in two writes",
        RELEASE,
        "WriteList(version, (), deallocate=True, reason=reason)",
        "WriteList(version, (), deallocate=not snapshot.references, reason=reason)",
    ),
    Mutant("ignore ghosts", VERDICT, "        *_ghosts(snapshot),\n", ""),
    Mutant("forget the blind wait", VERDICT, "        *_unseen_history(snapshot),\n", ""),
    Mutant(
        "believe the cache after a gap",
        "claimctl.controller.observations.claims",
        "        self._pods_listed, self._pods_listed_at = version, self._clock.monotonic()\n",
        "        self._pods_listed = self._pods_listed or version\n",
    ),
    Mutant(
        "take any claim that was once free for one that was watched",
        "claimctl.controller.observations.claims",
        " or _certainly(sight.made_after, self._pods_listed):",
        " or sight.made_after:",
    ),
    Mutant(
        "believe a watch that is open to be in time",
        "claimctl.kube.informer",
        """        return reaches(self._version, version)

    async def _current_step""",
        """        return self._following

    async def _current_step""",
    ),
    Mutant(
        "add references to a claim that is being deleted",
        LIST,
        "snapshot.allocated and not snapshot.claim.metadata.deleting",
        "snapshot.allocated",
    ),
    Mutant(
        "remove what is not known",
        LIST,
        """        else:
            self._take(reference)
            if reference.uid not in""",
        """        else:
            if reference.uid in self.wishes.keep:
                self._take(reference)
            if reference.uid not in""",
    ),
    Mutant(
        "remove pods that the cache lacks, unasked",
        LIST,
        "        if reference.uid not in evidence.present_pods:",
        "        if True:\n            return None\n        if reference.uid not in ():",
    ),
    Mutant(
        "write no tombstones",
        LIST,
        "                    yield tombstone(pod.metadata)",
        "                    yield from ()",
    ),
    Mutant(
        "write the status in every pass",
        "claimctl.reservation.status.desired",
        "        if reservation.status == status:\n            continue\n",
        "",
    ),
    Mutant(
        "take the finalizer without a record",
        "claimctl.reservation.decide",
        "found.on_record or found.snapshot.memory.deallocated",
        "True",
    ),
    Mutant(
        "leave the finalizer",
        RELEASE,
        "    if ours and CLAIM_FINALIZER in claim.metadata.finalizers:",
        "    if False:",
    ),
    Mutant(
        "hold on when a Job has ended",
        "claimctl.reservation.workloads",
        """condition.type in {"Complete", "Failed"}""",
        """condition.type in {"Done"}""",
    ),
    Mutant(
        "take a phase for the end of containers",
        "claimctl.reservation.pods",
        "        return not any(container.state.running for container in _containers(pod))",
        "        return True",
    ),
    Mutant(
        "give up no device that cannot be reached",
        "claimctl.reservation.retention",
        "    if timeout is None or since is None:",
        "    if True:",
    ),
    Mutant(
        "keep following from a version that is gone",
        "claimctl.kube.informer",
        """                self._page_size = PAGE if self._version else 0
                self._version = \"\"""",
        """                self._page_size = PAGE if self._version else 0""",
    ),
    Mutant(
        "let a reservation go before its release",
        "claimctl.reservation.release.finalizers",
        "        if not _nothing_left(found, retention):\n            continue\n",
        "",
    ),
    Mutant(
        "forget who is being released after a restart",
        "claimctl.reservation.assessment",
        "any(record is not None and record.claim_uid == uid for record in records)",
        "any(False and record is not None for record in records)",
    ),
    Mutant(
        "take out somebody else's hold in a downgrade",
        "claimctl.downgrade.expansion",
        "    if unknown:",
        "    if False:",
    ),
    Mutant(
        "record what a downgrade replaces after the write",
        "claimctl.downgrade.prepare",
        "    await run.tell(Phase.EXPANDING)\n    await run.expand(claims)",
        "    await run.expand(claims)",
    ),
    Mutant(
        "take a conflict for done",
        "claimctl.controller.reconcilers.claim",
        "        except (Conflict, NotFound, AlreadyExists) as error:\n",
        "        except (Conflict, NotFound, AlreadyExists) as error:\n            return DONE\n",
    ),
    *(
        Mutant(
            f"ignore pods that may be bound: {reason}",
            "claimctl.reservation.release.binding",
            "        elif not _to_be_fenced(snapshot, pod)",
            f"        elif reason != {reason!r} and not _to_be_fenced(snapshot, pod)",
        )
        for reason in ("Withdrawn", "ClaimDeleted", "WorkloadRecreated", "Reallocated")
    ),
)
"""tests/unit/reservation/test_binding.py has the case for HoldYielded, which takes 256 pods."""


class Planter(MetaPathFinder, Loader):
    """Imports one module from a changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._path = ""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None
        assert found.origin is not None
        self._path = found.origin
        return ModuleSpec(fullname, self, origin=found.origin)

    def exec_module(self, module: ModuleType) -> None:
        with open(self._path, encoding="utf-8") as file:
            source = file.read()
        if source.count(self._mutant.old) != 1:
            print(f"not there once in {self._mutant.module}: {self._mutant.old!r}")
            sys.exit(BROKEN)
        exec(
            compile(source.replace(self._mutant.old, self._mutant.new), self._path, "exec"),
            module.__dict__,
        )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        return _all()
    mutant = next(each for each in MUTANTS if each.name == arguments[0])
    sys.meta_path.insert(0, Planter(mutant))
    from tests.torture.hunt import hunt

    found = hunt(float(os.environ.get("MUTANT_BUDGET") or PATIENCE))
    print(found[:160] or "-")
    return CAUGHT if found else MISSED


def _all() -> int:
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, (code, told) in zip(MUTANTS, pool.map(_hunted, MUTANTS), strict=True):
            word = {CAUGHT: "caught", MISSED: "MISSED"}.get(code, "BROKEN")
            missed += code != CAUGHT
            print(f"{word:7} {mutant.name}: {told}", flush=True)
    print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} caught")
    return 1 if missed else 0


def _hunted(mutant: Mutant) -> tuple[int, str]:
    command = (sys.executable, "-m", "tests.torture.mutants", mutant.name)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout if done.returncode in (CAUGHT, MISSED) else done.stderr).splitlines()
    return done.returncode, lines[-1] if lines else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
