"""Which devices are free, and which claims stay allocated, after the moves chosen so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from claimctl.reservation.facts.pods import unschedulable_since
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.placement import admits, selects
from claimctl_reschedule.plan.claims import ClaimKey, Claims, KnownClaim
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.published import DeviceId, PublishedOn, catalogue
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.search import CannotTell, Here, find_devices, least_devices
from claimctl_reschedule.plan.selectors import selects as selected
from claimctl_reschedule.shapes.devices import DeviceClaim
from claimctl_reschedule.shapes.scheduling import SchedulingPod

_Wanted = tuple[ClaimKey | None, DeviceClaim]
"""A claim that gets an allocation; without a key, the claim of one pod alone."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What a replacement of a pod would use on a node."""

    pod_uid: str
    node: str
    devices: tuple[DeviceId, ...] = ()
    """Devices that are free now."""
    joins: tuple[tuple[str, str], ...] = ()
    """Namespace and name of the allocated claims whose lists get one more entry."""
    allocates: tuple[tuple[tuple[str, str], tuple[DeviceId, ...]], ...] = ()
    """The claims that the replacement is the first to use again, each with its devices. Claims that
    are generated for the replacement are not among them."""


@dataclass(frozen=True, slots=True)
class DeviceCount:
    used: int
    published: int
    """Devices that the class selects and that have no taint."""


