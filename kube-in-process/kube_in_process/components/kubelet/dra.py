"""The kubelets' DRA manager: it has the drivers of a node prepare the claims of its pods.

The rules and texts are those of k8s.io/kubernetes/pkg/kubelet/cm/dra. The kubelet of a node knows
which pods use a claim there. It calls the drivers for the first one, and again after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kube_in_process.components.drivers.driver import Answer, Drivers
from kube_in_process.components.objects import name, namespace, uid
from kube_in_process.components.pods import (
    PodClaim,
    allocation_of,
    group_name,
    is_group,
    node_name,
    pod_claims,
    reserved_for,
)
from kube_in_process.habits.habit import PREPARE, UNPREPARE
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Context

TICK = 1e-6
"""Seconds by which a timer may be early."""


class PrepareFailed(Exception):
    """The devices of a pod cannot be prepared now. The text is the kubelet's."""


class ContainerRefused(Exception):
    """A driver lets no container of a pod be created now."""


class UnprepareFailed(Exception):
    """A driver did not unprepare a claim. The kubelet tries again."""


@dataclass(slots=True)
class _Call:
    """Calls of the drivers of a claim, one after the other."""

    verb: str
    steps: Answer
    due: float
    """When the driver answers that is being called, in seconds of the clock."""


@dataclass(slots=True)
class ClaimInfo:
    """What the kubelet of a node knows of a claim."""

    node: str
    claim: Object
    """As it was when its devices were prepared."""
    pods: dict[str, None] = field(default_factory=dict)
    """UIDs of the pods that use it."""
    containers: dict[str, None] = field(default_factory=dict)
    """UIDs of the pods whose containers were created with it."""
    is_prepared: bool = False
    call: _Call | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.node, f"{namespace(self.claim)}/{name(self.claim)}"


