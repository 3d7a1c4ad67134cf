"""Changes of Services, volumes, and the kinds of networking and storage, as a real server answers.

The refusals of new objects are recorded: ``judges/conformance/refusals``.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube_in_process_tests.servers import Object, Server, server

CORE = "/api/v1/namespaces/ns"
NETWORKING = "/apis/networking.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
PORTS = [{"port": 80}]
SIZE = {"requests": {"storage": "1Gi"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": SIZE}
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
FIXED = "Forbidden: spec is immutable after creation except resources.requests and"


async def server_with(collection: str, **body: Any) -> Server:
    here = server()
    answer = await here.send("POST", collection, {"metadata": {"name": "a"}, **body})
    assert answer.status == 201, answer.body
    return here


@pytest.mark.parametrize(
    ("collection", "body", "patch", "told"),
    [
        (
            f"{CORE}/services",
            {"spec": {"ports": PORTS, "clusterIP": "10.96.0.7"}},
            {"spec": {"clusterIP": "10.96.0.8"}},
            'spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set',
        ),
        (
            f"{CORE}/services",
            {"spec": {"ports": PORTS, "clusterIP": "10.96.0.7"}},
            {"spec": {"clusterIPs": ["10.96.0.8"]}},
            'spec.clusterIPs: Invalid value: ["10.96.0.8"]: first value must match `clusterIP`',
        ),
        (
            f"{NETWORKING}/ingressclasses",
            {"spec": {"controller": "a.b/c"}},
            {"spec": {"controller": "a.b/d"}},
            'spec.controller: Invalid value: "a.b/d": field is immutable',
        ),
        (
            f"{NETWORKING}/servicecidrs",
            {"spec": {"cidrs": ["10.5.0.0/16"]}},
            {"spec": {"cidrs": ["10.6.0.0/16"]}},
            'spec.cidrs[0]: Invalid value: "10.6.0.0/16": field is immutable',
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices",
            {"addressType": "IPv4"},
            {"addressType": "IPv6"},
            'addressType: Invalid value: "IPv6": field is immutable',
        ),
        (
            f"{STORAGE}/storageclasses",
            {"provisioner": "a"},
            {"reclaimPolicy": "Retain"},
            'reclaimPolicy: Invalid value: "Retain": field is immutable',
        ),
        (
            f"{STORAGE}/csidrivers",
            {},
            {"spec": {"attachRequired": False}},
            "spec.attachedRequired: Invalid value: false: field is immutable",
        ),
        (
            f"{STORAGE}/volumeattributesclasses",
            {"driverName": "a", "parameters": {"a": "b"}},
            {"parameters": {"a": "c"}},
            "parameters: Forbidden: updates to parameters are forbidden.",
        ),
        (
            f"{STORAGE}/volumeattachments",
            {"spec": {"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n"}},
            {"spec": {"nodeName": "m"}},
            'spec: Invalid value: {"Attacher":"a","Source":{"PersistentVolumeName":"v",'
            '"InlineVolumeSpec":null},"NodeName":"m"}: field is immutable',
        ),
        (
            "/api/v1/persistentvolumes",
            {"spec": {**VOLUME, "hostPath": {"path": "/x"}}},
            {"spec": {"hostPath": {"path": "/y"}}},
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable",
        ),
        (
            f"{CORE}/persistentvolumeclaims",
            {"spec": CLAIM},
            {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
            f"spec: {FIXED}",
        ),
    ],
)
async def test_what_may_not_change_is_named(
    collection: str, body: Object, patch: Object, told: str
) -> None:
    answer = await (await server_with(collection, **body)).merge_patch(f"{collection}/a", patch)
    assert answer.status == 422
    assert told in answer.body["message"]


async def test_a_service_keeps_its_address_and_loses_what_another_type_has_not() -> None:
    path = f"{CORE}/services"
    here = await server_with(path, spec={"ports": PORTS, "type": "LoadBalancer"})
    spec = (await here.send("GET", f"{path}/a")).body["spec"]
    assert (spec["externalTrafficPolicy"], spec["allocateLoadBalancerNodePorts"]) == (
        "Cluster",
        True,
    )
    ingress = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    await here.merge_patch(f"{path}/a/status", {"status": ingress})
    again = {"metadata": {"name": "a"}, "spec": {"ports": PORTS}}
    replaced = (await here.send("PUT", f"{path}/a", again)).body
    assert replaced["spec"] == {
        "clusterIP": spec["clusterIP"],
        "clusterIPs": [spec["clusterIP"]],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    assert replaced["status"] == {"loadBalancer": {}}
    external = {"type": "ExternalName", "externalName": "a.b"}
    named = (await here.merge_patch(f"{path}/a", {"spec": external})).body["spec"]
    gone = {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"}
    assert not gone & named.keys()


@pytest.mark.parametrize(
    ("selector", "policy", "families"),
    [
        (None, "RequireDualStack", ["IPv4", "IPv6"]),
        ({"a": "b"}, "SingleStack", ["IPv4"]),
    ],
)
async def test_a_headless_service_without_a_selector_has_both_families(
    selector: Object | None, policy: str, families: list[str]
) -> None:
    here = await server_with(f"{CORE}/services", spec={"clusterIP": "None", "selector": selector})
    spec = (await here.send("GET", f"{CORE}/services/a")).body["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == (policy, families)


async def test_a_name_that_begins_with_a_digit_is_right_from_1_36_on() -> None:
    body = {"metadata": {"name": "9x"}, "spec": {"ports": PORTS}}
    new, old = server(), server(kubernetes_version=(1, 35))
    assert (await new.send("POST", f"{CORE}/services", body)).status == 201
    assert (await old.send("POST", f"{CORE}/services", body)).status == 422


@pytest.mark.parametrize(("expands", "status"), [(True, 200), (False, 403)])
async def test_a_bound_claim_grows_if_its_class_allows_it(expands: bool, status: int) -> None:
    path = f"{CORE}/persistentvolumeclaims"
    here = await server_with(path, spec={**CLAIM, "storageClassName": "fast", "volumeName": "v"})
    fast = {"metadata": {"name": "fast"}, "provisioner": "a", "allowVolumeExpansion": expands}
    await here.send("POST", f"{STORAGE}/storageclasses", fast)
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    await here.merge_patch(f"{path}/a/status", {"status": bound})
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert (await here.merge_patch(f"{path}/a", more)).status == status
    less = {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}
    answer = await here.merge_patch(f"{path}/a", less)
    assert "field can not be less than status.capacity" in answer.body["message"]


async def test_a_volume_knows_when_it_entered_its_phase() -> None:
    path = "/api/v1/persistentvolumes"
    here = await server_with(path, spec={**VOLUME, "hostPath": {"path": "/x"}})
    before = (await here.send("GET", f"{path}/a")).body["status"]
    assert before["phase"] == "Pending"
    there = {"status": {"phase": "Available", "lastPhaseTransitionTime": None}}
    after = (await here.merge_patch(f"{path}/a/status", there)).body["status"]
    assert after["lastPhaseTransitionTime"] >= before["lastPhaseTransitionTime"]


async def test_a_replication_controller_takes_labels_and_selector_from_its_template() -> None:
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    path = f"{CORE}/replicationcontrollers"
    here = await server_with(path, spec={"template": template})
    stored = (await here.send("GET", f"{path}/a")).body
    assert (stored["metadata"]["labels"], stored["spec"]["selector"]) == ({"a": "b"}, {"a": "b"})
    assert stored["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert stored["status"] == {"replicas": 0}
