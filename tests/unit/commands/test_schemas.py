"""What commands print for programs has exactly the fields of the published schemas."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from claimctl.cli.documents import API_VERSION
from claimctl.commands.claims import explain_work, get_work
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.claim_list import list_of
from claimctl.commands.claims.explanation import explain_with_controller
from claimctl.commands.claims.pod_document import PodExplanation, pod_of
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.release_request import request_of
from claimctl.commands.claims.workload_document import workload_of
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.commands.doctor.diagnosis import diagnosis, diagnosis_of
from claimctl.commands.doctor.examination import examine
from claimctl.commands.doctor.versions import read_versions, version_of
from claimctl.commands.schemas import main
from claimctl.commands.timeline.read import read as read_timeline
from claimctl.commands.tree import graph as trees
from claimctl.commands.tree.work import read as read_tree
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Figures, Report, Step
from claimctl_witness.witness import Violation
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import deployed, elected
from tests.support.printed import MODELS, as_json, checked
from tests.support.waiting import asks, has_devices

Json = dict[str, Any]


def furnished() -> Server:
    server = Server.started()
    elected(server)
    deployed(server, ready=2)
    reference = server.deployment()
    has_devices(server, "slice", reference, server.pod("user"))
    server.reservation(status={**server.held_status(reference), "consumers": 1})
    asks(server, "mine")
    server.pod("late", claim="mine", node="")
    return server


async def test_claims() -> None:
    server = furnished()
    wanted = get_work.ClaimsWanted(NAMESPACE)
    shown = await get_work.gather(server.client, server.clock.now(), wanted)
    found = as_json(list_of(shown, server.clock.now()))
    assert [item["name"] for item in found["items"]] == ["mine", "slice"]


@pytest.mark.parametrize("name", ["slice", "mine"])
async def test_explanations_of_claims(name: str) -> None:
    server = furnished()
    told = await explain_with_controller(server.client, NAMESPACE, name, server.clock)
    assert as_json(explanation_of(told, server.clock.now()))["claim"]["name"] == name


async def test_the_request_of_a_release() -> None:
    server = furnished()
    told = await explain_with_controller(server.client, NAMESPACE, "slice", server.clock)
    found = as_json(request_of(told, dry_run=True))
    assert found["reservations"]
    assert found["blockers"]


async def test_a_claim_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    made = Server.with_unreadable("resourceclaims", "slice")
    made.claim("slice")
    from claimctl.cli.formats import Output
    from claimctl.cli.session import Session

    session = Session(made.client, made.clock, NAMESPACE, made.spoiling)
    await explain_work.run(session, NAMESPACE, "ResourceClaim", "slice", Output.JSON)
    assert len(checked(json.loads(capsys.readouterr().out))["unreadable"]) == 1


async def test_explanations_of_pods_and_workloads() -> None:
    server = furnished()
    for name in ("user", "late"):
        pod = await explain_pod(server.client, NAMESPACE, name, server.clock)
        as_json(pod_of(pod, PodExplanation))
    found = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    as_json(workload_of(found))


async def test_the_diagnosis_and_the_versions() -> None:
    server = furnished()
    seen = await examine(server.client, server.clock)
    assert as_json(diagnosis_of(seen, diagnosis(seen)))["checks"]
    as_json(version_of(await read_versions(server.client, server.clock)))
    as_json(version_of(None))


async def test_timelines_and_trees() -> None:
    server = furnished()
    timeline = await read_timeline(server.client, server.clock, NAMESPACE, "slice")
    as_json(timeline)
    tree = await read_tree(server.client, NAMESPACE, server.clock.now())
    as_json(trees.document(tree, NAMESPACE))


def test_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    from claimctl.cli.main import run

    assert run(["explain", "reason/ConsumersLeft", "-o", "json"]) == 0
    checked(json.loads(capsys.readouterr().out))


KEP = Part("native", "1.36")
BROKEN = Violation("DeallocatedInUse", 7, "ml", "slice", ("a",), "revision 7: claim ml/slice ...")


@pytest.mark.parametrize("more", [{}, {"pending": 44}, {"claimRevisionsPerSecond": 2}])
def test_the_report_of_the_demonstration(more: Json) -> None:
    figures = Figures(600, 1, 2, more)
    steps = [Step("shared-claim", True, 1.2, figures, "all is well", KEP)]
    steps.append(Step("job-ended", False, 20.0, Figures(), "not within 20 s", KEP))
    found = as_json(Report((KEP,), steps, [BROKEN], ["KeyError: x"]).document())
    assert [step["ok"] for step in found["steps"]] == [True, False]


@pytest.mark.parametrize("kind", MODELS)
def test_the_schema_of_a_kind_is_printed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([kind])
    printed = json.loads(capsys.readouterr().out)
    fields = printed["$defs"][printed["$ref"].rpartition("/")[2]]["properties"]
    assert fields["apiVersion"]["const"] == API_VERSION
    assert fields["kind"]["enum"] == [kind]


def test_an_unknown_kind_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["Nothing"])
    assert "invalid choice: 'Nothing'" in capsys.readouterr().err


def test_a_field_that_no_schema_has_is_refused() -> None:
    document: Json = {"apiVersion": API_VERSION, "kind": "ClaimList", "items": [], "more": 1}
    with pytest.raises(msgspec.ValidationError, match="more"):
        checked(document)
