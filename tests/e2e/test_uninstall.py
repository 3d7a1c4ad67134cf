"""``claimctl uninstall prepare``: nothing of claimctl stays that would block anything."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from claimctl.cli import extensions
from claimctl.cli.errors import CommandFailed
from claimctl.commands.uninstall.run import STEADY_SECONDS
from claimctl.kube.errors import KubeError
from claimctl.live_objects import list_if_served
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import FINALIZER
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    DOWNGRADEPLANS,
    JOBS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from claimctl.wire.traces import BRAKE_GATE
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import (
    DEFINITIONS,
    GROUP_136,
    HOLD_134,
    HOLD_136,
    NAMESPACE,
    NATIVE,
    NewStage,
    Stage,
)
from tests.e2e.orphans import NOWHERE, in_use, listed_ahead, lists, waiting_ahead
from tests.e2e.scenes import hold_for_deployment
from tests.e2e.site import CONTROLLER_NAMESPACE
from tests.e2e.uninstalling import Remover, reasons

pytestmark = pytest.mark.cluster(HOLD_136)
VM = {"apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "vm-1"}
UNRESERVED = {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
OURS = ("claimreservations.claimctl.io", "downgradeplans.claimctl.io")


async def uids(stage: Stage) -> set[str]:
    return {pod.metadata.uid for pod in await stage.running()}


async def annotations_of(stage: Stage, name: str = "train") -> dict[str, str]:
    return (await stage.client.get(DEPLOYMENTS, name, NAMESPACE)).metadata.annotations or {}


async def add_entry(stage: Stage, *entries: dict[str, str]) -> None:
    """Another client adds its entries to the list."""
    listed = (await stage.claim()).status.reserved_for
    await stage.write_list([*map(to_plain, listed), *entries])


async def hold_from_template(stage: Stage, *, replicas: int) -> None:
    """A Deployment whose pods share a claim that claimctl has made from a template."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    body = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=replicas))
    await stage.until_condition("Reserved", "True", "Reserved")


async def strip_crds(stage: Stage) -> None:
    """Delete the CRDs as somebody does who removes all finalizers by hand."""
    for one in await stage.reservations():
        await stage.patch(CLAIMRESERVATIONS, one.metadata.name, {"metadata": {"finalizers": None}})
    for name in OURS:
        await stage.client.delete(DEFINITIONS, name)

    async def gone() -> bool:
        return not (
            await list_if_served(stage.client, CLAIMRESERVATIONS, NAMESPACE)
        ).resource_version

    await stage.until(gone, "the CRDs are gone")


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "dead"])
async def test_running_pods_go_on_and_nothing_is_left(stage: Stage, alive: bool) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=3, retention_policy="WhileRunning")
    await stage.create(RESOURCECLAIMS, manifests.claim("other"))
    await stage.create(DEPLOYMENTS, manifests.deployment("eval", 2, "other"))
    await stage.create(
        CLAIMRESERVATIONS, manifests.reservation("mine", workload="eval", claim="other")
    )
    await stage.until_condition("Reserved", "True", "Reserved", name="mine")
    await stage.until_running(5)
    pods = await uids(stage)
    if not alive:
        await stage.stop()
    remover = Remover(stage)
    assert not await remover.clean()
    done = await remover.run()
    assert reasons(done) == []
    assert await remover.clean()
    assert await uids(stage) == pods
    assert not any(key.startswith("claimctl.io/") for key in await annotations_of(stage))
    for claim in ("slice", "other"):
        assert await stage.allocated(claim)
        assert all(each.startswith("pods/") for each in await stage.references(claim))
    # The pods keep their claim, and the cluster frees it when they end.
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=120)


@pytest.mark.cluster(GROUP_136)
@pytest.mark.parametrize("alive", [True, False], ids=["alive", "dead"])
async def test_a_running_group_keeps_its_claim_and_loses_the_finalizer(
    stage: Stage, alive: bool
) -> None:
    await grouped(stage)
    pods = await uids(stage)
    if not alive:
        await stage.stop()
    remover = Remover(stage)
    done = await remover.run()
    assert reasons(done) == []
    assert await uids(stage) == pods
    assert await stage.references() == ("podgroups/train",)
    group = await stage.client.get(PODGROUPS, "train", NAMESPACE)
    assert FINALIZER not in group.metadata.finalizers
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=120)


async def grouped(stage: Stage) -> None:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=3, reserve="*")
    await stage.create(DEPLOYMENTS, manifests.in_group(body))
    await stage.until_running(3)
    await stage.until_listed("podgroups/train", "deployments/train")


