"""Commands name a workload of any kind, the chain of its pods, and the rule that decided."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from claimctl.cli.errors import UsageError
from claimctl.cli.session import Session
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.reserve_work import Wanted, annotate
from claimctl.commands.claims.reserve_work import lines as reserve_lines
from claimctl.commands.claims.rule_answers import RuleExpression
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.rights import kind_problems
from claimctl.commands.downgrade.prepare_work import write_plan
from claimctl.commands.orphans.model import OwnerState
from claimctl.commands.orphans.scan import OwnerReader, scan_claims
from claimctl.commands.timeline.model import GONE, Lane
from claimctl.commands.timeline.read import read as read_timeline
from claimctl.commands.tree import drawing
from claimctl.commands.tree.work import read
from claimctl.commands.uninstall.scan import scan
from claimctl.downgrade.records import PlanPhase
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS, WORKLOADKINDS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, NewStage, Stage
from tests.e2e.kinds import begin, define, describe, forbid, gangs, make_job, make_pod
from tests.e2e.operators import JOBSETS, LEADERS, LeaderWorkerSets
from tests.e2e.rights import grant, permissions, strict
from tests.support.explained import claim_lines, pod_lines, workload_lines

pytestmark = pytest.mark.cluster(HOLD_136)


_SHIPPED = shipped_rules()[JOBSETS.group, JOBSETS.kind]
IDLE, ENDED = _SHIPPED.idle, _SHIPPED.ended
RULE_IDLE = "rule: idle of WorkloadKind jobsets.jobset.x-k8s.io says"
RULE_ENDED = "rule: ended of WorkloadKind jobsets.jobset.x-k8s.io says"


@asynccontextmanager
async def training(stage: Stage) -> AsyncIterator[str]:
    """A JobSet that holds a claim, and one pod of it. Yields the name of the pod."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    jobset = await begin(stage, JOBSETS)
    await make_job(stage, jobset, JOBSETS, "train-0")
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    (pod,) = await stage.running()
    yield pod.metadata.name


async def test_explain_and_tree_show_the_jobset_its_chain_and_its_rule(stage: Stage) -> None:
    async with training(stage) as pod:
        claim = claim_lines(await explain(stage.client, NAMESPACE, "slice", stage.clock.now()))
        at = claim.index("    JobSet train is Active by claimctl's rule")
        assert claim[at + 1 : at + 3] == [
            f"    {RULE_ENDED} no: {ENDED}",
            f"    {RULE_IDLE} no: {IDLE}",
        ]
        explained = await explain_pod(stage.client, NAMESPACE, pod, stage.clock)
        lines = pod_lines(explained)
        assert lines[0].endswith(f"/{pod}, of job/train-0 of jobset/train")
        workload = await explain_workload(stage.client, NAMESPACE, "jobset", "train", stage.clock)
        lines = workload_lines(workload)
        assert lines[:5] == [
            f"JobSet:     {NAMESPACE}/train",
            "Wants:      pods, and its rule does not say how many; 1 running, 0 waiting for a node",
            "Rule:       Active, by claimctl's rule",
            f"  {RULE_ENDED} no: {ENDED}",
            f"  {RULE_IDLE} no: {IDLE}",
        ]
        drawn = drawing.lines(await read(stage.client, NAMESPACE, stage.clock.now()))
        assert drawn[:3] == [
            "JobSet/train",
            "├─ makes Job/train-0",
            f"│  └─ makes Pod/{pod} (Running)",
        ]


