"""Pods get their ServiceAccount and a volume with its token, as the admission plugin gives them."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.options import Authorization, ClusterOptions

from kube_in_process_tests.worlds import World

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
Json = dict[str, Any]


@pytest.mark.kube_cluster(ClusterOptions(nodes=1, service_accounts=True))
async def test_a_pod_has_the_default_account_and_its_token(world: World) -> None:
    pod = world.pod("p", initContainers=[{"name": "i", "image": "i"}])
    spec = pod["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN}
    containers = [*spec["initContainers"], *spec["containers"]]
    assert [container["volumeMounts"] for container in containers] == [[mount], [mount]]
    await world.passes(1)
    assert world.get("pods", "p")["status"]["phase"] == "Running"


@pytest.mark.kube_cluster(ClusterOptions(nodes=0, authorization=Authorization.RBAC))
async def test_an_account_must_exist_and_gives_what_it_has(world: World) -> None:
    with pytest.raises(StatusError) as refused:
        world.pod("p", serviceAccountName="robot")
    assert (refused.value.code, refused.value.message) == (
        403,
        'pods "p" is forbidden: error looking up service account default/robot: serviceaccount '
        '"robot" not found',
    )
    robot = {
        "metadata": {"name": "robot"},
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "registry"}],
    }
    world.api.create("serviceaccounts", robot, "default")
    spec = world.pod("p", serviceAccountName="robot")["spec"]
    assert (spec.get("volumes"), spec["imagePullSecrets"]) == (None, [{"name": "registry"}])
    asks = world.pod("q", serviceAccountName="robot", automountServiceAccountToken=True)
    assert len(asks["spec"]["volumes"]) == 1


@pytest.mark.kube_cluster(ClusterOptions(nodes=0))
async def test_a_cluster_that_authorizes_nothing_does_without(world: World) -> None:
    assert "serviceAccountName" not in world.pod("p")["spec"]
