"""What ``claimctl reschedule`` brings to claimctl."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from claimctl.cli.errors import UsageError
from claimctl.cli.extensions import CheckProblem, extensions
from claimctl.cli.main import run
from claimctl.kube.codec import Listing
from claimctl.wire.base import from_plain
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node, NodeSpec, Taint
from claimctl.wire.pods import Pod
from claimctl.wire.resources import NODES, Resource
from claimctl.wire.traces import WholePod
from claimctl_reschedule.extension import EXTENSION
from claimctl_reschedule.plan.reasons import MEANINGS
from claimctl_reschedule.shapes.records import (
    RecordedAvoidance,
    RecordedResize,
    RescheduleRecord,
    RescheduleRecordStatus,
)
from tests.support.builders import NOW

OWN = Taint(key="CriticalAddonsOnly", value="claimctl-p-1", effect="NoSchedule")
COMMAND = "claimctl reschedule --policy-config-file FILE --why team/web-0"


def test_claimctl_finds_it_by_its_entry_point() -> None:
    assert extensions()["reschedule"] is EXTENSION


async def test_its_checks_name_what_runs_left_with_the_remedy() -> None:
    node = Node(metadata=ObjectMeta(name="n1"), spec=NodeSpec(taints=(OWN,)))
    waits = RecordedAvoidance(
        owner_uid="o-1", kind="ReplicaSet", namespace="team", name="web", braked=True
    )
    resize = RecordedResize(
        pod_uid="p-1", namespace="team", name="big", since=NOW - timedelta(hours=1)
    )
    status = RescheduleRecordStatus(avoidances=(waits,), resizes=(resize,))
    asked: dict[str, tuple[str, ...]] = {}

    async def lists(resource: Resource[Any], *checks: str) -> Listing[Any]:
        asked[resource.plural] = checks
        there = node if resource is NODES else RescheduleRecord(status=status)
        return Listing((there,), "1")

    see = "see `claimctl reschedule --release-taints`"
    assert await EXTENSION.examine(lists, NOW) == [
        CheckProblem(
            "stale-taints",
            f"the taint CriticalAddonsOnly=claimctl-p-1 was left behind; {see}",
            object="n1",
        ),
        CheckProblem(
            "avoidances",
            "nodes reject its pods, so new pods are gated, and no run has removed the gate in "
            f"time; {see}",
            "team",
            "replicaset/web",
        ),
        CheckProblem(
            "resizes",
            "its resize waits although 0 pods left for it 60 minutes ago; "
            "see `claimctl explain pod/big -n team`",
            "team",
            "pod/big",
        ),
    ]
    assert asked == {"nodes": ("stale-taints",), "reschedulerecords": tuple(EXTENSION.checks)}


def test_a_pod_with_the_gate_waits_for_it_alone() -> None:
    body = {
        "metadata": {"name": "web-0", "namespace": "team"},
        "spec": {"schedulingGates": [{"name": "claimctl.io/brake"}]},
    }
    words = EXTENSION.about_pod(from_plain(body, WholePod))
    assert words.waits is not None
    assert words.waits[0] == "Braked"
    assert words.advice["Braked"] == f"See what is done about it: {COMMAND}"
    assert EXTENSION.about_pod(from_plain(body, Pod)).waits is None


def test_a_pod_that_avoids_nodes_says_which() -> None:
    meta = ObjectMeta(name="web-0", namespace="team", annotations={"claimctl.io/avoids": "n1"})
    words = EXTENSION.about_pod(Pod(metadata=meta))
    assert words.beside == (("Avoids", "nodes that refused pods of its owner: n1"),)
    assert words.waits is None


def test_a_file_that_is_no_policy_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("kind: Deployment\n")
    with pytest.raises(UsageError):
        EXTENSION.check_policy(file)


def test_explain_knows_every_reason_for_which_a_pod_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for reason, meaning in MEANINGS.items():
        assert run(["explain", f"reason/{reason}"]) == 0
        assert capsys.readouterr().out.startswith(f"{reason}: {meaning}\nWhat to do: ")
