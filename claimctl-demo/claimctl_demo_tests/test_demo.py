"""The demonstration as one command, without a terminal."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.main import run
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import CLAIM, Workload
from claimctl_demo.story.parts import parts_to_play
from claimctl_demo.story.stage import CONTROLLER, staged
from claimctl_witness.witness import DEALLOCATED_IN_USE
from tests.e2e.commands import claimctl, command_line

BOTH = ("shared-claim", "rolling-restart", "scale-to-zero")
ENDS = ("unreserved-workload", "deployment-deleted", "job-ended")
STICKY = "sticky-claims"
MOVES = ("node-cordoned", "rescheduled", "avoided", "resized", "downgrade")


async def shown(*arguments: str) -> dict[str, Any]:
    answer = await claimctl("demo", "--json", *arguments)
    assert answer.err == ""
    document: dict[str, Any] = answer.document
    assert [step["message"] for step in document["steps"] if not step["ok"]] == []
    assert (document["violations"], document["errors"], answer.code) == (0, [], 0)
    return document


def figures(document: dict[str, Any], name: str) -> tuple[int, int]:
    (step,) = (step for step in document["steps"] if step["name"] == name)
    return step["pods"], step["references"]


def told(document: dict[str, Any], name: str) -> str:
    (step,) = (step for step in document["steps"] if step["name"] == name)
    return str(step["message"])


@pytest.mark.real_time(150)
async def test_the_default_shows_todays_kubernetes_and_then_the_kep() -> None:
    document = await shown()
    assert (document["dialect"], document["version"]) == ("hold,native", "1.36")
    names = [(step["dialect"], step["name"]) for step in document["steps"]]
    today = (*BOTH, "finished-pod", *ENDS, STICKY, *MOVES)
    kep = (*BOTH, "mixed-list", "downgrade", "downgrade-refused")
    assert names == [*(("hold", name) for name in today), *(("native", name) for name in kep)]
    assert "by the admission policy, the next ones run on node-1" in told(document, "avoided")
    assert re.search(r"the next train-2 has node-2/dev-\d again", told(document, STICKY))
    document["steps"] = document["steps"][len(today) :]
    assert figures(document, "shared-claim") == (600, 1)
    assert figures(document, "rolling-restart") == (600, 1)
    assert figures(document, "mixed-list") == (40, 1)
    assert figures(document, "downgrade") == (200, 200)
    assert figures(document, "downgrade-refused") == (300, 1)


def test_native_alone_plays_all_its_steps() -> None:
    (part,) = parts_to_play("native", None)
    assert [
        step for step in (*BOTH, *ENDS, STICKY, *MOVES, "downgrade-refused") if not part.plays(step)
    ] == []


@pytest.mark.real_time(150)
async def test_the_story_in_hold_of_an_older_kubernetes_also_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    mode = ("--reservation-mode", "hold")
    arguments = (*mode, "--kubernetes-version", "1.34", "--html", str(page))
    document = await shown(*arguments)
    assert (document["dialect"], document["version"]) == ("hold", "1.34")
    names = tuple(step["name"] for step in document["steps"])
    assert names == (*BOTH, "finished-pod", *ENDS, *MOVES, "more-than-256")
    assert figures(document, "shared-claim") == (40, 41)
    assert figures(document, "rescheduled") == (3, 4)
    assert figures(document, "downgrade") == (120, 120)
    assert figures(document, "more-than-256") == (300, 256)
    assert "by a taint, the next ones run on node-1" in told(document, "avoided")
    assert "1 pod of lower priority moved" in told(document, "resized")
    assert len(re.findall(r"<h3>[A-Z]: claim ", page.read_text())) == 8
    (finished,) = (step for step in document["steps"] if step["name"] == "finished-pod")
    assert finished["claimRevisionsPerSecond"] <= 5


@pytest.mark.real_time(150)
async def test_the_story_in_podgroup() -> None:
    document = await shown("--reservation-mode", "podgroup", "--kubernetes-version", "1.36")
    names = tuple(step["name"] for step in document["steps"])
    assert names == (*BOTH, "finished-pod", *ENDS, STICKY, *MOVES, "downgrade-refused")
    assert figures(document, "shared-claim") == (600, 2)
    assert figures(document, "rolling-restart") == (600, 2)
    assert figures(document, "downgrade") == (200, 200)
    assert figures(document, "downgrade-refused") == (300, 2)


@pytest.mark.real_time(120)
async def test_people_get_a_line_for_each_step_as_it_happens_and_ctrl_c_ends_it() -> None:
    process = await asyncio.create_subprocess_exec(
        *command_line("demo"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        heading = (await process.stdout.readline()).decode()
        line = (await process.stdout.readline()).decode()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert err == b""
    code = await process.wait()
    assert line.startswith("ok ")
    assert "shared-claim: Deployment train of 40 pods shares" in line
    assert heading == "Kubernetes 1.36 as it is (mode hold), on an embedded cluster\n"
    assert code == 130


@pytest.mark.real_time(120)
async def test_the_witness_sees_through_a_controller_that_deallocates_under_running_pods() -> None:
    async with staged(ClusterOptions(preset=Preset.PLAIN)) as stage:
        acts = Acts(stage, native=False)
        train = Workload("ml", "train", "slice", 3)
        await acts.room("ml")
        await acts.held(train)
        await stage.dismiss_controller()
        rogue = DocumentClient(stage.cluster.transport(CONTROLLER))
        body = {"status": {"allocation": None, "reservedFor": None}}
        await rogue.patch_status(CLAIM, "ml", "slice", body)
        stage.look()
        violations = stage.witness.violations
    told = [(found.rule, found.claim, len(found.pods)) for found in violations]
    assert (DEALLOCATED_IN_USE, "slice", 3) in told


@pytest.mark.real_time(120)
async def test_a_step_that_does_not_come_true_says_what_it_waited_for() -> None:
    async with staged(ClusterOptions(preset=Preset.PLAIN, devices_per_node=0)) as stage:
        acts = Acts(stage, native=False)
        await acts.room("ml")
        await stage.user.create(objects.claim("ml", "slice"))
        with pytest.raises(Exception, match="not within 1 s: a device"):
            await stage.until(lambda: acts.allocation(Workload("ml", "x", "slice")), "a device", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "--reservation-mode podgroup --kubernetes-version 1.34",
            "PodGroups share claims from Kubernetes 1.36",
        ),
        ("--silence node-9", "there is no node node-9; there are node-0 to node-2"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_in_one_line(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", "cluster", "--kubeconfig", "never-written", *arguments.split()]
    assert run(command) == 2
    assert words in capsys.readouterr().err
