"""Watch one pod of a check on its way to run."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.commands.drivers.signs import REFUSALS, StepOutcome, StepResult, is_away, sign_of
from claimctl.kube.client import Client
from claimctl.reservation.facts.pods import is_bound, is_prepared
from claimctl.wire.pods import Pod
from claimctl.wire.resources import EVENTS, PODS

UNSCHEDULABLE_SECONDS = 15.0
"""How long a scheduler gets to find out that the device is free."""
_WAITS = StepOutcome(StepResult.TIMED_OUT)


@dataclass(slots=True)
class StartWatch:
    """How a pod starts, as looks at it show.

    Attributes:
        patient: whether a refusal may pass: the kubelet tries again after a minute or so.
        last: what the last look showed, also where it may change.
    """

    client: Client
    pod: Pod
    patient: bool
    last: StepOutcome = _WAITS
    _bound: float | None = None
    _prepared: float | None = None
    _refused: str = ""
    _unschedulable: float | None = None

    async def look(self) -> StepOutcome | None:
        """The outcome, once it is known for good."""
        now, meta = self.client.clock.monotonic(), self.pod.metadata
        pod = await self.client.find(PODS, meta.name, meta.namespace)
        if pod is None or pod.metadata.uid != meta.uid:
            return StepOutcome(StepResult.ENDED, "the pod was deleted by somebody else")
        if is_bound(pod) and self._bound is None:
            self._bound = now
        if is_prepared(pod) and self._bound is not None and self._prepared is None:
            self._prepared = now
        sign = await self._sign(pod)
        if sign.result in REFUSALS:
            self._refused = sign.message
        self.last = self._outcome(sign)
        return self.last if self._is_final(sign.result, sign.message, now) else None

    def _outcome(self, sign: StepOutcome) -> StepOutcome:
        if sign.result is not StepResult.DONE:
            return sign
        seconds = None
        if self._bound is not None and self._prepared is not None:
            seconds = self._prepared - self._bound
        return StepOutcome(StepResult.DONE, self._refused, seconds)

    async def _sign(self, pod: Pod) -> StepOutcome:
        if pod.status.phase == "Running":
            return sign_of(pod, ())
        about, place = f"regarding.uid={pod.metadata.uid}", pod.metadata.namespace
        events = await self.client.list(EVENTS, place, field_selector=about, partial=True)
        return sign_of(pod, events.items)

    def _is_final(self, result: StepResult, message: str, now: float) -> bool:
        if result in (StepResult.DONE, StepResult.ENDED):
            return True
        if result is StepResult.NOT_SCHEDULED:
            if self._unschedulable is None:
                self._unschedulable = now
            return now - self._unschedulable >= UNSCHEDULABLE_SECONDS
        if result in REFUSALS:
            return not self.patient or is_away(message)
        return False