@pytest.mark.cluster(GROUP_136)
async def test_a_group_is_let_go_when_the_crds_are_gone(stage: Stage) -> None:
    await grouped(stage)
    pods = await uids(stage)
    await stage.stop()
    await strip_crds(stage)
    done = await Remover(stage).run()
    assert reasons(done) == []
    assert await uids(stage) == pods
    assert await stage.references() == ("podgroups/train",)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=120)


async def test_a_hold_that_no_pod_uses_is_freed_when_the_crds_are_gone(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1, retention_policy="Persistent")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_running(0)
    await stage.until_listed("deployments/train")
    await stage.stop()
    await strip_crds(stage)
    await stage.patch(DEPLOYMENTS, "train", UNRESERVED)
    remover = Remover(stage)
    left, workload = (await remover.look()).left[::-1]
    assert (workload.name, workload.reason) == ("train", "Annotated")
    assert (left.name, left.reason) == ("slice", "HoldWithoutReservation")
    done = await remover.run()
    assert reasons(done) == []
    assert await stage.released()
    # the CRDs were there for the time of the run
    assert "CustomResourceDefinition claimreservations.claimctl.io applied" in str(remover.told)
    for name in OURS:
        await stage.until(partial(stage.gone, DEFINITIONS, name), f"{name} is gone again")


@pytest.mark.parametrize("drained", [False, True], ids=["in use", "drained"])
async def test_waiting_pods_that_an_earlier_version_left_in_a_list_are_taken_out(
    stage: Stage, drained: bool
) -> None:
    await stage.started()
    if drained:
        await listed_ahead(stage, writer=stage.connect())
    else:
        await in_use(stage, replicas=1)
        await waiting_ahead(stage, "slice", NOWHERE, writer=stage.connect())
    remover = Remover(stage)
    (left,) = (await remover.look()).left
    assert (left.kind, left.name, left.reason) == ("ResourceClaim", "slice", "ListedAhead")
    assert reasons(await remover.run()) == []
    assert await remover.clean()
    pods = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
    assert (list(await stage.references()), await stage.allocated()) == (pods, not drained)


async def test_waiting_pods_leave_before_a_hold_whose_crds_are_gone(stage: Stage) -> None:
    """A scheduler may be binding one of them, and the hold keeps its devices meanwhile."""
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    (pod,) = [f"pods/{each.metadata.name}" for each in await stage.running()]
    await stage.stop()
    await strip_crds(stage)
    await waiting_ahead(stage, "slice", NOWHERE, writer=stage.connect())
    begun = stage.clock.monotonic()
    assert reasons(await Remover(stage).run()) == []
    assert stage.clock.monotonic() - begun >= 60
    shown = [sorted(each) for each in await lists(stage)]
    assert shown[-2:] == [["deployments/train", pod], [pod]]


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "stripped"])
async def test_another_holder_keeps_its_entry(stage: Stage, alive: bool) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await add_entry(stage, VM)
    if not alive:
        await stage.stop()
        await strip_crds(stage)
    done = await Remover(stage).run()
    assert reasons(done) == []
    assert "virtualmachines/vm" in await stage.references()
    assert "deployments/train" not in await stage.references()
    assert len(await stage.running()) == 1


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "stripped"])
async def test_finished_pods_are_named_and_their_tombstones_go_with_them(
    stage: Stage, alive: bool
) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await stage.create(JOBS, manifests.job("once", seconds=1))
    (running,) = await stage.running()

    async def buried() -> bool:
        return any(each.startswith("finishedpods/") for each in await stage.references())

    await stage.until(buried, "the finished pod has a tombstone")
    if not alive:
        await stage.stop()
        await strip_crds(stage)
    remover = Remover(stage)
    began = stage.clock.monotonic()
    first = await remover.run()
    (left,) = first.left
    assert left.reason == "FinishedPodsLeft"
    # the command does not wait for what only a user can do
    assert stage.clock.monotonic() - began < STEADY_SECONDS
    (name,) = (
        pod.metadata.name
        for pod in (await stage.client.list(PODS, NAMESPACE)).items
        if pod.metadata.uid != running.metadata.uid
    )
    assert f"kubectl delete pod -n {NAMESPACE} {name}" in left.message
    await stage.delete(PODS, name)
    again = await remover.run()
    assert reasons(again) == []
    assert await stage.references() == (f"pods/{running.metadata.name}",)


@pytest.mark.cluster(NATIVE)
async def test_a_native_hold_stays_until_its_pods_have_ended(stage: Stage) -> None:
    await stage.started()
    await hold_from_template(stage, replicas=2)
    await stage.until_running(2)
    remover = Remover(stage)
    first = await remover.run()
    assert reasons(first) == [("ClaimReservation", "train-slice", "ConsumersLeft")]
    assert "2 pods use claim slice" in first.left[0].message
    assert len(await stage.running()) == 2
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_running(0)
    again = await remover.run()
    assert reasons(again) == []


