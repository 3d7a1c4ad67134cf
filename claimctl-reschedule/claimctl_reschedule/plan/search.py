"""Find free devices on a node for the requests of claims: depth first, the first fit wins.

The rules are those of the scheduler's allocator (dynamic-resource-allocation/structured).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from claimctl.wire.device_classes import DeviceClass, DeviceSelector
from claimctl.wire.placement import admits
from claimctl_reschedule.plan.published import DeviceId, PublishedOn
from claimctl_reschedule.plan.selectors import selects
from claimctl_reschedule.shapes.devices import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
)

STEPS = 20_000
"""The most choices that are tried for one pod on one node."""
MOST_DEVICES = 32
"""The most devices that a claim can have (AllocationResultsMaxSize)."""


class CannotTell(Exception):
    """Whether devices are free cannot be judged. The text says why."""


@dataclass(frozen=True, slots=True)
class Here:
    """What is on a node: its devices, whether no claim has a device, and whether all pools with
    slices for the node are ``complete``."""

    devices: Sequence[PublishedOn]
    is_free: Callable[[DeviceId], bool]
    classes: Callable[[str], DeviceClass | None]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """One device for one request of one claim."""

    claim: int
    request: str
    """'name', or 'name/subrequest' for an alternative of ``firstAvailable``."""
    device: PublishedOn
    admin: bool


def find_devices(claims: Sequence[DeviceClaim], here: Here) -> tuple[Chosen, ...] | None:
    """Free devices for all claims together, or None if there are none. May raise CannotTell."""
    search = _Search(claims, here)
    devices = search.run()
    if devices is None and search.doubt:
        raise CannotTell(search.doubt)
    return None if devices is None else tuple(devices)


def least_devices(claim: DeviceClaim) -> int:
    """The fewest free devices with which the requests of a claim could be met."""
    return sum(
        min(map(_least, request.first_available), default=_least(request.exactly or request))
        for request in claim.requests
    )


def _least(body: DeviceSubRequest) -> int:
    """A request for all devices needs one; a request with admin access needs none that is free."""
    if body.admin_access:
        return 0
    return 1 if body.allocation_mode == "All" else body.count


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One alternative of a request, with its candidates in the order of the slices."""

    claim: int
    name: str
    body: DeviceSubRequest
    candidates: tuple[PublishedOn, ...]

    @property
    def count(self) -> int:
        return len(self.candidates) if self.all_devices else self.body.count

    @property
    def all_devices(self) -> bool:
        return self.body.allocation_mode == "All"


