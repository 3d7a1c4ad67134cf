"""Objects found by group and resource alone, and which 404 says that one is gone."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.virtual import run

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.discovery import Discovery, server_version
from claimctl.kube.errors import BadAnswer, NotFound, NotServed, ServerError
from claimctl.live_objects import UnknownKind, read_header
from claimctl.wire.meta import ObjectHeader
from tests.support.wire_server import Reply, WireServer, failure, ok, thing


def group(*versions: str) -> Reply:
    return ok({"versions": [{"version": each} for each in versions]})


def resources(*found: tuple[str, str, bool]) -> Reply:
    listed = [
        {"name": name, "kind": kind, "namespaced": namespaced} for name, kind, namespaced in found
    ]
    return ok({"resources": listed})


def missing(message: str) -> Reply:
    return failure(404, "NotFound", message=message)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b'{"major":"1","minor":"36+"}', (1, 36)),
        (b'{"major":"1","minor":""}', (0, 0)),
        (b"{}", (0, 0)),
        (b"what", (0, 0)),
    ],
)
def test_versions_as_providers_write_them(body: bytes, version: tuple[int, int]) -> None:
    assert run(server_version(Client(WireServer(Reply(body=[body])), LoopClock()))) == version


VMS = ("virtualmachines", "VirtualMachine", True)


def read(server: WireServer, group: str, plural: str, name: str = "vm") -> ObjectHeader | None:
    async def main() -> ObjectHeader | None:
        client = Client(server, LoopClock())
        discovery = Discovery(client)
        return await read_header(client, discovery, group, plural, name, "ns")

    return run(main())


def test_an_object_is_read_in_the_first_version_that_serves_it() -> None:
    server = WireServer(
        group("v2", "v1"), resources(("other", "Other", True)), resources(VMS), ok(thing("vm", 1))
    )
    found = read(server, "kubevirt.io", "virtualmachines")
    assert found is not None
    assert found.metadata.name == "vm"
    assert server.lines == [
        "GET /apis/kubevirt.io",
        "GET /apis/kubevirt.io/v2",
        "GET /apis/kubevirt.io/v1",
        "GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachines/vm",
    ]


def test_a_workload_is_found_in_a_version_that_is_not_the_preferred_one() -> None:
    """As where the training operator serves kubeflow.org/v1, and the MPI operator v2beta1."""
    versions = [{"version": "v2beta1"}, {"version": "v1"}]
    group = {"name": "kubeflow.org", "versions": versions, "preferredVersion": versions[1]}
    server = WireServer(
        ok({"groups": [group]}),
        resources(("pytorchjobs", "PyTorchJob", True)),
        resources(("mpijobs", "MPIJob", True)),
    )
    found = run(Discovery(Client(server, LoopClock())).workload(("kubeflow.org", "MPIJob")))
    assert found is not None
    assert (found.version, found.plural) == ("v2beta1", "mpijobs")
    assert server.lines == [
        "GET /apis",
        "GET /apis/kubeflow.org/v1",
        "GET /apis/kubeflow.org/v2beta1",
    ]


def test_the_core_group_has_one_version_and_cluster_scoped_objects_no_namespace() -> None:
    server = WireServer(resources(("nodes", "Node", False)), ok(thing("vm", 1)))
    read(server, "", "nodes")
    assert server.lines == ["GET /api/v1", "GET /api/v1/nodes/vm"]


def test_what_the_server_says_is_not_found_is_gone() -> None:
    text = 'virtualmachines.kubevirt.io "vm" not found'
    server = WireServer(group("v1"), resources(VMS), missing(text))
    assert read(server, "kubevirt.io", "virtualmachines") is None


def test_a_path_that_is_served_no_more_says_nothing_of_the_object() -> None:
    text = "the server could not find the requested resource"
    server = WireServer(group("v1"), resources(VMS), missing(text))
    with pytest.raises(NotFound):
        read(server, "kubevirt.io", "virtualmachines")


@pytest.mark.parametrize(
    ("replies", "group_", "plural"),
    [
        ((missing("no such group"),), "kubevirt.io", "virtualmachines"),
        ((group("v1"), missing("no such version")), "kubevirt.io", "virtualmachines"),
        ((group("v1"), resources(("other", "Other", True))), "kubevirt.io", "virtualmachines"),
        ((resources(("pods/status", "Pod", True)),), "", "pods/status"),
        ((missing("no such group"),), "../../api", "v1"),
    ],
)
def test_what_nobody_serves_is_an_unknown_kind(
    replies: tuple[Any, ...], group_: str, plural: str
) -> None:
    server = WireServer(*replies)
    with pytest.raises(UnknownKind):
        read(server, group_, plural)
    assert all("/../" not in each for each in server.lines)


def test_a_group_that_does_not_answer_is_not_an_unknown_kind() -> None:
    server = WireServer(group("v1"), *(failure(503, "ServiceUnavailable") for _ in range(4)))
    with pytest.raises(ServerError):
        read(server, "kubevirt.io", "virtualmachines")


@pytest.mark.parametrize("odd", ["<html>", []])
def test_an_odd_answer_is_told(odd: object) -> None:
    with pytest.raises(BadAnswer):
        read(WireServer(ok(odd)), "kubevirt.io", "virtualmachines")
    with pytest.raises(BadAnswer):
        read(WireServer(group("v1"), resources(VMS), ok(odd)), "kubevirt.io", "virtualmachines")


async def test_what_is_served_is_asked_once() -> None:
    server = WireServer(group("v1"), resources(VMS), ok(thing("a", 1)), ok(thing("b", 2)))
    client = Client(server, LoopClock())
    discovery = Discovery(client)
    for name in ("a", "b"):
        await read_header(client, discovery, "kubevirt.io", "virtualmachines", name, "ns")
    assert len(server.lines) == 4


async def test_a_kind_that_is_missing_is_asked_for_again() -> None:
    other = ("others", "Other", True)
    server = WireServer(resources(other), resources(other, VMS), resources(other))
    discovery = Discovery(Client(server, LoopClock()))
    await discovery.of_kind("kubevirt.io/v1", "Other")
    found = await discovery.of_kind("kubevirt.io/v1", "VirtualMachine")
    assert found.plural == "virtualmachines"
    with pytest.raises(NotServed):
        await discovery.of_kind("kubevirt.io/v1", "Missing")
    assert server.lines == ["GET /apis/kubevirt.io/v1"] * 3
