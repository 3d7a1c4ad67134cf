"""Somebody writes at every point of an expansion, it is cut off there, two carry out one plan.

Every history is judged by the witness, and by what the plan told before each write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import product

import pytest

from tests.unit.downgrade.writers import DEEDS, GROUP, THING, Scene, TwoProcesses, attempt

SCENES: dict[str, Callable[[], Awaitable[Scene]]] = {
    "shared": Scene.laid,
    "pods listed": partial(Scene.laid, shared=False),
    "with a PodGroup": partial(Scene.laid, shared=False, listed=(GROUP,)),
    "with a hold": partial(Scene.laid, listed=(THING,)),
}


_requests: dict[str, int] = {}


async def requests_of(scene: str) -> int:
    """How many requests it takes when nobody disturbs."""
    if scene not in _requests:
        _requests[scene] = await _counted(scene)
    return _requests[scene]


async def _counted(scene: str) -> int:
    played = await SCENES[scene]()
    gate = played.gate()
    await played.carry_out(gate)
    played.judge()
    played.end()
    return gate.requests


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("deed", DEEDS)
async def test_somebody_writes_before_any_request(scene: str, deed: str) -> None:
    for at in range(1, await requests_of(scene) + 1):
        played = await SCENES[scene]()
        gate = played.gate()
        gate.at, gate.before = at, partial(attempt, DEEDS[deed], played.server)
        await played.carry_out(gate)
        played.judge()
        await played.again()
        played.judge()
        played.end()


@pytest.mark.parametrize("scene", ["shared", "with a PodGroup"])
@pytest.mark.parametrize("deed", ["does nothing", *DEEDS])
async def test_it_is_cut_off_at_any_request_and_somebody_writes_meanwhile(
    scene: str, deed: str
) -> None:
    for at in range(1, await requests_of(scene) + 1):
        played = await SCENES[scene]()
        gate = played.gate()
        gate.breaks_at = at
        await played.carry_out(gate)
        if deed in DEEDS:
            attempt(DEEDS[deed], played.server)
        await played.again()
        played.judge()
        played.end(doubt=True)


@pytest.mark.parametrize(
    ("scene", "deed"),
    [
        ("shared", "does nothing"),
        ("shared", "adds a PodGroup"),
        # the tests above add the PodGroup anew there
        ("with a PodGroup", "does nothing"),
    ],
)
@pytest.mark.virtual_limit(1_000_000)
async def test_two_carry_out_one_plan(scene: str, deed: str) -> None:
    most = await requests_of(scene)
    for first, second in product(range(1, most + 1), repeat=2):
        played = await SCENES[scene]()
        meanwhile = partial(attempt, DEEDS.get(deed, _nothing), played.server)
        turns = TwoProcesses(first, second, meanwhile)
        await played.carry_out_twice(turns)
        played.judge()
        await played.again()
        played.judge()
        played.end(doubt=True)


def _nothing(_: object) -> None:
    pass
