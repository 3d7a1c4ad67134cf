"""What ``kubectl get claimreservations -o wide`` shows."""

from __future__ import annotations

from datetime import UTC, datetime

from kube_in_process.http.tables.shapes import Tables
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

from generate.crds import custom_resource_definitions

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_a_release_shows_its_step_and_since_when_and_the_node_of_the_devices() -> None:
    [version] = custom_resource_definitions()[0]["spec"]["versions"]
    columns = {
        ("claimctl.io", "v1alpha1", "claimreservations"): version["additionalPrinterColumns"]
    }
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    tables = Tables(Schemas(lambda: Features()), columns, lambda: now, Features)
    kind = Kind("claimctl.io", ("v1alpha1",), "claimreservations", "ClaimReservation", custom=True)
    view = tables.view(TABLE, kind, "v1alpha1", {}, many=True)
    assert view is not None
    status = {"nodes": ["n1"], "release": {"step": "Fencing", "since": "2026-01-02T03:03:00Z"}}
    meta = {"name": "train", "creationTimestamp": "2026-01-02T02:04:05Z"}
    table = view.one({"metadata": meta, "status": status})
    titles = [each["name"] for each in table["columnDefinitions"]]
    shown = dict(zip(titles, table["rows"][0]["cells"], strict=True))
    assert (shown["Node"], shown["Release"], shown["Since"]) == ("n1", "Fencing", "65s")
    assert shown["Age"] == "60m"
