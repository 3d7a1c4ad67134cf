"""docs/runbooks/uninstall.md, word for word, and that the cluster has forgotten claimctl then."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.kube.errors import ApiError
from claimctl.live_objects import list_if_served
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import DEPLOYMENT, RESERVATION, Workload
from tests.e2e.commands import ServedCluster, cluster
from tests.e2e.runbooks import Runbook, run

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
PAGE = "uninstall.md"
TRAIN = Workload("ml", "train", "slice", 2, reserve=True)
BATCH = Workload("ml", "once", "slice", 1)
OPTIONS = [
    ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36)),
    ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36), nodes=1),
]
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMESPACE = ("v1", "Namespace")
VM = {"apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "vm-1"}
GONE_SECONDS = 30.0
"""By then the namespaces and the CRDs are gone."""


def acts(served: ServedCluster, options: ClusterOptions) -> Acts:
    return Acts(served.stage, native=False, groups=options.preset is Preset.POD_GROUPS)


async def installed(served: ServedCluster) -> None:
    """What ``kubectl apply -k deploy`` creates besides the CRDs and the namespace.

    The stage has these already, and a controller. The embedded cluster runs no image.
    """
    rights = ("controller", "templates", "template-injection", "users")
    files = (*(f"rbac/{name}.yaml" for name in rights), "deploy/controller.yaml")
    answer = await run(f"kubectl apply -f {' -f '.join(files)}", served.kubeconfig)
    assert answer.code == 0, answer


def uids(made: Acts) -> set[str]:
    return {pod.metadata.uid for pod in made.pods(TRAIN)}


async def furnished(served: ServedCluster, made: Acts) -> None:
    """A held claim with running pods, a finished pod, and an entry of another client; a claim that
    another Deployment holds by a ClaimReservation; and a Job that has ended."""
    await made.room("ml")
    await made.held(TRAIN)
    await made.held(Workload("ml", "eval", "other", 1))
    ended = Workload("ml", "ended", "third", 1, reserve=True)
    await made.claim_made("ml", "third")
    await served.stage.user.create(objects.job(ended, at_once=1, run_seconds=1))
    await served.stage.until(lambda: made.succeeded(ended) == 1, "the Job has ended", 40)
    await finish_a_pod(served, made)
    claim = await served.stage.user.get(served.claims, "ml", "other")
    listed = [*claim["status"]["reservedFor"], VM]
    await served.stage.user.patch_status(
        served.claims, "ml", "other", {"status": {"reservedFor": listed}}
    )


async def finish_a_pod(served: ServedCluster, made: Acts) -> None:
    """A pod of another workload uses the claim of running pods, and ends."""
    await served.stage.user.create(
        objects.job(made.grouped(BATCH, TRAIN.name), at_once=1, run_seconds=1)
    )
    await made.settled_beside_finished(TRAIN)


async def end_the_foreign_hold(served: ServedCluster) -> None:
    """The owner of the foreign entry removes it, as it does when its own namespace goes."""
    claim = await served.stage.user.get(served.claims, "ml", "other")
    left = [each for each in claim["status"]["reservedFor"] if each["uid"] != VM["uid"]]
    await served.stage.user.patch_status(
        served.claims, "ml", "other", {"status": {"reservedFor": left}}
    )


async def until_gone(served: ServedCluster, kind: tuple[str, str], name: str) -> None:
    async with asyncio.timeout(GONE_SECONDS * served.stage.patience):
        for _ in count():
            try:
                await served.stage.user.get(kind, "", name)
            except ApiError as error:
                if error.status == 404:
                    return
                raise
            await asyncio.sleep(0.2)


async def everything_goes(served: ServedCluster) -> float:
    """Seconds until the namespaces and the CRDs are gone, from their deletion on."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await served.stage.user.delete(NAMESPACE, "", "ml")
    left = [
        (NAMESPACE, "ml"),
        (NAMESPACE, "claimctl-system"),
        (DEFINITION, "claimreservations.claimctl.io"),
        (DEFINITION, "downgradeplans.claimctl.io"),
    ]
    for kind, name in left:
        await until_gone(served, kind, name)
    return loop.time() - began


