"""get, explain and release on a cluster with a controller; each command is a process."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kube_in_process.options import ClusterOptions, Preset

from claimctl.reservation.facts.pods import is_stuck
from claimctl.wire.pods import Pod
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import DEPLOYMENT, Workload
from tests.e2e.commands import ServedCluster, cluster

pytestmark = pytest.mark.alone

HOLD = ClusterOptions(preset=Preset.PLAIN)
TRAIN = Workload("ml", "train", "slice", 3)
PLAIN = Workload("ml", "plain", "beside", 1)


async def furnished(served: ServedCluster, **spec: object) -> Acts:
    """One claim that a Deployment holds, and one without a reservation."""
    acts = Acts(served.stage, native=False)
    await acts.room("ml")
    await acts.held(TRAIN, **spec)
    await served.create_claim("beside")
    await served.stage.user.create(objects.deployment(PLAIN))
    await acts.runs(PLAIN)
    return acts


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.real_time(120)
async def test_get_shows_claims_in_every_form(directory: Path) -> None:
    async with cluster(HOLD, directory) as served:
        await furnished(served)
        table = await served.claimctl("get", "-n", "ml")
        wide = await served.claimctl("get", "-A", "-o", "wide")
        names = await served.claimctl("get", "-n", "ml", "-o", "name")
        listed = await served.claimctl("get", "slice", "-n", "ml", "-o", "json")
        as_yaml = await served.claimctl("get", "slice", "-n", "ml", "-o", "yaml")
    lines = table.out.splitlines()
    assert lines[0].split() == [
        *("NAME", "STATE", "DEVICES", "NODE", "HOLDERS", "RETENTION", "AGE"),
    ]
    assert lines[1].startswith("beside   InUse   node-")
    assert "   1 pod   " in lines[1]
    assert lines[2].startswith("slice    Held ")
    assert "deployments/train, 3 pods   WhileRunning" in lines[2]
    assert wide.out.splitlines()[0].startswith("NAMESPACE")
    assert wide.out.splitlines()[0].endswith("UID")
    assert names.out == (
        "resourceclaim.resource.k8s.io/beside\nresourceclaim.resource.k8s.io/slice\n"
    )
    document = listed.document
    assert (document["apiVersion"], document["kind"]) == (
        "cli.claimctl.io/v1alpha1",
        "ClaimList",
    )
    (item,) = document["items"]
    assert (item["state"], item["references"]["pods"], item["consumers"]["bound"]) == (
        "Held",
        3,
        3,
    )
    assert yaml.safe_load(as_yaml.out)["items"][0]["uid"] == item["uid"]
    assert {one.code for one in (table, wide, names, listed, as_yaml)} == {0}


@pytest.mark.real_time(120)
async def test_what_cannot_be_shown_is_one_line_and_the_right_exit_code(directory: Path) -> None:
    async with cluster(HOLD, directory) as served:
        missing = await served.claimctl("get", "nosuch")
        mixed = await served.claimctl("get", "nosuch", "-A")
        nothing = await served.claimctl("get", "-n", "nowhere")
        unknown = await served.claimctl("explain", "nosuch")
        selector = await served.claimctl("get", "-l", "=")
    assert (missing.code, mixed.code, nothing.code, unknown.code) == (1, 2, 0, 1)
    why = "there is no claim in the namespace"
    assert missing.err == f"error: claim default/nosuch not found; {why}\n"
    assert mixed.err == ("error: names of claims cannot be given together with -A or -l\n")
    assert (nothing.out, nothing.err) == ("", "No claims found: there is no namespace nowhere.\n")
    assert unknown.err.count("\n") == 1
    assert selector.code == 2
    assert "--selector' / '-l': '=' is not a label requirement" in selector.err


@pytest.mark.real_time(120)
async def test_get_shows_devices_held_idle_and_who_could_use_them(directory: Path) -> None:
    """The waiting pod asks for more devices than any node has, so these would not help it."""
    async with cluster(HOLD, directory) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await acts.held(TRAIN, retentionPolicy="Persistent")
        in_use = await served.claimctl("get", "-A", "--idle", "-o", "json")
        large = objects.claim("ml", "beside", served.stage.resource_api)
        request = large["spec"]["devices"]["requests"][0]
        request.get("exactly", request)["count"] = 20
        await served.stage.user.create(large)
        await served.stage.user.create(objects.deployment(PLAIN))
        await acts.change(TRAIN, {"replicas": 0})
        await served.stage.until(
            lambda: not acts.pods(TRAIN) and all(map(is_stuck, acts.pods(PLAIN) or [Pod()])),
            "the pods of train are gone, and the pod of plain is unschedulable",
        )
        table = await served.claimctl("get", "-n", "ml", "--idle")
        wide = await served.claimctl("get", "-A", "--idle", "-o", "wide")
        listed = await served.claimctl("get", "-A", "--idle", "-o", "json")
        as_yaml = await served.claimctl("get", "-A", "--idle", "-o", "yaml")
    assert in_use.document["items"] == []
    for shown in (table, wide):
        head, row = shown.out.splitlines()
        assert head.split()[-3:] == ["IDLE", "UNTIL", "WAITING"]
        assert row.endswith("  the workload ends   <none>")
    (item,) = listed.document["items"]
    assert (item["name"], item["idle"]["waitingPods"]) == ("slice", [])
    assert yaml.safe_load(as_yaml.out)["items"][0]["idle"] == item["idle"]


@pytest.mark.real_time(120)
async def test_release_asks_the_controller_which_waits_for_the_pods(directory: Path) -> None:
    async with cluster(HOLD, directory) as served:
        acts = await furnished(served, retentionPolicy="Manual")
        dry = await served.claimctl("release", "slice", "-n", "ml", "--dry-run")
        refused = await served.claimctl("release", "beside", "-n", "ml")
        asked = await served.claimctl("release", "slice", "-n", "ml")
        assert acts.allocation(TRAIN) is not None
        await served.stage.user.delete(DEPLOYMENT, "ml", "train")
        assert await acts.deallocated(TRAIN) in {"claimctl", "kube-controller-manager"}
        again = await served.claimctl("release", "slice", "-n", "ml")
    assert "would be asked (dry run)" in dry.out
    assert asked.out.splitlines()[:2] == [
        "release of claim ml/slice asked on 1 ClaimReservation",
        "it waits until nothing blocks it any more:",
    ]
    assert (again.code, again.err) == (
        1,
        "error: claim ml/slice is not allocated: there is nothing to release\n",
    )
    assert refused.code == 1
    assert "no ClaimReservation names claim ml/beside" in refused.err
