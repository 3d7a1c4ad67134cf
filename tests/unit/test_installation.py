"""Where the controller is: what only an administrator can write says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from kube_in_process.storage.requests import Actor, Fault

from claimctl.commands.doctor.model import CheckVerdict
from claimctl.installation import Address, controller_runs, find_address
from claimctl.kube.client import Client
from claimctl.wire.coordination import micro_time
from tests.support.builders import NOW
from tests.support.claim_server import Server
from tests.support.diagnosing import deployed, diagnosed, elected, the


def bound(server: Server, *namespaces: str, name: str = "claimctl-controller") -> None:
    """The ClusterRoleBinding of the controller, for ServiceAccounts of these namespaces."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subjects = [
        {"kind": "ServiceAccount", "name": "keeper", "namespace": namespace}
        for namespace in namespaces
    ]
    body = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}
    server.admin.create("clusterrolebindings", body)


def leased(server: Server, namespace: str, seconds: float = 0.0, holder: str = "one") -> None:
    """A Lease that was renewed so many seconds before now."""
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": micro_time(NOW - timedelta(seconds=seconds)),
    }
    meta = {"name": "claimctl-controller", "namespace": namespace}
    server.admin.create("leases", {"metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("bindings", "address"),
    [
        pytest.param({"claimctl-controller": ["ops"]}, Address("ops", "keeper"), id="named"),
        pytest.param(
            {"claimctl-controller-reader": ["ops"]},
            Address("ops", "keeper"),
            id="a controller of one namespace",
        ),
        pytest.param(
            {"claimctl-controller": ["ops", "claimctl-system"]},
            Address("claimctl-system", "keeper"),
            id="the wanted one of several",
        ),
        pytest.param(
            {}, Address(assumed="there is no ClusterRoleBinding claimctl-controller"), id="none"
        ),
    ],
)
async def test_the_binding_of_the_controller_says_where_it_is(
    bindings: dict[str, list[str]], address: Address
) -> None:
    server = Server.started()
    for name, namespaces in bindings.items():
        bound(server, *namespaces, name=name)
    assert await find_address(server.client) == address


async def test_without_the_right_to_read_the_binding_the_given_namespace_is_assumed() -> None:
    server = Server.started()
    bound(server, "ops")
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden") if point.plural == "clusterrolebindings" else None
    )
    why = "you may not read the ClusterRoleBinding claimctl-controller"
    assert await find_address(server.client, "mine") == Address("mine", assumed=why)


@pytest.mark.parametrize(
    ("user", "namespace"),
    [
        ("system:serviceaccount:gpus:claimctl-controller", "gpus"),
        ("system:serviceaccount:team:default", "mine"),
        ("alice", "mine"),
    ],
)
async def test_the_controllers_own_account_finds_itself(user: str, namespace: str) -> None:
    server = Server.started()
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden") if point.plural == "clusterrolebindings" else None
    )
    client = Client(server.handler.transport(Actor(user)), server.clock)
    assert (await find_address(client, "mine")).namespace == namespace


@pytest.mark.parametrize(
    ("lease", "runs"),
    [
        pytest.param({"namespace": "ops", "seconds": 3}, True, id="renewed in time"),
        pytest.param({"namespace": "ops", "seconds": 16}, False, id="not renewed for long"),
        pytest.param({"namespace": "ops", "holder": ""}, False, id="given back"),
        pytest.param({"namespace": "evil"}, False, id="a stranger's"),
        pytest.param({"namespace": "claimctl-system"}, False, id="where it is not installed"),
        pytest.param(None, False, id="no lease"),
    ],
)
async def test_a_controller_runs_where_its_own_lease_is_held_and_fresh(
    lease: dict[str, Any] | None, runs: bool
) -> None:
    server = Server.started("ops", "evil", "claimctl-system")
    bound(server, "ops")
    if lease is not None:
        leased(server, **lease)
    assert await controller_runs(server.client, server.clock) is runs


async def test_doctor_lists_strangers_and_believes_none_of_them() -> None:
    server = Server.started("evil")
    bound(server, "claimctl-system")
    elected(server, renewed_before=600.0)
    deployed(server, ready=1)
    leased(server, "evil")
    labels = {"app.kubernetes.io/name": "claimctl", "app.kubernetes.io/component": "controller"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "x", "image": "evil/image:1"}]},
        },
    }
    meta = {"name": "app", "namespace": "evil", "labels": labels}
    server.admin.create("deployments", {"metadata": meta, "spec": spec})
    server.admin.patch(
        "deployments", "evil", "app", {"status": {"replicas": 3, "readyReplicas": 3}}, "status"
    )
    found = await diagnosed(server)
    assert "claimctl-system/claimctl-controller is held by one" in the(found, "controller").message
    assert the(found, "controller").verdict is CheckVerdict.PROBLEM
    assert the(found, "deployment").namespace == "claimctl-system"
    line = the(found, "strangers")
    assert line.verdict is CheckVerdict.FACT
    assert line.message == (
        "not of the controller, whose namespace is claimctl-system: Lease "
        "evil/claimctl-controller, Deployment evil/app"
    )
