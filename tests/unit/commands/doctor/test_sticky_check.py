"""The check of ``claimctl doctor`` where pod templates ask for sticky claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.api_server import api_server
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import Actor, Fault, FaultPoint

from claimctl.commands.doctor.account import ControllerAccount
from claimctl.commands.doctor.sticky_check import asks, sticky_problems
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Forbidden
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import PodResourceClaim, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import STICKY_ANNOTATION
from claimctl.wire.workloads import (
    Deployment,
    Job,
    JobSpec,
    ScalableSpec,
    StatefulSet,
    StatefulSetSpec,
    Workload,
)
from tests.support.builders import NOW

FILE = Path(__file__).parents[4] / "deploy/components/sticky-claims/sticky-claims.yaml"
POLICY, BINDING, *_ = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
PLURALS = {
    POLICY["kind"]: "mutatingadmissionpolicies",
    BINDING["kind"]: "mutatingadmissionpolicybindings",
}
TRAIN = ("ml/statefulset/train",)
ACCOUNT = ControllerAccount("claimctl-system")


def template(asked: str | None = "*") -> PodTemplateSpec:
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="big")
    meta = ObjectMeta(annotations=None if asked is None else {STICKY_ANNOTATION: asked})
    return PodTemplateSpec(metadata=meta, spec=PodSpec(resource_claims=(entry,)))


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [
        (StatefulSet(spec=StatefulSetSpec(template=template())), True),
        (StatefulSet(spec=StatefulSetSpec(template=template("gpu"))), True),
        (StatefulSet(spec=StatefulSetSpec(template=template("nic"))), False),
        (StatefulSet(spec=StatefulSetSpec(template=template(None))), False),
        (Job(spec=JobSpec(template=template(), completion_mode="Indexed")), True),
        (Job(spec=JobSpec(template=template())), False),
        (Deployment(spec=ScalableSpec(template=template())), False),
    ],
)
def test_who_asks_for_sticky_claims(workload: Workload, wanted: bool) -> None:
    assert asks(workload) is wanted


def served(
    version: tuple[int, int] = (1, 36), *documents: dict[str, Any], refused: str = ""
) -> Client:
    """A client of a server with these objects, which refuses the requests for a resource."""
    clock = LoopClock(NOW)
    handler = api_server(ClusterOptions(preset=Preset.PLAIN, kubernetes_version=version), clock)
    admin = ApiFor(handler.api, Actor("admin", ("system:masters",), "admin"))
    for document in documents:
        admin.create(PLURALS[document["kind"]], document)

    def hook(point: FaultPoint) -> Fault | None:
        forbidden = point.plural == refused
        return Fault(status=403, reason="Forbidden", message="no") if forbidden else None

    handler.fault = hook
    return Client(handler, clock)


@pytest.mark.parametrize(
    ("version", "documents", "words"),
    [
        ((1, 34), (), "this server does not serve MutatingAdmissionPolicies"),
        (
            (1, 36),
            (),
            "has no binding; run `claimctl install --component sticky-claims`, then delete these",
        ),
        ((1, 36), (POLICY,), "has no binding"),
        ((1, 36), (BINDING,), "is missing; run `claimctl install"),
        ((1, 36), (POLICY, BINDING), ""),
    ],
)
async def test_where_the_policy_is_not_in_force_its_command_is_named(
    version: tuple[int, int], documents: tuple[dict[str, Any], ...], words: str
) -> None:
    problems = await sticky_problems(served(version, *documents), ACCOUNT, TRAIN)
    assert [words in problem.message for problem in problems] == [True] * bool(words)
    assert all("although ml/statefulset/train ask" in problem.message for problem in problems)


async def test_who_may_not_ask_about_the_rights_of_others_hears_nothing_of_them() -> None:
    client = served((1, 36), POLICY, BINDING, refused="subjectaccessreviews")
    assert await sticky_problems(client, ACCOUNT, TRAIN) == ()
    assert await sticky_problems(client, None, TRAIN) == ()


async def test_who_may_not_read_policies_is_told_so() -> None:
    with pytest.raises(Forbidden):
        await sticky_problems(served(refused=PLURALS[BINDING["kind"]]), ACCOUNT, TRAIN)
