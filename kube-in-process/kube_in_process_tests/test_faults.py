from __future__ import annotations

import asyncio

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.runtime.local import ApiFor, ConnectionLost
from kube_in_process.storage.requests import Actor, Fault, FaultPoint
from kube_in_process.virtual import run

from kube_in_process_tests.servers import Server, config_map, server

PATH = "/api/v1/namespaces/ns/configmaps"


def _failing(fault: Fault, verb: str = "create") -> tuple[Server, list[FaultPoint]]:
    served = server()
    points: list[FaultPoint] = []

    def hook(point: FaultPoint) -> Fault | None:
        points.append(point)
        return fault if point.verb == verb else None

    served.handler.fault = hook
    return served, points


def _names(served: Server) -> list[str]:
    return [
        config_map["metadata"]["name"] for config_map in served.local().list("configmaps", "ns")
    ]


def test_a_fault_can_refuse_a_request_and_say_when_to_try_again() -> None:
    served, points = _failing(Fault(status=429, retry_after=3))
    answer = run(served.send("POST", PATH, config_map("a")))
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    assert answer.body["reason"] == "TooManyRequests"
    assert points == [
        FaultPoint("create", "", "configmaps", "ns", "", "", "kubernetes-admin"),
    ]
    assert _names(served) == []


def test_a_connection_can_break_before_the_request_is_served() -> None:
    served, _ = _failing(Fault(drop=True))
    with pytest.raises(ConnectionResetError):
        run(served.send("POST", PATH, config_map("a")))
    assert _names(served) == []


def test_a_connection_can_break_after_the_write_took_place() -> None:
    served, _ = _failing(Fault(drop=True, after_write=True))
    with pytest.raises(ConnectionResetError):
        run(served.send("POST", PATH, config_map("a")))
    assert _names(served) == ["a"]


async def test_a_write_can_take_place_and_never_be_answered() -> None:
    served, _ = _failing(Fault(hang=True))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await served.send("POST", PATH, config_map("a"))
    assert _names(served) == ["a"]


async def test_an_answer_can_be_late() -> None:
    served, _ = _failing(Fault(delay=7.0), "list")
    await served.send("GET", PATH)
    assert asyncio.get_running_loop().time() == 7.0


async def test_a_watch_can_be_cut_after_some_events() -> None:
    served, _ = _failing(Fault(cut_after=1), "watch")
    for name in ("a", "b"):
        served.local().create("configmaps", config_map(name), "ns")
    response = await served.open("GET", f"{PATH}?watch=true")
    await anext(response.body)
    with pytest.raises(ConnectionResetError):
        await anext(response.body)


def test_components_meet_the_same_faults_in_process() -> None:
    served = server()
    faults = [Fault(status=503), Fault(drop=True), Fault(hang=True), None]
    me = ApiFor(served.api, Actor("me"), lambda point: faults.pop(0))
    with pytest.raises(StatusError) as refused:
        me.create("configmaps", config_map("a"), "ns")
    assert refused.value.code == 503
    for name in ("b", "c"):
        with pytest.raises(ConnectionLost):
            me.create("configmaps", config_map(name), "ns")
    me.create("configmaps", config_map("d"), "ns")
    assert _names(served) == ["c", "d"]