class DraManager:
    """The claims that are in use, on all nodes.

    Args:
        context: the cluster.
        drivers: the drivers by name.
        read: reads a claim from the API server, by namespace and name; None if there is none.
    """

    def __init__(
        self, context: Context, drivers: Drivers, read: Callable[[str, str], Object | None]
    ) -> None:
        self._context = context
        self._drivers = drivers
        self._read = read
        self._infos: dict[tuple[str, str], ClaimInfo] = {}
        self._of_pods: dict[str, dict[tuple[str, str], ClaimInfo]] = {}
        self.joins_unprepares = False
        """Whether a pod starts at once that comes while its claim is being unprepared for the last
        other one: a fault of kubelets before 1.37 (kubernetes#140527). No driver is asked for it,
        and then its devices are unprepared."""

    def uses(self, pod: str) -> bool:
        """Whether a pod (UID) uses a claim on its node."""
        return pod in self._of_pods

    def boot(self, node: str) -> None:
        """The node was rebooted: what was prepared there has to be prepared again."""
        for info in self._infos.values():
            if info.node == node:
                info.is_prepared, info.call = False, None
                info.containers.clear()
        for driver in self._drivers.values():
            driver.boot(node)

    # Preparing

    def prepare(self, pod: Object) -> float:
        """Prepare the claims of a pod.

        Returns:
            Seconds after which the kubelet must ask again; 0 if everything is prepared.

        Raises:
            PrepareFailed: a claim or a driver does not allow it.
            ContainerRefused: the claims are prepared, and a driver allows no container.
        """
        for info in self._mine(uid(pod)):
            wait = self._advance(info)
            if wait:
                return wait
        claims = [
            self._checked(pod, pod_claim) for pod_claim in pod_claims(pod) if pod_claim.claim != ""
        ]
        for claim in claims:
            wait = self._let_go(self._infos.get(_key(pod, claim)))
            if wait:
                return wait
        infos = [self._referenced(pod, claim) for claim in self._fit(pod, claims)]
        for info, claim in zip(infos, claims, strict=True):
            if not info.is_prepared and info.call is None:
                info.claim = claim
                self._begin(info, PREPARE)
            wait = 0.0 if _is_unpreparing(info) else self._advance(info)
            if wait:
                return wait
        self._create_containers(infos, uid(pod))
        return 0.0

    def _create_containers(self, infos: list[ClaimInfo], pod: str) -> None:
        """Create the containers of a pod, unless a driver refuses it."""
        for info in infos:
            others = [container for container in info.containers if container != pod]
            for driver_name in drivers_of(info.claim):
                driver = self._drivers[driver_name]
                error = driver.refuses_container(info.claim, info.node, pod, others)
                if error:
                    raise ContainerRefused(error)
        for info in infos:
            info.containers[pod] = None

    def _checked(self, pod: Object, wanted: PodClaim) -> Object:
        """The claim, read live. Raises PrepareFailed if the pod may not use it."""
        if wanted.claim is None:
            raise PrepareFailed(
                f"pod {name(pod)}/{namespace(pod)}: ResourceClaim not created yet"
                f" for {wanted.entry}"
            )
        claim = self._read(namespace(pod), wanted.claim)
        if claim is None:
            gone = f'resourceclaims.resource.k8s.io "{wanted.claim}" not found'
            raise PrepareFailed(f"fetch ResourceClaim {wanted.claim}: {gone}")
        shown = f"ResourceClaim {wanted.claim} ({uid(claim)})"
        if not self._may_use(pod, claim):
            raise PrepareFailed(f"pod {name(pod)} ({uid(pod)}) is not allowed to use {shown}")
        if allocation_of(claim) is None:
            raise PrepareFailed(f"{shown} is not allocated")
        return claim

    def _may_use(self, pod: Object, claim: Object) -> bool:
        """Whether the pod may use the claim. A group counts by name: pods do not know its UID."""
        features = self._context.features
        allocation = allocation_of(claim) or {}
        if features.kubelet_reserved_for and allocation.get("reservedForAnyPod"):
            return True
        listed = reserved_for(claim)
        if any(reference["uid"] == uid(pod) for reference in listed):
            return True
        if not features.kubelet_pod_groups or not group_name(pod):
            return False
        return any(
            is_group(reference) and reference["name"] == group_name(pod) for reference in listed
        )

    def _let_go(self, info: ClaimInfo | None) -> float:
        """Wait while a claim is being unprepared for another pod."""
        if info is None or not _is_unpreparing(info) or self.joins_unprepares:
            return 0.0
        try:
            return self._advance(info)
        except UnprepareFailed:
            return 0.0

    def _fit(self, pod: Object, claims: list[Object]) -> list[Object]:
        """The claims, if their drivers are there and no older claim of the name is in the way."""
        for claim in claims:
            info = self._infos.get(_key(pod, claim))
            if info is not None and uid(info.claim) != uid(claim):
                raise PrepareFailed(
                    f"old ResourceClaim with same name {name(claim)} and different UID "
                    f"{uid(info.claim)} still exists (previous pod force-deleted?!)"
                )
            if info is None or not info.is_prepared:
                for driver in drivers_of(claim):
                    if not self._drivers[driver].is_registered(node_name(pod)):
                        raise PrepareFailed(f"DRA driver {driver} is not registered")
        return claims

    def _referenced(self, pod: Object, claim: Object) -> ClaimInfo:
        key = _key(pod, claim)
        info = self._infos.setdefault(key, ClaimInfo(node_name(pod), claim))
        info.pods[uid(pod)] = None
        self._of_pods.setdefault(uid(pod), {})[key] = info
        return info

    # Unpreparing

    def unprepare(self, pod: str) -> float:
        """The containers of a pod (UID) have ended: unprepare what no other pod uses.

        Returns:
            Seconds after which the kubelet must ask again; 0 if it is done.

        Raises:
            UnprepareFailed: a driver is away or refuses it.
        """
        for info in self._mine(pod):
            info.containers.pop(pod, None)
            wait = self._finished(info)
            if wait:
                return wait
            if len(info.pods) > 1:
                self._drop(info, pod)
            elif pod in info.pods:
                for driver in drivers_of(info.claim):
                    if not self._drivers[driver].is_registered(info.node):
                        raise UnprepareFailed(f"DRA driver {driver} is not registered")
                self._begin(info, UNPREPARE)
                wait = self._advance(info)
                if wait:
                    return wait
        return 0.0

    def _finished(self, info: ClaimInfo) -> float:
        """Wait for the end of a call, whatever the answer is to a prepare."""
        try:
            return self._advance(info)
        except PrepareFailed:
            return 0.0

    def _drop(self, info: ClaimInfo, pod: str) -> None:
        info.pods.pop(pod, None)
        mine = self._of_pods.get(pod, {})
        mine.pop(info.key, None)
        if not mine:
            self._of_pods.pop(pod, None)

    # Calls

    def _mine(self, pod: str) -> list[ClaimInfo]:
        return list(self._of_pods.get(pod, {}).values())

    def _begin(self, info: ClaimInfo, verb: str) -> None:
        info.call = _Call(verb, self._steps(info, verb), self._context.clock.monotonic())

    def _steps(self, info: ClaimInfo, verb: str) -> Answer:
        for driver_name in drivers_of(info.claim):
            driver = self._drivers[driver_name]
            call = driver.prepare if verb == PREPARE else driver.unprepare
            error = yield from call(info.claim, info.node)
            if error:
                return error
        return ""

    def _advance(self, info: ClaimInfo) -> float:
        """Go on with the call of a claim, if there is one; return the seconds that it needs."""
        call = info.call
        while call is not None:
            left = call.due - self._context.clock.monotonic()
            if left > TICK:
                return left
            try:
                call.due = self._context.clock.monotonic() + next(call.steps)
            except StopIteration as end:
                info.call = None
                self._answered(info, call.verb, end.value)
                return 0.0
        return 0.0

    def _answered(self, info: ClaimInfo, verb: str, error: str) -> None:
        if verb == PREPARE and error:
            plain = name(info.claim)
            raise PrepareFailed(f"NodePrepareResources failed for ResourceClaim {plain}: {error}")
        if error:
            raise UnprepareFailed(error)
        if verb == PREPARE:
            info.is_prepared = True
            return
        del self._infos[info.key]
        for pod in list(info.pods):
            self._drop(info, pod)


def _is_unpreparing(info: ClaimInfo) -> bool:
    return info.call is not None and info.call.verb == UNPREPARE


def drivers_of(claim: Object) -> Iterator[str]:
    """The names of the drivers of the allocated devices."""
    results = ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()
    yield from dict.fromkeys(result["driver"] for result in results)


def _key(pod: Object, claim: Object) -> tuple[str, str]:
    return node_name(pod), f"{namespace(claim)}/{name(claim)}"
