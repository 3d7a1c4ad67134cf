"""What is kept of a pod says the same as the pod."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.pods import claim_names, is_done, unschedulable_since
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.wire.base import decode
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec, PodStatus
from tests.support.builders import owned, pending, running, slow

BODY = b"""{"metadata": {"name": "a"}, "spec": {
    "schedulerName": "mine", "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}],
    "volumes": [{"name": "v", "%s": {"claimName": "data"}}]}}"""


def kept_pod(pod: Pod) -> Pod:
    slimmed = slim_pod(pod)
    assert slimmed is not None
    return slimmed


def test_volumes_that_may_be_late_are_read_and_kept_and_others_are_not() -> None:
    for kind, late in (
        (b"persistentVolumeClaim", True),
        (b"ephemeral", True),
        (b"emptyDir", False),
    ):
        pod = kept_pod(decode(BODY % kind, Pod))
        assert [volume.may_be_unbound for volume in pod.spec.volumes] == [True] * late


def generated(*names: str, uid: str = "a") -> Pod:
    """A pod of two generated claims, of which its status names some."""
    claims = tuple(PodResourceClaim(name=f"c{i}") for i in range(2))
    statuses = tuple(
        PodResourceClaimStatus(name=f"c{i}", resource_claim_name=name)
        for i, name in enumerate(names)
    )
    return Pod(
        metadata=ObjectMeta(name="a", uid=uid),
        spec=PodSpec(resource_claims=claims),
        status=PodStatus(resource_claim_statuses=statuses),
    )


def test_a_claim_that_the_status_named_once_stays_named() -> None:
    known = slim_pod(generated("one", "two"))
    for names in ((), ("one",), ("one", "two")):
        kept = slim_pod(generated(*names), known)
        assert kept is not None
        assert claim_names(kept) == {"one", "two"}
    assert slim_pod(generated(uid="another"), known) is None
    assert slim_pod(generated()) is None


def test_of_a_pod_that_is_bound_neither_its_scheduler_nor_its_volumes_matter() -> None:
    pod = slow(pending("a"), scheduler="other", volume=True)
    assert kept_pod(pod).spec.scheduler_name == "other"
    bound = slow(running("a"), scheduler="other", volume=True)
    bound = replace(bound, spec=replace(bound.spec, node_name="node-0"))
    assert (kept_pod(bound).spec.scheduler_name, kept_pod(bound).spec.volumes) == ("", ())


GATED = b"""{"metadata": {"name": "a"}, "spec": {"schedulingGates": [{"name": "quota"}],
    "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}]}}"""


def test_a_pod_keeps_its_gates_until_it_is_bound_and_always_its_controller() -> None:
    pod = kept_pod(owned(decode(GATED, Pod), "uid-set"))
    assert len(pod.spec.scheduling_gates) == 1
    assert [owner.uid for owner in pod.metadata.owner_references] == ["uid-set"]
    bound = kept_pod(owned(running("a"), "uid-set"))
    assert [owner.uid for owner in bound.metadata.owner_references] == ["uid-set"]


def bound_pod(name: str, *containers: str, phase: str = "Running", swept: bool = False) -> Pod:
    """A bound pod with one container in each of the states."""
    reason = "DeletionByPodGC" if swept else "TerminationByKubelet"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"app": name}},
        "spec": {
            "nodeName": "node-0",
            "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "DisruptionTarget", "status": "True", "reason": reason},
            ],
            "containerStatuses": [
                {"name": f"{name}-{number}", "state": {state: {}}}
                for number, state in enumerate(containers)
            ],
        },
    }
    return decode(json.dumps(body), Pod)


@pytest.mark.parametrize("phase", ["Running", "Failed", "Succeeded"])
@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize(
    "containers",
    [(), ("running",), ("terminated",), ("running", "terminated"), ("waiting", "terminated")],
)
def test_a_kept_pod_is_done_if_and_only_if_the_pod_is(
    phase: str, swept: bool, containers: tuple[str, ...]
) -> None:
    pod = bound_pod("a", *containers, phase=phase, swept=swept)
    assert is_done(kept_pod(pod)) == is_done(pod)
    assert claim_names(kept_pod(pod)) == claim_names(pod)


def test_pods_in_the_same_state_share_it_in_memory() -> None:
    one, other = (kept_pod(bound_pod(name, "running")) for name in "ab")
    assert one.status is other.status
    assert one.spec.resource_claims is other.spec.resource_claims
    ended = kept_pod(bound_pod("c", "terminated"))
    assert ended.status.container_statuses != one.status.container_statuses


def test_a_pending_pod_says_since_when_it_is_unschedulable_but_not_why() -> None:
    body = b"""{"metadata": {"name": "a"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "slice"}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3",
            "reason": "Unschedulable", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}"""
    pod = decode(body, Pod)
    assert unschedulable_since(kept_pod(pod)) == unschedulable_since(pod) is not None
    assert kept_pod(pod).status.conditions[0].message == ""


def test_a_pod_that_names_no_claim_is_not_kept() -> None:
    template = b'{"spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}}'
    assert slim_pod(decode(template, Pod)) is None
    assert slim_pod(Pod()) is None