async def test_explain_names_the_expression_that_decided(stage: Stage) -> None:
    async def rules() -> tuple[list[str], RuleExpression]:
        explanation = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
        lines = claim_lines(explanation)
        (decision,) = explanation_of(explanation, stage.clock.now()).reservations
        (expression,) = decision.expressions
        return [line.strip() for line in lines if line.startswith("    ")], expression

    name = "jobsets.jobset.x-k8s.io"
    async with training(stage):
        await stage.patch(JOBSETS, "train", {"spec": {"suspend": True}})
        lines, expression = await rules()
        assert lines == ["JobSet train is Idle by claimctl's rule", f"{RULE_IDLE} yes: {IDLE}"]
        assert expression == RuleExpression(name, "idle", IDLE, says=True, behind=False)
        done = {"conditions": [{"type": "Completed", "status": "True"}]}
        await stage.patch_status(JOBSETS, "train", {"status": done})
        lines, expression = await rules()
        assert lines == ["JobSet train is Ended by claimctl's rule", f"{RULE_ENDED} yes: {ENDED}"]
        assert expression == RuleExpression(name, "ended", ENDED, says=True, behind=False)


async def test_explain_names_what_a_rule_does_not_say(stage: Stage) -> None:
    kind = gangs("explained")
    await define(stage, kind)
    await describe(stage, kind, ended="self.status.phase == 'Done'")
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, kind)
    await make_pod(stage, gang, kind, "train-a")
    await stage.until_condition("Ready", "False", "WorkloadStateUnknown")
    lines = claim_lines(await explain(stage.client, NAMESPACE, "slice", stage.clock.now()))
    assert f"    Gang train is Unknown by WorkloadKind gangs.{kind.group}" in lines
    name = f"gangs.{kind.group}"
    assert (
        f"    rule: ended of WorkloadKind {name} says nothing: self.status.phase == 'Done'" in lines
    )
    assert any("ended fails: no such key: phase" in line for line in lines)


async def test_reserve_annotates_a_jobset_and_refuses_a_kind_without_a_rule(stage: Stage) -> None:
    await define(stage, JOBSETS)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = {"metadata": {"name": "train"}, "spec": {}}
    jobset = await stage.create(JOBSETS, body)
    session = Session(stage.client, stage.clock, NAMESPACE, stage.connect())
    done = await annotate(session, Wanted("jobset", "train"))
    assert reserve_lines(done)[0] == (
        f"the claims that its pods name reserved for jobset/train in {NAMESPACE}"
    )
    await make_job(stage, jobset, JOBSETS, "train-0")
    await stage.until_running(1)
    done = await annotate(session, Wanted("jobsets.jobset.x-k8s.io", "train"))
    assert done.claims == ("slice",)
    with pytest.raises(
        UsageError,
        match=r"'gong': claimctl knows no such kind; there are: .*; a WorkloadKind adds another",
    ):
        await annotate(session, Wanted("gong", "train"))


async def test_explain_and_reserve_say_that_the_annotation_of_a_copy_does_not_count(
    stage: Stage,
) -> None:
    await define(stage, LEADERS)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    template = {"spec": manifests.deployment()["spec"]["template"]["spec"]}
    async with LeaderWorkerSets(stage).running():
        group = {"size": 1, "workerTemplate": template}
        await begin(stage, LEADERS, leaderWorkerTemplate=group)
        await stage.until_running(1)
        # no controller runs, so that the hold is still asked for
        explanation = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
        (asker,) = explanation.asking
        assert asker.line.startswith("LeaderWorkerSet train asks for a hold of it")
        found = await explain_workload(stage.client, NAMESPACE, "StatefulSet", "train", stage.clock)
        text = "LeaderWorkerSet train, to which it belongs, has it, too"
        lines = workload_lines(found)
        assert any(text in line for line in lines)
        assert not any("there is no ClaimReservation yet" in line for line in lines)
        session = Session(stage.client, stage.clock, NAMESPACE, stage.connect())
        with pytest.raises(UsageError, match="claimctl reserve leaderworkerset/train"):
            await annotate(session, Wanted("StatefulSet", "train"))


async def test_timeline_shows_who_held_the_claim_of_a_jobset(stage: Stage) -> None:
    async with training(stage) as pod:
        timeline = await read_timeline(stage.client, stage.clock, NAMESPACE, "slice")
        assert set(timeline.rows(Lane.HOLDER)) == {"jobsets/train"}
        # where times are whole seconds, pods that came and went before may be missing
        assert set(timeline.rows(Lane.POD)) - {GONE} == {pod}
        (made,) = await stage.reservations()
        about = {mark.about for mark in timeline.marks if mark.reason == "Reserved"}
        assert about & {f"ClaimReservation/{made.metadata.name}", "JobSet/train"}


