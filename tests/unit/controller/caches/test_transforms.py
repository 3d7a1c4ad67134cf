"""What a kept claim holds on to."""

from __future__ import annotations

import json
import tracemalloc

from msgspec.structs import replace

from claimctl.controller.caches.transforms import owning, slim_pod
from claimctl.kube.codec import decode_page
from claimctl.reservation.release.binding import binding_seconds
from claimctl.reservation.snapshot import Rules
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import owned, pending, running, slow
from tests.support.wire_server import thing


def page() -> bytes:
    """One claim of interest and half a megabyte of other things."""
    claim = thing("c", 1)
    claim["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:spec": {}}}]
    rest = thing("rest", 2, unknown="x" * 500_000)
    return json.dumps({"metadata": {"resourceVersion": "3"}, "items": [claim, rest]}).encode()


def kept() -> ResourceClaim:
    return owning(decode_page(RESOURCECLAIMS, page()).items[0])


def test_a_kept_claim_does_not_keep_the_page_it_came_in() -> None:
    kept()
    tracemalloc.start()
    try:
        claim = kept()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    (entry,) = claim.metadata.managed_fields
    assert (entry.manager, bytes(entry.fields_v1)) == ("m", b'{"f:spec": {}}')


BODY = b"""{"metadata": {"name": "a"}, "spec": {
    "schedulerName": "mine", "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}],
    "volumes": [{"name": "v", "%s": {"claimName": "data"}}]}}"""


def kept_pod(pod: Pod) -> Pod:
    slimmed = slim_pod(pod)
    assert slimmed is not None
    return slimmed


def test_volumes_that_may_be_late_are_read_and_kept_and_others_are_not() -> None:
    rules = Rules(known_schedulers=frozenset({"mine"}))
    for kind, seconds in ((b"persistentVolumeClaim", 600), (b"ephemeral", 600), (b"emptyDir", 60)):
        pod = kept_pod(decode(BODY % kind, Pod))
        assert binding_seconds(pod, rules) == seconds
        assert len(pod.spec.volumes) == (seconds == 600)


def test_of_a_pod_that_is_bound_neither_its_scheduler_nor_its_volumes_matter() -> None:
    pod = slow(pending("a"), scheduler="other", volume=True)
    assert kept_pod(pod).spec.scheduler_name == "other"
    bound = slow(running("a"), scheduler="other", volume=True)
    bound = replace(bound, spec=replace(bound.spec, node_name="node-0"))
    assert (kept_pod(bound).spec.scheduler_name, kept_pod(bound).spec.volumes) == ("", ())


GATED = b"""{"metadata": {"name": "a"}, "spec": {"schedulingGates": [{"name": "quota"}],
    "resourceClaims": [{"name": "c", "resourceClaimName": "slice"}]}}"""


def test_a_pod_keeps_its_gates_and_its_controller_until_it_is_bound() -> None:
    pod = kept_pod(owned(decode(GATED, Pod), "uid-set"))
    assert len(pod.spec.scheduling_gates) == 1
    assert [owner.uid for owner in pod.metadata.owner_references] == ["uid-set"]
    assert kept_pod(owned(running("a"))).metadata.owner_references == ()
