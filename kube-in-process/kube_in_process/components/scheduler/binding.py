"""The binding cycle of the scheduler: the writes, and their order, before a pod is bound.

Every step is one write; between two steps other clients may write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kube_in_process.components.objects import (
    deleting,
    finalizers,
    key_of,
    name,
    namespace,
    uid,
    with_metadata,
)
from kube_in_process.components.pods import allocation_of, pod_reference, reserved_for
from kube_in_process.components.scheduler.readiness import (
    BINDING_SECONDS,
    BindingFailed,
    is_conditional,
    is_late,
    is_ready,
)
from kube_in_process.components.scheduler.reserving import Holder, holder, reserved
from kube_in_process.components.scheduler.volumes import VolumeBinding
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import Views

FINALIZER = "resource.kubernetes.io/delete-protection"
RETRIES = 5
"""client-go's DefaultRetry: how often a conflicting write is tried with a fresh object."""
PAUSE = 0.01
REPORTER = "default-scheduler"
"""The component that Events about pods name."""
LATENCY = (0.01, 0.04)
"""How long a read and a write take in a conflict storm, in seconds: least, most."""
TIMED_OUT = "device binding timeout"
POLL = 5.0
"""Seconds between two looks at the conditions that drivers report."""


class NotBound(Exception):
    """A pod could not be bound. The text is for its condition and its Event."""


@dataclass(frozen=True, slots=True)
class PlannedClaim:
    """A claim as the scheduler saw it, and the allocation that it will get if it has none."""

    seen: Object
    group: Object | None
    allocation: Object | None


@dataclass(frozen=True, slots=True)
class Plan:
    pod: Object
    node: str
    claims: tuple[PlannedClaim, ...]
    written: dict[tuple[str, str], Object] = field(default_factory=dict)
    """By namespace and name: the claims as PreBind wrote them."""

    def known(self) -> tuple[Object, ...]:
        """The claims as the scheduler knows them; other clients may have changed them since."""
        return tuple(self.written.get(key_of(claim.seen), claim.seen) for claim in self.claims)


