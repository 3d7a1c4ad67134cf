"""A plan's status on the API server: what is written down before it is done.

Everybody who carries out a plan writes its status under the version that he read. Whoever finds
that somebody else has written meanwhile starts over from what stands there now, as after a crash:
so whoever puts a claim's version on record has read the claim after the plan, and no record of a
write that is under way is overwritten by an older one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import DowngradePlan, DowngradePlanStatus
from claimctl.wire.resources import DOWNGRADEPLANS

Progress = Callable[[DowngradePlanStatus], None]


class PlanWithdrawn(Exception):
    """The plan was deleted, or replaced by another one, while it was carried out."""


class Overtaken(Exception):
    """Somebody else wrote the plan while it was carried out: start over, a little later.

    Attributes:
        plan: as it is now.
    """

    def __init__(self, plan: DowngradePlan) -> None:
        super().__init__(f"plan {plan.metadata.name} was written by somebody else")
        self.plan = plan


def _unheard(status: DowngradePlanStatus) -> None:
    pass


class Ledger:
    """One plan's status; ``progress`` hears of everything that is stored."""

    def __init__(self, client: Client, plan: DowngradePlan, progress: Progress = _unheard) -> None:
        self.plan = plan
        self._client = client
        self._progress = progress

    async def store(self, status: DowngradePlanStatus) -> None:
        """Write the status, unless it stands there already.

        Raises:
            Overtaken: the plan was written since it was read.
            PlanWithdrawn: the plan is not there any more, or is being deleted.
            KubeError: the request failed; whether the status was written may be unknown.
        """
        if status != self.plan.status:
            await self._write(status)
        self._progress(status)

    async def _write(self, status: DowngradePlanStatus) -> None:
        meta = self.plan.metadata
        try:
            self.plan = await self._client.merge_patch(
                DOWNGRADEPLANS,
                meta.name,
                {"status": status_body(self.plan.status, status)},
                resource_version=meta.resource_version,
                subresource="status",
            )
        except Conflict:
            raise await self._overtaken() from None
        except NotFound:
            raise PlanWithdrawn(f"plan {meta.name} was deleted") from None

    async def _overtaken(self) -> Exception:
        """After a conflict. That the same stands there by now means nothing: whoever wrote it may
        have acted on it, and then it is in doubt what was replaced."""
        name, uid = self.plan.metadata.name, self.plan.metadata.uid
        gone = PlanWithdrawn(f"plan {name} was deleted")
        try:
            now = await self._client.get(DOWNGRADEPLANS, name)
        except NotFound:
            return gone
        return gone if now.metadata.uid != uid or now.metadata.deleting else Overtaken(now)


def status_body(old: DowngradePlanStatus, new: DowngradePlanStatus) -> dict[str, Any]:
    """What of the status has changed, as a merge patch.

    Fields with their default are left out of what is encoded, so a merge patch would keep the
    earlier value of an emptied one.
    """
    before, after = _whole(old), _whole(new)
    return {key: value for key, value in after.items() if before[key] != value}


def _whole(status: DowngradePlanStatus) -> dict[str, Any]:
    empty = {
        "observedGeneration": 0,
        "phase": "",
        "total": 0,
        "done": 0,
        "claims": [],
        "conditions": [],
    }
    return {**empty, **to_plain(status)}
