"""The verdict on a schedule: the witness reads the history of its namespace."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kube_in_process.real.servers.pod_worker import Finding
from kube_in_process.storage.store import Revision

from claimctl.wire.base import Object
from claimctl_witness.witness import STARTED_WITHOUT_ALLOCATION, Violation, Witness
from claimctl_witness.world import World
from labs.findings import RunFindings
from labs.torture_real.controllers import USER

WATCH_SECONDS = 1.0
"""How late a watch event may be on a busy machine. The end of a pod may be shown so late, and what
claimctl does after its grace in time."""


@dataclass
class RealVerdict(RunFindings):
    """The result of one schedule. ``accused`` is set with the first finding."""

    accused: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, kind: str, texts: Iterable[str]) -> None:
        """Record findings and print them at once: a run may be interrupted."""
        for text in texts:
            getattr(self, kind).append(text)
            print(f"{self.name}: {kind}: {text[:400]}", file=sys.stderr, flush=True)
            self.accused.set()

    def weigh(self, text: str, takers: list[str]) -> None:
        """Record a violation if claimctl is among the writers that deallocated."""
        if USER in takers:
            self.say("violations", [text])
        else:
            self.others.append(f"{text}; deallocated by {', '.join(takers) or 'nobody'}")


def judge(
    verdict: RealVerdict, history: list[Revision], findings: Iterable[Finding], *, whole: bool
) -> None:
    """Read the whole history and record the violations.

    Args:
        whole: whether the schedule has come to its end; otherwise a release may be in progress.
    """
    witness, world = Witness({USER}, late=WATCH_SECONDS), World()
    takers: list[tuple[int, str, str]] = []
    world.listen(witness.notice)
    world.listen(lambda revision, _: takers.extend(_taker(revision)))
    world.read(history)
    ours = [revision for revision in history if revision.actor == USER]
    verdict.counts |= Counter(
        {
            "versions judged": len(history),
            "writes of claimctl": len(ours),
            "holds of claimctl": sum(_listed(our) > _listed(our, before=True) for our in ours),
            "releases of claimctl": sum(user == USER for _, _, user in takers),
        }
    )
    for violation in witness.violations:
        before = [user for at, claim, user in takers if _is(violation, at, claim)][-1:]
        theirs = violation.rule == STARTED_WITHOUT_ALLOCATION
        verdict.weigh(f"{violation.rule}: {violation.message}", before if theirs else [USER])
    for finding in findings:
        text = f"{finding.rule}: pod {finding.pod}, claim {finding.claim}: {finding.message}"
        verdict.weigh(text, _suspects(finding, history, takers))
    if whole:
        verdict.say("leaks", [f"finalizer of claim {name}" for _, name in witness.unfinished])


def _is(violation: Violation, at: int, claim: str) -> bool:
    return at <= violation.revision and claim == f"{violation.namespace}/{violation.claim}"


def _taker(revision: Revision) -> Iterator[tuple[int, str, str]]:
    """When a claim lost its allocation, which claim, and by which writer."""
    gone = revision.type == "DELETED" or not _allocated(revision)
    if _allocated(revision, before=True) and gone:
        yield revision.number, f"{revision.namespace}/{revision.name}", revision.actor


def _suspects(
    finding: Finding, history: list[Revision], takers: list[tuple[int, str, str]]
) -> list[str]:
    """The writers that deallocated the claim during the pod's life, and the last one before."""
    space, _, name = finding.pod.partition("/")
    pod = ("pods", space, name)
    life = [
        revision
        for revision in history
        if (revision.plural, revision.namespace, revision.name) == pod
    ]
    first = life[0].number if life else 0
    ended = bool(life) and life[-1].type == "DELETED"
    last = life[-1].number if ended else history[-1].number
    of_this = [(at, user) for at, claim, user in takers if claim == finding.claim]
    before = [user for at, user in of_this if at < first]
    return [*before[-1:], *(user for at, user in of_this if first <= at <= last)]


def _status(revision: Revision, *, before: bool) -> Object:
    obj = revision.previous_object() if before else revision.object()
    status: Object = (obj or {}).get("status") or {}
    return status if revision.plural == "resourceclaims" else {}


def _listed(revision: Revision, *, before: bool = False) -> int:
    """How many workloads the list has."""
    listed = _status(revision, before=before).get("reservedFor") or ()
    return sum(entry.get("apiGroup") in ("apps", "batch") for entry in listed)


def _allocated(revision: Revision, *, before: bool = False) -> bool:
    return bool(_status(revision, before=before).get("allocation"))
