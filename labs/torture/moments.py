"""Steps of reference runs that arrange a rare moment. Schedules meet such a moment only by luck."""

from __future__ import annotations

from random import Random
from typing import Any

from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.kube.client import Client
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import RESOURCECLAIMS
from labs.torture.drivers import results_of
from labs.torture.testbed import BINDING, Testbed
from labs.torture.train import ReferenceRun, force_delete_all, running, want, without_pods
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE

LAG = 4.4
"""Lag of the scheduler's cache in seconds; just below the settle time."""
SLOWLY = 18.0
"""Seconds until a slow bind; below the binding time, above every other wait of a release."""


async def withdraw_before_pods(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation, and create pods after the fence or the deallocation.

    The scheduler sees the pods at once, but the claim as it was before the fence.
    """
    await without_pods(testbed, reference)
    testbed.cluster.set_lag(LAG, "resourceclaims")
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.until(lambda: not _listed(testbed), 20, step=0.01)
    await testbed.until(lambda: not testbed.unreleased(), 0.5, step=0.01)
    want(testbed, reference.kind, 2)
    await testbed.sleep(12.0)
    testbed.cluster.set_lag(0.0, "resourceclaims")


async def withdraw_listed_ahead(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation while pods are bound that were listed before their scheduling.

    The scheduler sees the pods late and the claim at once. So it finds the pods listed, and binds
    them without a write to the claim.
    """
    await without_pods(testbed, reference)
    testbed.cluster.set_lag(2.0, "pods")
    testbed.cluster.slow_scheduler(lambda _: (0.0, SLOWLY))
    want(testbed, reference.kind, 2)
    await testbed.sleep(4.0)
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.sleep(SLOWLY + 5.0)
    testbed.cluster.slow_scheduler(None)
    testbed.cluster.set_lag(0.0, "pods")


async def bind_devices(testbed: Testbed, reference: ReferenceRun) -> None:
    """From now on, pods wait for a driver before they are bound; it reports at once."""
    await testbed.bind_devices(Random(0))
    assert testbed.driver is not None
    testbed.driver.punctual = True


async def withdraw_beside_driver(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation while placed pods wait for a driver, for longer than any other.

    In ``podgroup``, and where they were listed ahead, they need no further write to the claim, and
    another pod wants it on another node. Elsewhere a scheduler has listed them.
    """
    await without_pods(testbed, reference)
    claim = testbed.cluster.admin.get("resourceclaims", NAMESPACE, "slice")
    now = testbed.cluster.clock.monotonic()
    patch = testbed.driver and testbed.driver.disturb(claim, now, BINDING + 15.0)
    if patch:
        await testbed.report(claim, patch)
    want(testbed, reference.kind, 2)
    await testbed.sleep(0.5)
    await list_ahead(testbed)
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.sleep(1.0)
    if reference.dialect == "podgroup":
        _create_stranger(testbed, *{result["pool"] for result in results_of(claim)})
    await testbed.sleep(BINDING + 30.0)


async def make_claim(testbed: Testbed, reference: ReferenceRun) -> None:
    """Create the claim as a user, so that it does not go with its ClaimReservation."""
    testbed.cluster.admin.create("resourceclaims", manifests.claim())


async def hand_over(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation beside pods that were listed ahead and find no node; then the
    pods that hold the claim leave its node, too.

    In ``podgroup`` the group stays listed until the scheduler tries its pods again, after minutes.
    """
    if reference.dialect == "podgroup":
        return
    admin = testbed.cluster.admin
    old = {pod["metadata"]["uid"] for pod in testbed.objects("pods")}
    for node in admin.list("nodes"):
        testbed.cluster.cordon(node["metadata"]["name"])
    want(testbed, reference.kind, 4)
    await testbed.sleep(1.0)
    await list_ahead(testbed)
    admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.until(lambda: not testbed.objects("claimreservations"), 60, step=0.25)
    left = {pod["spec"].get("nodeName", "") for pod in testbed.objects("pods")} - {""}
    for node in admin.list("nodes"):
        name = node["metadata"]["name"]
        testbed.cluster.cordon(name, unschedulable=name in left)
    for pod in testbed.objects("pods"):
        if pod["metadata"]["uid"] in old:
            admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    if not await testbed.until(lambda: running(testbed, but=old) == 4, 120, step=0.25):
        testbed.unmet.append("pods that could run elsewhere do not, after a withdrawal")


async def come_elsewhere(testbed: Testbed, reference: ReferenceRun) -> None:
    """Ask an idle hold to go while a pod of nobody's needs the claim on another node. For pods
    alone, the claim is not given up."""
    uid = testbed.cluster.admin.get("resourceclaims", NAMESPACE, "slice")["metadata"]["uid"]
    asked = {"metadata": {"annotations": {"claimctl.io/release": uid}}}
    patch = {**asked, "spec": {"reallocateTimeoutSeconds": 100_000}}
    _create_stranger(testbed, *{pod["spec"]["nodeName"] for pod in testbed.objects("pods")})
    want(testbed, reference.kind, 0)
    await testbed.until(lambda: not running(testbed), 20, step=0.05)
    testbed.cluster.admin.patch("claimreservations", NAMESPACE, "train-slice", patch)
    if not await testbed.until(lambda: running(testbed) == 1, 120, step=0.25):
        testbed.unmet.append("a pod waits for an idle claim")


def _create_stranger(testbed: Testbed, *nodes: str) -> None:
    """Create a pod without an owner that needs the claim on none of these nodes."""
    spec = {**manifests.deployment()["spec"]["template"]["spec"]}
    (other, *_) = {"node-0", "node-1"} - {*nodes}
    spec["nodeSelector"] = {"kubernetes.io/hostname": other}
    meta = {"name": "stranger", "namespace": NAMESPACE}
    testbed.cluster.admin.create("pods", {"metadata": meta, "spec": spec})


async def list_ahead(testbed: Testbed) -> None:
    """List the pending pods as claimctl does in big starts, if their claim is held.

    Pods of a PodGroup need no entry.
    """
    admin = testbed.cluster.admin
    claim = admin.get("resourceclaims", NAMESPACE, "slice")
    listed = claim.get("status", {}).get("reservedFor") or []
    known = {entry["uid"] for entry in listed}
    pods = [pod["metadata"] for pod in testbed.objects("pods") if _waits_alone(pod)]
    entries = [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]} for meta in pods]
    new = [entry for entry in entries if entry["uid"] not in known]
    if not new or not any(entry.get("apiGroup") == "apps" for entry in listed):
        return
    client = Client(testbed.cluster.transport(CONTROLLER_USER), testbed.cluster.clock)
    await client.merge_patch(
        RESOURCECLAIMS,
        ObjectMeta(
            name="slice", namespace=NAMESPACE, resource_version=claim["metadata"]["resourceVersion"]
        ),
        {"status": {"reservedFor": [*listed, *new]}},
        subresource="status",
    )


