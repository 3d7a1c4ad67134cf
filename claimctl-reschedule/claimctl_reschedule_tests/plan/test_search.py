"""Free devices on a node for the requests of claims."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan import search
from claimctl_reschedule.plan.published import catalogue
from claimctl_reschedule.plan.search import CannotTell, Here, find_devices, least_devices
from claimctl_reschedule.shapes.devices import DeviceClaim
from claimctl_reschedule_tests.support.devices import (
    CLASS,
    TAINT,
    cel,
    device,
    device_class,
    node,
    request,
    slice_,
)

MODEL = 'device.attributes["gpu.example.com"].model == "big"'
BIG, SMALL = device("big", model="big"), device("small", model="small")
TOLERATION = {"key": "broken", "operator": "Exists"}


def wants(*requests: dict[str, Any], constraints: Any = ()) -> DeviceClaim:
    return from_plain({"requests": list(requests), "constraints": list(constraints)}, DeviceClaim)


def found(
    *claims: DeviceClaim,
    devices: tuple[Any, ...] = ("gpu-0", "gpu-1"),
    used: tuple[str, ...] = (),
    complete: bool = True,
) -> list[str] | None:
    here = Here(
        devices=catalogue([slice_(*devices)]).on(node()),
        is_free=lambda each: each[2] not in used,
        classes={CLASS: device_class()}.get,
        complete=complete,
    )
    chosen = find_devices(claims, here)
    return None if chosen is None else [f"{one.request}={one.device.id[2]}" for one in chosen]


def same(attribute: str, *requests: str, kind: str = "matchAttribute") -> dict[str, Any]:
    return {"requests": list(requests), kind: f"gpu.example.com/{attribute}"}


EITHER = {"name": "gpu", "firstAvailable": [{"name": "one", "deviceClassName": CLASS}]}
PAIR = device("a", numa=0), device("b", numa=1), device("c", numa=1)


@pytest.mark.parametrize(
    ("claims", "given", "expected"),
    [
        pytest.param([wants(request())], {}, ["gpu=gpu-0"], id="the first free one"),
        pytest.param([wants(request())], {"used": ("gpu-0",)}, ["gpu=gpu-1"], id="one is taken"),
        pytest.param([wants(request())], {"used": ("gpu-0", "gpu-1")}, None, id="all are taken"),
        pytest.param(
            [wants(request()), wants(request())], {}, ["gpu=gpu-0", "gpu=gpu-1"], id="two"
        ),
        pytest.param([wants(request(count=2))], {}, ["gpu=gpu-0", "gpu=gpu-1"], id="a count"),
        pytest.param([wants(request(count=3))], {}, None, id="more than there are"),
        pytest.param(
            [wants(request("gpu", MODEL))], {"devices": (SMALL, BIG)}, ["gpu=big"], id="a selector"
        ),
        pytest.param(
            [wants(request("any"), request("big", MODEL))],
            {"devices": (BIG, SMALL)},
            ["any=small", "big=big"],
            id="it goes back on a choice",
        ),
        pytest.param([wants(request(deviceClassName="other"))], {}, None, id="no such class"),
        pytest.param(
            [wants(request(allocationMode="All"))], {}, ["gpu=gpu-0", "gpu=gpu-1"], id="All"
        ),
        pytest.param(
            [wants(request(allocationMode="All"))], {"used": ("gpu-1",)}, None, id="not all"
        ),
        pytest.param(
            [wants(request(allocationMode="All"))], {"devices": ()}, None, id="All of none"
        ),
        pytest.param(
            [wants(request(allocationMode="All"))], {"complete": False}, None, id="All, incomplete"
        ),
        pytest.param(
            [wants(request(adminAccess=True))], {"used": ("gpu-0",)}, ["gpu=gpu-0"], id="admin"
        ),
        pytest.param(
            [wants(request(adminAccess=True)), wants(request())],
            {"devices": ("gpu-0",)},
            ["gpu=gpu-0", "gpu=gpu-0"],
            id="admin access takes nothing",
        ),
        pytest.param(
            [wants(request())],
            {"devices": (device("a", taints=[TAINT]), "b")},
            ["gpu=b"],
            id="a tainted device",
        ),
        pytest.param(
            [wants(request(tolerations=[TOLERATION]))],
            {"devices": (device("a", taints=[TAINT]), "b")},
            ["gpu=a"],
            id="a taint that is tolerated",
        ),
        pytest.param(
            [wants(request(allocationMode="All"))],
            {"devices": (device("a", taints=[TAINT]), "b")},
            None,
            id="All beside a tainted device",
        ),
        pytest.param(
            [wants(request(count=2), constraints=[same("numa")])],
            {"devices": PAIR},
            ["gpu=b", "gpu=c"],
            id="matchAttribute",
        ),
        pytest.param(
            [wants(request("x"), request("y"), constraints=[same("numa", "x")])],
            {"devices": PAIR},
            ["x=a", "y=b"],
            id="a constraint for other requests",
        ),
        pytest.param(
            [wants(request(count=1)), wants(request(count=2), constraints=[same("numa")])],
            {"devices": PAIR},
            ["gpu=a", "gpu=b", "gpu=c"],
            id="a constraint of another claim",
        ),
        pytest.param(
            [wants(EITHER, request("y"), constraints=[same("numa", "gpu", "y")])],
            {"devices": PAIR},
            ["gpu/one=b", "y=c"],
            id="a constraint for a request with alternatives",
        ),
        pytest.param(
            [wants(request("a", count=20), request("b", count=20))],
            {"devices": tuple(f"gpu-{number}" for number in range(40))},
            None,
            id="more than a claim can have, by two requests",
        ),
        pytest.param(
            [wants(*map(request, "zxy"), constraints=[same("numa", "x", "y")])],
            {"devices": PAIR},
            ["z=a", "x=b", "y=c"],
            id="a constraint beside another request",
        ),
        pytest.param(
            [wants(request(count=2), constraints=[same("numa", kind="distinctAttribute")])],
            {"devices": PAIR},
            ["gpu=a", "gpu=b"],
            id="distinctAttribute",
        ),
        pytest.param(
            [wants(request(), constraints=[same("numa")])], {}, None, id="without the attribute"
        ),
        pytest.param(
            [
                wants(
                    {
                        "name": "gpu",
                        "firstAvailable": [
                            {"name": "big", "deviceClassName": CLASS, "selectors": [cel(MODEL)]},
                            {"name": "two", "deviceClassName": CLASS, "count": 2},
                        ],
                    }
                )
            ],
            {"devices": (SMALL, device("other", model="small"))},
            ["gpu/two=small", "gpu/two=other"],
            id="firstAvailable",
        ),
        pytest.param(
            [wants({"name": "gpu", "deviceClassName": CLASS})], {}, ["gpu=gpu-0"], id="v1beta1"
        ),
        pytest.param(
            [wants(request(count=33))],
            {"devices": tuple(f"gpu-{number}" for number in range(40))},
            None,
            id="more than a claim can have",
        ),
    ],
)
def test_devices_are_found(
    claims: list[DeviceClaim], given: dict[str, Any], expected: list[str] | None
) -> None:
    assert found(*claims, **given) == expected


@pytest.mark.parametrize(
    ("claim", "given"),
    [
        pytest.param(wants(request("gpu", "device.unheardOf == 1")), {}, id="a selector"),
        pytest.param(wants(request(selectors=[{}])), {}, id="a selector that is no CEL"),
        pytest.param(wants({"name": "gpu"}), {}, id="a kind of request"),
        pytest.param(wants(request(allocationMode="Some")), {}, id="a mode"),
        pytest.param(wants(request(capacity={"requests": {"memory": "1Gi"}})), {}, id="capacity"),
        pytest.param(wants(request(), constraints=[{}]), {}, id="a constraint"),
        pytest.param(
            wants(request()),
            {"devices": (device("a", allowMultipleAllocations=True),)},
            id="only a device that claimctl cannot count",
        ),
        pytest.param(
            wants(request(allocationMode="All")),
            {"devices": ("a", device("b", consumesCounters=[{}]))},
            id="All beside such a device",
        ),
    ],
)
def test_what_cannot_be_judged(claim: DeviceClaim, given: dict[str, Any]) -> None:
    with pytest.raises(CannotTell):
        found(claim, **given)


def test_a_device_that_cannot_be_counted_does_not_matter_beside_a_free_one() -> None:
    devices = device("a", consumesCounters=[{}]), "b"
    assert found(wants(request()), devices=devices) == ["gpu=b"]


def test_a_search_ends_after_a_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "STEPS", 5)
    with pytest.raises(CannotTell, match="no answer after"):
        found(wants(request(count=9)), devices=tuple(f"gpu-{number}" for number in range(20)))


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([request()], 1),
        ([request(count=3), request("b")], 4),
        ([request(count=3, adminAccess=True)], 0),
        ([request(allocationMode="All", count=0)], 1),
        ([{"name": "v1beta1", "deviceClassName": CLASS, "count": 2}], 2),
        (
            [
                {
                    "name": "either",
                    "firstAvailable": [
                        {"name": "two", "deviceClassName": CLASS, "count": 2},
                        {"name": "three", "deviceClassName": CLASS, "count": 3},
                    ],
                }
            ],
            2,
        ),
    ],
)
def test_the_fewest_devices_for_a_claim(requests: list[dict[str, Any]], expected: int) -> None:
    assert least_devices(wants(*requests)) == expected


@given(
    models=st.lists(st.sampled_from(["big", "small"]), max_size=5),
    asked=st.lists(st.sampled_from([None, "big", "small"]), min_size=1, max_size=4),
    used=st.sets(st.integers(0, 4)),
)
def test_devices_are_found_if_and_only_if_there_is_a_choice(
    models: list[str], asked: list[str | None], used: set[int]
) -> None:
    devices = tuple(device(str(number), model=model) for number, model in enumerate(models))
    claims = [
        wants(request("gpu", *([MODEL.replace("big", model)] if model else []))) for model in asked
    ]
    chosen = found(*claims, devices=devices, used=tuple(map(str, used)))
    free = [number for number in range(len(models)) if number not in used]
    possible = any(
        all(model in (None, models[number]) for model, number in zip(asked, choice, strict=True))
        for choice in permutations(free, len(asked))
    )
    assert (chosen is not None) is possible
    assert chosen is None or len(set(chosen)) == len(asked)
