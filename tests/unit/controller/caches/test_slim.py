"""What the caches keep of objects, and what they refuse."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from claimctl.controller.caches.slim import (
    MOST_BYTES,
    TooLarge,
    bounded,
    slim,
    slim_claim,
    slim_node,
    slim_replica_set,
    slim_workload,
)
from claimctl.kube.codec import decode_page
from claimctl.reservation.facts.references import uids_written_by
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.wire.base import encode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    STATEFULSETS,
    Resource,
)
from tests.support.wire_server import thing

CLAIMS = {"resourceClaims": [{"name": "c", "resourceClaimName": "slice"}]}
FAT = "x" * 250_000
KEEPS: tuple[tuple[Resource[Any], Callable[[Any], Any]], ...] = (
    (RESOURCECLAIMS, slim_claim),
    (CLAIMRESERVATIONS, slim),
    (PODGROUPS, slim),
    (DEPLOYMENTS, slim_workload),
    (STATEFULSETS, slim_workload),
    (JOBS, slim_workload),
    (REPLICASETS, slim_replica_set),
    (PODS, slim_pod),
    (NODES, slim_node),
)
NAMES = [resource.plural for resource, _ in KEEPS]


def read(resource: Resource[Any], meta: dict[str, Any], **more: Any) -> Any:
    body = thing("a", 1, **{"spec": {**CLAIMS, "template": {"spec": CLAIMS}}, **more})
    body["metadata"].update(meta)
    page = json.dumps({"metadata": {"resourceVersion": "3"}, "items": [body]}).encode()
    return decode_page(resource, page).items[0]


@pytest.mark.parametrize(("resource", "keep"), KEEPS, ids=NAMES)
def test_foreign_annotations_and_managed_fields_cost_nothing(
    resource: Resource[Any], keep: Callable[[Any], Any]
) -> None:
    managed = [{"manager": "m", "fieldsV1": {"f:spec": {FAT: {}}}}]
    meta = {"annotations": {"else/fat": FAT}, "managedFields": managed, "generateName": FAT}
    kept = keep(read(resource, meta))
    assert len(encode(kept)) < 1_000
    assert kept.metadata.key == ("ns", "a")
    assert bounded(kept) is kept


@pytest.mark.parametrize(("resource", "keep"), KEEPS[:-1], ids=NAMES[:-1])
def test_what_a_user_writes_and_is_read_is_refused_beyond_the_bound(
    resource: Resource[Any], keep: Callable[[Any], Any]
) -> None:
    owners = [{"kind": "K", "name": "n" * 60_000, "uid": "u", "controller": True}]
    with pytest.raises(TooLarge, match=f"at most {MOST_BYTES} are: shorten"):
        bounded(keep(read(resource, {"ownerReferences": owners})))


@pytest.mark.parametrize("resource", [PODS, DEPLOYMENTS], ids=lambda resource: resource.plural)
def test_an_object_that_names_thousands_of_claims_is_refused(resource: Resource[Any]) -> None:
    names = [{"name": f"c{i}", "resourceClaimName": f"{i}-{'x' * 90}"} for i in range(5_000)]
    spec = {"resourceClaims": names, "template": {"spec": {"resourceClaims": names}}}
    keep: Callable[[Any], Any] = slim_pod if resource is PODS else slim_workload
    with pytest.raises(TooLarge):
        bounded(keep(read(resource, {}, spec=spec)))
    few = {"resourceClaims": names[:200], "template": {"spec": {"resourceClaims": names[:200]}}}
    bounded(keep(read(resource, {}, spec=few)))


def test_what_decisions_read_of_the_metadata_stays() -> None:
    ours = {"claimctl.io/release": "uid-a", "else/x": "y"}
    labels = {"app.kubernetes.io/managed-by": "claimctl", "team": "ml"}
    meta = {"annotations": ours, "labels": labels, "finalizers": ["else/f", "claimctl.io/release"]}
    for resource, keep in KEEPS[:6]:
        kept = keep(read(resource, meta)).metadata
        assert kept.annotations == {"claimctl.io/release": "uid-a"}
        assert kept.finalizers == ("else/f", "claimctl.io/release")
        # DowngradePlans select claims by their labels
        lasting = labels if resource is RESOURCECLAIMS else {"app.kubernetes.io/managed-by"}
        assert set(kept.labels) == set(lasting)


def page() -> bytes:
    """One claim of interest and half a megabyte of other things."""
    listed = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    condition = {"type": "Ready", "status": "True", "message": FAT}
    reported = {"driver": "d", "pool": "p", "device": "0", "conditions": [condition], "data": FAT}
    allocated = {"devices": {"results": [{"driver": "d", "pool": "p", "device": "0"}]}}
    status = {"reservedFor": listed, "devices": [reported], "allocation": allocated}
    claim = thing("c", 1, status=status)
    keys: dict[str, Any] = {'k:{"uid":"uid-p"}': {".": {}}, 'k:{"uid":"uid-gone"}': {}}
    fields = {"f:status": {"f:reservedFor": keys, "f:allocation": {}}}
    wrote = {"manager": "claimctl", "subresource": "status", "fieldsV1": fields}
    claim["metadata"]["managedFields"] = [wrote, {"manager": "m", "fieldsV1": {"f:spec": {}}}]
    rest = thing("rest", 2, unknown="x" * 500_000)
    return json.dumps({"metadata": {"resourceVersion": "3"}, "items": [claim, rest]}).encode()


def kept_claim() -> ResourceClaim:
    return slim_claim(decode_page(RESOURCECLAIMS, page()).items[0])


def test_a_kept_claim_does_not_keep_the_page_it_came_in() -> None:
    kept_claim()
    tracemalloc.start()
    try:
        claim = kept_claim()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    assert uids_written_by(claim) == {"uid-p"}
    assert [entry.manager for entry in claim.metadata.managed_fields] == ["claimctl"]


def test_of_what_a_driver_reports_the_conditions_stay() -> None:
    claim = kept_claim()
    ready = find_condition(claim.status.reported(claim.devices[0]), "Ready")
    assert ready is not None
    assert (ready.status, ready.message) == ("True", "")