async def test_before_1_34_a_hold_stays_until_its_pods_have_ended(new_stage: NewStage) -> None:
    """KCM of 1.33 does not look at a claim that changes (kubernetes/kubernetes#132334)."""
    async with new_stage(replace(HOLD_134, kubernetes_version=(1, 33))) as stage:
        stage.client.use_version(RESOURCECLAIMS.group, "v1beta2")
        await stage.started()
        await hold_for_deployment(stage, replicas=1)
        first = await Remover(stage).run()
        assert [each.reason for each in first.left] == ["ConsumersLeft"]
        assert "deployments/train" in await stage.references()
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.until_running(0)
        done = await Remover(stage).run()
        assert reasons(done) == []
        assert await stage.released()


async def test_a_claim_made_from_a_template_stays_for_its_workload(stage: Stage) -> None:
    await stage.started()
    await hold_from_template(stage, replicas=1)
    done = await Remover(stage).run()
    assert reasons(done) == []
    claim = await stage.claim()
    assert (claim.metadata.deleting, claim.metadata.owner_references) == (False, ())
    # A pod that comes later finds its claim.
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)


async def test_a_claim_loses_an_owner_that_does_not_exist(stage: Stage) -> None:
    await stage.started()
    await hold_from_template(stage, replicas=1)
    await stage.stop()
    stage.embedded.pause("garbage-collector")
    await strip_crds(stage)
    done = await Remover(stage).run()
    assert reasons(done) == []
    assert (await stage.claim()).metadata.owner_references == ()
    stage.embedded.resume("garbage-collector")
    assert len(await stage.running()) == 1


