"""What ``claimctl doctor`` finds in a cluster of a test, with or without a controller."""

from __future__ import annotations

from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine
from claimctl.commands.doctor.model import CheckVerdict, Finding
from claimctl.wire.coordination import micro_time
from tests.support.claim_server import Server

CHECKS = {
    *(
        "kubernetes",
        "resource.k8s.io",
        "podgroups",
        "reservation-mode",
        "installation",
        "controller",
    ),
    *("deployment", "drivers", "permissions", "reservations", "kinds", "annotations", "orphans"),
    "plans",
    *("listed-ahead", "held-devices", "waiting-pods", "kubelets", "versions"),
    *("near-limit", "dangling-references", "refused-pods", "unreadable-objects", "stale-taints"),
    *("avoidances", "resizes"),
}


async def diagnosed(made: Server, namespace: str = "") -> tuple[Finding, ...]:
    findings = await examine(made.client, made.clock, namespace=namespace)
    return diagnosis(findings)


def problems(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [
        (finding.check, finding.object)
        for finding in findings
        if finding.verdict is CheckVerdict.PROBLEM
    ]


def the(findings: tuple[Finding, ...], check: str) -> Finding:
    (only,) = [finding for finding in findings if finding.check == check]
    return only


def elected(made: Server, *, renewed_before: float = 0.0, led_before: float = 0.0) -> None:
    """A Lease that a controller got and renewed so long ago, and the controller's namespace."""
    made.admin.create("namespaces", {"metadata": {"name": "claimctl-system"}})
    now = made.clock.now()
    renewed = now.fromtimestamp(now.timestamp() - renewed_before, now.tzinfo)
    began = now.fromtimestamp(now.timestamp() - led_before, now.tzinfo)
    meta = {"name": "claimctl-controller", "namespace": "claimctl-system"}
    spec = {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": micro_time(began),
        "renewTime": micro_time(renewed),
    }
    made.admin.create("leases", {"metadata": meta, "spec": spec})


def deployed(made: Server, *, ready: int, replicas: int = 2) -> None:
    labels = {"app.kubernetes.io/name": "claimctl", "app.kubernetes.io/component": "controller"}
    pod = {
        "serviceAccountName": "keeper",
        "containers": [{"name": "controller", "image": "registry.example.com/claimctl:0.1.0"}],
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    meta = {"name": "keeper", "namespace": "claimctl-system", "labels": labels}
    made.admin.create("deployments", {"metadata": meta, "spec": spec})
    status = {"status": {"replicas": replicas, "readyReplicas": ready}}
    made.admin.patch("deployments", "claimctl-system", "keeper", status, "status")
