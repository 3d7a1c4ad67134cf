"""The manifests of examples/, applied to a cluster: what their pages say comes true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.real.client import Version

from tests.e2e.commands import ServedCluster, cluster

pytestmark = [pytest.mark.alone, pytest.mark.real_time(120)]
FOLDER = Path(__file__).parents[2] / "examples"
OPTIONS = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
SPACE = "default"
RESERVATION: Version = ("claimctl.io/v1alpha1", "ClaimReservation")


def documents(name: str) -> list[dict[str, Any]]:
    """The objects of a folder, in the order of its files as kubectl reads them."""
    files = sorted((FOLDER / name).glob("*.yaml"), reverse=name.startswith("06"))
    return [body for file in files for body in yaml.safe_load_all(file.read_text())]


async def applied(served: ServedCluster, name: str) -> None:
    for body in documents(name):
        await served.stage.user.create(body)


def claims_in(served: ServedCluster) -> list[dict[str, Any]]:
    return list(served.embedded.admin.list("resourceclaims", SPACE))


def listed(served: ServedCluster, claim: str) -> list[str]:
    body = served.embedded.admin.get("resourceclaims", SPACE, claim)
    return [entry["resource"] for entry in body.get("status", {}).get("reservedFor") or ()]


def is_free(served: ServedCluster, claim: str) -> bool:
    body = served.embedded.admin.get("resourceclaims", SPACE, claim)
    return not body.get("status", {}).get("allocation")


async def held(served: ServedCluster, resource: str, claim: str = "train-slice") -> None:
    await served.stage.until(
        lambda: resource in listed(served, claim), f"{claim} is held for {resource}", 60
    )


async def freed(served: ServedCluster, claim: str = "train-slice") -> None:
    await served.stage.until(lambda: is_free(served, claim), f"{claim} is free", 100)


async def scaled_to_nothing(served: ServedCluster, kind: str) -> None:
    where: Version = ("apps/v1", kind)
    await served.stage.user.patch(where, SPACE, "train", {"spec": {"replicas": 0}})
    await served.stage.until(
        lambda: not served.embedded.admin.list("pods", SPACE), "the pods are gone", 60
    )


async def test_an_annotated_deployment_is_held_until_it_is_deleted(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "01-deployment")
        await held(served, "deployments")
        await served.stage.user.delete(("apps/v1", "Deployment"), SPACE, "train")
        await freed(served)


async def test_a_statefulset_keeps_its_claim_at_0_replicas(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "02-statefulset")
        await held(served, "statefulsets")
        await scaled_to_nothing(served, "StatefulSet")
        assert listed(served, "train-slice") == ["statefulsets"]
        answer = await served.claimctl("release", "train-slice", "-n", SPACE)
        assert answer.code == 0, answer
        await freed(served)


async def test_the_claim_of_a_job_is_free_when_it_has_ended(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "03-job")
        await held(served, "jobs", "batch-slice")
        await freed(served, "batch-slice")
        job = await served.stage.user.get(("batch/v1", "Job"), SPACE, "batch")
        assert job["status"]["succeeded"] == 4


async def test_a_persistent_reservation_holds_at_0_replicas(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "04-claimreservation")
        await held(served, "deployments")
        await scaled_to_nothing(served, "Deployment")
        assert listed(served, "train-slice") == ["deployments"]
        await served.stage.user.delete(("apps/v1", "Deployment"), SPACE, "train")
        await freed(served)


async def test_claimctl_makes_the_claim_of_a_template_and_deletes_it(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "05-claim-from-template")

        await served.stage.until(lambda: bool(claims_in(served)), "claimctl has made the claim", 60)
        await held(served, "deployments")
        await served.stage.user.delete(("apps/v1", "Deployment"), SPACE, "train")
        await served.stage.user.delete(RESERVATION, SPACE, "train")

        await served.stage.until(lambda: not claims_in(served), "the claim is gone", 60)


async def test_a_kind_with_a_rule_is_held_until_the_rule_says_that_it_has_ended(
    tmp_path: Path,
) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        await applied(served, "06-a-kind-of-your-own")
        gang: Version = ("acme.example/v1", "Gang")
        made = await served.stage.user.get(gang, SPACE, "train")
        await served.stage.user.create(pod_of(made))
        await held(served, "gangs")
        await served.stage.user.delete(("v1", "Pod"), SPACE, "train-0")
        await served.stage.user.patch_status(gang, SPACE, "train", {"status": {"phase": "Done"}})
        await freed(served)


async def test_each_ordinal_comes_back_to_its_device_and_none_stays(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        answer = await served.claimctl("install", "--component", "sticky-claims")
        assert answer.code == 0, answer
        await applied(served, "07-sticky-claims")
        names = [f"train-{ordinal}.sts.gpu.single-gpu" for ordinal in range(3)]
        await served.stage.until(
            lambda: len(claims_in(served)) == len(names), "claimctl has made the claims", 60
        )
        for name in names:
            await held(served, "statefulsets", name)
        before = {name: devices(served, name) for name in names}
        first = uid_of_pod(served, "train-2")
        await served.stage.user.delete(("v1", "Pod"), SPACE, "train-2")

        def replaced() -> bool:
            return uid_of_pod(served, "train-2") not in {first, ""} and "pods" in listed(
                served, names[2]
            )

        await served.stage.until(replaced, "the next train-2 has the claim", 60)
        assert {name: devices(served, name) for name in names} == before
        await scaled_to_nothing(served, "StatefulSet")
        assert {name: devices(served, name) for name in names} == before
        await served.stage.user.delete(("apps/v1", "StatefulSet"), SPACE, "train")
        await served.stage.until(lambda: not claims_in(served), "the claims are gone", 100)


def devices(served: ServedCluster, claim: str) -> list[tuple[str, str]]:
    body = served.embedded.admin.get("resourceclaims", SPACE, claim)
    found = body["status"]["allocation"]["devices"]["results"]
    return [(each["pool"], each["device"]) for each in found]


def uid_of_pod(served: ServedCluster, name: str) -> str:
    """Empty if there is no such pod that lives."""
    pods = served.embedded.admin.list("pods", SPACE)
    found = {each["metadata"]["name"]: each["metadata"] for each in pods}
    meta = found.get(name, {})
    return "" if "deletionTimestamp" in meta else meta.get("uid", "")


def pod_of(gang: dict[str, Any]) -> dict[str, Any]:
    """What the controller of the kind would make."""
    owner = {
        "apiVersion": gang["apiVersion"],
        "kind": gang["kind"],
        "name": gang["metadata"]["name"],
        "uid": gang["metadata"]["uid"],
        "controller": True,
    }
    main = {"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": SPACE, "ownerReferences": [owner]},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "train-slice"}],
            "containers": [main],
        },
    }