class Binder:
    """Carries out plans step by step. A step returns the seconds until the next one."""

    def __init__(
        self, context: Context, api: ApiFor, views: Views, written: Callable[[Plan], None]
    ) -> None:
        """``written`` is called when the cluster shows all claims of a plan."""
        self._context = context
        self._api = api
        self._claims = views["resourceclaims"]
        self._written = written
        self._volumes = VolumeBinding(context, api, views)

    def steps(self, plan: Plan) -> Iterator[float]:
        """The steps of a plan. A step that fails raises Refused or StatusError."""
        before, after = self._context.pauses(plan.pod) if self._context.pauses else (0.0, 0.0)
        if before:
            yield before
        yield from self._volumes.steps(plan.pod, plan.node)
        if plan.claims and self._context.features.nominates_before_binding:
            self._nominate(plan)
            yield 0.0
        for claim in plan.claims:
            if claim.allocation is not None:
                yield from self._allocate(plan, claim, claim.allocation)
            else:
                yield from self._reserve(plan, claim)
        if plan.claims:
            self._written(plan)
            yield from self._poll(plan)
        if after:
            yield after
        self._api.bind(namespace(plan.pod), name(plan.pod), plan.node, uid(plan.pod))

    def undo(self, plan: Plan) -> None:
        """Remove the pod's own references again. An allocation stays.

        Unreserve looks at the claim as PreFilter saw it or as PreBind wrote it. So an entry that
        another client has added since then stays.
        """
        for known in plan.known():
            claim = self._claims.get(*key_of(known))
            if claim is None or not _listed(known, plan.pod) or not _listed(claim, plan.pod):
                continue
            patch = {
                "metadata": {"uid": uid(claim)},
                "status": {"reservedFor": [{"$patch": "delete", "uid": uid(plan.pod)}]},
            }
            space, plain = key_of(claim)
            written = self._api.patch(
                "resourceclaims", space, plain, patch, "status", kind="strategic"
            )
            self._claims.assume(written)

    def _poll(self, plan: Plan) -> Iterator[float]:
        """Wait until the devices of the pod's claims are ready, as their drivers report.

        The poll reads each claim anew, by name. It accepts any allocation, for whatever node, and
        does not look at the list.
        """
        if not any(is_conditional(claim) for claim in plan.known()):
            return
        text = f"waiting for binding conditions for device on node {plan.node}"
        self._context.events.record(REPORTER, plan.pod, "Normal", "BindingConditionsPending", text)
        end = self._context.clock.monotonic() + BINDING_SECONDS
        while not self._are_ready(plan):
            if self._context.clock.monotonic() >= end:
                raise NotBound(_prebind(f"{TIMED_OUT}: context deadline exceeded"))
            yield POLL

    def _are_ready(self, plan: Plan) -> bool:
        now = self._context.clock.now()
        for planned in plan.claims:
            space, plain = key_of(planned.seen)
            claim = self._claims.get(space, plain)
            if claim is None:
                raise NotBound(_prebind(f'could not find ResourceClaim "{space}/{plain}"'))
            try:
                ready = is_ready(claim)
            except BindingFailed as failed:
                raise NotBound(_prebind(str(failed))) from failed
            if not ready and is_late(claim, now):
                raise NotBound(_prebind(f"{TIMED_OUT}: claim={plain}"))
            if not ready:
                return False
        return True

    def _nominate(self, plan: Plan) -> None:
        status = {"status": {"nominatedNodeName": plan.node}}
        space, plain = key_of(plan.pod)
        self._api.patch("pods", space, plain, status, "status", kind="strategic")

    def _allocate(self, plan: Plan, planned: PlannedClaim, allocation: Object) -> Iterator[float]:
        """Each try checks the finalizer again: a deallocation may have removed it."""

        def allocated(claim: Object) -> Object:
            if allocation_of(claim) is not None:
                shown = "/".join(key_of(claim))
                raise NotBound(_prebind(f"claim {shown} got allocated elsewhere in the meantime"))
            return reserved(claim, self._holder(claim, plan, planned), self._stamped(allocation))

        claim = self._current(planned)
        yield from self._write(plan, claim, allocated, "add allocation to claim", protected=True)
        yield 0.0

    def _stamped(self, allocation: Object) -> Object:
        if self._context.features.version < (1, 36):
            return allocation
        return {**allocation, "allocationTimestamp": self._context.now()}

    def _reserve(self, plan: Plan, planned: PlannedClaim) -> Iterator[float]:
        """Add the pod to the list. Like the scheduler, decide on the claim seen when planning."""
        features = self._context.features
        if holder(planned.seen, plan.pod, planned.group, features) is None:
            return

        def listed(claim: Object) -> Object | None:
            if allocation_of(claim) is None:
                shown = "/".join(key_of(claim))
                raise NotBound(_prebind(f"claim {shown} is not allocated anymore"))
            new_holder = holder(claim, plan.pod, planned.group, features)
            if new_holder is None and planned.group is None and _listed(claim, plan.pod):
                # bindClaim adds the pod without looking; the API server refuses a second entry
                new_holder = Holder(pod_reference(plan.pod))
            return None if new_holder is None else reserved(claim, new_holder)

        claim = self._current(planned)
        yield from self._write(plan, claim, listed, "add reservation to claim")
        yield 0.0

    def _holder(self, claim: Object, plan: Plan, planned: PlannedClaim) -> Holder:
        new_holder = holder(claim, plan.pod, planned.group, self._context.features)
        assert new_holder is not None, "a claim without allocation has no references"
        return new_holder

    def _current(self, planned: PlannedClaim) -> Object:
        claim = self._claims.get(*key_of(planned.seen))
        shown = "/".join(key_of(planned.seen))
        if claim is None or uid(claim) != uid(planned.seen) or deleting(claim):
            raise NotBound(_prebind(f"claim {shown} got deleted in the meantime"))
        return claim

    def _write(
        self,
        plan: Plan,
        claim: Object,
        change: Callable[[Object], Object | None],
        what: str,
        *,
        protected: bool = False,
    ) -> Iterator[float]:
        """Change the status. If ``protected``, add the finalizer first."""
        space, plain = key_of(claim)
        for attempt in range(RETRIES):
            if self._context.options.conflict_storm:
                yield self._context.rng.uniform(*LATENCY)
            try:
                if protected and FINALIZER not in finalizers(claim):
                    claim = self._api.update("resourceclaims", _protected(claim))
                    self._claims.assume(claim)
                    yield 0.0
                changed = change(claim)
                if changed is not None:
                    claim = self._api.update("resourceclaims", changed, "status")
                    self._claims.assume(claim)
                plan.written[space, plain] = claim
                return
            except StatusError as error:
                if error.reason != "Conflict" or attempt == RETRIES - 1:
                    raise NotBound(_prebind(f"{what} {space}/{plain}: {error.message}")) from error
            yield PAUSE
            claim = self._api.get("resourceclaims", space, plain)


def _prebind(text: str) -> str:
    return f'running PreBind plugin "DynamicResources": {text}'


def _protected(claim: Object) -> Object:
    return with_metadata(claim, finalizers=[*finalizers(claim), FINALIZER])


def _listed(claim: Object, pod: Object) -> bool:
    return any(reference["uid"] == uid(pod) for reference in reserved_for(claim))
