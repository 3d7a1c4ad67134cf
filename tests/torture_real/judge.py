"""What became of a schedule: the witness reads the history of its namespace."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from claimctl.controlplane.kubelet import Finding
from claimctl.demo.witness import STARTED_WITHOUT_ALLOCATION, Witness
from claimctl.demo.world import World
from claimctl.embedded.store import Object, Revision
from tests.torture_real.controllers import USER

Line = tuple[float, str]


@dataclass
class Verdict:
    """What was found, and the history for people where that is anything."""

    name: str
    violations: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Pods on unallocated claims that somebody else than claimctl deallocated."""
    revisions: int = 0
    writes: int = 0
    """Those of claimctl's."""
    holds: int = 0
    releases: int = 0
    """Claims that claimctl put a workload into, and that it deallocated."""
    log: list[str] = field(default_factory=list)

    def say(self, kind: str, texts: Iterable[str]) -> None:
        """Note findings, and tell of them at once: a run may be cut short.

        Args:
            kind: violations, leaks or stuck.
        """
        for text in texts:
            getattr(self, kind).append(text)
            print(f"{self.name}: {kind}: {text[:400]}", file=sys.stderr, flush=True)

    @property
    def good(self) -> bool:
        return not (self.violations or self.leaks or self.stuck)


def judge(
    verdict: Verdict, history: list[Revision], findings: Iterable[Finding], *, whole: bool
) -> None:
    """Read the history from its beginning and write down what must not be in it.

    Args:
        whole: whether the schedule has come to its end; a release may be under way otherwise.
    """
    witness, world = Witness({USER}), World()
    world.listen(witness.notice)
    world.read(history)
    verdict.revisions = len(history)
    ours = [each for each in history if each.actor == USER]
    verdict.writes = len(ours)
    verdict.holds = sum(_listed(each) > _listed(each, before=True) for each in ours)
    verdict.releases = sum(_allocated(each, before=True) > _allocated(each) for each in ours)
    for violation in witness.violations:
        key = (violation.namespace, violation.claim)
        theirs = witness.deallocations.get(key) not in witness.users
        text = f"{violation.rule}: {violation.message}"
        if violation.rule == STARTED_WITHOUT_ALLOCATION and theirs:
            verdict.others.append(f"{text}; deallocated by {witness.deallocations.get(key)}")
        else:
            verdict.say("violations", [text])
    for finding in findings:
        namespace, _, claim = finding.claim.partition("/")
        by = witness.deallocations.get((namespace, claim))
        text = f"{finding.rule}: pod {finding.pod}, claim {finding.claim}: {finding.message}"
        if by in witness.users:
            verdict.say("violations", [text])
        else:
            verdict.others.append(f"{text}; deallocated by {by}")
    if whole:
        verdict.say("leaks", [f"finalizer of claim {name}" for _, name in witness.unfinished])


def _status(revision: Revision, *, before: bool) -> Object:
    obj = revision.previous_object() if before else revision.object()
    status: Object = (obj or {}).get("status") or {}
    return status if revision.plural == "resourceclaims" else {}


def _listed(revision: Revision, *, before: bool = False) -> int:
    """How many workloads are listed."""
    listed = _status(revision, before=before).get("reservedFor") or ()
    return sum(each.get("apiGroup") in ("apps", "batch") for each in listed)


def _allocated(revision: Revision, *, before: bool = False) -> bool:
    return bool(_status(revision, before=before).get("allocation"))


def told(history: list[Revision], *notes: Iterable[Line]) -> Iterator[str]:
    """What was done and what became of it, in one order."""
    lines = [(each.at, _line(each)) for each in history]
    lines += [(at, f"{'':7} *** {text}") for note in notes for at, text in note]
    began = min((at for at, _ in lines), default=0.0)
    for at, text in sorted(lines, key=lambda line: line[0]):
        yield f"t={at - began:8.3f} {text}"


def _line(each: Revision) -> str:
    actor = each.actor.rpartition(":")[2]
    what = f"{each.verb}{'/' + each.subresource if each.subresource else ''}"
    told = _told(each.plural, each.name, each.object())
    return f"{each.number:7} {actor:24} {each.type:8} {what:14} {told}"


def _told(plural: str, name: str, obj: Object) -> str:
    status = obj.get("status") or {}
    text = f"{plural}/{name}"
    if obj["metadata"].get("deletionTimestamp"):
        text += " DELETING"
    if plural == "resourceclaims":
        listed = [f"{each['resource']}/{each['name']}" for each in status.get("reservedFor") or ()]
        text += f" allocated={bool(status.get('allocation'))} reservedFor={listed}"
        text += f" finalizers={obj['metadata'].get('finalizers') or []}"
    elif plural == "pods":
        text += f" {status.get('phase')} on {obj['spec'].get('nodeName', '-')}"
        conditions = status.get("conditions") or ()
        text += "".join(f" [{c['reason']}]" for c in conditions if c.get("reason"))
    elif plural == "claimreservations":
        reasons = {each["type"]: each["reason"] for each in status.get("conditions") or ()}
        text += f" {reasons} release={status.get('release')} ghosts="
        text += f"{[each.get('name') for each in status.get('forceDeletedPods') or ()]}"
    elif plural in ("deployments", "statefulsets", "replicasets"):
        text += f" replicas={obj['spec'].get('replicas')}"
    elif plural == "jobs":
        text += f" suspend={obj['spec'].get('suspend')} active={status.get('active', 0)}"
    return text
