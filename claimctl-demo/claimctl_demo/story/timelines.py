"""The timelines of all claims of a demonstration, from the server's history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from kube_in_process.storage.store import Revision

from claimctl.commands.timeline.history import Chronicle, ObjectChange
from claimctl.commands.timeline.model import Timeline
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl_demo.story.acts import who
from claimctl_demo.story.stage import EmbeddedStage

_TYPES: dict[tuple[str, str], type[Any]] = {
    ("", "pods"): Pod,
    ("resource.k8s.io", "resourceclaims"): ResourceClaim,
    ("claimctl.io", "claimreservations"): ClaimReservation,
}


def timelines(history: Iterable[Revision], epoch: float, end: datetime) -> list[Timeline]:
    """The timelines of all claims in a history.

    Args:
        epoch: Unix time, in seconds, at time 0 of the history's clock.
    """
    chronicle = Chronicle()
    chronicle.read(_changes(history, epoch))
    return chronicle.timelines(end)


def embedded_timelines(stage: EmbeddedStage) -> list[Timeline]:
    """The timelines of a stage whose history has the times of the loop's clock."""
    now = stage.clock.now()
    return timelines(stage.scene.history(), now.timestamp() - stage.clock.monotonic(), now)


def _changes(history: Iterable[Revision], epoch: float) -> Iterator[ObjectChange]:
    for each in history:
        type_ = _TYPES.get((each.group, each.plural))
        if type_ is not None:
            at = datetime.fromtimestamp(epoch + each.at, UTC)
            yield ObjectChange(
                at, decode(each.data, type_), each.type == "DELETED", _short(each.actor)
            )


def _short(user: str) -> str:
    """The name of a component or of a service account, without its namespace."""
    return who(user).rsplit(":", 1)[-1]
