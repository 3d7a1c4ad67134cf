"""Whether a claim's devices, their drivers and their nodes are there, and what to do if not.

The one judgement of ``explain`` and ``doctor``. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.reservation.facts.devices import JudgedDevice, judge
from claimctl.reservation.facts.pods import is_prepared
from claimctl.reservation.kinds.drivers import known_drivers
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.nodes import Node, Taint
from claimctl.wire.placement import CORDON, NO_EXECUTE, admits, lasting_taints, selects
from claimctl.wire.reservations import NEVER_REALLOCATED

NEVER_GIVEN_UP = f"{NEVER_REALLOCATED}, so claimctl never gives the claim up"


class ObstructionKind(StrEnum):
    """What keeps pods from a claim's devices, as a clause about the claim."""

    DEVICE_GONE = "its driver does not publish the device any more"
    DEVICE_TAINTED = "its device has a taint"
    DRIVER_AWAY = "its driver publishes nothing, and may be away"
    NODE_GONE = "its node does not exist any more"
    NODE_CORDONED = "its node is cordoned"
    NODE_TAINTED = "its node has a taint that its pods do not tolerate"
    NODE_NOT_READY = "its node is not ready"

    @property
    def reason(self) -> str:
        """The name as one word: DeviceGone."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True)
class Obstruction:
    """One thing that keeps pods from a claim's devices."""

    kind: ObstructionKind
    about: str
    """pool/device, or ``node NAME``."""
    text: str
    steps: tuple[str, ...] = ()
    """What to do, each with the command to run."""

    @property
    def is_of_node(self) -> bool:
        return self.about.startswith("node ")

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


@dataclass(frozen=True, slots=True)
class Places:
    """What the cluster publishes; None if the user may not list it."""

    slices: tuple[ResourceSlice, ...] | None
    nodes: Mapping[str, Node] | None


def not_known(claim: ResourceClaim, places: Places) -> tuple[str, ...]:
    """What cannot be said about an allocated claim, because the user may not list something."""
    if claim.status.allocation is None:
        return ()
    missing = (
        ("resourceslices", "whether its devices are published", places.slices),
        ("nodes", "whether its node takes pods", places.nodes),
    )
    return tuple(
        f"you may not list {plural}: it is not known {what}"
        for plural, what, known in missing
        if known is None
    )


def whereabouts(view: ClaimView, places: Places) -> tuple[Obstruction, ...]:
    """What keeps pods from an allocated claim; nothing of what may not be read."""
    if view.claim.status.allocation is None:
        return ()
    return (*_of_devices(view, places), *_of_nodes(view, places))


def _of_devices(view: ClaimView, places: Places) -> Iterator[Obstruction]:
    if places.slices is None:
        return
    for judged in judge(view.claim.devices, places.slices):
        driver, pool, device = judged.key
        about = f"{pool}/{device}"
        habits = known_drivers().get(driver)
        if judged.taint is not None:
            steps = tuple(_for_another_device(view, tainted=True))
            yield Obstruction(
                ObstructionKind.DEVICE_TAINTED, about, _tainted(judged, judged.taint), steps
            )
        elif judged.gone:
            text = f"driver {driver} does not publish it any more"
            yield Obstruction(
                ObstructionKind.DEVICE_GONE, about, text, tuple(_for_another_device(view))
            )
        elif judged.unpublished:
            text = f"its driver {driver} publishes nothing for pool {pool}: it may be away"
            yield Obstruction(ObstructionKind.DRIVER_AWAY, about, text, (_to_look_for(driver),))
        elif judged.device is None and not (habits and habits.hides_used_devices):
            text = f"its driver {driver} publishes pool {pool} in part, and without it"
            yield Obstruction(ObstructionKind.DRIVER_AWAY, about, text, (_to_look_for(driver),))


def _tainted(judged: JudgedDevice, taint: Taint) -> str:
    effect = "no new allocation gets it"
    if taint.effect == NO_EXECUTE:
        effect = "kube-controller-manager evicts its pods (DRADeviceTaints)"
    return (
        f"driver {judged.result.driver} taints it with {taint.text}, and the claim's "
        f"request does not tolerate that: {effect}"
    )