@pytest.mark.parametrize("options", OPTIONS, ids=["hold", "podgroup"])
async def test_claimctl_goes_and_running_pods_stay(options: ClusterOptions, tmp_path: Path) -> None:
    async with cluster(options, tmp_path) as served:
        made = acts(served, options)
        await installed(served)
        await furnished(served, made)
        pods, book = uids(made), Runbook(PAGE, served.kubeconfig)
        await book.play("1. Look")
        first = await served.claimctl("uninstall", "prepare", "-o", "json")
        finished = {each["reason"] for each in first.document["left"]}
        assert finished <= {"FinishedPodsLeft"}, first
        await book.play("Finished pods have tombstones (`FinishedPodsLeft`)")
        await book.play("2. Prepare")
        served.stage.look()
        assert uids(made) == pods
        assert {each.resource for each in made.workloads(TRAIN)} <= {"podgroups"}
        await served.stage.dismiss_controller()
        await book.play("3. Stop the controller, and verify")
        await end_the_foreign_hold(served)
        await book.play("4. Delete claimctl")
        served.stage.look()
        assert uids(made) == pods
        seconds = await everything_goes(served)
        print(f"everything was gone after {seconds:.1f} s")


HOLD = OPTIONS[0]


async def test_each_failure_on_the_page_ends_well(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        made, book = acts(served, HOLD), Runbook(PAGE, served.kubeconfig)
        await installed(served)
        await made.room("ml")
        await made.held(TRAIN)
        await book.play("An annotation comes back (`Annotated`)")
        annotation = {"metadata": {"annotations": {"claimctl.io/reserve": "*"}}}
        await served.stage.user.patch(DEPLOYMENT, "ml", "train", annotation)
        await made.held_again(TRAIN)
        await book.play("A right is missing")
        await served.stage.user.patch(DEPLOYMENT, "ml", "train", annotation)
        await made.held_again(TRAIN)
        await served.stage.dismiss_controller()
        await book.play("The controller is dead, or was deleted first")
        assert len(made.pods(TRAIN)) == 2
        await book.play("Pods use the claim (`ConsumersLeft`)")
        for title in (
            "A pod vanished, or its history is unknown (`ForceDeletedPods`, `HistoryUnknown`)",
            "The command was interrupted, or its time was over",
        ):
            await book.play(title)


@pytest.mark.parametrize("stripped", [False, True], ids=["stuck", "stripped"])
async def test_the_crds_may_be_deleted_first(stripped: bool, tmp_path: Path) -> None:
    """The CRD waits for its ClaimReservations, or somebody has removed their finalizers by hand."""
    async with cluster(HOLD, tmp_path) as served:
        made, book = acts(served, HOLD), Runbook(PAGE, served.kubeconfig)
        await installed(served)
        await made.room("ml")
        await made.held(TRAIN)
        pods = uids(made)
        await served.stage.dismiss_controller()
        await served.stage.user.delete(DEFINITION, "", "claimreservations.claimctl.io")
        found = await list_if_served(served.stage.client, CLAIMRESERVATIONS, "ml")
        (name,) = (each.metadata.name for each in found.items)
        if stripped:
            bare = {"metadata": {"finalizers": None}}
            await served.stage.user.patch(RESERVATION, "ml", name, bare)
            await until_gone(served, DEFINITION, "claimreservations.claimctl.io")
            served.stage.look()
            assert {each.resource for each in made.workloads(TRAIN)} == {"deployments"}
        await book.play("The CRDs were deleted first")
        await served.stage.look_closely()
        assert uids(made) == pods
        assert made.workloads(TRAIN) == ()
        await until_gone(served, DEFINITION, "claimreservations.claimctl.io")


def test_every_section_of_the_page_is_played_by_one_of_these_tests() -> None:
    played = {
        each for each in Path(__file__).read_text(encoding="utf-8").split('"') if each[:1].isalnum()
    }
    assert set(Runbook(PAGE, Path()).sections) <= played
