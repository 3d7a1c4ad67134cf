"""What ``claimctl reschedule`` has left goes without it: taints, a gate, entries of the record."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.uninstall import sweep
from claimctl.wire.resources import NODES, PODS
from tests.support.claim_server import NAMESPACE, Server

OURS = [
    {"key": "claimctl.io/moving", "value": "claimctl-p-1", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "value": "claimctl-p-2", "effect": "NoSchedule"},
]
THEIRS = {
    "key": "CriticalAddonsOnly",
    "value": "true",
    "effect": "NoExecute",
    "timeAdded": "2026-01-01T12:00:00Z",
}


async def test_only_the_taints_of_claimctl_leave_a_node() -> None:
    made = Server.started()
    made.admin.create("nodes", {"metadata": {"name": "n1"}, "spec": {"taints": [*OURS, THEIRS]}})
    assert await sweep.untaint(made.client, "n1")
    assert made.admin.get("nodes", "", "n1")["spec"]["taints"] == [THEIRS]
    assert not await sweep.untaint(made.client, "n1")
    assert not await sweep.untaint(made.client, "gone")
    assert (await made.client.get(NODES, "n1")).spec.taints != ()


def _pod(*gates: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "waits", "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "schedulingGates": [{"name": name} for name in gates],
        },
    }


@pytest.mark.parametrize("others", [(), ("example.com/quota",)])
async def test_only_the_gate_of_claimctl_leaves_a_pod(others: tuple[str, ...]) -> None:
    made = Server.started()
    made.admin.create("pods", _pod(*others, "claimctl.io/brake"))
    (found,) = await sweep.braked_pods(made.client)
    assert await sweep.release(made.client, found)
    assert await sweep.braked_pods(made.client) == ()
    spec = made.admin.get("pods", NAMESPACE, "waits")["spec"]
    assert [gate["name"] for gate in spec.get("schedulingGates", [])] == list(others)
    assert not await sweep.release(made.client, found)


async def test_another_pod_of_the_name_keeps_its_gate() -> None:
    made = Server.started()
    made.admin.create("pods", _pod("claimctl.io/brake"))
    (found,) = await sweep.braked_pods(made.client)
    made.admin.delete("pods", NAMESPACE, "waits")
    made.admin.create("pods", _pod("claimctl.io/brake"))
    assert not await sweep.release(made.client, found)
    assert (await made.client.get(PODS, "waits", NAMESPACE)).spec.scheduling_gates != ()


async def test_a_record_forgets_taints_and_avoidances_and_keeps_its_moves() -> None:
    made = Server.started()
    made.admin.create("reschedulerecords", {"metadata": {"name": "claimctl"}})
    moved = [{"uid": "w-1", "kind": "ReplicaSet", "namespace": "team", "name": "web"}]
    status = {
        "workloads": moved,
        "taints": [{"node": "n1", "key": OURS[0]["key"], "value": OURS[0]["value"]}],
        "avoidances": [{"ownerUID": "o-1", "nodes": ["n1"]}],
    }
    made.admin.patch("reschedulerecords", "", "claimctl", {"status": status}, "status")
    assert await sweep.forget(made.client, "claimctl")
    left = made.admin.get("reschedulerecords", "", "claimctl")["status"]
    assert left == {"workloads": left["workloads"]}
    assert [each["uid"] for each in left["workloads"]] == ["w-1"]
    assert not await sweep.forget(made.client, "claimctl")
