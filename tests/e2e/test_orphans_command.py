"""doctor, orphans and explain agree on the orphans; each command is a process."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import SECONDS, CommandAnswer, ServedCluster, cluster, command_line

pytestmark = pytest.mark.alone

HOLD = ClusterOptions(preset=Preset.PLAIN)
TRAIN = Workload("ml", "train", "slice", 2)
VM = {"apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "vm-1"}
QUICK = ("--force-deleted-pod-grace-seconds", "1")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


async def furnished(served: ServedCluster) -> None:
    """A held claim, an orphan with an empty list, and a claim with a foreign entry."""
    acts = Acts(served.stage, native=False)
    await acts.room("ml")
    await acts.held(TRAIN)
    await served.create_allocated("emptied")
    await served.create_allocated("theirs", VM)


async def revision(served: ServedCluster) -> int:
    """The revision of the last write of a claim, after a moment without such writes."""
    scene, last = served.stage.scene, -1
    while True:
        await scene.caught_up()
        now = max(each.number for each in scene.history() if "claims" in each.plural)
        if now == last:
            return now
        last = now
        await asyncio.sleep(1.0)


async def orphans(served: ServedCluster, *arguments: str) -> CommandAnswer:
    return await served.claimctl("doctor", "orphans", *arguments)


def rows(answer: CommandAnswer) -> list[tuple[str, str, str]]:
    return [(one["name"], one["reason"], one["outcome"]) for one in answer.document["items"]]


@pytest.mark.real_time(120)
async def test_doctor_and_the_dry_run_name_the_same_claims_and_write_nothing(
    directory: Path,
) -> None:
    async with cluster(HOLD, directory) as served:
        await furnished(served)
        before = await revision(served)
        doctor = await served.claimctl("doctor", "-o", "json")
        dry = await orphans(served, "-n", "ml", "-o", "json")
        dry_too = await orphans(served, "-A", "--dry-run", "--yes", "-o", "yaml")
        table = await orphans(served, "-n", "ml")
        wide = await orphans(served, "-A", "-o", "wide")
        names = await orphans(served, "-n", "ml", "-o", "name")
        elsewhere = await orphans(served, "-n", "default")
        told = await served.claimctl("explain", "emptied", "-n", "ml")
        left = await served.claimctl("explain", "theirs", "-n", "ml", "-o", "json")
        assert await revision(served) == before
    assert rows(dry) == [
        ("emptied", "AllocatedToNobody", "WouldFree"),
        ("theirs", "UnknownReference", "Left"),
    ]
    found = [one for one in doctor.document["findings"] if one["check"] == "orphans"]
    assert [one["object"] for one in found] == ["emptied", "theirs"]
    assert all("see `claimctl doctor orphans -n ml`" in one["message"] for one in found)
    assert (dry.document["dryRun"], dry.document["kind"]) == (True, "OrphanList")
    assert yaml.safe_load(dry_too.out) == dry.document
    assert table.out.splitlines()[0].split() == [
        *("NAMESPACE", "CLAIM", "REASON", "DEVICES", "OUTCOME", "WHAT"),
    ]
    assert wide.out.splitlines()[0].endswith("UID")
    assert "1 of 2 claims would be freed, nothing was written: --yes frees them" in table.err
    assert names.out == "resourceclaim.resource.k8s.io/emptied\n"
    assert [one.code for one in (doctor, dry, dry_too, table, names)] == [3] * 5
    assert (elsewhere.code, elsewhere.out, elsewhere.err) == (
        0,
        "",
        "No orphans found in namespace default.\n",
    )
    assert "Orphan:     allocated and reserved for nobody" in told.out
    assert "claimctl doctor orphans -n ml" in told.out
    assert left.document["orphan"]["reason"] == "UnknownReference"
    assert left.document["orphan"]["blockers"][0]["reason"] == "UnknownReferences"


@pytest.mark.real_time(120)
async def test_with_yes_they_are_freed_and_what_is_held_is_not(directory: Path) -> None:
    async with cluster(HOLD, directory) as served:
        await furnished(served)
        done = await orphans(served, "-n", "ml", "--yes", *QUICK, "-o", "json")
        again = await orphans(served, "-n", "ml", "--yes", *QUICK)
        claims: dict[str, Any] = {
            name: await served.stage.user.get(served.claims, "ml", name)
            for name in ("emptied", "theirs", "slice")
        }
    assert rows(done) == [
        ("emptied", "AllocatedToNobody", "Freed"),
        ("theirs", "UnknownReference", "Left"),
    ]
    assert (done.code, again.code) == (3, 3)
    assert "ml/emptied: handed over to the controller" in done.err
    assert "ml/emptied: freed" in done.err
    assert "allocation" not in (claims["emptied"].get("status") or {})
    assert "finalizers" not in claims["emptied"]["metadata"]
    assert claims["theirs"]["status"]["reservedFor"] == [VM]
    assert "allocation" in claims["slice"]["status"]


async def _started(served: ServedCluster, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command_line("doctor", "orphans", *arguments, "--kubeconfig", str(served.kubeconfig)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )


@pytest.mark.real_time(120)
async def test_after_ctrl_c_the_controller_goes_on(directory: Path) -> None:
    async with cluster(HOLD, directory) as served:
        await furnished(served)
        process = await _started(served, "-n", "ml", "--yes", *QUICK)
        assert process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while b"handed over" not in (await process.stderr.readline()):
                pass
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        await served.stage.until(lambda: is_free(served, "emptied"), "the claim is free")
    assert (process.returncode, out, err) == (130, b"", b"")


def is_free(served: ServedCluster, claim: str) -> bool:
    """Whether the last version of the claim is not allocated."""
    versions = [it for it in served.stage.scene.history() if it.plural == "resourceclaims"]
    return b'"allocation"' not in [it.data for it in versions if it.name == claim][-1]
