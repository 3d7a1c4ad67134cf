"""Whether a claim asks in vain: for a DeviceClass that does not exist, or for more devices than any
node has. Pure.

Only the scheduler knows which devices would do. This says what cannot be, however many devices
become free. A part of the judgement of ``judgement``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.device_classes import (
    AskedRequest,
    AskingClaim,
    CountedSlice,
    drivers_in,
)
from claimctl.commands.claims.matters import Matter, MatterKind
from claimctl.commands.claims.places import Places
from claimctl.text import counted
from claimctl.wire.device_classes import DeviceClass

_ONLY_ONE = re.compile(r"\|\||\?|!")
"""Signs in an expression beside which one comparison need not be true."""


def vain_requests(view: ClaimView, places: Places) -> tuple[Matter, ...]:
    """Why the claim, which has no devices, can get none; nothing of what may not be read."""
    claim = view.claim
    if not isinstance(claim, AskingClaim) or claim.status.allocation is not None:
        return ()
    return (*_without_class(claim, places), *_too_many(claim, places))


def _without_class(claim: AskingClaim, places: Places) -> Iterator[Matter]:
    for request in claim.spec.devices.requests if places.classes is not None else ():
        choices = (*request.first_available, request.exactly or request)
        wanted = {choice.device_class_name for choice in choices} - {""}
        if wanted and places.classes is not None and not wanted & places.classes.keys():
            names = " or ".join(sorted(wanted))
            step = f"Create DeviceClass {names}; these exist: kubectl get deviceclasses"
            about = f"request {request.name}"
            text = f"DeviceClass {names} does not exist"
            yield Matter(MatterKind.NO_DEVICE_CLASS, about, text, (step,))


def _too_many(claim: AskingClaim, places: Places) -> Iterator[Matter]:
    """More devices than any node has: of one driver, or of all."""
    offered = _offered(places)
    if offered is None or places.classes is None:
        return
    asked: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        exact = request.exactly or request
        # of the alternatives, the scheduler chooses
        if not request.first_available and _is_counted(exact):
            asked[_driver_of(exact, places.classes)] += exact.count
    asked = Counter({driver: count for driver, count in asked.items() if driver})
    for driver, count in sorted(asked.items()):
        most = max(offered.get(driver, {"": 0}).values())
        if count > most:
            yield _too_few(driver, count, most)


def _too_few(driver: str, asked: int, most: int) -> Matter:
    what = counted(asked, "device")
    text = f"the claim asks for {what} of driver {driver}, and no node has more than {most}"
    step = (
        f"Ask for at most {most} in a new claim; requests cannot be changed. What nodes have: "
        f"kubectl get resourceslices --field-selector spec.driver={driver}"
    )
    if not most:
        text = f"the claim asks for {what} of driver {driver}, which offers none"
        look = f"kubectl get resourceslices --field-selector spec.driver={driver}"
        step = f"Start driver {driver}; this shows what it offers: {look}"
    return Matter(MatterKind.TOO_MANY_DEVICES, "", text, (step,))


def _is_counted(request: AskedRequest) -> bool:
    return request.allocation_mode in ("", "ExactCount") and not request.admin_access


def _driver_of(request: AskedRequest, classes: Mapping[str, DeviceClass]) -> str:
    """The only driver whose devices the class selects; '' if it may select those of several."""
    known = classes.get(request.device_class_name)
    for selector in known.spec.selectors if known is not None else ():
        expression = selector.cel.expression if selector.cel is not None else ""
        named = drivers_in(expression)
        if len(named) == 1 and not _ONLY_ONE.search(expression):
            return next(iter(named))
    return ""


def _offered(places: Places) -> dict[str, Counter[str]] | None:
    """How many devices each driver has on each node; None if a number is not known, as where
    devices belong to several nodes, or to several claims at once."""
    if places.slices is None or not places.complete:
        return None
    offered: dict[str, Counter[str]] = {}
    for piece in places.slices:
        if not isinstance(piece, CountedSlice) or not piece.spec.node_name:
            return None
        devices = piece.spec.devices or ()
        if any(device.allow_multiple_allocations for device in devices):
            return None
        offered.setdefault(piece.spec.driver, Counter())[piece.spec.node_name] += len(devices)
    return offered
