"""Documents as the server sends them, read as the structs of planning."""

from __future__ import annotations

import pytest

from claimctl.label_selectors import LabelSelector
from claimctl.reservation.facts.pods import claim_names, is_done
from claimctl.wire.base import from_plain
from claimctl_reschedule.shapes.devices import SchedulingClaim, SchedulingSlice
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget, SchedulingNode, SchedulingPod


def test_a_pod_has_what_decides_where_it_runs() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    pod = from_plain(
        {
            "spec": {
                "affinity": {"podAntiAffinity": required},
                "containers": [
                    {
                        "name": "a",
                        "resources": {"requests": {"cpu": "1", "memory": None}},
                        "ports": [{"hostPort": 80, "hostIP": "127.0.0.1"}],
                    }
                ],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        },
        SchedulingPod,
    )
    anti = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    assert anti is not None
    assert [term.topology_key for term in anti.required] == ["zone"]
    assert pod.spec.containers[0].resources.requests == {"cpu": "1"}
    assert pod.spec.containers[0].ports[0].host_ip == "127.0.0.1"
    named, empty = pod.spec.volumes
    assert named.persistent_volume_claim is not None
    assert named.persistent_volume_claim.claim_name == "disk"
    assert empty.empty_dir is not None


def test_the_rules_of_reservations_understand_the_pod() -> None:
    document = {
        "spec": {"nodeName": "n", "resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]},
        "status": {"phase": "Succeeded", "containerStatuses": [{"name": "a"}]},
    }
    pod = from_plain(document, SchedulingPod)
    assert claim_names(pod) == {"gpu"}
    assert is_done(pod)


def test_an_empty_selector_is_not_an_absent_one() -> None:
    empty = from_plain({"spec": {"selector": {}}}, PodDisruptionBudget)
    absent = from_plain({"spec": {"selector": None}}, PodDisruptionBudget)
    assert empty.spec.selector == LabelSelector()
    assert absent.spec.selector is None


def test_a_node_has_its_allocatable() -> None:
    node = from_plain({"status": {"allocatable": {"cpu": "8", "pods": 110}}}, SchedulingNode)
    assert node.status.allocatable == {"cpu": "8", "pods": 110}


@pytest.mark.parametrize("wrapped", [False, True])
def test_requests_are_read_in_v1_and_v1beta1(wrapped: bool) -> None:
    asked = {"deviceClassName": "gpu", "count": 2}
    request = {"name": "r", "exactly": asked} if wrapped else {"name": "r", **asked}
    claim = from_plain({"spec": {"devices": {"requests": [request]}}}, SchedulingClaim)
    (found,) = claim.spec.devices.requests
    assert (found.exactly or found).count == 2
    assert (found.exactly or found).device_class_name == "gpu"


def test_taints_of_devices_are_read_in_v1_and_v1beta1() -> None:
    taints = [{"key": "broken", "effect": "NoSchedule"}]
    devices = [{"name": "a", "taints": taints}, {"name": "b", "basic": {"taints": taints}}]
    found = from_plain({"spec": {"devices": devices}}, SchedulingSlice).spec.devices or ()
    assert [len(each.all_taints) for each in found] == [1, 1]