async def test_without_the_leases_namespace_the_command_needs_no_lease(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await stage.stop()
    await stage.client.delete(NAMESPACES, CONTROLLER_NAMESPACE)
    remover = Remover(stage)
    done = await remover.run()
    assert reasons(done) == []
    assert "no controller runs: this command does its work" in remover.told


@pytest.mark.parametrize("write", range(1, 7))
async def test_a_command_that_is_killed_at_any_write_is_continued_by_the_next(
    stage: Stage, write: int
) -> None:
    """The controller was killed as well, and its Lease has to run out."""
    died = DyingTransport(stage.connect(), 1)
    await stage.started(transport=died)
    await hold_for_deployment(stage, replicas=2)
    pods = await uids(stage)
    died.dead.set()
    await stage.kill()
    killed = DyingTransport(stage.connect(), write)
    killed.arm()
    with suppress(KubeError):
        await Remover(stage, through=lambda _: killed).run()
    assert killed.dead.is_set()
    done = await Remover(stage).run()
    assert reasons(done) == []
    assert await uids(stage) == pods
    assert all(each.startswith("pods/") for each in await stage.references())


async def stripped(stage: Stage, writes: int = 0) -> DyingTransport:
    """A hold beside running pods whose CRDs are gone, and a run that is killed at a write.

    Args:
        writes: 0 for never.
    """
    await stage.started()
    await hold_for_deployment(stage, replicas=2)
    await stage.stop()
    await strip_crds(stage)
    killed = DyingTransport(stage.connect(), writes or 1000)
    killed.arm()
    with suppress(KubeError):
        await Remover(stage, through=lambda _: killed).run()
    return killed


async def test_without_crds_a_command_that_is_killed_at_any_write_is_continued_by_the_next(
    new_stage: NewStage,
) -> None:
    async with new_stage(HOLD_136) as stage:
        count = (await stripped(stage)).writes
    # the CRDs, the three writes of an adoption, the list, and the ClaimReservation's finalizer
    assert count >= 4 + 3 + 2
    for write in range(1, count + 1):
        async with new_stage(HOLD_136) as stage:
            assert (await stripped(stage, write)).dead.is_set()
            pods = await uids(stage)
            done = await Remover(stage).run()
            assert reasons(done) == []
            assert await uids(stage) == pods
            assert all(each.startswith("pods/") for each in await stage.references())


async def test_no_crds_are_made_while_a_claim_of_another_namespace_would_be_collected(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await stage.stop()
    stage.embedded.pause("garbage-collector")
    await stage.client.create(NAMESPACES, {"metadata": {"name": "other"}})
    body = manifests.claim("theirs")
    owner = {"apiVersion": "claimctl.io/v1alpha1", "kind": "ClaimReservation"}
    body["metadata"] |= {
        "namespace": "other",
        "ownerReferences": [{**owner, "name": "gone", "uid": "gone-1"}],
    }
    await stage.client.create(RESOURCECLAIMS, body, "other")
    await strip_crds(stage)
    with pytest.raises(CommandFailed, match="such as other/theirs"):
        await Remover(stage).run()
    assert await stage.gone(DEFINITIONS, OURS[0])
    done = await Remover(stage, ()).run()
    assert reasons(done) == []
    stage.embedded.resume("garbage-collector")
    await stage.quiet(60)
    assert (await stage.client.get(RESOURCECLAIMS, "theirs", "other")).metadata.uid


async def test_without_the_crds_a_controller_has_to_stop_first(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await strip_crds(stage)
    first = await Remover(stage).run()
    assert ("Lease", "claimctl-controller", "ControllerRuns") in reasons(first)
    assert "deployments/train" in await stage.references()
    await stage.stop()
    done = await Remover(stage).run()
    assert reasons(done) == []
    assert len(await stage.running()) == 1


async def test_looking_writes_nothing(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await stage.quiet(30)
    before = [each.number for each in await stage.site.history() if each.plural != "leases"]
    found = await Remover(stage).look()
    assert reasons(found) == [
        ("ClaimReservation", found.left[0].name, "NotWithdrawn"),
        ("Deployment", "train", "Annotated"),
    ]
    after = [each.number for each in await stage.site.history() if each.plural != "leases"]
    assert after == before


async def test_other_namespaces_stay_as_they_are(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, replicas=1)
    await stage.client.create(NAMESPACES, {"metadata": {"name": "other"}})
    body = manifests.reservation("theirs")
    body["metadata"] |= {"namespace": "other", "finalizers": [FINALIZER]}
    await stage.client.create(CLAIMRESERVATIONS, body, "other")
    await stage.stop()
    # While no controller runs, a user asks for another hold here.
    await stage.create(CLAIMRESERVATIONS, manifests.reservation("later"))
    remover = Remover(stage, ("other",))
    done = await remover.run()
    assert reasons(done) == []
    assert "no controller runs: this command does its work" in remover.told
    assert "deployments/train" in await stage.references()
    (later,) = (one for one in await stage.reservations() if one.metadata.name == "later")
    assert (later.metadata.finalizers, later.status.conditions) == ((), ())
    assert "claimctl.io/reserve" in await annotations_of(stage)
    assert not await Remover(stage, ()).clean()


async def test_a_downgrade_under_way_is_waited_for_and_its_record_is_named(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.stop()
    await stage.create(DOWNGRADEPLANS, {"metadata": {"name": "claimctl"}, "spec": {}})
    everywhere = Remover(stage, ())
    assert reasons(await everywhere.look()) == [("DowngradePlan", "claimctl", "DowngradeUnderWay")]
    await stage.started()

    async def over() -> bool:
        return await everywhere.clean()

    await stage.until(over, "the plan is carried out")
    assert "claimctl downgrade restore" in (await everywhere.look()).notes[0]


async def test_what_reschedule_left_goes_without_that_distribution(
    new_stage: NewStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "extensions", dict)
    taint = {"key": "claimctl.io/moving", "value": "claimctl-p-1", "effect": "NoSchedule"}
    body = {
        "metadata": {"name": "braked"},
        "spec": {
            "containers": [{"name": "main", "image": "web"}],
            "schedulingGates": [{"name": BRAKE_GATE}],
        },
    }
    left = {
        "taints": [{"node": "node-0", "key": taint["key"], "value": taint["value"]}],
        "avoidances": [{"ownerUID": "o-1", "nodes": ["node-1"], "braked": True}],
    }
    async with new_stage(HOLD_136) as stage:
        admin = stage.embedded.admin
        await stage.client.create(PODS, body, NAMESPACE)
        admin.patch("nodes", "", "node-0", {"spec": {"taints": [taint]}})
        admin.create("reschedulerecords", {"metadata": {"name": "claimctl"}})
        admin.patch("reschedulerecords", "", "claimctl", {"status": left}, "status")
        remover = Remover(stage, ())
        assert sorted(reasons(await remover.look())) == [
            ("Node", "node-0", "Tainted"),
            ("Pod", "braked", "Braked"),
            ("RescheduleRecord", "claimctl", "KeepsPodsOff"),
        ]
        done = await remover.run()
        assert reasons(done) == []
        assert {each.what for each in done.removed} == {
            "avoidances",
            f"scheduling gate {BRAKE_GATE}",
            "taint claimctl.io/moving=claimctl-p-1",
        }
        assert not admin.get("nodes", "", "node-0")["spec"].get("taints")
        assert (await stage.client.get(PODS, "braked", NAMESPACE)).spec.scheduling_gates == ()
        assert not admin.get("reschedulerecords", "", "claimctl").get("status")