def _waits_alone(pod: dict[str, Any]) -> bool:
    return not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGroup")


async def stall(testbed: Testbed, reference: ReferenceRun) -> None:
    """Let pods come, run and vanish while the watch of pods is open and brings nothing."""
    await without_pods(testbed, reference)
    transport = testbed.processes["one"].transport
    transport.stalled = "pods"
    want(testbed, reference.kind, 2)
    await testbed.until(lambda: running(testbed) == 2, 5, step=0.05)
    await testbed.sleep(4.0)
    want(testbed, reference.kind, 0)
    force_delete_all(testbed)
    await testbed.sleep(15.0)
    transport.stalled = ""
    await testbed.sleep(4.0)


async def delete_early(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the claim of a Job while its pods run; they finish beside the deleted claim."""
    testbed.cluster.admin.delete("resourceclaims", NAMESPACE, "slice")
    await testbed.until(lambda: not running(testbed), 20, step=0.25)
    await testbed.sleep(8.0)


async def allocate_in_halves(testbed: Testbed, reference: ReferenceRun) -> None:
    """From now on, let the scheduler's first writes of an allocation fail after its finalizer."""
    end = testbed.cluster.clock.monotonic() + 8.0

    def fault(point: FaultPoint) -> Fault | None:
        late = testbed.cluster.clock.monotonic() > end
        status = (point.plural, point.subresource) == ("resourceclaims", "status")
        scheduler = point.user == "system:kube-scheduler"
        return Fault(status=500) if status and scheduler and not late else None

    testbed.cluster.fault_components(fault)


async def contest(testbed: Testbed, reference: ReferenceRun) -> None:
    """From now on, answer every other write of claimctl's with a conflict."""
    testbed.processes["one"].transport.contested = True


def _listed(testbed: Testbed) -> bool:
    return any(
        claim.get("status", {}).get("reservedFor") for claim in testbed.objects("resourceclaims")
    )
