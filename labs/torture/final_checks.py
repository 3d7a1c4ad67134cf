"""The end of every run: faults stop, workloads get their pods, then everything is deleted.

Afterwards there must be no pod that cannot run, no allocated claim, no ClaimReservation that cannot
be deleted, and no write while all is quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kube_in_process.errors import StatusError
from kube_in_process.storage.store import Revision

from claimctl_reschedule.plan.refusals import AVOIDS
from labs.torture.blocked import blocked
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
        if await testbed.until(lambda: not missing_pods(testbed), PATIENCE / 3, step=2.0):
            break
        helps(testbed)
    else:
        verdict.stuck += missing_pods(testbed)
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
    written = list(testbed.cluster.history(since))
    made = [
        revision for revision in written if (revision.plural, revision.type) == ("pods", "ADDED")
    ]
    # without a hold, luck decides when the list is empty for a moment
    held = [
        revision for revision in written[len(written) // 2 :] if _held(revision, "apps", "batch")
    ]
    if len(made) > MADE and held:
        verdict.stuck.append(f"{len(made)} pods were made in {TAINTED:g} s beside a hold")


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

    These are pods of a deleted claim, orphaned pods (the embedded cluster adopts none), and pods
    whose claim another writer deallocated. claimctl reports that only deleting them helps. Pods
    that wait since their owner avoided a node go, too.
    """
    admin = testbed.cluster.admin
    claims = {claim["metadata"]["name"]: claim for claim in testbed.objects("resourceclaims")}
    for claim in claims.values():
        _dissolve(testbed, claim)
    for pod in testbed.objects("pods"):
        _make_group(testbed, pod)
        in_the_way = not pod["metadata"].get("ownerReferences") or _avoids(pod)
        for entry in pod["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName")
            if name is None:
                continue  # the cluster makes claims of templates anew
            if name not in claims:
                claims[name] = admin.create("resourceclaims", manifests.claim(name))
            in_the_way |= bool(claims[name]["metadata"].get("deletionTimestamp"))
            allocated = claims[name].get("status", {}).get("allocation")
            in_the_way |= bool(pod["spec"].get("nodeName")) and not allocated
        if in_the_way:
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
    """Remove the entries of the foreign writer.

    A writer that removes the last entry of a claim without a ClaimReservation must deallocate it.
    """
    listed = claim.get("status", {}).get("reservedFor") or []
    kept = [entry for entry in listed if entry.get("apiGroup") != "example.com"]
    if len(kept) == len(listed):
        return
    status = {**claim["status"], "reservedFor": kept}
    if not kept:
        status = {key: value for key, value in status.items() if key != "reservedFor"}
        if claim["metadata"]["name"] not in _reserved(testbed):
            status = {key: value for key, value in status.items() if key != "allocation"}
    testbed.cluster.admin.update("resourceclaims", {**claim, "status": status}, "status")


def _reserved(testbed: Testbed) -> set[str]:
    return {
        reservation["spec"]["resourceClaimName"]
        for reservation in testbed.objects("claimreservations")
    }


def missing_pods(testbed: Testbed) -> list[str]:
    """Workloads whose pods do not all run."""
    missing, pods = [], testbed.objects("pods")
    for plural in ("deployments", "statefulsets"):
        for workload in testbed.objects(plural):
            meta, spec = workload["metadata"], workload["spec"]
            own = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{meta['name']}-")]
            running = sum(_runs(pod, OWNERS[plural]) for pod in own)
            wanted = spec.get("replicas", 1)
            if running < wanted and not meta.get("deletionTimestamp"):
                missing.append(f"{plural}/{meta['name']}: {running} of {wanted} pods run")
    for job in testbed.objects("jobs"):
        ended = {condition["type"] for condition in job.get("status", {}).get("conditions") or ()}
        if not job["spec"].get("suspend") and not ended & {"Complete", "Failed"}:
            missing.append(f"jobs/{job['metadata']['name']}: not ended")
    return missing


OWNERS = {"deployments": "ReplicaSet", "statefulsets": "StatefulSet"}
"""The kind that owns the pods; the workloads of one kind have different names."""


def _runs(pod: dict[str, Any], owner: str) -> bool:
    meta = pod["metadata"]
    owned = any(reference["kind"] == owner for reference in meta.get("ownerReferences") or ())
    running = pod["status"].get("phase") == "Running"
    return owned and running and not meta.get("deletionTimestamp")


async def _still(testbed: Testbed, verdict: RunVerdict) -> None:
    """Check that nothing writes claims while all pods run or have finished: no loop, no fight."""
    await testbed.sleep(STILL)
    since = testbed.cluster.store.revision
    await testbed.sleep(10.0)
    written = [revision for revision in testbed.cluster.history(since) if _held(revision)]
    if len(written) > FEW:
        writers = sorted({revision.actor.rpartition(":")[2] for revision in written})
        verdict.violations.append(f"{len(written)} writes to claims in 10 s: {writers}")


def _held(revision: Revision, *groups: str) -> bool:
    """Whether the revision is a claim whose list has more than pods: claimctl maintains it.

    Args:
        groups: the API groups of the entries that count; none for all.
    """
    if revision.plural != "resourceclaims":
        return False
    listed = revision.object().get("status", {}).get("reservedFor") or ()
    api_groups = {entry.get("apiGroup", "") for entry in listed} - {""}
    return bool(api_groups & {*groups} if groups else api_groups)


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
