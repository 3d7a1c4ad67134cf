"""Whole plans of random clusters whose pods have claims, with the devices that moves would take."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.claims import Claims
from claimctl_reschedule.plan.inventory import Inventory, Placement
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan, plan_with
from claimctl_reschedule.plan.policy import (
    DEVICE_CLASS_PREFIX,
    Evictor,
    LowNodeUtilization,
    MoveHeldClaims,
    Policy,
    Profile,
    RemoveDuplicates,
)
from claimctl_reschedule.plan.published import DeviceId
from claimctl_reschedule.plan.units import ClaimUnits
from claimctl_reschedule.shapes.devices import ClaimTemplate, SchedulingClaim
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support import devices, scheduling
from claimctl_reschedule_tests.support.scheduling import moves, node, observed, pod, reasons

CLASS = DEVICE_CLASS_PREFIX + devices.CLASS
USAGE = LowNodeUtilization(thresholds={CLASS: 40.0}, target_thresholds={CLASS: 75.0})
BALANCE = (RemoveDuplicates(), USAGE)
NEVER = Policy(profiles=(Profile(balance=BALANCE),))
WHOLE = Policy(
    profiles=(
        Profile(evictor=Evictor(move_held_claims=MoveHeldClaims.WHOLE_UNIT), balance=BALANCE),
    )
)
SEEDS = range(40)


class RememberedMoves(Inventory):
    """Remembers the devices of each move that was chosen."""

    def __init__(self, seen: Observed, claims: Claims) -> None:
        super().__init__(seen, claims)
        self.open: list[Placement] = []
        self.taken: dict[str, Placement] = {}

    def leave(self, pods: tuple[SchedulingPod, ...], *, source_closed: bool = False) -> None:
        self.open.clear()
        super().leave(pods, source_closed=source_closed)

    def take(self, placement: Placement) -> None:
        self.open.append(placement)
        super().take(placement)

    def commit(self) -> None:
        self.taken |= {each.pod_uid: each for each in self.open}
        super().commit()


def planned(seen: Observed, policy: Policy) -> tuple[Plan, dict[str, Placement]]:
    claims = Claims(seen)
    inventory = RememberedMoves(seen, claims)
    made = plan_with(seen, policy, inventory, ClaimUnits(seen, claims, inventory))
    assert made == plan(seen, policy)
    return made, inventory.taken


def random_cluster(seed: int) -> Observed:
    """Pods with a generated claim each, pods that share a claim, and held claims."""
    dice = random.Random(seed)
    free = {f"n{number}": list(range(dice.randint(0, 5))) for number in range(dice.randint(2, 5))}
    nodes = [node(name, cpu="16") for name in free]
    slices = [
        devices.slice_(*(f"d{each}" for each in owned), node=name) for name, owned in free.items()
    ]
    pods: list[SchedulingPod] = []
    claims: list[SchedulingClaim] = []
    for owner in range(dice.randint(1, 4)):
        make = dice.choice((_generated, _generated, _shared))
        made = make(dice, f"o{owner}", free)
        pods += made[0]
        claims += made[1]
    dice.shuffle(pods)
    template = from_plain(
        {"metadata": {"namespace": "team", "name": "t"}, "spec": {"spec": {"devices": REQUEST}}},
        ClaimTemplate,
    )
    return observed(
        *nodes,
        *pods,
        slices=tuple(slices),
        claims=tuple(claims),
        claim_templates=(template,),
        device_classes=(devices.device_class(),),
    )


REQUEST = {"requests": [devices.request()]}
Made = tuple[list[SchedulingPod], list[SchedulingClaim]]


def _generated(dice: random.Random, owner: str, free: dict[str, list[int]]) -> Made:
    pods, claims = [], []
    for number in range(dice.randint(1, 6)):
        rich = [name for name, left in free.items() if left]
        if not rich:
            break
        where = dice.choice(rich[:2])
        name = f"{owner}-{number}"
        using = pod(name, where, owner, spec=_names(), status=_given(name))
        pods.append(using)
        claims.append(claim(name, where, f"d{free[where].pop()}", (using,), owner=using))
    return pods, claims


def _shared(dice: random.Random, owner: str, free: dict[str, list[int]]) -> Made:
    rich = [name for name, left in free.items() if left]
    if not rich:
        return [], []
    where = dice.choice(rich)
    spec = {"resourceClaims": [{"name": "g", "resourceClaimName": owner}]}
    pods = [
        pod(f"{owner}-{number}", where, owner, spec=spec) for number in range(dice.randint(1, 3))
    ]
    held = dice.random() < 0.5
    return pods, [claim(owner, where, f"d{free[where].pop()}", tuple(pods), held=held)]


def _names() -> dict[str, Any]:
    return {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}


def _given(name: str) -> dict[str, Any]:
    return {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": name}]}


def claim(
    name: str,
    where: str,
    device: str,
    pods: tuple[SchedulingPod, ...],
    owner: SchedulingPod | None = None,
    held: bool = False,
) -> SchedulingClaim:
    fields = [{"key": "metadata.name", "operator": "In", "values": [where]}]
    metas = [each.metadata for each in pods]
    listed = [{"resource": "pods", "name": meta.name, "uid": meta.uid} for meta in metas]
    metadata: dict[str, Any] = {"namespace": "team", "name": name, "uid": f"uid-{name}"}
    if owner is not None:
        meta = owner.metadata
        owned = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        metadata["ownerReferences"] = [owned | {"controller": True}]
    result = {"request": "gpu", "driver": devices.DRIVER, "pool": where, "device": device}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    status = {"allocation": allocation, "reservedFor": listed + [devices.HOLD] * held}
    return from_plain(
        {"metadata": metadata, "spec": {"devices": REQUEST}, "status": status}, SchedulingClaim
    )


def settled(seen: Observed, made: Plan, taken: dict[str, Placement]) -> Observed:
    """The cluster after the plan: replacements where they were expected, with those devices."""
    where = {move.pod.uid: move.destination for move in made.moves}
    pods = {each.metadata.uid: each for each in seen.pods}
    claims = {each.metadata.name: each for each in seen.claims}
    for uid, destination in where.items():
        old = pods[uid]
        name = old.metadata.name
        owner = old.metadata.controller()
        assert owner is not None
        assert name in claims, "only pods with a claim of their own move"
        pods[uid] = pod(name, destination, owner.name, spec=_names(), status=_given(name))
        ((_, pool, device),) = taken[uid].devices
        claims[name] = claim(name, pool, device, (pods[uid],), owner=pods[uid])
    return replace(seen, pods=tuple(pods.values()), claims=tuple(claims.values()))


def in_use(seen: Observed) -> Counter[DeviceId]:
    return Counter(
        (each.driver, each.pool, each.device)
        for one in seen.claims
        if one.status.allocation is not None
        for each in one.status.allocation.devices.results or ()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_any_cluster(seed: int) -> None:
    seen = random_cluster(seed)
    made, taken = planned(seen, NEVER)
    after = settled(seen, made, taken)
    assert max(in_use(after).values(), default=1) == 1, "a device has two pods"
    assert all(taken[move.pod.uid].devices[0][1] == move.destination for move in made.moves)
    assert moves(plan(after, NEVER)) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_what_was_read_does_not_matter(seed: int) -> None:
    seen, dice = random_cluster(seed), random.Random(seed)
    for policy in (NEVER, WHOLE):
        made, _ = planned(seen, policy)
        shuffled = replace(
            seen,
            pods=tuple(dice.sample(seen.pods, len(seen.pods))),
            claims=tuple(dice.sample(seen.claims, len(seen.claims))),
            slices=tuple(dice.sample(seen.slices, len(seen.slices))),
        )
        assert plan(shuffled, policy) == made


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_of_one_claim_move_together_or_not_at_all(seed: int) -> None:
    seen = random_cluster(seed)
    made, _ = planned(seen, WHOLE)
    moved = {move.pod.uid: move for move in made.moves}
    for each in seen.claims:
        users = [
            moved.get(entry.uid) for entry in each.status.reserved_for if entry.resource == "pods"
        ]
        assert len({move is None for move in users}) == 1
        together = [move for move in users if move is not None]
        assert len({move.destination for move in together}) <= 1
        assert len({move.unit for move in together}) <= 1
    closed = {move.closes for move in made.moves if move.closes}
    assert {each.node for each in made.taints} == closed


def test_the_random_clusters_are_worth_it() -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        for policy in (NEVER, WHOLE):
            made, _ = planned(random_cluster(seed), policy)
            found.update(reasons(made).values())
            found["moved"] += len(made.moves)
            found["whole"] += sum(bool(move.closes) for move in made.moves)
    assert found["moved"] > 40
    assert found["whole"] >= 3
    assert {"PinnedByClaim", "NoFreeDevices"} <= found.keys()


def test_ten_pods_and_one_free_device() -> None:
    """The first takes it; the others know."""
    names = [f"p{number}" for number in range(10)]
    pods = [pod(name, "a", "web", spec=_names(), status=_given(name)) for name in names]
    claims = [
        claim(name, "a", f"d{number}", (pods[number],), owner=pods[number])
        for number, name in enumerate(names)
    ]
    seen = observed(
        scheduling.node("a"),
        scheduling.node("b"),
        *pods,
        slices=(
            devices.slice_(*(f"d{n}" for n in range(10)), node="a"),
            devices.slice_("x", node="b"),
        ),
        claims=tuple(claims),
        claim_templates=random_cluster(0).claim_templates,
        device_classes=(devices.device_class(),),
    )
    made, taken = planned(seen, NEVER)
    assert len(made.moves) == 1
    assert [each.devices for each in taken.values()] == [((devices.DRIVER, "b", "x"),)]
    assert set(reasons(made).values()) == {"NoFreeDevices"}