@pytest.mark.alone
async def test_downgrade_prepare_replaces_the_reference_to_a_jobset(stage: Stage) -> None:
    async with training(stage) as pod:
        session = Session(stage.client, stage.clock, NAMESPACE, stage.connect())
        result = await write_plan(session, DowngradePlanSpec())
        assert (result.by, result.status.phase) == ("controller", PlanPhase.PREPARED)
        (record,) = result.status.claims
        assert [(each.resource, each.name) for each in record.workload_references] == [
            ("jobsets", "train")
        ]
        assert await stage.references() == (f"pods/{pod}",)


async def test_orphans_and_uninstall_see_the_annotation_of_a_jobset(stage: Stage) -> None:
    """A hold whose ClaimReservation is gone is no orphan: the controller makes a new one."""
    async with training(stage):
        await stage.stop()
        (reservation,) = await stage.reservations()
        await stage.patch(
            CLAIMRESERVATIONS, reservation.metadata.name, {"metadata": {"finalizers": None}}
        )
        await stage.delete(CLAIMRESERVATIONS, reservation.metadata.name)
        (scanned,) = (await scan_claims(stage.client, stage.clock, NAMESPACE)).claims
        answers = (await OwnerReader(stage.client).read_owners(scanned)).answers
        hold = next(
            entry for entry in scanned.claim.status.reserved_for if entry.resource == "jobsets"
        )
        assert answers[hold.uid].state is OwnerState.RESERVING
        seen = await scan(stage.client, stage.clock, [NAMESPACE])
        assert [(each.resource.kind, each.meta.name) for each in seen.workloads] == [
            ("JobSet", "train")
        ]
        await stage.delete(PODS, (await stage.running())[0].metadata.name)


async def test_doctor_says_which_role_the_controller_lacks(new_stage: NewStage) -> None:
    async with new_stage(strict(HOLD_136)) as stage:
        await grant(stage, permissions("controller.yaml"), "controller.yaml")
        kind, missing = gangs("diagnosed"), gangs("missing")
        role = await define(stage, kind)
        await describe(stage, kind, f"gang.{kind.group}", idle="self.spec.paused")
        ref = {"apiGroup": missing.group, "kind": missing.kind, "name": "train"}
        body = {"resourceClaimName": "slice", "workloadRef": ref}
        await stage.create(CLAIMRESERVATIONS, {"metadata": {"name": "train"}, "spec": body})

        async def problems() -> dict[str, str]:
            account = ControllerAccount("claimctl-system")
            findings = await kind_problems(stage.client, account, await stage.reservations())
            told = {finding.object: finding.message for finding in findings}
            # other scenarios on the same cluster have described kinds, too
            ours = (f"{each.kind}.{each.group}" for each in (kind, missing))
            return {name: told[name] for name in ours if name in told}

        assert await problems() == {
            "Gang.diagnosed.acme.example": "WorkloadKind gang.diagnosed.acme.example: "
            "metadata.name has to be gangs.diagnosed.acme.example",
            "Gang.missing.acme.example": "the cluster does not serve Gang of missing.acme.example",
        }
        await stage.client.delete(WORKLOADKINDS, f"gang.{kind.group}")
        await describe(stage, kind)
        name = f"{kind.kind}.{kind.group}"
        assert name not in await problems()
        await forbid(stage, kind, role)
        assert (await problems())[name] == (
            "the controller may not get, list, watch gangs.diagnosed.acme.example; apply: "
            "kubectl create clusterrole claimctl-workloads-gangs --verb=get,list,watch "
            "--resource=gangs.diagnosed.acme.example && kubectl label clusterrole "
            "claimctl-workloads-gangs claimctl.io/aggregate-to-controller=true"
        )
