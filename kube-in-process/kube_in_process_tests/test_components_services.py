"""Services: addresses and ports that nobody else has, and endpoints that follow the pods."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_in_process.components.controllers.endpoints.serving import Port
from kube_in_process.components.controllers.endpoints.slices import MOST, plan
from kube_in_process.errors import StatusError
from kube_in_process.kinds.service_addresses import Taken, allocate

from .worlds import HOLD, Object, World

pytestmark = pytest.mark.kube_cluster(HOLD)

_PORTS: list[Object] = [{"port": 80, "targetPort": "web"}]


def service(world: World, name: str, **spec: Any) -> Object:
    stored: Object = world.create("services", name, {"ports": _PORTS, **spec})["spec"]
    return stored


def slices(world: World, name: str) -> list[Object]:
    selector = f"kubernetes.io/service-name={name}"
    return world.api.list("endpointslices", "default", selector)


def endpoints(world: World, name: str) -> list[Object]:
    return [
        endpoint
        for endpoint_slice in slices(world, name)
        for endpoint in endpoint_slice.get("endpoints") or ()
    ]


def pod(world: World, name: str, **labels: str) -> Object:
    container = {"name": "c", "image": "x", "ports": [{"name": "web", "containerPort": 8080}]}
    return world.pod(name, containers=[container], metadata={"labels": labels})


async def test_every_service_has_an_address_and_a_port_of_its_own(world: World) -> None:
    specs = [service(world, f"s{number}", type="NodePort") for number in range(20)]
    assert len({spec["clusterIP"] for spec in specs}) == 20
    ports = [spec["ports"][0]["nodePort"] for spec in specs]
    assert len(set(ports)) == 20
    assert all(30000 <= port < 32768 for port in ports)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"clusterIP": "10.96.0.1"},
            'spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to allocate IP 10.96.0.1: '
            "provided IP is already allocated",
        ),
        (
            {"clusterIP": "1.2.3.4"},
            'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: '
            "the provided network does not match the current range",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]},
            "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767",
        ),
    ],
)
async def test_what_is_taken_or_out_of_range_is_refused(
    world: World, spec: Object, why: str
) -> None:
    """As 1.36.2 answers."""
    service(world, "first", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    with pytest.raises(StatusError) as refused:
        service(world, "second", **spec)
    assert refused.value.message == f'Service "second" is invalid: {why}'


async def test_a_change_keeps_the_address_and_gives_back_what_it_leaves(world: World) -> None:
    before = service(world, "a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    ports = {"spec": {"ports": [{"port": 80, "nodePort": 30002}]}}
    changed = world.api.patch("services", "default", "a", ports)["spec"]
    assert changed["clusterIP"] == before["clusterIP"]
    service(world, "b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    with pytest.raises(StatusError, match="may not change once set"):
        world.api.patch("services", "default", "a", {"spec": {"clusterIP": "10.96.9.9"}})
    world.api.delete("services", "default", "a")
    assert service(world, "c", clusterIP=before["clusterIP"])["clusterIP"] == before["clusterIP"]


@given(
    numbers=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    asked=st.dictionaries(st.integers(0, 5), st.integers(30000, 30006)),
    others=st.sets(st.integers(30000, 30006)),
)
def test_node_ports_are_free_or_refused(
    numbers: list[int], asked: dict[int, int], others: set[int]
) -> None:
    ports: list[Object] = [{"port": number} for number in numbers]
    for index, wanted in asked.items():
        if index < len(ports):
            ports[index]["nodePort"] = wanted
    spec: Object = {"type": "NodePort", "clusterIPs": ["None"], "ports": ports}
    there = [{"spec": {"type": "NodePort", "ports": [{"nodePort": other}]}} for other in others]
    refused = allocate(spec, {}, Taken(there), Random(0))
    if not refused:
        by_port: dict[int, set[int]] = {}
        for port in ports:
            assert port["nodePort"] not in others
            by_port.setdefault(port["nodePort"], set()).add(port["port"])
        assert all(len(services) == 1 for services in by_port.values())


async def test_endpoints_follow_the_pods_that_are_ready(world: World) -> None:
    service(world, "web", selector={"app": "web"})
    await world.passes(1)
    assert [endpoint_slice["ports"] for endpoint_slice in slices(world, "web")] == [None]
    first = slices(world, "web")[0]["metadata"]["name"]
    pod(world, "a", app="web")
    pod(world, "b", app="web")
    pod(world, "other", app="other")
    await world.passes(2)
    assert sorted(endpoint["targetRef"]["name"] for endpoint in endpoints(world, "web")) == [
        "a",
        "b",
    ]
    assert slices(world, "web")[0]["ports"] == [{"name": "", "protocol": "TCP", "port": 8080}]
    assert slices(world, "web")[0]["metadata"]["name"] == first
    assert len({endpoint["addresses"][0] for endpoint in endpoints(world, "web")}) == 2
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    world.api.patch("pods", "default", "a", unready, "status", kind="strategic")
    await world.passes(1)
    conditions = {
        endpoint["targetRef"]["name"]: endpoint["conditions"]["ready"]
        for endpoint in endpoints(world, "web")
    }
    assert conditions == {"a": False, "b": True}
    subset = world.get("endpoints", "web")["subsets"][0]
    assert [address["targetRef"]["name"] for address in subset["notReadyAddresses"]] == ["a"]
    world.api.patch("pods", "default", "b", {"metadata": {"labels": {"app": "x"}}})
    world.api.delete("pods", "default", "a")
    await world.passes(3)
    assert endpoints(world, "web") == []
    assert "subsets" not in world.get("endpoints", "web")


async def test_a_pod_that_is_ending_serves_on_and_is_not_ready(world: World) -> None:
    world.cluster.pause("kubelet")
    service(world, "web", selector={"app": "web"})
    status = {"podIP": "10.9.9.9", "conditions": [{"type": "Ready", "status": "True"}]}
    pod(world, "a", app="web")
    await world.passes(1)
    world.api.patch("pods", "default", "a", {"status": status}, "status")
    world.api.delete("pods", "default", "a")
    await world.passes(1)
    conditions = {"ready": False, "serving": True, "terminating": True}
    assert [endpoint["conditions"] for endpoint in endpoints(world, "web")] == [conditions]
    assert "subsets" not in world.get("endpoints", "web")


async def test_the_endpoints_go_with_the_service(world: World) -> None:
    service(world, "web", selector={"app": "web"})
    await world.passes(1)
    world.api.delete("services", "default", "web")
    await world.passes(1)
    assert slices(world, "web") == []
    assert world.api.find("endpoints", "default", "web") is None


async def test_endpoints_by_hand_are_copied_into_slices(world: World) -> None:
    service(world, "outside")
    subsets = [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 5432}]}]
    metadata = {"name": "outside", "namespace": "default"}
    world.api.create("endpoints", {"metadata": metadata, "subsets": subsets})
    await world.passes(1)
    assert [endpoint["addresses"] for endpoint in endpoints(world, "outside")] == [["192.0.2.1"]]
    world.api.delete("endpoints", "default", "outside")
    await world.passes(1)
    assert slices(world, "outside") == []


async def test_pods_find_the_api_server_by_its_service(world: World) -> None:
    own = world.get("services", "kubernetes")["spec"]
    assert (own["clusterIP"], own["ports"][0]["port"]) == ("10.96.0.1", 443)
    assert len(endpoints(world, "kubernetes")) == 1


@given(before=st.integers(0, 260), after=st.integers(0, 260), gone=st.integers(0, 120))
def test_slices_are_full_or_few_and_endpoints_stay_in_theirs(
    before: int, after: int, gone: int
) -> None:
    def wanted(numbers: range) -> dict[tuple[Port, ...], list[Object]]:
        port = (Port("", 80, "TCP"),)
        return {port: [{"addresses": [f"10.0.0.{number}"]} for number in numbers]}

    def stored(content: Object, name: int) -> Object:
        return {"metadata": {"name": str(name), "labels": {}}, **content}

    contents = plan([], wanted(range(before))).create
    first = [stored(content, number) for number, content in enumerate(contents)]
    second = plan(first, wanted(range(gone, gone + after)))
    shown = [content for _, content in second.update] + second.create
    addresses = [endpoint["addresses"][0] for part in shown for endpoint in part["endpoints"] or ()]
    assert sorted(addresses) == sorted(f"10.0.0.{n}" for n in range(gone, gone + after))
    assert all(len(part["endpoints"] or ()) <= MOST for part in shown)
    assert shown
    for old, content in second.update:
        kept = [
            endpoint
            for endpoint in old["endpoints"] or ()
            if endpoint in (content["endpoints"] or ())
        ]
        there = {endpoint["addresses"][0] for endpoint in old["endpoints"] or ()} & set(addresses)
        assert content["endpoints"] is None or not there or len(kept) == len(there)
