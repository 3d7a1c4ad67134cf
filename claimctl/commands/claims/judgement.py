"""What is wrong with a claim: the one judgement of ``explain``, ``get``, ``tree`` and ``doctor``.

It is a pure function of the claim with its pods and ClaimReservations, of what the cluster
publishes, and of the time. So these commands cannot disagree. What a new kind of trouble says of a
claim belongs here, and then all of them say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from claimctl.commands.claims.claim_view import ClaimView, release_reported
from claimctl.commands.claims.matters import Matter, MatterKind
from claimctl.commands.claims.places import Places
from claimctl.commands.claims.vain_requests import vain_requests
from claimctl.commands.claims.whereabouts import to_give_up, whereabouts
from claimctl.reservation.facts.pods import Consumers, is_prepared, is_stuck, is_unreported
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import is_pod_group
from claimctl.text import counted, duration, listed
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RELEASE_ANNOTATION, ClaimReservation

PATIENCE = timedelta(seconds=10)
"""A pod that has waited for so long waits for something."""

_BY_ITSELF = frozenset({Reason.RELEASING, Reason.SETTLING, Reason.PODS_MAY_BE_BOUND})
"""What a release waits for in its usual course."""


def judgement(view: ClaimView, places: Places, now: datetime) -> tuple[Matter, ...]:
    """Everything that is wrong with the claim, causes first; nothing of what may not be read.

    A release in its usual course gives the devices back in a moment, wherever they are.
    """
    release = tuple(_release(view))
    under_way = view.state == "Releasing" and not release
    causes = (
        *(() if under_way else whereabouts(view, places)),
        *vain_requests(view, places),
        *_hold_off(view, places),
        *_reservations(view),
        *release,
    )
    return (*causes, *_waiting(view, now, known=bool(causes)))


def judged(view: ClaimView, places: Places, now: datetime) -> ClaimView:
    """The view with what is wrong with its claim."""
    return replace(view, matters=judgement(view, places, now))


def _hold_off(view: ClaimView, places: Places) -> Iterator[Matter]:
    """Whether a plan under way keeps a workload from holding the claim that its pods use."""
    if what := frozen_for(view, places):
        text = f"not held, frozen for the {what}: its devices are lost when its last pod ends"
        step = f"Do not scale its workload to 0 now. The next step: claimctl {what} status"
        yield Matter(MatterKind.HOLD_OFF, "", text, (step,), Reason.FROZEN)


def frozen_for(view: ClaimView, places: Places) -> str:
    """Why no workload holds the claim: for a ``downgrade`` or an ``upgrade``; '' if a workload
    holds it, or if there is another reason. A PodGroup holds nothing."""
    wanted = [made for made in view.reservations if not made.metadata.deleting]
    in_use = view.state in {"Allocated", "InUse", "Held"} and bool(wanted)
    if not in_use or not all(map(is_pod_group, view.workloads)):
        return ""
    if places.plans is None:
        return "downgrade" if any(map(is_frozen, wanted)) else ""
    if not places.plans:
        return ""
    from claimctl.downgrade import under_way  # only where there is a plan (claimctl.cli)

    return under_way.frozen_for(places.plans, view.claim)


def is_frozen(made: ClaimReservation) -> bool:
    """Whether the controller says so."""
    said = find_condition(made.status.conditions, ConditionType.RESERVED)
    return said is not None and said.status == "False" and said.reason == Reason.FROZEN


def _reservations(view: ClaimView) -> Iterator[Matter]:
    """What keeps ClaimReservations from their work."""
    for made in view.reservations:
        conditions, about = made.status.conditions, f"ClaimReservation {made.metadata.name}"
        ready = find_condition(conditions, ConditionType.READY)
        if is_frozen(made):
            continue  # the plan says more, and knows earlier when it is over
        if ready is not None and ready.status == "False":
            text = f"not ready ({ready.reason}): {ready.message}"
            remedy = _remedy(ready.reason)
            yield Matter(MatterKind.NOT_READY, about, text, remedy, ready.reason)


def _remedy(reason: str) -> tuple[str, ...]:
    from claimctl.commands.claims.meanings import MEANINGS  # only of what is wrong (claimctl.cli)

    known = {str(name): meaning for name, meaning in MEANINGS.items()}.get(reason)
    text = (known.advice or known.remedy) if known is not None else ""
    return (text,) if text else ()


def _release(view: ClaimView) -> Iterator[Matter]:
    """A release that waits for more than what its usual course waits for."""
    claim = f"{view.name} -n {view.namespace}"
    withdraw = (f"Withdraw the request: claimctl release --cancel {claim}",)
    for made in view.reservations:
        said = release_reported(made, view.claim)
        asked = made.metadata.annotation(RELEASE_ANNOTATION) == view.claim.metadata.uid
        about = f"ClaimReservation {made.metadata.name}"
        if said is not None and said.reason not in _BY_ITSELF:
            see = f"See until when it waits: claimctl explain {claim}"
            steps = (see, *withdraw) if asked else (see,)
            yield Matter(MatterKind.RELEASE_WAITS, about, said.message, steps, said.reason)
        elif asked and said is None and view.claim.status.allocation is not None:
            text = "a release is asked for, and the controller has not begun it"
            yield Matter(MatterKind.RELEASE_WAITS, about, text, withdraw, "ReleaseRequested")


def _waiting(view: ClaimView, now: datetime, *, known: bool) -> Iterator[Matter]:
    """The pods that have waited for the claim, or with it, for longer than usual.

    Args:
        known: whether it is said already for what they wait.
    """
    text = waiting_text(waiting_pods(view), now)
    if not text:
        return
    held_in_vain = view.consumers.stuck and not view.consumers.bound
    give_up = tuple(to_give_up(view)) if held_in_vain and view.claim.devices else ()
    steps = () if known else (see_why(view), *give_up)
    yield Matter(MatterKind.PODS_WAIT, "", text, steps)


def waiting_text(pods: Iterable[Pod], now: datetime) -> str:
    """How many of the pods, which all wait, have waited for longer than usual, and since when; ''
    for none."""
    waits = ((since, pod.metadata.name) for pod in pods if (since := _since(pod)))
    late = sorted((since, name) for since, name in waits if now - since >= PATIENCE)
    if not late:
        return ""
    first, what = late[0][0], counted(len(late), "pod waits", "pods wait")
    ago = duration((now - first).total_seconds())
    return f"{what} since {first:%Y-%m-%dT%H:%M:%SZ} ({ago}): {listed(name for _, name in late)}"


def waiting_pods(view: ClaimView) -> tuple[Pod, ...]:
    """The pods of the claim that wait."""
    return waiting_among(view.consumers)


def waiting_among(using: Consumers) -> tuple[Pod, ...]:
    """The pods that have no node, or whose devices are not prepared, as far as their kubelets say
    anything. A scheduling gate that keeps a pod is somebody's will."""
    pending = (pod for uid, pod in using.pending.items() if uid not in using.gated)
    bound = (pod for pod in using.bound.values() if not pod.metadata.deleting)
    return (*pending, *(pod for pod in bound if is_prepared(pod) is False or is_unreported(pod)))


def _since(pod: Pod) -> datetime | None:
    return pod.metadata.creation_timestamp


def see_why(view: ClaimView) -> str:
    """Where to look for why a pod does not run; one of them says it for all."""
    pod = min(waiting_pods(view), key=lambda pod: (not is_stuck(pod), pod.metadata.name))
    what = "waits for its devices"
    if pod.spec.node_name:
        what = "has a node and does not start"
    elif view.claim.status.allocation is not None:
        what = "finds no node"
    place = f"claimctl explain pod/{pod.metadata.name} -n {view.namespace}"
    return f"Pod {pod.metadata.name} {what}; see why: {place}"
