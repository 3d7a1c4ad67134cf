"""What the cache keeps of a pod that a scheduler may be about to bind."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.caches.transforms import slim_pod
from claimctl.reservation.release.binding import binding_seconds
from claimctl.reservation.snapshot import Rules
from claimctl.wire.base import decode
from claimctl.wire.pods import Pod
from tests.support.builders import pending, running, slow

BODY = b"""{"metadata": {"name": "a"}, "spec": {
    "schedulerName": "mine", "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}],
    "volumes": [{"name": "v", "%s": {"claimName": "data"}}]}}"""


def kept(pod: Pod) -> Pod:
    slimmed = slim_pod(pod)
    assert slimmed is not None
    return slimmed


def test_volumes_that_may_be_late_are_read_and_kept_and_others_are_not() -> None:
    rules = Rules(known_schedulers=frozenset({"mine"}))
    for kind, seconds in ((b"persistentVolumeClaim", 600), (b"ephemeral", 600), (b"emptyDir", 60)):
        pod = kept(decode(BODY % kind, Pod))
        assert binding_seconds(pod, rules) == seconds
        assert len(pod.spec.volumes) == (seconds == 600)


def test_of_a_pod_that_is_bound_neither_its_scheduler_nor_its_volumes_matter() -> None:
    pod = slow(pending("a"), scheduler="other", volume=True)
    assert kept(pod).spec.scheduler_name == "other"
    bound = slow(running("a"), scheduler="other", volume=True)
    bound = replace(bound, spec=replace(bound.spec, node_name="node-0"))
    assert (kept(bound).spec.scheduler_name, kept(bound).spec.volumes) == ("", ())
