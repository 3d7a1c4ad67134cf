"""downgrade prepare as a process, on clusters with and without a controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.resources import CLAIMRESERVATIONS, DOWNGRADEPLANS
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import ServedCluster, cluster

pytestmark = pytest.mark.alone

NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 34))
TRAIN = Workload("ml", "train", "slice", 12)


NEXT = {
    Preset.RESERVED_FOR_ANY_POD: "next step (SwitchOffSchedulers): switch the feature off in the "
    "scheduler, then run `claimctl downgrade prepare -n ml` again",
    Preset.PLAIN: "next step (Done): nothing is left to do; `claimctl downgrade restore` is the "
    "way back",
}


async def furnished(served: ServedCluster, native: bool, workload: Workload = TRAIN) -> Acts:
    acts = Acts(served.stage, native=native)
    await acts.room(workload.namespace)
    await acts.held(workload)
    return acts


@pytest.mark.real_time(120)
@pytest.mark.parametrize("options", [NATIVE, HOLD], ids=["native", "hold-1.34"])
async def test_the_controller_carries_out_the_plan(options: ClusterOptions, tmp_path: Path) -> None:
    async with cluster(options, tmp_path) as served:
        acts = await furnished(served, options.preset is Preset.RESERVED_FOR_ANY_POD)
        answer = await served.claimctl("downgrade", "prepare", "-n", "ml", "-o", "json")
        await served.stage.look_closely()
        acts.expect_exactly_its_pods(TRAIN)
        again = await served.claimctl("downgrade", "prepare", "-n", "ml")
        other = await served.claimctl("downgrade", "prepare")
    document = answer.document
    assert (answer.code, document["carriedOutBy"], document["phase"]) == (
        0,
        "controller",
        "Prepared",
    )
    (record,) = document["claims"]
    assert (record["state"], record["pods"]) == ("Expanded", 12)
    assert [each["name"] for each in record["workloadReferences"]] == ["train"]
    loss = "only its 12 pods {} it, not the workload: a scale to 0 loses its devices"
    result = ["1 of 1 claims are listed pod by pod", NEXT[options.preset]]
    assert answer.err.splitlines() == [f"ml/slice: {loss.format('would hold')}", *result]
    assert record["heldByPodsAlone"]
    assert (again.code, again.err.splitlines()) == (0, result)
    assert "Expanded" in again.out
    assert loss.format("hold") in again.out
    assert other.code == 1
    assert "exists already, for ml" in other.err


@pytest.mark.real_time(120)
async def test_a_dry_run_writes_nothing_at_all(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        acts = await furnished(served, native=True)
        before = acts.claim(TRAIN)
        answer = await served.claimctl("downgrade", "prepare", "--dry-run", "-o", "json")
        served.stage.look()
        assert acts.claim(TRAIN) == before
        assert (await served.stage.client.list(DOWNGRADEPLANS)).items == ()
    document = answer.document
    assert (answer.code, document["dryRun"], document["carriedOutBy"]) == (0, True, None)
    assert [each["state"] for each in document["claims"]] == ["WouldExpand"]


@pytest.mark.real_time(120)
async def test_what_cannot_be_expressed_is_reported_and_exits_3(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        wide = Workload("wide", "wide", "slice", 260)
        acts = await furnished(served, True, wide)
        before = acts.claim(wide)
        answer = await served.claimctl("downgrade", "prepare")
        served.stage.look()
        assert acts.claim(wide) == before
    assert answer.code == 3
    assert "deployments/wide   Refused   260" in answer.out
    assert "kubectl scale -n wide deployments/wide --replicas=256" in answer.out
    assert answer.err.splitlines() == [
        "0 of 1 claims are listed pod by pod; 1 left as they are: see REASON",
        "next step (Prepare): solve the blocked claims, then run `claimctl downgrade prepare`",
    ]


@pytest.mark.real_time(120)
async def test_a_claim_that_the_administrator_skips_blocks_nothing(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        acts = await furnished(served, native=True)
        before = acts.claim(TRAIN)
        skip = ("--skip", "ml/slice", "--skip", "ml/slise")
        answer = await served.claimctl("downgrade", "prepare", *skip, "-o", "json")
        served.stage.look()
        assert acts.claim(TRAIN) == before
    assert (answer.code, answer.document["phase"]) == (0, "Prepared")
    assert [each["state"] for each in answer.document["claims"]] == ["Skipped"]
    assert answer.err.startswith(
        "0 of 1 claims are listed pod by pod; 1 skipped, as you asked\nnext step ("
    )
    assert answer.err.endswith("\n--skip ml/slise: no claim of this name is held by a workload\n")


@pytest.mark.real_time(120)
async def test_labels_select_the_claims(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        acts = await furnished(served, native=True)
        before = acts.claim(TRAIN)
        other = await served.claimctl("downgrade", "prepare", "-l", "team=web")
        served.stage.look()
        assert acts.claim(TRAIN) == before
        in_the_way = await served.claimctl("downgrade", "prepare", "-l", "team=ml")
        ended = await served.claimctl("downgrade", "restore")
        left = (await served.stage.client.list(DOWNGRADEPLANS)).items
    assert (other.code, other.err.splitlines()[:2]) == (
        0,
        [
            "No claim is held by a workload.",
            "there is nothing to prepare; DowngradePlan claimctl stays, and keeps workloads out of "
            "the lists of its claims, also of new ones, until `claimctl downgrade restore`",
        ],
    )
    assert in_the_way.code == 1
    assert "exists already, for all namespaces with labels team=web" in in_the_way.err
    assert (ended.code, left) == (0, ())


@pytest.mark.real_time(120)
async def test_the_time_is_over_and_another_run_continues(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        acts = await furnished(served, native=True)
        await served.stage.dismiss_controller()
        # the run settles for 5 s between writing the list and reading it again
        answer = await served.claimctl("downgrade", "prepare", "--timeout", "2")
        again = await served.claimctl("downgrade", "prepare")
        acts.expect_exactly_its_pods(TRAIN)
    assert (answer.code, again.code) == (1, 0)
    assert answer.err.splitlines()[1:] == [
        "no controller runs: this command does its work",
        "error: --timeout: not finished after 2 s; what is done stays, and another run continues",
    ]


BAD: dict[tuple[str, ...], str] = {
    ("-n", "mll"): "--namespace: the cluster has no namespace mll",
    ("-n", "Ml"): "'Ml' is not a DNS label",
    ("-l", "team ~ ml"): "'team ~ ml' is not a label requirement",
    ("--skip", "slice"): "'--skip': 'slice' has no namespace: NAMESPACE/CLAIM is expected",
    ("--skip", "ml/"): "'--skip': '' is not a DNS name",
    ("--parallelism", "0"): "--parallelism",
    ("--timeout", "soon"): "--timeout",
}


@pytest.mark.real_time(120)
async def test_bad_input_ends_in_one_line_before_anything_is_written(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        for arguments, message in BAD.items():
            answer = await served.claimctl("downgrade", "prepare", *arguments)
            assert (answer.code, answer.out) == (2, ""), arguments
            assert message in answer.err
            assert "Traceback" not in answer.err
        assert (await served.stage.client.list(DOWNGRADEPLANS)).items == ()


@pytest.mark.real_time(120)
@pytest.mark.parametrize("tended", [True, False], ids=["controller", "command"])
async def test_what_was_replaced_returns_and_the_plan_goes(tended: bool, tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        acts = await furnished(served, native=True)
        if not tended:
            await served.stage.dismiss_controller()
        await served.claimctl("downgrade", "prepare")
        await nothing_is_called_held(served, tended=tended)
        dry = await served.claimctl("downgrade", "restore", "--dry-run", "-o", "json")
        answer = await served.claimctl("downgrade", "restore", "-o", "json")
        served.stage.look()
        held = [each for each in acts.references(TRAIN) if each.resource == "deployments"]
        assert (await served.stage.client.list(DOWNGRADEPLANS)).items == ()
        again = await served.claimctl("downgrade", "restore")
        doctor = await served.claimctl("doctor", "-o", "json")
    assert "plans" not in {each["check"] for each in doctor.document["findings"]}
    assert [each.name for each in held] == ["train"]
    assert [(each.code, each.document["claims"][0]["state"]) for each in (dry, answer)] == [
        (0, "WouldRestore"),
        (0, "Restored"),
    ]
    assert answer.document["carriedOutBy"] == ("controller" if tended else "command")
    assert "1 of 1 claims have their workload references again" in answer.err
    assert (again.code, again.err) == (
        0,
        "There is no DowngradePlan, so there is nothing to restore.\n",
    )


async def nothing_is_called_held(served: ServedCluster, *, tended: bool) -> None:
    """What is said between a preparation and the way back."""
    listed = await served.claimctl("get", "-n", "ml")
    assert "InUse (FrozenForDowngrade)" in listed.out
    if not tended:
        return
    explained = await served.claimctl("explain", "slice", "-n", "ml")
    assert "Do not scale its workload to 0 now. The next step: claimctl downgrade" in explained.out
    assert "Nothing is wrong" not in explained.out
    doctor = await served.claimctl("doctor", "-o", "json")
    assert doctor.code == 3
    (plan,) = [each for each in doctor.document["findings"] if each["check"] == "plans"]
    assert "1 claim held by pods alone: do not scale to 0 now" in plan["message"]
    (made,) = (await served.stage.client.list(CLAIMRESERVATIONS, "ml")).items
    said = {each.type: (each.status, each.reason) for each in made.status.conditions}
    assert said["Ready"] == said["Reserved"] == ("False", "FrozenForDowngrade")
