"""The status of a plan on the API server: each step is recorded before it is done.

Status writes use optimistic concurrency: on a conflict, the writer reads the plan again and starts
over, as after a crash. So a writer always reads a claim after the plan that it records the claim
in, and an older record never overwrites the record of a write that is under way.
"""

from __future__ import annotations

from collections.abc import Callable

from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.wire.base import merge_diff
from claimctl.wire.fitted import fitted, status_body
from claimctl.wire.reservations import DowngradePlan, DowngradePlanStatus
from claimctl.wire.resources import DOWNGRADEPLANS

Progress = Callable[[DowngradePlanStatus], None]


class PlanWithdrawn(Exception):
    """The plan was deleted, or was created anew, while it was carried out."""


class Overtaken(Exception):
    """Another client wrote the plan while it was carried out: wait a little and start over with
    ``plan``, which has its write."""

    def __init__(self, plan: DowngradePlan) -> None:
        super().__init__(f"plan {plan.metadata.name} was written by another client")
        self.plan = plan


class PlanLedger:
    """Writes the status of one plan; ``progress`` is called with every status that is stored."""

    def __init__(
        self, client: Client, plan: DowngradePlan, progress: Progress = lambda _: None
    ) -> None:
        self.plan = plan
        self._client = client
        self._progress = progress

    async def store(self, status: DowngradePlanStatus) -> None:
        """Write the status, unless the plan has it already.

        Raises:
            Overtaken: another client wrote the plan since it was read.
            PlanWithdrawn: the plan is gone or is being deleted.
            KubeError: the request failed; it may be unknown whether the status was written.
        """
        meta, status = self.plan.metadata, fitted(status)
        try:
            if status != self.plan.status:
                fields = merge_diff(status_body(self.plan.status), status_body(status))
                patch = {"status": fields}
                self.plan = await self._client.merge_patch(
                    DOWNGRADEPLANS, meta, patch, subresource="status"
                )
        except Conflict:
            raise await self._overtaken() from None
        except NotFound:
            raise PlanWithdrawn(f"plan {meta.name} was deleted") from None
        self._progress(status)

    async def _overtaken(self) -> Exception:
        """The exception to raise after a conflict.

        A conflict counts even if the stored status equals ours: the client that wrote it may have
        acted on it, and then it is in doubt which references were replaced.
        """
        name, uid = self.plan.metadata.name, self.plan.metadata.uid
        now = await self._client.find(DOWNGRADEPLANS, name)
        if now is None or now.metadata.uid != uid or now.metadata.deleting:
            return PlanWithdrawn(f"plan {name} was deleted")
        return Overtaken(now)
