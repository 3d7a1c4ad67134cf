"""PodGroups go before an upgrade: after their pods are listed, and without those of others."""

from __future__ import annotations

from kube_in_process.options import Preset

from claimctl.downgrade.crossing import OldObjects, own_groups, read_old_objects
from claimctl.wire.reservations import MANAGED_LABEL
from claimctl.wire.resources import PODGROUPS
from tests.support.claim_server import NAMESPACE, TRAIN, Server


def grouped(*, ours: bool = True) -> tuple[Server, dict[str, str]]:
    """A claim that lists the Deployment and its PodGroup, which has two pods."""
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.client.use_version(PODGROUPS.group, "v1alpha2")
    labels = {MANAGED_LABEL: "claimctl"} if ours else {}
    body = {
        "metadata": {"name": "train", "namespace": NAMESPACE, "labels": labels},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    uid = server.admin.create("podgroups", body)["metadata"]["uid"]
    group = {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": "train",
        "uid": uid,
    }
    server.claim("slice", TRAIN, group, shared=False)
    for name in ("a", "b"):
        server.pod(name, group="train")
    return server, group


async def test_pods_are_listed_and_their_group_is_recorded_before_it_goes() -> None:
    server, group = grouped()
    plan = await server.plan(upgradeTo="1.37")
    status = await server.carry_out(plan)
    assert status.phase == "Prepared"
    assert sorted(server.listed()) == ["deployments/train", "pods/a", "pods/b"]
    assert await read_old_objects(server.client) == OldObjects()
    (record,) = status.claims
    assert [entry.uid for entry in record.replaced_references] == [group["uid"]]


async def test_a_group_of_others_stays() -> None:
    server, _ = grouped(ours=False)
    await server.carry_out(await server.plan(upgradeTo="1.37"))
    assert (await read_old_objects(server.client)).foreign == (f"PodGroup {NAMESPACE}/train",)
    assert await own_groups(server.client) == {}


async def test_a_group_that_cannot_be_read_counts_as_one_of_others() -> None:
    server, _ = grouped()
    server.spoil("podgroups", "train")
    assert (await read_old_objects(server.client)).foreign == (f"PodGroup {NAMESPACE}/train",)


async def test_no_group_goes_if_one_claim_cannot_cross() -> None:
    server, _ = grouped()
    for number in range(256):
        server.pod(f"p{number}", claim="wide", group="train")
    server.claim("wide", TRAIN, {**_group(server)}, shared=False)
    status = await server.carry_out(await server.plan(upgradeTo="1.37"))
    assert status.phase == "Blocked"
    assert len((await read_old_objects(server.client)).own) == 1
    assert server.listed() == ["deployments/train", "podgroups/train", "pods/a", "pods/b"]


def _group(server: Server) -> dict[str, str]:
    (group,) = server.admin.list("podgroups")
    return {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": "train",
        "uid": group["metadata"]["uid"],
    }
