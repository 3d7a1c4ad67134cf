"""The document of ``claimctl reschedule``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import asdict

from claimctl.cli.documents import Document, Names, Part
from claimctl_reschedule.command.wanted import RescheduleOptions
from claimctl_reschedule.run.steps import MoveStep, RunReport

P = TypeVar("P", bound=Part)


class PodPlace(Part, frozen=True):
    """A pod and its node; node is '' without one."""

    namespace: str
    name: str
    uid: str
    node: str


class MoveOwner(Part, frozen=True):
    """The controller owner of a pod."""

    kind: str
    name: str
    uid: str


class PlannedMove(Part, frozen=True):
    """The eviction of one pod; destination is where the replacement is expected, if it is known.

    result is Planned, Allowed, Evicted or Left. landed and outcome say what became of the
    replacement.
    """

    pod: PodPlace
    strategy: str
    profile: str
    owner: MoveOwner | None
    destination: str
    unit: str
    why: str
    result: str
    reason: str
    detail: str
    landed: str
    outcome: str


class PlannedTaint(Part, frozen=True):
    """A taint that closes a node for a while."""

    node: str
    key: str
    value: str
    effect: str


class StayingPod(Part, frozen=True):
    """A pod that a strategy considered and does not move."""

    pod: PodPlace
    strategy: str
    profile: str
    reason: str
    detail: str


class CountedReason(Part, frozen=True):
    """How many pods a strategy does not move for this reason."""

    strategy: str
    reason: str
    pods: int


class HelpedPod(Part, frozen=True):
    """A pod for which others were evicted; result is Helped, Waits or Changed."""

    pod: PodPlace
    strategy: str
    result: str
    detail: str


class RescheduleRun(Document, frozen=True):
    """``claimctl reschedule``; dryRun is '', client or server."""

    dry_run: str
    digest: str
    cluster_uid: str = msgspec.field(name="clusterUID")
    made_at: str
    evicted: int
    moves: tuple[PlannedMove, ...]
    helped: tuple[HelpedPod, ...]
    taints: tuple[PlannedTaint, ...]
    stayed: tuple[StayingPod, ...]
    reasons: tuple[CountedReason, ...]
    notes: Names
    failure: str
    interrupted: bool


def _counted_reasons(report: RunReport) -> list[CountedReason]:
    """The most frequent first."""
    counts = Counter((skip.strategy, str(skip.reason)) for skip in report.plan.skipped)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        CountedReason(strategy=strategy, reason=reason, pods=number)
        for (strategy, reason), number in ordered
    ]


def document(report: RunReport, wanted: RescheduleOptions) -> RescheduleRun:
    plan = report.plan
    return RescheduleRun(
        dry_run=str(wanted.dry_run or ""),
        digest=plan.digest,
        cluster_uid=plan.cluster_uid,
        made_at=plan.made_at.isoformat(),
        evicted=report.evicted,
        moves=tuple(map(_move, report.steps)),
        helped=_parts(HelpedPod, report.helps),
        taints=_parts(PlannedTaint, plan.taints),
        stayed=_parts(StayingPod, plan.skipped),
        reasons=tuple(_counted_reasons(report)),
        notes=(*(note.text for note in plan.notes), *report.notes),
        failure=report.failure,
        interrupted=report.interrupted,
    )


def _parts(model: type[P], values: Iterable[object]) -> tuple[P, ...]:
    """The fields of each value that the model has, too."""
    return tuple(msgspec.convert(value, model, from_attributes=True) for value in values)


def _move(step: MoveStep) -> PlannedMove:
    names = set(PlannedMove.__struct_fields__)
    move = {name: value for name, value in asdict(step.move).items() if name in names}
    result = {name: getattr(step, name) or "" for name in names - move.keys()}
    return msgspec.convert({**move, **result}, PlannedMove, from_attributes=True)
