"""Faults of the controller itself: it is killed, runs twice, lacks rights, sees old data."""

from __future__ import annotations

from contextlib import suppress

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.controller.manager import Manager
from claimctl.kube.errors import KubeError
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.faulty import Faulty, Hook
from tests.e2e.harness import (
    HOLD_136,
    NATIVE,
    Stage,
)

pytestmark = pytest.mark.cluster(HOLD_136)

RELEASES = ((NATIVE, 7), (HOLD_136, 5))
"""How many writes a release makes."""

native_and_hold = pytest.mark.parametrize("options", [NATIVE, HOLD_136], ids=["native", "1.36"])


async def held(stage: Stage) -> None:
    """A Deployment of three pods that holds its claim."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=3))
    body = manifests.reservation(
        resourceClaimTemplateName="template",
        idleTimeoutSeconds=1,
        forceDeletedPodGraceSeconds=30,
    )
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_running(3)
    await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.parametrize(
    ("options", "writes", "write"),
    [(options, writes, write) for options, writes in RELEASES for write in range(1, writes + 2)],
)
async def test_a_release_is_finished_after_a_kill_at_any_write(
    stage: Stage, writes: int, write: int
) -> None:
    """The last try is a release without a crash."""
    transport = DyingTransport(stage.connect(), write)
    await stage.started("first", transport=transport)
    await held(stage)
    transport.arm()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await died_or_done(stage, transport)
    # a real server may refuse a write that is then repeated
    assert stage.cluster is None or transport.dead.is_set() == (write <= writes)
    await stage.kill("first")
    await stage.started("second")
    await stage.until_released(within=300)
    await stage.until_condition("Released", "True", "Idle")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.until_condition("Reserved", "True", "Reserved")


async def died_or_done(stage: Stage, transport: DyingTransport) -> None:
    async def holds() -> bool:
        return transport.dead.is_set() or (await stage.condition("Released"))[0] == "True"

    await stage.until(holds, "the controller dies or releases")


@pytest.mark.core
@pytest.mark.long
@native_and_hold
async def test_two_controllers_at_once_do_no_harm(stage: Stage) -> None:
    await stage.started("first", leader_elect=False)
    await stage.started("second", leader_elect=False)
    await held(stage)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    for _ in range(5):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 5}})
        await stage.clock.sleep(1.3)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.clock.sleep(2.1)
    await stage.until_released()


@pytest.mark.core
@native_and_hold
async def test_a_standby_takes_over_when_the_leader_stops(stage: Stage) -> None:
    await stage.started("first")
    second = stage.manager("second")
    await held(stage)
    await stage.until(lambda: _ready(second), "the standby is ready")
    assert not second.leading
    await stage.stop("first")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    assert second.leading


async def _ready(manager: Manager) -> bool:
    return manager.ready


@native_and_hold
async def test_a_controller_that_loses_its_lease_stands_by_and_leads_again(stage: Stage) -> None:
    manager = await stage.started()
    await held(stage)
    lease = await stage.client.get(LEASES, "claimctl-controller", "claimctl-system")
    await stage.client.merge_patch(LEASES, lease.metadata, {"spec": {"holderIdentity": "thief"}})

    async def leads(wanted: bool) -> bool:
        return manager.leading == wanted

    await stage.until(lambda: leads(False), "it stands by")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until(lambda: leads(True), "it leads again")
    await stage.until_released()


@pytest.mark.alone
@native_and_hold
async def test_a_workload_keeps_its_claim_while_the_api_server_is_killed(stage: Stage) -> None:
    async def scaled() -> bool:
        # a connection to the server of before may still be tried
        with suppress(KubeError):
            await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})
            return True
        return False

    await stage.started()
    await held(stage)
    before = (await stage.claim()).status.allocation
    await stage.site.restart_api_server()
    for replicas in (5, 2):
        await stage.until(scaled, "the Deployment is scaled")
        await stage.until_running(replicas)
    assert (await stage.claim()).status.allocation == before
    # two outages in a row would cost the Lease
    await stage.clock.sleep(10)
    await stage.site.restart_api_server()
    replicas = 0
    await stage.until(scaled, "the Deployment is scaled to zero")
    await stage.until_released(within=300)
    await stage.until_condition("Released", "True", "Idle")


async def test_a_controller_on_a_slow_server_can_be_given_more_time_for_its_lease(
    stage: Stage,
) -> None:
    away = 0.0

    def slow(method: str, path: str) -> Fault | None:
        hit = path.endswith("/leases/claimctl-controller")
        return Fault(status=500) if hit and stage.clock.monotonic() < away else None

    await stage.started(transport=Faulty(stage.connect(), slow), lease_seconds=45)
    lease = await stage.client.get(LEASES, "claimctl-controller", "claimctl-system")
    assert lease.spec.lease_duration_seconds == 45
    away = stage.clock.monotonic() + 25
    await stage.clock.sleep(30)
    assert not stage.managers["one"].done()


PLAIN = Fault(status=403, reason="Forbidden", message="no")
BINDING = Fault(
    status=422,
    reason="Invalid",
    message="status.allocation: Forbidden: changing status.allocation or status.reservedFor "
    "requires resourceclaims/binding permission",
)


@pytest.mark.parametrize("refusal", [PLAIN, BINDING], ids=["403", "422"])
@native_and_hold
async def test_a_missing_permission_is_told_and_made_good_when_granted(
    stage: Stage, refusal: Fault
) -> None:
    link = Faulty(stage.connect())
    await stage.started(transport=link)
    await held(stage)
    link.fault = _refuse_status_of("slice", refusal)
    await stage.create(RESOURCECLAIMS, manifests.claim("other"))
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_condition("Ready", "False", "Forbidden", name="train-slice")
    await stage.until_event("Forbidden")
    await stage.create(JOBS, manifests.job("other", claim="other", seconds=2, reserve="*"))
    await stage.quiet(30)
    link.fault = None
    await stage.until_released(within=200)
    await stage.until_condition("Ready", "True", "Ready", name="train-slice")


def _refuse_status_of(claim: str, refusal: Fault) -> Hook:
    def hook(method: str, path: str) -> Fault | None:
        hit = method == "PATCH" and path.endswith(f"/resourceclaims/{claim}/status")
        return refusal if hit else None

    return hook


async def test_a_reservation_of_a_missing_workload_says_so_and_serves_it_when_it_comes(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, manifests.reservation())
    await stage.until_condition("Reserved", "False", "WorkloadNotFound")
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until_condition("Reserved", "True", "Reserved")


async def test_an_annotation_for_a_claim_that_does_not_exist_waits_for_it(stage: Stage) -> None:
    await stage.started()
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="slice"))
    await stage.until_condition("Reserved", "False", "ClaimNotFound")
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.until_condition("Reserved", "True", "Reserved")


async def test_a_bad_annotation_is_an_event_and_the_others_are_served(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="slice,Not_A_Name,elsewhere"))
    await stage.until_event("InvalidAnnotation")
    await stage.until_event("ClaimNotNamedByPodTemplate")
    await stage.until_condition("Reserved", "True", "Reserved")


@native_and_hold
async def test_a_missing_template_is_told_and_used_when_it_comes(stage: Stage) -> None:
    await stage.started()
    await stage.create(DEPLOYMENTS, manifests.deployment())
    body = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "False", "TemplateNotFound")
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.until_running(1)


def _refuse_claims(method: str, path: str) -> Fault | None:
    if (method, path.rpartition("/")[2]) != ("POST", "resourceclaims"):
        return None
    return Fault(status=422, reason="Invalid", message="spec.devices: Invalid value: odd")


@native_and_hold
async def test_a_template_that_makes_no_valid_claim_is_told_and_used_once_it_does(
    stage: Stage,
) -> None:
    link = Faulty(stage.connect())
    await stage.started(transport=link)
    link.fault = _refuse_claims
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment())
    body = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "False", "TemplateInvalid")
    await stage.until_condition("Ready", "False", "TemplateInvalid")
    await stage.until_event("TemplateInvalid")

    async def counted() -> bool:
        return [each.status.consumers for each in await stage.reservations()] == [wanted]

    for wanted in (2, 1):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": wanted}})
        await stage.until(counted, f"{wanted} pods are counted", within=10)
    (one,) = await stage.reservations()
    told = {each.type: each.message for each in one.status.conditions}
    assert "spec.devices: Invalid value: odd" in told["Ready"]
    assert one.status.observed_generation == one.metadata.generation
    version = one.metadata.resource_version
    await stage.quiet(300)
    (one,) = await stage.reservations()
    assert one.metadata.resource_version == version
    link.fault = None
    await stage.until_running(1)
    await stage.until_condition("Ready", "True", "Ready")


@pytest.mark.cluster(NATIVE)
async def test_a_recreated_workload_gets_a_claim_of_its_own_once_the_old_one_is_released(
    stage: Stage,
) -> None:
    await stage.started()
    await held(stage)
    uid = (await stage.claim()).metadata.uid
    await stage.delete(DEPLOYMENTS, "train")
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2))
    await stage.until_running(2)
    await stage.until_condition("Reserved", "False", "WorkloadRecreated")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})

    async def replaced() -> bool:
        return (await stage.claim()).metadata.uid != uid

    await stage.until(replaced, "the claim is replaced", within=120)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.core
@native_and_hold
async def test_an_unstable_api_server_delays_and_loses_nothing(stage: Stage) -> None:
    """Every fifth write of the controller fails, every seventh has its answer lost."""
    seen = 0

    def hook(method: str, path: str) -> Fault | None:
        nonlocal seen
        # a controller that is not told what it may do does not start
        if method not in {"PATCH", "POST"} or path.endswith("/selfsubjectaccessreviews"):
            return None
        seen += 1
        if seen % 5 == 0:
            return Fault(status=500, message="etcd is away")
        return Fault(drop=True, after_write=True) if seen % 7 == 0 else None

    await stage.started(transport=Faulty(stage.connect(), hook))
    await held(stage)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released(within=300)