class _Search:
    def __init__(self, claims: Sequence[DeviceClaim], here: Here) -> None:
        self._claims, self._here = claims, here
        self._steps = STEPS
        self._chosen: list[Chosen] = []
        self._used: set[DeviceId] = set()
        self.doubt = ""
        """Why a failure to find devices proves nothing; '' if it proves that there are none."""
        self._slots = [
            tuple(self._alternatives(number, request))
            for number, claim in enumerate(claims)
            for request in claim.requests
        ]

    def run(self) -> list[Chosen] | None:
        counts: Counter[int] = Counter()
        for slot in self._slots:
            counts[slot[0].claim] += min(wanted.count for wanted in slot)
        if any(count > MOST_DEVICES for count in counts.values()):
            return None
        return self._chosen if self._fill(0) else None

    def _alternatives(self, claim: int, request: DeviceRequest) -> Iterator[_Wanted]:
        alternatives = [(f"{request.name}/{part.name}", part) for part in request.first_available]
        for name, body in alternatives or [(request.name, request.exactly or request)]:
            candidates = self._candidates(name, body)
            if body.allocation_mode != "All":
                candidates = (device for device in candidates if self._may_have(body, device))
            yield _Wanted(claim, name, body, tuple(candidates))

    def _candidates(self, name: str, body: DeviceSubRequest) -> Iterator[PublishedOn]:
        if not body.device_class_name or body.allocation_mode not in ("ExactCount", "All"):
            raise CannotTell(f"request {name} is of a kind that claimctl does not know")
        if body.capacity is not None:
            raise CannotTell(f"request {name} consumes capacity")
        of = self._here.classes(body.device_class_name)
        if of is None:
            return
        selectors = (*of.spec.selectors, *body.selectors)
        all_devices = body.allocation_mode == "All"
        for device in self._here.devices:
            if self._is_selected(device, selectors, name, all_devices=all_devices):
                yield device

    def _is_selected(
        self,
        device: PublishedOn,
        selectors: Sequence[DeviceSelector],
        name: str,
        *,
        all_devices: bool,
    ) -> bool:
        for selector in selectors:
            verdict = selector.cel and selects(selector.cel.expression, device.described)
            if verdict is None:
                text = f"request {name}: a selector cannot be judged for device {device.id[2]}"
                raise CannotTell(text)
            if not verdict:
                return False
        if not device.simple:
            name = device.id[2]
            self.doubt = f"device {name} shares counters or capacity, or binds on conditions"
            if all_devices:
                raise CannotTell(self.doubt)
        return device.simple

    # choosing

    def _fill(self, slot: int) -> bool:
        """Fill this slot and all later ones."""
        if slot == len(self._slots):
            return True
        return any(self._choose(slot, wanted, 0, 0) for wanted in self._slots[slot])

    def _choose(self, slot: int, wanted: _Wanted, first: int, number: int) -> bool:
        """Choose the devices of a request from number ``number`` on, among later candidates."""
        if wanted.count > MOST_DEVICES:
            return False
        if wanted.all_devices and not (wanted.candidates and self._here.complete):
            return False
        if number == wanted.count:
            return self._fill(slot + 1)
        last = len(wanted.candidates) - (wanted.count - number)
        for index in range(first, last + 1):
            if self._steps <= 0:
                self.doubt = f"no answer after {STEPS} steps"
                return False
            self._steps -= 1
            device = wanted.candidates[index]
            if not self._may_use(wanted, device):
                continue
            admin = wanted.body.admin_access
            self._chosen.append(Chosen(wanted.claim, wanted.name, device, admin))
            if not admin:
                self._used.add(device.id)
            if self._choose(slot, wanted, index + 1, number + 1):
                return True
            self._chosen.pop()
            if not admin:
                self._used.discard(device.id)
        return False

    def _may_have(self, body: DeviceSubRequest, device: PublishedOn) -> bool:
        """Whether the device is free for the request, and its taints are tolerated."""
        free = body.admin_access or self._here.is_free(device.id)
        return free and admits(device.taints, body.tolerations)

    def _may_use(self, wanted: _Wanted, device: PublishedOn) -> bool:
        if not wanted.body.admin_access and device.id in self._used:
            return False
        if wanted.all_devices and not self._may_have(wanted.body, device):
            return False
        mine = [choice for choice in self._chosen if choice.claim == wanted.claim]
        if len(mine) >= MOST_DEVICES:
            return False
        return all(
            self._holds(constraint, wanted, device, mine)
            for constraint in self._claims[wanted.claim].constraints
        )

    def _holds(
        self,
        constraint: DeviceConstraint,
        wanted: _Wanted,
        device: PublishedOn,
        mine: Sequence[Chosen],
    ) -> bool:
        if not _concerns(constraint, wanted.name):
            return True
        same, different = constraint.match_attribute, constraint.distinct_attribute
        name = same or different
        if not name:
            raise CannotTell("a constraint is of a kind that claimctl does not know")
        others = [
            choice.device.described.attributes.get(name)
            for choice in mine
            if _concerns(constraint, choice.request)
        ]
        value = device.described.attributes.get(name)
        if value is None:
            return False
        if isinstance(value[1], list):
            raise CannotTell(f"attribute {name} is a list")
        return value not in others if different else all(other == value for other in others)


def _concerns(constraint: DeviceConstraint, request: str) -> bool:
    names = constraint.requests
    return not names or request in names or request.partition("/")[0] in names
