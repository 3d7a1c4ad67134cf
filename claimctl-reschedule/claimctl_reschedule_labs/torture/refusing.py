"""Nodes begin and stop to refuse pods, or to prepare their devices.

In some schedules the admission policy claimctl-avoidance is installed, where the server knows such
policies.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import yaml
from kube_in_process.components.kubelet.admission import REFUSED_ON, REFUSES
from kube_in_process.components.kubelet.kubelet import PREPARE_FAILS

from claimctl.wire.reservations import REALLOCATE_FOR_ANNOTATION
from claimctl.wire.traces import AVOID_TAINT, BRAKE_GATE
from claimctl_reschedule.run.reallocating import FOR_AVOIDANCE
from labs.torture.testbed import Testbed
from tests.e2e.harness import NAMESPACE

POLICY_FILE = Path(__file__).parents[3] / "deploy/rescheduler/avoidance/avoidance.yaml"
REASON = "UnexpectedAdmissionError"
ERROR = "the driver is away"
WELL: dict[str, str | None] = {REFUSES: None, PREPARE_FAILS: None}
REFUSING, FAILING = {**WELL, REFUSES: REASON}, {**WELL, PREPARE_FAILS: ERROR}
STATES = (WELL, WELL, WELL, REFUSING, REFUSING, FAILING, FAILING)
INSTALLED_SHARE = 0.7
"""The share of clusters with the admission policy, of those that serve it."""


def begin(testbed: Testbed, rng: Random) -> None:
    """Install the admission policy, or not; and create a workload that one node may never run."""
    admin = testbed.cluster.admin
    served = "mutatingadmissionpolicies" in testbed.plurals()
    if served and rng.random() < INSTALLED_SHARE:
        policy, binding = yaml.safe_load_all(POLICY_FILE.read_text(encoding="utf-8"))
        admin.create("mutatingadmissionpolicies", policy)
        admin.create("mutatingadmissionpolicybindings", binding)
    admin.create("deployments", _fussy(rng.choice((*_nodes(testbed), "none"))))


def _fussy(node: str) -> dict[str, Any]:
    """Each of its pods has a claim of its own."""
    spec = {
        "containers": [
            {"name": "main", "image": "web", "resources": {"claims": [{"name": "gpu"}]}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "template"}],
    }
    labels = {"app": "fussy"}
    metadata = {"labels": labels, "annotations": {REFUSED_ON: f"{node}={REASON}"}}
    return {
        "metadata": {"name": "fussy", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def strike(testbed: Testbed, rng: Random) -> None:
    """Each node refuses all pods from now on, or fails to prepare devices, or is well again.

    Some pods go, so that new ones come to these nodes.
    """
    for node in _nodes(testbed):
        _annotate(testbed, node, rng.choice(STATES))
    for pod in testbed.objects("pods"):
        if pod["metadata"]["name"].startswith(("fussy-", "web-")) and rng.random() < 0.3:
            testbed.cluster.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])


def mend(testbed: Testbed) -> None:
    """All nodes run all pods."""
    for node in _nodes(testbed):
        _annotate(testbed, node, WELL)
    patch = {"spec": {"template": {"metadata": {"annotations": {REFUSED_ON: None}}}}}
    testbed.cluster.admin.patch("deployments", NAMESPACE, "fussy", patch)


def _annotate(testbed: Testbed, node: str, annotations: dict[str, str | None]) -> None:
    testbed.cluster.admin.patch("nodes", "", node, {"metadata": {"annotations": annotations}})


def _nodes(testbed: Testbed) -> list[str]:
    return [node["metadata"]["name"] for node in testbed.cluster.admin.list("nodes")]


def braked(testbed: Testbed) -> list[str]:
    """The names of the pods that wait because of the brake."""
    return [
        pod["metadata"]["name"]
        for pod in testbed.objects("pods")
        if any(gate["name"] == BRAKE_GATE for gate in pod["spec"].get("schedulingGates") or ())
    ]


def remains(testbed: Testbed) -> list[str]:
    """What keeps pods off nodes: entries of the record, taints, gates, and requests."""
    admin = testbed.cluster.admin
    remains = [f"the record remembers {avoidance['name']}" for avoidance in _remembered(testbed)]
    remains += [f"the pod {name} is braked" for name in braked(testbed)]
    for node in admin.list("nodes"):
        if any(taint["key"] == AVOID_TAINT for taint in node["spec"].get("taints") or ()):
            remains.append(f"{node['metadata']['name']} is tainted")
    for reservation in testbed.objects("claimreservations"):
        notes = reservation["metadata"].get("annotations") or {}
        if notes.get(REALLOCATE_FOR_ANNOTATION) == FOR_AVOIDANCE:
            remains.append(f"{reservation['metadata']['name']} is asked to give its claim up")
    return remains


def _remembered(testbed: Testbed) -> list[dict[str, Any]]:
    return [
        entry
        for record in testbed.cluster.admin.list("reschedulerecords")
        for entry in (record.get("status") or {}).get("avoidances") or ()
    ]


def counted(testbed: Testbed, user: str) -> dict[str, int]:
    """What the runs did in the whole history.

    Owners that ever avoided a node, owners that were ever braked, and pods that ``user`` evicted
    from nodes that could not prepare their devices, before they had started.
    """
    avoided: set[tuple[str, str]] = set()
    brakes: set[str] = set()
    failing: set[str] = set()
    evicted: set[str] = set()
    for revision in testbed.cluster.history():
        body = revision.object()
        meta = body["metadata"]
        if revision.plural == "reschedulerecords":
            for avoidance in (body.get("status") or {}).get("avoidances") or ():
                avoided |= {(avoidance["ownerUID"], node) for node in avoidance.get("nodes") or ()}
                brakes |= {avoidance["ownerUID"]} if avoidance.get("braked") else set()
        elif revision.plural == "nodes":
            failing -= {revision.name}
            failing |= (
                {revision.name} if PREPARE_FAILS in (meta.get("annotations") or {}) else set()
            )
        elif revision.plural == "pods" and revision.actor == user and meta.get("deletionTimestamp"):
            stuck = body["status"].get("phase") == "Pending"
            if stuck and body["spec"].get("nodeName") in failing:
                evicted.add(meta["uid"])
    return {
        "avoided node": len(avoided),
        "braked owner": len(brakes),
        "stuck pod evicted": len(evicted),
    }
