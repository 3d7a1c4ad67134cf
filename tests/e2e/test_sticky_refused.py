"""The API server refuses what a sticky claim needs: the workload is told so, the controller does
not write without end, and a release goes on."""

from __future__ import annotations

import json

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.reservation.sticky import reservation_name
from claimctl.wire.reservations import WorkloadRef
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS, STATEFULSETS
from tests.e2e import manifests
from tests.e2e.faulty import Faulty
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.site import PEOPLE
from tests.e2e.sticky import asking, install_policy, make_templates
from tests.support.counting_server import CountingTransport

pytestmark = pytest.mark.cluster(HOLD_136)

CLAIM = "train-0.sts.gpu.big"
NAME = reservation_name(WorkloadRef(api_group="apps", kind="StatefulSet", name="train"), CLAIM)
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/claimreservations.claimctl.io"
_VERSION = "/spec/versions/0/schema/openAPIV3Schema"


async def refused(stage: Stage, transport: CountingTransport) -> int:
    """How often a controller tries to create the reservation, in two minutes."""
    await stage.started(transport=transport)
    await install_policy(stage)
    await make_templates(stage, "big")
    await stage.create(STATEFULSETS, asking(manifests.stateful_set(), "*", ("gpu", "big")))
    await stage.quiet(120)
    assert not await stage.running()
    asked = (each for each in transport.requests if each.startswith("POST"))
    return sum(each.endswith("/claimreservations") for each in asked)


async def test_the_name_of_its_reservation_is_taken(stage: Stage) -> None:
    other = {"resourceClaimName": "slice", "workloadRef": {"apiGroup": "apps"}}
    other["workloadRef"] |= {"kind": "StatefulSet", "name": "other"}  # type: ignore[operator]
    await stage.create(CLAIMRESERVATIONS, {"metadata": {"name": NAME}, "spec": other})
    assert await refused(stage, CountingTransport(stage.connect())) < 20
    await stage.until_event("StickyNameTaken")
    await stage.delete(CLAIMRESERVATIONS, NAME)
    await stage.until_running(1)


async def test_the_crd_is_older_than_the_controller(stage: Stage) -> None:
    if stage.cluster is None:
        pytest.skip("a real cluster keeps the CRDs for other scenarios")
    change = [{"op": "remove", "path": f"{_VERSION}/properties/spec/properties/sticky"}]
    headers = {"content-type": "application/json-patch+json"}
    people = stage.site.connection(PEOPLE)
    await people.send("PATCH", _CRD, (), headers, json.dumps(change).encode())
    assert await refused(stage, CountingTransport(stage.connect())) == 1
    await stage.until_event("Invalid")
    assert await stage.reservations() == ()


async def test_a_claim_is_released_that_the_controller_may_not_delete(stage: Stage) -> None:
    def no_deletion(method: str, path: str) -> Fault | None:
        return _DENIED if method == "DELETE" and "/resourceclaims/" in path else None

    await stage.started(transport=Faulty(stage.connect(), no_deletion))
    await install_policy(stage)
    await make_templates(stage, "big")
    await stage.create(STATEFULSETS, asking(manifests.stateful_set(), "*", ("gpu", "big")))
    await stage.until_listed("pods/train-0", "statefulsets/train", claim=CLAIM)
    await stage.delete(STATEFULSETS, "train")
    # garbage collection deletes it after its reservation
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, CLAIM), "the claim is gone")
    assert await stage.reservations() == ()


_DENIED = Fault(status=403, reason="Forbidden", message="no right")
