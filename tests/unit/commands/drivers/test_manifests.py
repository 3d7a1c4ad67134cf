"""What a check makes: it owns everything, and passes where namespaces are strict."""

from __future__ import annotations

from claimctl.commands.drivers.manifests import LEFT_SECONDS, Check
from claimctl.wire.reservations import DRIVER_CHECK_LABEL as LABEL

CHECK = Check("claimctl-check-1", "team", "gpu.example.com", "gpu", "pause:1", "uid-1")


def test_everything_has_the_label_and_the_job_as_its_owner() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": CHECK.name, "uid": "uid-1"}
    for made in (CHECK.claim("c", "v1"), CHECK.pod("p", "c", "node-1")):
        assert made["metadata"]["ownerReferences"] == [owner]
        assert made["metadata"]["labels"] == {LABEL: CHECK.name}
    assert CHECK.job()["metadata"]["labels"] == {LABEL: CHECK.name}


def test_the_job_makes_no_pod_and_ends_by_itself() -> None:
    spec = CHECK.job()["spec"]
    ends = (spec["parallelism"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"])
    assert ends == (0, LEFT_SECONDS, 0)


def test_the_claim_asks_for_this_driver_whatever_its_class_selects() -> None:
    asked = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
    }
    (new,) = CHECK.claim("c", "v1")["spec"]["devices"]["requests"]
    (old,) = CHECK.claim("c", "v1beta1")["spec"]["devices"]["requests"]
    assert new == {"name": "device", "exactly": asked}
    assert old == {"name": "device", **asked}


def test_a_pod_passes_the_level_restricted_and_has_requests_and_limits_for_quotas() -> None:
    spec = CHECK.pod("p", "c", "node-1")["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65535,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    allowed = container["securityContext"]
    assert allowed["allowPrivilegeEscalation"] is False
    assert allowed["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["claims"] == [{"name": "device"}]
    assert spec["resourceClaims"] == [{"name": "device", "resourceClaimName": "c"}]


def test_a_pod_keeps_its_devices_if_its_image_ends() -> None:
    assert CHECK.pod("p", "c", "node-1")["spec"]["restartPolicy"] == "Always"
    assert CHECK.job()["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_only_a_pod_that_is_listed_ahead_has_a_gate() -> None:
    assert "schedulingGates" not in CHECK.pod("p", "c", "node-1")["spec"]
    gated = CHECK.pod("p", "c", "node-1", gated=True)["spec"]
    assert gated["schedulingGates"] == [{"name": LABEL}]


def test_the_hold_is_the_entry_of_a_workload() -> None:
    entry = CHECK.hold
    found = (entry.api_group, entry.resource, entry.name, entry.uid)
    assert found == ("batch", "jobs", CHECK.name, "uid-1")
