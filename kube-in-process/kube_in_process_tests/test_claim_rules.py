"""The rules of reservations that no recording covers, since no released server has them."""

from __future__ import annotations

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.kinds.authorization import Attributes
from kube_in_process.options import Features, Preset
from kube_in_process.storage.requests import Actor
from kube_in_process.virtual import run

from kube_in_process_tests.servers import ALLOCATION, CLAIMS, claim, reference, server

WORKLOAD = {"apiGroup": "apps", "resource": "deployments", "name": "d", "uid": "u"}


def test_spec_reserved_for_is_kept_where_the_gate_is_on() -> None:
    me = server(Preset.RESERVED_FOR_ANY_POD).local()
    created = me.create("resourceclaims", claim(reservedFor=WORKLOAD), "ns")
    assert created["spec"]["reservedFor"] == WORKLOAD


def test_spec_reserved_for_is_dropped_where_the_gate_is_off() -> None:
    me = server(Preset.PLAIN).local()
    created = me.create("resourceclaims", claim(reservedFor=WORKLOAD), "ns")
    assert "reservedFor" not in created["spec"]


def test_spec_reserved_for_is_refused_under_strict_where_the_gate_is_off() -> None:
    body = claim(reservedFor=WORKLOAD)
    strict = f"{CLAIMS}?fieldValidation=Strict"
    assert run(server(Preset.PLAIN).send("POST", strict, body)).status == 400
    assert run(server(Preset.RESERVED_FOR_ANY_POD).send("POST", strict, body)).status == 201


def test_spec_reserved_for_is_checked_like_a_reference_and_immutable() -> None:
    me = server(Preset.RESERVED_FOR_ANY_POD).local()
    with pytest.raises(StatusError, match=r"spec\.reservedFor\.uid: Required value"):
        me.create("resourceclaims", claim(reservedFor={"resource": "jobs", "name": "j"}), "ns")
    me.create("resourceclaims", claim(reservedFor=WORKLOAD), "ns")
    with pytest.raises(StatusError, match="field is immutable"):
        me.patch("resourceclaims", "ns", "c", {"spec": {"reservedFor": {"uid": "other"}}})


@pytest.mark.parametrize(
    ("dialect", "kept"), [(Preset.RESERVED_FOR_ANY_POD, True), (Preset.PLAIN, False)]
)
def test_reserved_for_any_pod_is_kept_by_gate(dialect: Preset, kept: bool) -> None:
    me = server(dialect).local()
    me.create("resourceclaims", claim(), "ns")
    status = {"allocation": {**ALLOCATION, "reservedForAnyPod": True}}
    patched = me.patch("resourceclaims", "ns", "c", {"status": status}, "status")
    assert ("reservedForAnyPod" in patched["status"]["allocation"]) is kept


def test_what_a_gate_let_in_stays_when_the_gate_is_switched_off() -> None:
    served = server(Preset.RESERVED_FOR_ANY_POD)
    me = served.local()
    me.create("resourceclaims", claim(reservedFor=WORKLOAD), "ns")
    served.api.switch(Features(version=(1, 36)))
    patched = me.patch("resourceclaims", "ns", "c", {"metadata": {"labels": {"a": "b"}}})
    assert patched["spec"]["reservedFor"] == WORKLOAD


def test_the_257th_reference_is_refused() -> None:
    me = server().local()
    me.create("resourceclaims", claim(), "ns")
    status = {"allocation": ALLOCATION, "reservedFor": [reference(n) for n in range(256)]}
    me.patch("resourceclaims", "ns", "c", {"status": status}, "status")
    one_more = {"status": {"reservedFor": [reference(n) for n in range(257)]}}
    with pytest.raises(StatusError, match="must have at most 256 items"):
        me.patch("resourceclaims", "ns", "c", one_more, "status")


class _Nobody:
    """Lets nobody touch bindings."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def allowed(self, attributes: Attributes) -> bool:
        self.asked.append((attributes.verb, attributes.subresource, attributes.namespace))
        return False

    def trouble(self, attributes: Attributes) -> str:
        return ""


@pytest.mark.parametrize(("version", "status"), [((1, 36), 422), ((1, 34), 200)])
def test_reserving_needs_the_binding_permission_from_1_36(
    version: tuple[int, int], status: int
) -> None:
    served = server(kubernetes_version=version)
    served.local().create("resourceclaims", claim(), "ns")
    nobody = served.api.authorizer = _Nobody()
    body = {"status": {"allocation": ALLOCATION}}
    answer = run(served.merge_patch(f"{CLAIMS}/c/status", body))
    assert answer.status == status
    if status == 422:
        assert nobody.asked == [("patch", "binding", "")]
        assert 'requires resource="resourceclaims/binding", verb="patch"' in answer.body["message"]


def test_components_of_the_cluster_may_always_reserve() -> None:
    served = server()
    me = served.local()
    me.create("resourceclaims", claim(), "ns")
    served.api.authorizer = _Nobody()
    me.patch("resourceclaims", "ns", "c", {"status": {"allocation": ALLOCATION}}, "status")


def test_a_pod_template_with_the_removed_source_field_is_refused() -> None:
    served = server()
    spec = {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "x"}],
                "resourceClaims": [{"name": "g", "source": {"resourceClaimTemplateName": "t"}}],
            }
        }
    }
    path = "/apis/batch/v1/namespaces/ns/jobs"
    answer = run(served.send("POST", path, {"metadata": {"name": "j"}, "spec": spec}))
    assert answer.status == 422
    assert "must specify one of: `resourceClaimName`" in answer.body["message"]
    assert "resourceClaims[0].source" in answer.headers["warning"]


def test_the_same_uid_twice_is_refused_for_an_actor_of_any_name() -> None:
    me = server().local("somebody")
    assert me.actor == Actor("somebody", manager="somebody")
    me.create("resourceclaims", claim(), "ns")
    status = {"allocation": ALLOCATION, "reservedFor": [reference(1), reference(1)]}
    with pytest.raises(StatusError, match=r"reservedFor\[1\]: Duplicate value"):
        me.patch("resourceclaims", "ns", "c", {"status": status}, "status")
