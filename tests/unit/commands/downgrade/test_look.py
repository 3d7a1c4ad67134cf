"""What is read from the cluster for the judgement of a downgrade."""

from __future__ import annotations

from kube_in_process.options import Preset

from claimctl.commands.downgrade.look import look
from claimctl.commands.downgrade.standing import Standing
from claimctl.commands.downgrade.status import Kubelet
from claimctl.wire.coordination import PREPARE_FAILED
from claimctl.wire.resources import EVENTS
from tests.support.claim_server import NAMESPACE, TRAIN, Server

GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "g-1"}


async def test_claims_kubelets_and_the_use_of_the_feature() -> None:
    server = Server.started()
    server.claim()
    server.pod("a", node="n1")
    server.pod("b", node="n2")
    server.claim("own", shared=False)
    server.write_list(server.pod("c", claim="own", node="n2"), name="own")
    server.pod("other", claim="foreign", node="n3")
    found = await look(server.client, True)
    assert [(one.name, one.standing, one.unlisted) for one in found.claims] == [
        ("slice", Standing.TO_PREPARE, 2)
    ]
    assert dict(found.kubelets) == {
        "n1": Kubelet(1, 1, "ml/a", "ml/a"),
        "n2": Kubelet(1, 1, "ml/b", "ml/b"),
    }
    assert (found.used, found.groups, found.plan) == (True, False, None)


async def test_after_a_run_the_record_keeps_the_claim_in_view() -> None:
    server = Server.started()
    server.claim("slice", TRAIN, shared=False)
    server.write_list(TRAIN, GROUP)
    server.pod("a", group="train")
    await server.carry_out()
    found = await look(server.client, True)
    assert [(one.name, one.standing) for one in found.claims] == [("slice", Standing.LISTED)]
    assert (found.used, found.groups) == (True, True)
    assert dict(found.kubelets) == {"n1": Kubelet(1)}


async def test_without_groups_and_without_any_pod_the_feature_was_not_used() -> None:
    server = Server.started(dialect=Preset.PLAIN)
    server.claim("slice", TRAIN, shared=False)
    server.write_list(TRAIN, server.pod("a"))
    found = await look(server.client, False)
    assert (found.used, found.groups, dict(found.last)) == (False, False, {})


async def test_a_pod_that_its_kubelet_refused() -> None:
    server = Server.started()
    server.claim()
    waiting, running = server.pod("waiting"), server.pod("running")
    # a pod whose sandbox was lost keeps its phase
    container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    state = {"waiting": {"reason": "ContainerCreating"}}
    status = {"status": {"phase": "Running", "containerStatuses": [{**container, "state": state}]}}
    server.admin.patch("pods", NAMESPACE, "waiting", status, "status")
    for pod in (waiting, running):
        await _event(server, pod)
    found = await look(server.client, True)
    assert found.kubelets["n1"].refused == "ml/waiting"


async def test_an_event_in_another_namespace_says_nothing_about_a_pod() -> None:
    server = Server.started(NAMESPACE, "other")
    server.claim()
    waiting = server.pod("waiting")
    status = {"status": {"phase": "Pending"}}
    server.admin.patch("pods", NAMESPACE, "waiting", status, "status")
    await _event(server, waiting, "other")
    assert [one.refused for one in (await look(server.client, True)).kubelets.values()] == [""]
    await _event(server, waiting)
    assert (await look(server.client, True)).kubelets["n1"].refused == "ml/waiting"


async def _event(server: Server, pod: dict[str, str], namespace: str = NAMESPACE) -> None:
    """An Event about the pod. An API server takes no ``regarding`` of another namespace."""
    body = {
        "metadata": {"name": f"{pod['name']}.1", "namespace": namespace},
        "reason": PREPARE_FAILED,
        "type": "Warning",
        "action": "Starting",
        "eventTime": "2026-03-01T12:00:00.000000Z",
        "reportingController": "kubelet",
        "reportingInstance": "n1",
        "regarding": {
            "kind": "Pod",
            "namespace": namespace,
            "name": pod["name"],
            "uid": pod["uid"],
        },
    }
    await server.client.create(EVENTS, body, namespace)


async def test_a_claim_that_cannot_be_read_blocks() -> None:
    server = Server.with_unreadable("resourceclaims", "slice", "status", "reservedFor")
    server.claim()
    found = await look(server.client, True)
    assert [(one.name, one.standing, one.reason) for one in found.claims] == [
        ("slice", Standing.BLOCKED, "Unreadable")
    ]


async def test_without_the_crds_there_is_no_plan() -> None:
    server = Server.started(crds=False)
    server.claim()
    assert (await look(server.client, True)).plan is None