class Inventory:
    """The devices and claims of the cluster, in the state after the moves chosen so far.

    A pod that moves first leaves: its generated claims go, and claims that do not last become
    free. Then ``place`` is asked for each node, and one placement is taken. If the pod
    stays after all, ``undo`` restores the state before ``leave``.
    """

    def __init__(self, observed: Observed, claims: Claims | None = None) -> None:
        self._claims = claims or Claims(observed)
        self._nodes = {node.metadata.name: node for node in observed.nodes}
        self._classes = {known.metadata.name: known for known in observed.device_classes}
        self._catalogue = catalogue(observed.slices, observed.taint_rules)
        self._on_node: dict[str, list[PublishedOn]] = {}
        self._in_use = Counter(device for claim in self._claims.all() for device in claim.devices)
        self._free_on = Counter(
            device.node for id_, device in self._catalogue.by_id.items() if id_ not in self._in_use
        )
        """How many devices are free by node; '' for those that several nodes can reach."""
        self._awaited = any(map(self._waits_for_devices, observed.pods))
        """Whether a pod waits that may take devices which several nodes can reach: once a move
        makes room for it, it comes before the replacement."""
        self._least: dict[int, int] = {}
        """The fewest devices that a claim needs, by the identity of its request."""
        self._free: set[ClaimKey] = set()
        """Claims that have lost their allocation in this plan."""
        self._allocated: dict[ClaimKey, tuple[DeviceId, ...]] = {}
        """Claims that have got an allocation in this plan."""
        self._joined: Counter[ClaimKey] = Counter()
        """Entries added to the lists of claims."""
        self._left: dict[str, SchedulingPod] = {}
        """The pods that have left, by UID."""
        self._log: list[Callable[[], object]] = []
        self._usage: dict[str, _Usage] = {}

    def _waits_for_devices(self, pod: SchedulingPod) -> bool:
        if unschedulable_since(pod) is None or pod.spec.node_name:
            return False
        wanted = self._claims.named_by(pod)
        return any(not (isinstance(claim, KnownClaim) and claim.allocated) for claim in wanted)

    # moves

    def leave(self, pods: tuple[SchedulingPod, ...], *, source_closed: bool = False) -> None:
        """These pods leave together. No other pods may have left without ``commit`` or ``undo``.

        With ``source_closed`` their node is closed to their replacements. Then claims that only
        these pods use become free, also held ones, which the controller gives up. While the node is
        open they stay allocated: the replacements are made before the claims are free.
        """
        uids = frozenset(pod.metadata.uid for pod in pods)
        for pod in pods:
            self._left[pod.metadata.uid] = pod
            self._log.append(partial(self._left.pop, pod.metadata.uid))
        known = {claim.key: claim for pod in pods for claim in self._claims.of(pod)}
        for key in sorted(known):
            claim = known[key]
            # whether nothing but these pods, and holds that claimctl can end, keeps the devices
            ends = claim.consumers <= uids and not claim.ghosts and not claim.foreign_holders
            if claim.owned_by(uids) or (source_closed and ends):
                self._free.add(key)
                self._log.append(partial(self._free.discard, key))
                for device in claim.devices:
                    self._use(device, -1)

    def mark(self) -> int:
        """A point to which ``undo`` can go back, until the next ``commit``."""
        return len(self._log)

    def undo(self, mark: int = 0) -> None:
        """Restore the state before the last ``leave``, also what was taken since; or at a mark."""
        while len(self._log) > mark:
            self._log.pop()()

    def commit(self) -> None:
        """The last ``leave`` and what was taken since hold for good."""
        self._log.clear()

    def take(self, placement: Placement) -> None:
        """The replacement uses the devices and the places in lists from now on."""
        for device in placement.devices:
            self._use(device, 1)
        for key, devices in placement.allocates:
            self._allocated[key] = devices
            self._log.append(partial(self._allocated.pop, key))
        self._joined.update(placement.joins)
        self._log.append(lambda: self._joined.subtract(placement.joins))

    def _use(self, device: DeviceId, change: int) -> None:
        self._count(device, change)
        self._log.append(lambda: self._count(device, -change))

    def _count(self, device: DeviceId, change: int) -> None:
        before = self._in_use[device] > 0
        self._in_use[device] += change
        after = self._in_use[device] > 0
        if before != after:
            if (published := self._catalogue.by_id.get(device)) is not None:
                self._free_on[published.node] += 1 if before else -1
            for usage in self._usage.values():
                usage.change(device, 1 if after else -1)

    # places

    def place(self, pod: SchedulingPod, node: str) -> Placement | Obstacle:
        """Where the claims of a pod, or of its replacement, would be on the node.

        For a pod that has left, its replacement is meant; for a pending pod, the pod itself. The
        reason of an obstacle is ``FIT_UNKNOWN`` if this cannot be judged.
        """
        joins: list[ClaimKey] = []
        wanted: list[_Wanted] = []
        for claim in self._claims.named_by(pod):
            if isinstance(claim, Obstacle):
                return claim
            if not isinstance(claim, KnownClaim):
                wanted.append((None, claim))
            elif (existing := self._existing(pod, claim, node)) is None:
                joins.append(claim.key)
            elif isinstance(existing, Obstacle):
                return existing
            else:
                wanted.append(existing)
        return self._search(pod, node, tuple(joins), wanted)

    def _existing(
        self, pod: SchedulingPod, claim: KnownClaim, node: str
    ) -> _Wanted | Obstacle | None:
        """None if the allocated claim can be used on the node; what to allocate if it is free."""
        own = claim.owned_by(frozenset({pod.metadata.uid}))
        if own and claim.key in self._free:
            return None, claim.spec
        given = self._allocated.get(claim.key)
        if given is not None:
            # this plan allocates the claim elsewhere; it may be of use on this node, too
            known = (self._catalogue.by_id.get(device) for device in given)
            if all(device and device.on(self._nodes[node]) for device in known):
                return self._room_in(claim)
            return Obstacle(Ground.PINNED, f"claim {claim.name} goes to another node")
        if not claim.allocated or claim.key in self._free:
            return claim.key, claim.spec
        return self._joins_old(pod, claim, node)

    def _joins_old(self, pod: SchedulingPod, claim: KnownClaim, node: str) -> Obstacle | None:
        if not selects(claim.node_selector, self._nodes[node]):
            return Obstacle(Ground.PINNED, f"claim {claim.name} is allocated elsewhere")
        if lost := self.lost(claim) or self.tainted(claim):
            return Obstacle(Ground.CLAIM_UNREACHABLE, lost)
        if pod.metadata.uid not in self._left and claim.lists(pod.metadata.uid):
            return None
        return self._room_in(claim)

    def lost(self, claim: KnownClaim) -> str:
        """Which device of an allocated claim is not there any more; '' if all are."""
        for result in claim.results:
            published = (result.driver, result.pool, result.device) in self._catalogue.by_id
            if not published and result.driver in self._catalogue.drivers:
                return f"device {result.device} of claim {claim.name} is not published"
        return ""

    def tainted(self, *claims: KnownClaim) -> str:
        """Which device of allocated claims has a taint that its claim does not tolerate; '' if
        none has."""
        for claim in claims:
            for result in claim.results:
                device = self._catalogue.by_id.get((result.driver, result.pool, result.device))
                for taint in device.taints if device else ():
                    if not admits((taint,), result.tolerations):
                        name = f"device {result.device} of claim {claim.name}"
                        return f"{name} has the taint {taint.key}, which it does not tolerate"
        return ""

    def leaves_devices(self, pod: SchedulingPod) -> str:
        """Why the pod should leave its devices, if only for others of its node; '' if it need
        not."""
        return self.tainted(*self._claims.of(pod))

    def _room_in(self, claim: KnownClaim) -> Obstacle | None:
        new = claim.key in self._allocated
        places = (0 if new else len(claim.claim.status.reserved_for)) + self._joined[claim.key]
        if places < LIMIT or (claim.shared and not new):
            return None
        return Obstacle(Ground.NO_PLACE_IN_CLAIM, f"claim {claim.name} has {places} entries")

    def _search(
        self, pod: SchedulingPod, node: str, joins: tuple[ClaimKey, ...], wanted: list[_Wanted]
    ) -> Placement | Obstacle:
        if not wanted:
            return Placement(pod.metadata.uid, node, joins=joins)
        for _, spec in wanted:
            if id(spec) not in self._least:
                self._least[id(spec)] = least_devices(spec)
        least = sum(self._least[id(spec)] for _, spec in wanted)
        if least > self._free_on[node] + self._free_on[""]:
            return Obstacle(Ground.NO_DEVICES, "no free devices for its claims")
        try:
            sure = not self._awaited or not pod.spec.node_name
            chosen = find_devices([spec for _, spec in wanted], self._here(node, shared=sure))
        except CannotTell as why:
            return Obstacle(Ground.FIT_UNKNOWN, str(why))
        if chosen is None:
            return Obstacle(Ground.NO_DEVICES, "no free devices for its claims")
        allocates = tuple(
            (key, tuple(choice.device.id for choice in chosen if choice.claim == number))
            for number, (key, _) in enumerate(wanted)
            if key is not None
        )
        devices = tuple(choice.device.id for choice in chosen if not choice.admin)
        return Placement(pod.metadata.uid, node, devices, joins, allocates)

    def _here(self, name: str, *, shared: bool) -> Here:
        """The devices of a node. ``shared``: also free ones that other nodes can reach."""
        node = self._nodes[name]
        if name not in self._on_node:
            self._on_node[name] = self._catalogue.on(node)
        by_id = self._catalogue.by_id
        return Here(
            devices=self._on_node[name],
            is_free=lambda id_: self._in_use[id_] <= 0 and (shared or bool(by_id[id_].node)),
            classes=self._classes.get,
            complete=self._catalogue.complete_on(node),
        )

    # usage

    def usage(self, device_class: str) -> Mapping[str, DeviceCount]:
        """Devices of a class by node, for the nodes that have some (KEP-5004)."""
        return self._usage_of(device_class).by_node

    def requested(self, pod: SchedulingPod, device_class: str) -> int:
        """How many devices of a class a pod has."""
        counted = self._usage_of(device_class).nodes
        return sum(device in counted for claim in self._claims.of(pod) for device in claim.devices)

    def _usage_of(self, device_class: str) -> _Usage:
        if device_class not in self._usage:
            usage = self._usage[device_class] = _Usage({}, {})
            for local in self._catalogue.by_node.values():
                for device in local:
                    if self._counts(device, device_class):
                        usage.publish(device, used=self._in_use[device.id] > 0)
        return self._usage[device_class]

    def _counts(self, device: PublishedOn, device_class: str) -> bool:
        known = self._classes.get(device_class)
        if known is None or device.taints:
            return False
        rules = (selector.cel for selector in known.spec.selectors)
        return all(rule and selected(rule.expression, device.described) for rule in rules)


@dataclass(slots=True)
class _Usage:
    """The devices of one class that are tied to a node."""

    nodes: dict[DeviceId, str]
    by_node: dict[str, DeviceCount]

    def publish(self, device: PublishedOn, *, used: bool) -> None:
        self.nodes[device.id] = device.node
        known = self.by_node.get(device.node, DeviceCount(0, 0))
        self.by_node[device.node] = DeviceCount(known.used + used, known.published + 1)

    def change(self, device: DeviceId, change: int) -> None:
        node = self.nodes.get(device)
        if node is not None:
            known = self.by_node[node]
            self.by_node[node] = DeviceCount(known.used + change, known.published)