def _to_look_for(driver: str) -> str:
    command = f"kubectl get resourceslices --field-selector spec.driver={driver}"
    return f"Start driver {driver} there, if it stays away; this shows where it is: {command}"


def _for_another_device(view: ClaimView, *, tainted: bool = False) -> Iterator[str]:
    bound = view.consumers.bound.values()
    waiting = sorted(pod.metadata.name for pod in bound if is_prepared(pod) is False)
    never = _never_given_up(view)
    if waiting:
        command = f"kubectl -n {view.namespace} delete pod {' '.join(waiting)}"
        were = "they were" if len(waiting) > 1 else "it was"
        then = "" if never else ", and the next pod gets another device"
        yield f"Delete what can never start; {were} bound before its device went{then}: {command}"
    elif bound:
        yield "For another device, let all its pods end: scale its workload to 0 and back"
    if never or not bound:
        yield from _to_give_up(view)
    if tainted:
        yield "To keep a device with a taint, tolerate the taint in the claim's request"


def _to_give_up(view: ClaimView) -> Iterator[str]:
    command = f"claimctl release {view.name} -n {view.namespace}"
    if _never_given_up(view):
        yield f"{NEVER_GIVEN_UP}; give it up: {command}"
    elif view.reservations:
        yield f"claimctl gives the claim up by itself; to do it now: {command}"


def _never_given_up(view: ClaimView) -> bool:
    seconds = (made.spec.reallocate_after_seconds for made in view.reservations)
    return any(value is None for value in seconds)


def _of_nodes(view: ClaimView, places: Places) -> Iterator[Obstruction]:
    """What keeps pods from each node that the allocation can be used on. If one of these nodes
    takes pods, nothing is missing."""
    allocation = view.claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    if not places.nodes or selector is None or not selector.node_selector_terms:
        return
    usable = [node for node in places.nodes.values() if selects(selector, node)]
    if not usable:
        names = ", ".join(view.nodes) or "of its allocation"
        text = "it does not exist any more, and the claim's devices can be used nowhere else"
        yield Obstruction(
            ObstructionKind.NODE_GONE, f"node {names}", text, tuple(_to_give_up(view))
        )
        return
    obstructions = [
        obstruction for node in usable if (obstruction := _of_node(view, node)) is not None
    ]
    if len(obstructions) == len(usable):
        yield from obstructions


def _of_node(view: ClaimView, node: Node) -> Obstruction | None:
    name = node.metadata.name
    about = f"node {name}"
    pods = (*view.consumers.pending.values(), *view.consumers.bound.values())
    tolerations = {pod.spec.tolerations for pod in pods}
    if node.status.is_unready:
        text = "it is not ready: its kubelet is away, or cannot work"
        step = f"See why node {name} is not ready: kubectl describe node {name}"
        return Obstruction(ObstructionKind.NODE_NOT_READY, about, text, (step,))
    taints = lasting_taints(node)
    if CORDON in taints and not any(admits((CORDON,), known) for known in tolerations):
        text = "it is cordoned, so it takes no new pods"
        return Obstruction(
            ObstructionKind.NODE_CORDONED,
            about,
            text,
            tuple(_to_open(view, f"kubectl uncordon {name}")),
        )
    # only pods tell which taints the workload tolerates
    if tolerations and not any(admits(taints, known) for known in tolerations):
        keys = ", ".join(f"{taint.key}:{taint.effect}" for taint in taints)
        text = f"no pod of the claim tolerates its taints {keys}"
        command = f"kubectl describe node {name}"
        step = f"Tolerate the taints in the pods, or take them off: {command}"
        return Obstruction(ObstructionKind.NODE_TAINTED, about, text, (step, *_to_open(view)))
    return None


def _to_open(view: ClaimView, command: str = "") -> Iterator[str]:
    """The steps for a claim whose node takes no new pods."""
    if not view.reservations:
        if command:
            yield f"Let the node take pods again: {command}"
        return
    release = f"claimctl release {view.name} -n {view.namespace}"
    either = f"{command} or {release}" if command else release
    if _never_given_up(view):
        yield f"{NEVER_GIVEN_UP}; {either}"
    elif view.consumers.bound:
        yield f"The next pods need the node, or another device: {either}"
    else:
        yield f"claimctl gives the claim up as soon as a pod waits for the node; or: {either}"
