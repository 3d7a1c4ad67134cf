"""Try a driver on one node: with one claim, under one UID, one step after the other.

Between two pods, the entry of a workload keeps the claim allocated, as claimctl's hold does. Before
the second prepare it leaves the list, so that the driver sees one pod alone again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from claimctl.commands.drivers.choosing import Published, published
from claimctl.commands.drivers.leftovers import LOOK_SECONDS, ClaimLost, change_references
from claimctl.commands.drivers.manifests import Check
from claimctl.commands.drivers.signs import StepOutcome, StepResult
from claimctl.commands.drivers.start_watch import StartWatch
from claimctl.commands.drivers.verdict import CheckStep, NodeSeen
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.live_objects import change_object
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, RESOURCECLAIMS, RESOURCESLICES

_T = TypeVar("_T")

HIDING_SECONDS = 5.0
"""How long a driver gets to take a device in use out of its slices."""
References = tuple[Reference, ...]
_ENDED = "the pod ended, or was deleted by somebody else, before the check stopped it"


@dataclass(slots=True)
class NodeTry:
    """The check of one node.

    Args:
        claim: the name of its claim, and how the names of its pods begin.
        seconds: how long a pod may take to start, and how long to end.
        report: called with each step that begins.
    """

    client: Client
    check: Check
    there: Published
    claim: str
    seconds: float
    report: Callable[[str], None]
    steps: dict[CheckStep, StepOutcome] = field(default_factory=dict)
    hidden: bool = False
    device: str = ""
    _pods: int = 0

    async def run(self) -> NodeSeen:
        await self._make_claim()
        try:
            await self._try()
        except ClaimLost:
            last = list(self.steps)[-1]
            self.steps[last] = StepOutcome(StepResult.ENDED, _ENDED)
        return NodeSeen(
            node=self.there.node,
            device=self.device,
            hidden=self.hidden,
            effects=self.there.effects,
            steps=self.steps,
        )

    async def _make_claim(self) -> None:
        version = self.client.served(RESOURCECLAIMS).version
        body = self.check.claim(self.claim, version)
        await self.client.create(RESOURCECLAIMS, body, self.check.namespace)

    async def _try(self) -> None:
        """The script. It ends early where nothing more can be learned."""
        alone = await self._start(CheckStep.PREPARE)
        if self._done(CheckStep.PREPARE):
            await self._look_at_device()
            await self._list(self._beside_hold)
        if not await self._stop(alone) or not self._done(CheckStep.PREPARE):
            return
        await self._list(self._without_hold)
        again = await self._start(CheckStep.AGAIN)
        if self._done(CheckStep.AGAIN):
            await self._list(self._beside_hold)
        if not await self._stop(again) or not self._done(CheckStep.AGAIN):
            return
        if not await self._stop(await self._start(CheckStep.HOLD_FIRST)):
            return
        if not self._done(CheckStep.HOLD_FIRST):
            before = await self._start(
                CheckStep.HOLD_LAST, ahead=lambda pods: (*pods, self.check.hold)
            )
            if not await self._stop(before):
                return
        await self._stop(await self._start(CheckStep.TWO_PODS, count=2, ahead=lambda pods: pods))

    def _done(self, step: CheckStep) -> bool:
        return self.steps[step].result is StepResult.DONE

    # -- the list

    def _beside_hold(self, listed: References) -> References:
        return (*self._without_hold(listed), self.check.hold)

    def _without_hold(self, listed: References) -> References:
        return tuple(entry for entry in listed if entry.uid != self.check.uid)

    async def _list(self, change: Callable[[References], References]) -> None:
        await change_references(self.client, self.claim, self.check.namespace, change)

    # -- pods

    async def _start(
        self,
        step: CheckStep,
        count: int = 1,
        ahead: Callable[[References], References] | None = None,
    ) -> tuple[Pod, ...]:
        """Start pods, and note what becomes of them.

        Args:
            ahead: the list that the claim gets before the scheduler may look at the pods; the
                scheduler then writes nothing. None leaves the list to the scheduler.
        """
        self.report(f"{self.there.node}: {step}")
        pods = tuple([await self._create(gated=ahead is not None) for _ in range(count)])
        if ahead is not None:
            wanted = ahead(tuple(pod.reference for pod in pods))
            await self._list(lambda _: wanted)
            for pod in pods:
                await self._ungate(pod)
        self.steps[step] = await self._outcome(pods, patient=self._is_patient(step))
        return pods

    def _is_patient(self, step: CheckStep) -> bool:
        """Whether a refusal may be for another reason than the list, and pass."""
        again = self.steps.get(CheckStep.AGAIN)
        return again is None or step is CheckStep.AGAIN or bool(again.message)

    async def _create(self, *, gated: bool) -> Pod:
        self._pods += 1
        name = f"{self.claim}-{self._pods}"
        body = self.check.pod(name, self.claim, self.there.node, gated=gated)
        return await self.client.create(PODS, body, self.check.namespace)

    async def _ungate(self, pod: Pod) -> None:
        name, open_ = pod.metadata.name, {"spec": {"schedulingGates": None}}
        await change_object(self.client, PODS, name, lambda _: open_, self.check.namespace)

    async def _outcome(self, pods: Iterable[Pod], *, patient: bool) -> StepOutcome:
        """Wait until all pods run, or one of them is refused.

        Args:
            patient: whether a refusal may pass: the kubelet tries again after a minute or so.
        """
        watches = [StartWatch(self.client, pod, patient=patient) for pod in pods]

        async def known() -> StepOutcome | None:
            looked = [await it.look() for it in watches]
            bad = [it for it in looked if it is not None and it.result is not StepResult.DONE]
            if bad or None not in looked:
                return (bad or looked)[0]
            return None

        outcome = await self._until(known, self.seconds)
        late = [watch.last for watch in watches if watch.last.result is not StepResult.DONE]
        return outcome or late[0]

    async def _stop(self, pods: Iterable[Pod]) -> bool:
        """End the pods, and note how long that took; whether they are gone."""
        uids = {pod.metadata.uid for pod in pods}
        begun = self.client.clock.monotonic()
        for pod in pods:
            meta = pod.metadata
            with suppress(NotFound, Conflict):  # it is gone, or another one has its name
                await self.client.delete(PODS, meta.name, meta.namespace, uid=meta.uid)

        async def gone() -> bool | None:
            there = [await self._find(pod) for pod in pods]
            return None if any(there) else True

        ended = await self._until(gone, self.seconds)
        seconds = self.client.clock.monotonic() - begun
        if ended is None:
            message = f"the pod was still there {seconds:.0f} s after its deletion"
            self.steps[CheckStep.UNPREPARE] = StepOutcome(StepResult.TIMED_OUT, message)
            return False
        if self._done(CheckStep.PREPARE):
            done = StepOutcome(StepResult.DONE, seconds=seconds)
            self.steps.setdefault(CheckStep.UNPREPARE, done)
        await self._list(lambda listed: self._without_dead(listed, uids))
        return True

    async def _find(self, pod: Pod) -> Pod | None:
        """The pod as it is now; None if it is gone."""
        now = await self.client.find(PODS, pod.metadata.name, self.check.namespace)
        return now if now is not None and now.metadata.uid == pod.metadata.uid else None

    def _without_dead(self, listed: References, uids: set[str]) -> References:
        """Beside a hold, kube-controller-manager before 1.36 leaves dead pods in the list. Without
        one it takes them out, and deallocates."""
        if self.check.hold not in listed:
            return listed
        return tuple(entry for entry in listed if entry.uid not in uids)

    # -- the device

    async def _look_at_device(self) -> None:
        """Note which device the claim has, and whether its driver hides it."""
        claim = await self.client.get(RESOURCECLAIMS, self.claim, self.check.namespace)
        result = next(iter(claim.devices), None)
        if result is None:
            return
        self.device = f"{result.pool}/{result.device}"

        async def hidden() -> bool | None:
            slices = (await self.client.list(RESOURCESLICES, partial=True)).items
            here = [it for it in slices if it.spec.node_name == self.there.node]
            now = published(self.check.driver, here).get(self.there.node)
            is_there = any(it.spec.driver == self.check.driver for it in here)
            return (is_there and (now is None or result.device not in now.names)) or None

        if result.device in self.there.names:
            self.hidden = bool(await self._until(hidden, HIDING_SECONDS))

    async def _until(self, look: Callable[[], Awaitable[_T | None]], seconds: float) -> _T | None:
        """Look again and again; None if there was no answer in time."""
        until = self.client.clock.monotonic() + seconds
        while True:
            looked = await look()
            if looked is not None or self.client.clock.monotonic() >= until:
                return looked
            await self.client.clock.sleep(LOOK_SECONDS)
