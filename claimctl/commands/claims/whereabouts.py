"""Whether a claim's devices, their drivers and their nodes are there, and what to do if not. Pure.

A part of the judgement of ``judgement``.
"""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.matters import Matter, MatterKind
from claimctl.commands.claims.places import Places
from claimctl.reservation.facts.devices import JudgedDevice, judge
from claimctl.reservation.facts.pods import is_prepared
from claimctl.reservation.kinds.drivers import known_drivers
from claimctl.wire.nodes import Node, Taint
from claimctl.wire.placement import CORDON, NO_EXECUTE, admits, lasting_taints, selects
from claimctl.wire.reservations import NEVER_REALLOCATED

NEVER_GIVEN_UP = f"{NEVER_REALLOCATED}, so claimctl never gives the claim up"


def whereabouts(view: ClaimView, places: Places) -> tuple[Matter, ...]:
    """What keeps pods from an allocated claim; nothing of what may not be read."""
    if view.claim.status.allocation is None:
        return ()
    return (*_of_devices(view, places), *_of_nodes(view, places))


def _of_devices(view: ClaimView, places: Places) -> Iterator[Matter]:
    if places.slices is None:
        return
    for judged in judge(view.claim.devices, places.slices):
        driver, pool, device = judged.key
        about = f"{pool}/{device}"
        habits = known_drivers().get(driver)
        if judged.taint is not None:
            steps = tuple(_for_another_device(view, tainted=True))
            yield Matter(MatterKind.DEVICE_TAINTED, about, _tainted(judged, judged.taint), steps)
        elif judged.gone:
            text = f"driver {driver} does not publish it any more"
            yield Matter(MatterKind.DEVICE_GONE, about, text, tuple(_for_another_device(view)))
        elif judged.unpublished:
            text = f"its driver {driver} publishes nothing for pool {pool}: it may be away"
            yield Matter(MatterKind.DRIVER_AWAY, about, text, (_to_look_for(driver),))
        elif judged.device is None and not (habits and habits.hides_used_devices):
            text = f"its driver {driver} publishes pool {pool} in part, and without it"
            yield Matter(MatterKind.DRIVER_AWAY, about, text, (_to_look_for(driver),))


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
    never = view.never_given_up
    if waiting:
        command = f"kubectl -n {view.namespace} delete pod {' '.join(waiting)}"
        were = "they were" if len(waiting) > 1 else "it was"
        then = "" if never else ", and the next pod gets another device"
        yield f"Delete what can never start; {were} bound before its device went{then}: {command}"
    elif bound:
        yield "For another device, let all its pods end: scale its workload to 0 and back"
    if never or not bound:
        yield from to_give_up(view)
    if tainted:
        yield "To keep a device with a taint, tolerate the taint in the claim's request"


def to_give_up(view: ClaimView) -> Iterator[str]:
    """How a claim that pods cannot use comes to other devices, if a ClaimReservation holds it and
    does not release it already."""
    if view.state == "Releasing":
        return
    command = f"claimctl release {view.name} -n {view.namespace}"
    if view.never_given_up:
        yield f"{NEVER_GIVEN_UP}; give it up: {command}"
    elif view.reservations:
        yield f"claimctl gives the claim up by itself; to do it now: {command}"


def _of_nodes(view: ClaimView, places: Places) -> Iterator[Matter]:
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
        yield Matter(MatterKind.NODE_GONE, f"node {names}", text, tuple(to_give_up(view)))
        return
    matters = [matter for node in usable if (matter := _of_node(view, node)) is not None]
    if len(matters) == len(usable):
        yield from matters


def _of_node(view: ClaimView, node: Node) -> Matter | None:
    name = node.metadata.name
    about = f"node {name}"
    pods = (*view.consumers.pending.values(), *view.consumers.bound.values())
    tolerations = {pod.spec.tolerations for pod in pods}
    if node.status.is_unready:
        text = "it is not ready: its kubelet is away, or cannot work"
        steps = [f"See why node {name} is not ready: kubectl describe node {name}"]
        steps += to_give_up(view) if not view.consumers.bound else ()
        return Matter(MatterKind.NODE_NOT_READY, about, text, tuple(steps))
    taints = lasting_taints(node)
    if CORDON in taints and not any(admits((CORDON,), known) for known in tolerations):
        text = "it is cordoned, so it takes no new pods"
        return Matter(
            MatterKind.NODE_CORDONED,
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
        return Matter(MatterKind.NODE_TAINTED, about, text, (step, *_to_open(view)))
    return None


def _to_open(view: ClaimView, command: str = "") -> Iterator[str]:
    """The steps for a claim whose node takes no new pods."""
    if not view.reservations:
        if command:
            yield f"Let the node take pods again: {command}"
        return
    release = f"claimctl release {view.name} -n {view.namespace}"
    either = f"{command} or {release}" if command else release
    if view.never_given_up:
        yield f"{NEVER_GIVEN_UP}; {either}"
    elif view.consumers.bound:
        yield f"The next pods need the node, or another device: {either}"
    else:
        yield f"claimctl gives the claim up as soon as a pod waits for the node; or: {either}"
