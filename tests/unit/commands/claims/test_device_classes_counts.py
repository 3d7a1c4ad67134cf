"""Whether the number of devices on a node leaves a release any use."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.device_classes import AskingClaim, CountedSlice, shortfall
from claimctl.wire.base import from_plain
from claimctl.wire.claims import ResourceClaim

Json = dict[str, Any]
DRIVER, CLASS = "d.example.com", "gpu.example.com"


def results(*devices: str) -> Json:
    return {
        "results": [
            {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": name}
            for name in devices
        ]
    }


def claim(*requests: Json, devices: tuple[str, ...] = ()) -> Json:
    body: Json = {
        "metadata": {"name": "c", "namespace": "ml", "uid": "c"},
        "spec": {"devices": {"requests": list(requests or (request(),))}},
    }
    if devices:
        body["status"] = {"allocation": {"devices": results(*devices)}}
    return body


def request(count: int = 1, device_class: str = CLASS, **fields: Any) -> Json:
    exactly = {"deviceClassName": device_class, "count": count, **fields}
    return {"name": "gpu", "exactly": exactly}


def published(*devices: Json, **fields: Any) -> CountedSlice:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": list(devices), "nodeName": "node-1"}
    body = {"metadata": {"name": "s"}, "spec": {**spec, **fields}}
    return from_plain(body, CountedSlice)


FOUR = published(*({"name": f"dev-{number}"} for number in range(4)))


def lacks(wanted: Json, *slices: CountedSlice, busy: tuple[str, ...] = ("dev-1",)) -> str | None:
    return shortfall(
        [from_plain(wanted, AskingClaim)],
        from_plain(claim(devices=("dev-0",)), AskingClaim),
        [from_plain(claim(devices=busy), ResourceClaim)] if busy else [],
        slices or (FOUR,),
    )


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(claim(request(3)), id="as many as are not in use"),
        pytest.param(claim(request(12, "nic.example.com")), id="of another class"),
        pytest.param(claim(request(12, adminAccess=True)), id="for an administrator"),
    ],
)
def test_a_release_may_help(wanted: Json) -> None:
    assert lacks(wanted) is None


def test_more_devices_than_the_node_has_free_are_named_with_both_numbers() -> None:
    answer = "the pod asks for 4 such devices, and node node-1 has 4, 1 of them in use"
    assert lacks(claim(request(4))) == answer
    assert lacks(claim(request(4)), busy=()) is None
    assert lacks(claim(request(2), request(2))) == answer


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param(published({"name": "dev-0"}, nodeName=""), id="on no single node"),
        pytest.param(
            published({"name": "dev-0", "allowMultipleAllocations": True}), id="shared by claims"
        ),
    ],
)
def test_nothing_is_said_where_the_number_of_devices_is_not_known(unknown: CountedSlice) -> None:
    assert lacks(claim(request(12)), unknown) is None
