"""Claims that can get no devices, however many become free."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.device_classes import AskingClaim, CountedSlice
from claimctl.commands.claims.places import Places
from claimctl.commands.claims.vain_requests import vain_requests
from claimctl.wire.device_classes import DeviceClass

Json = dict[str, Any]
DRIVER = "d.example.com"
OF_DRIVER = f'device.driver == "{DRIVER}"'
SHARED = {"name": "x", "allowMultipleAllocations": True}
FOUR: Json = {"nodeName": "n1", "devices": [{"name": f"gpu-{n}"} for n in range(4)]}


def asking(*requests: Json) -> ClaimView:
    spec = {"devices": {"requests": [{"name": "gpu", **request} for request in requests]}}
    meta = {"name": "slice", "namespace": "ml", "uid": "c"}
    return ClaimView(convert({"metadata": meta, "spec": spec}, AskingClaim), (), ())


def places(*slices: Json, expression: str = OF_DRIVER) -> Places:
    pieces = tuple(
        convert({"metadata": {"name": f"s-{n}"}, "spec": {"driver": DRIVER, **it}}, CountedSlice)
        for n, it in enumerate(slices)
    )
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    made = convert({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass)
    return Places(pieces, {}, {"gpu": made})


def exactly(count: int = 1, device_class: str = "gpu", **more: Any) -> Json:
    return {"exactly": {"deviceClassName": device_class, "count": count, **more}}


@pytest.mark.parametrize(
    ("view", "offered", "text"),
    [
        (asking(exactly(9)), places(FOUR, {**FOUR, "nodeName": "n2"}),
         f"the claim asks for 9 devices of driver {DRIVER}, and no node has more than 4"),
        (asking(exactly(3), exactly(2)), places(FOUR), "asks for 5 devices"),
        (asking({"deviceClassName": "gpu", "count": 5}), places(FOUR), "asks for 5 devices"),
        (asking(exactly(1)), places(), f"1 device of driver {DRIVER}, which offers none"),
        (asking(exactly(1, "nosuch")), places(FOUR), "DeviceClass nosuch does not exist"),
        (asking({"firstAvailable": [{"deviceClassName": "a"}, {"deviceClassName": "b"}]}),
         places(FOUR), "DeviceClass a or b does not exist"),
    ],
)  # fmt: skip
def test_what_can_never_be_is_said(view: ClaimView, offered: Places, text: str) -> None:
    (only,) = vain_requests(view, offered)
    assert text in only.text
    assert "kubectl get" in only.steps[0]


@pytest.mark.parametrize(
    ("view", "offered"),
    [
        (asking(exactly(4)), places(FOUR)),
        (asking(exactly(9, allocationMode="All")), places(FOUR)),
        (asking(exactly(9, adminAccess=True)), places(FOUR)),
        (asking(exactly(9)), places(FOUR, expression=f'{OF_DRIVER} || device.driver == "e"')),
        (asking(exactly(9)), places({**FOUR, "nodeName": "", "allNodes": True})),
        (asking(exactly(9)), places({**FOUR, "devices": [SHARED]})),
        (asking({"firstAvailable": [{"deviceClassName": "a"}, {"deviceClassName": "gpu"}]}),
         places(FOUR)),
        (asking(exactly(9, "nosuch")), Places(None, None)),
    ],
)  # fmt: skip
def test_what_may_be_enough_or_is_not_known_is_no_matter(view: ClaimView, offered: Places) -> None:
    assert vain_requests(view, offered) == ()
