"""The end of every run: faults stop, workloads get their pods, then everything is deleted.

Afterwards there must be no pod that cannot run, no allocated claim, no ClaimReservation that cannot
be deleted, and no write while all is quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kube_in_process.errors import StatusError

from claimctl_reschedule.plan.refusals import AVOIDS
from labs.torture.blocked import blocked
from labs.torture.stored import (
    is_held,
    is_in_the_way,
    made_beside_a_hold,
    missing_pods,
    named_claims,
    without_foreign,
)
from labs.torture.testbed import RunVerdict, Testbed
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE

PATIENCE = 1100.0
"""Virtual seconds within which everything must come true in the end. A third of it is longer
than the grace of ClaimReservations that annotations ask for."""
ROUNDS = 4
"""How many times users wait for pods. They help after each; a PodGroup goes in one of them, and its
claim is made anew in the next."""
QUIET, WATCHED = 90.0, 60.0
STILL, FEW = 60.0, 8
"""Seconds after faults (a stolen Lease included) before writes count, and how many writes are no
loop."""
STARTED, TAINTED, MADE = 5.0, 10.0, 16
"""Seconds until pods have begun to wait, seconds for which devices that evict are watched, and how
many new pods are no circle yet."""
OWN_BUSINESS = frozenset({"leases", "events"})


async def conclude(testbed: Testbed, verdict: RunVerdict) -> None:
    """Bring the run to its end and record what did not come true."""
    await come_true(testbed, verdict, _make_way)
    await clear_away(testbed, verdict)
    await remove_reservations(testbed, verdict)
    await testbed.stop_all()


async def come_true(
    testbed: Testbed, verdict: RunVerdict, helps: Callable[[Testbed], None]
) -> None:
    """End the faults, and check that all pods run and nothing is written any more.

    Args:
        helps: what users do while pods do not run.
    """
    await calm(testbed)
    await _unblocked(testbed, verdict)
    await _in_no_circle(testbed, verdict)
    mend_nodes(testbed)
    for _ in range(ROUNDS):
        if await testbed.until(lambda: not missing_pods(testbed.objects), PATIENCE / 3, step=2.0):
            break
        helps(testbed)
    else:
        verdict.stuck += missing_pods(testbed.objects)
    await _still(testbed, verdict)


async def clear_away(testbed: Testbed, verdict: RunVerdict) -> None:
    """Delete the workloads, and check that their claims are released and nothing is written."""
    await _clear(testbed)
    if not await testbed.until(lambda: not testbed.unreleased(), PATIENCE, step=2.0):
        verdict.leaks += testbed.unreleased()
    await _quiet(testbed, verdict)


async def remove_reservations(testbed: Testbed, verdict: RunVerdict) -> None:
    """Delete the ClaimReservations, and check that they go."""
    for reservation in testbed.objects("claimreservations"):
        testbed.cluster.admin.delete(
            "claimreservations", NAMESPACE, reservation["metadata"]["name"]
        )
    if not await testbed.until(lambda: not testbed.objects("claimreservations"), 60, step=2.0):
        names = [
            reservation["metadata"]["name"] for reservation in testbed.objects("claimreservations")
        ]
        verdict.leaks += [f"reservation {name}" for name in names]


def _blocked(testbed: Testbed) -> list[str]:
    return blocked(*map(testbed.objects, ("resourceclaims", "pods", "claimreservations")))


async def _unblocked(testbed: Testbed, verdict: RunVerdict) -> None:
    """Check that no claim keeps pods waiting in vain, while nodes are closed and devices broken."""
    await testbed.sleep(STARTED)
    if not await testbed.until(lambda: not _blocked(testbed), PATIENCE, step=2.0):
        verdict.stuck += _blocked(testbed)


async def _in_no_circle(testbed: Testbed, verdict: RunVerdict) -> None:
    """Check that pods do not come and are evicted in a circle, because of a taint."""
    slices = testbed.cluster.admin.list("resourceslices")
    if not any(
        device.get("taints")
        for device_slice in slices
        for device in device_slice["spec"]["devices"]
    ):
        return
    since = testbed.cluster.store.revision
    await testbed.sleep(TAINTED)
    made = made_beside_a_hold(list(testbed.cluster.history(since)))
    if made > MADE:
        verdict.stuck.append(f"{made} pods were made in {TAINTED:g} s beside a hold")


def mend_nodes(testbed: Testbed) -> None:
    """Bring nodes and devices back."""
    cluster = testbed.cluster
    for node in cluster.admin.list("nodes"):
        name = node["metadata"]["name"]
        if name in cluster.kubelet.lost:
            cluster.restore_node(name)
        if node["spec"].get("unschedulable"):
            cluster.cordon(name, unschedulable=False)
    for piece in cluster.admin.list("resourceslices"):
        for device in piece["spec"]["devices"]:
            device.pop("taints", None)
        cluster.admin.update("resourceslices", piece)


async def calm(testbed: Testbed) -> None:
    """End all faults but those of nodes and devices. One controller runs on."""
    cluster = testbed.cluster
    cluster.handler.fault = None
    cluster.fault_components(None)
    cluster.set_lag(0.0)
    cluster.slow_scheduler(None)
    for name in cluster.components:
        cluster.resume(name)
    for plan in cluster.admin.list("downgradeplans"):
        cluster.admin.delete("downgradeplans", "", plan["metadata"]["name"])
    if testbed.driver is not None:
        testbed.driver.prompt = True
    for process in testbed.processes.values():
        process.clock.jump *= 0
    for name in list(testbed.processes)[1:]:
        await testbed.kill(name)
    await testbed.supervise()
    if not testbed.processes:
        testbed.start("last")
    for claim in testbed.objects("resourceclaims"):
        expel(testbed, claim)


def _make_way(testbed: Testbed) -> None:
    """Help as users would: create a missing claim, and delete pods that can never run.

    The embedded cluster adopts no orphaned pods. Pods that wait since their owner avoided a node
    go, too.
    """
    admin = testbed.cluster.admin
    claims = {claim["metadata"]["name"]: claim for claim in testbed.objects("resourceclaims")}
    for claim in claims.values():
        _dissolve(testbed, claim)
    for pod in testbed.objects("pods"):
        _make_group(testbed, pod)
        for name in named_claims(pod):
            if name not in claims:
                claims[name] = admin.create("resourceclaims", manifests.claim(name))
        if is_in_the_way(pod, claims) or _avoids(pod):
            with suppress(StatusError):
                admin.delete("pods", NAMESPACE, pod["metadata"]["name"])


def _dissolve(testbed: Testbed, claim: dict[str, Any]) -> None:
    """Delete the PodGroups that keep a claim which is being deleted: it takes no more pods."""
    if claim["metadata"].get("deletionTimestamp"):
        for entry in claim["status"].get("reservedFor") or ():
            if entry["resource"] == "podgroups":
                with suppress(StatusError):
                    testbed.cluster.admin.delete("podgroups", NAMESPACE, entry["name"])


def _avoids(pod: dict[str, Any]) -> bool:
    """Whether a pod waits that was made while its owner avoided a node: its affinity stays."""
    waits = pod["status"].get("phase") == "Pending" and not pod["spec"].get("nodeName")
    return waits and AVOIDS in (pod["metadata"].get("annotations") or {})


def _make_group(testbed: Testbed, pod: dict[str, Any]) -> None:
    """Create a PodGroup that a pod names and claimctl is not asked to create any more."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if not name or testbed.cluster.admin.find("podgroups", NAMESPACE, name) is not None:
        return
    testbed.cluster.admin.create("podgroups", manifests.pod_group(name, "slice"))


