"""Steps of reference runs that arrange a rare moment. Schedules meet such a moment only by luck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claimctl.embedded.storage.requests import Fault, FaultPoint
from tests.e2e.harness import NAMESPACE
from tests.torture.testbed import Testbed
from tests.torture.train import running, want

if TYPE_CHECKING:
    from tests.torture.reference import Reference

LAG = 4.4
"""Lag of the scheduler's cache in seconds; just below the settle time."""
SLOWLY = 18.0
"""Seconds until a slow bind; below the binding time, above every other wait of a release."""


async def withdraw_before_pods(testbed: Testbed, reference: Reference) -> None:
    """Delete the ClaimReservation, and create pods after the fence or the deallocation.

    The scheduler sees the pods at once, but the claim as it was before the fence.
    """
    want(testbed, reference.kind, 0)
    await testbed.until(lambda: not testbed.objects("pods"), 20, step=0.05)
    testbed.cluster.set_lag(LAG, "resourceclaims")
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.until(lambda: not _listed(testbed), 20, step=0.01)
    await testbed.until(lambda: not testbed.unreleased(), 0.5, step=0.01)
    want(testbed, reference.kind, 2)
    await testbed.sleep(12.0)
    testbed.cluster.set_lag(0.0, "resourceclaims")


async def withdraw_listed_ahead(testbed: Testbed, reference: Reference) -> None:
    """Delete the ClaimReservation while pods are bound that were listed before their scheduling.

    The scheduler sees the pods late and the claim at once. So it finds the pods listed, and binds
    them without a write to the claim.
    """
    want(testbed, reference.kind, 0)
    await testbed.until(lambda: not testbed.objects("pods"), 20, step=0.05)
    testbed.cluster.set_lag(2.0, "pods")
    testbed.cluster.slow_scheduler(lambda _: (0.0, SLOWLY))
    want(testbed, reference.kind, 2)
    await testbed.sleep(4.0)
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.sleep(SLOWLY + 5.0)
    testbed.cluster.slow_scheduler(None)
    testbed.cluster.set_lag(0.0, "pods")


async def stall(testbed: Testbed, reference: Reference) -> None:
    """Let pods come, run and vanish while the watch of pods is open and brings nothing."""
    want(testbed, reference.kind, 0)
    await testbed.until(lambda: not testbed.objects("pods"), 20, step=0.05)
    transport = testbed.processes["one"].transport
    transport.stalled = "pods"
    want(testbed, reference.kind, 2)
    await testbed.until(lambda: running(testbed) == 2, 5, step=0.05)
    await testbed.sleep(4.0)
    want(testbed, reference.kind, 0)
    for pod in testbed.objects("pods"):
        testbed.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])
    await testbed.sleep(15.0)
    transport.stalled = ""
    await testbed.sleep(4.0)


async def delete_early(testbed: Testbed, reference: Reference) -> None:
    """Delete the claim of a Job while its pods run; they finish beside the deleted claim."""
    testbed.cluster.admin.delete("resourceclaims", NAMESPACE, "slice")
    await testbed.until(lambda: not running(testbed), 20, step=0.25)
    await testbed.sleep(8.0)


async def allocate_in_halves(testbed: Testbed, reference: Reference) -> None:
    """From now on, let the scheduler's first writes of an allocation fail after its finalizer."""
    end = testbed.cluster.clock.monotonic() + 8.0

    def fault(point: FaultPoint) -> Fault | None:
        late = testbed.cluster.clock.monotonic() > end
        status = (point.plural, point.subresource) == ("resourceclaims", "status")
        scheduler = point.user == "system:kube-scheduler"
        return Fault(status=500) if status and scheduler and not late else None

    testbed.cluster.fault_components(fault)


async def contest(testbed: Testbed, reference: Reference) -> None:
    """From now on, answer every other write of claimctl's with a conflict."""
    testbed.processes["one"].transport.contested = True


def _listed(testbed: Testbed) -> bool:
    return any(
        claim.get("status", {}).get("reservedFor") for claim in testbed.objects("resourceclaims")
    )