def expel(testbed: Testbed, claim: dict[str, Any]) -> None:
    """Remove the entries of the foreign writer."""
    status = without_foreign(claim, testbed.objects)
    if status is not None:
        testbed.cluster.admin.update("resourceclaims", {**claim, "status": status}, "status")


async def _still(testbed: Testbed, verdict: RunVerdict) -> None:
    """Check that nothing writes claims while all pods run or have finished: no loop, no fight."""
    await testbed.sleep(STILL)
    since = testbed.cluster.store.revision
    await testbed.sleep(10.0)
    written = [revision for revision in testbed.cluster.history(since) if is_held(revision)]
    if len(written) > FEW:
        writers = sorted({revision.actor.rpartition(":")[2] for revision in written})
        verdict.violations.append(f"{len(written)} writes to claims in 10 s: {writers}")


async def _clear(testbed: Testbed) -> None:
    """Delete workloads and orphaned pods, and ask for releases of claims with policy Manual."""
    admin = testbed.cluster.admin
    for plural in ("deployments", "statefulsets", "jobs", "replicasets"):
        for workload in testbed.objects(plural):
            if not workload["metadata"].get("deletionTimestamp"):
                admin.delete(plural, NAMESPACE, workload["metadata"]["name"])
    for group in testbed.objects("podgroups") if "podgroups" in testbed.plurals() else ():
        if not group["metadata"].get("ownerReferences"):
            admin.delete("podgroups", NAMESPACE, group["metadata"]["name"])
    await testbed.sleep(3.0)
    for pod in testbed.objects("pods"):
        with suppress(StatusError):
            admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    for reservation in testbed.objects("claimreservations"):
        claim = admin.find("resourceclaims", NAMESPACE, reservation["spec"]["resourceClaimName"])
        if reservation["spec"].get("retentionPolicy") == "Manual" and claim is not None:
            asked = {"claimctl.io/release": claim["metadata"]["uid"]}
            name = reservation["metadata"]["name"]
            patch = {"metadata": {"annotations": asked}}
            admin.patch("claimreservations", NAMESPACE, name, patch)


async def _quiet(testbed: Testbed, verdict: RunVerdict) -> None:
    """Check promise 7: claimctl writes nothing on a settled cluster."""
    await testbed.sleep(QUIET)
    since = testbed.cluster.store.revision
    await testbed.sleep(WATCHED)
    written = [
        f"{revision.plural}/{revision.name}"
        for revision in testbed.cluster.history(since)
        if revision.actor == CONTROLLER_USER and revision.plural not in OWN_BUSINESS
    ]
    if written:
        verdict.violations.append(f"{len(written)} writes while all is quiet: {written[:3]}")
