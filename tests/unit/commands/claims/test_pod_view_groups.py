"""What ``claimctl explain`` says about pods of PodGroups that wait or have lost their group."""

from __future__ import annotations

import pytest
from kube_in_process.options import Preset
from msgspec.structs import replace

from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.pod_view import taken_away, waiting_for_group
from claimctl.wire.base import Present
from claimctl.wire.resources import PODGROUPS
from tests.support.builders import pending, running
from tests.support.claim_server import NAMESPACE, Server

RACE = 'running PreBind plugin "D": claim ml/slice got allocated elsewhere in the meantime'
BLOCKED = "0/2 nodes are available: resource claim ml/slice is in the process of being allocated"


@pytest.mark.parametrize(
    ("group", "note", "gone", "reasons"),
    [
        ("train", "", True, ["PodGroupMissing"]),
        ("train", RACE, False, ["SharedClaimRace"]),
        ("train", BLOCKED, False, ["GangSharesClaim"]),
        ("train", "0/2 nodes are available", False, []),
        ("", RACE, False, []),
        ("", BLOCKED, False, []),
    ],
)
def test_why_a_pod_of_a_group_waits(group: str, note: str, gone: bool, reasons: list[str]) -> None:
    told = waiting_for_group(pending("a", group=group), [note], gone=gone)
    assert [reason for reason, _ in told] == reasons


def test_a_gang_of_1_35_is_a_group_too() -> None:
    pod = pending("a")
    gang = replace(pod, spec=replace(pod.spec, workload_ref=Present()))
    ((reason, text),) = waiting_for_group(gang, [BLOCKED], gone=False)
    assert (reason, "#137617" in text) == ("GangSharesClaim", True)


@pytest.mark.parametrize(
    ("gone", "listed", "lost"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_group_that_was_taken_away_from_running_pods(
    gone: bool, listed: bool, lost: bool
) -> None:
    told = [*taken_away(running("a", group="train"), gone=gone, listed=listed)]
    assert [reason for reason, _ in told] == ["PodGroupTakenAway"] * lost


@pytest.mark.parametrize(
    ("node", "listed", "reasons", "advice"),
    [
        ("", False, ["PodGroupMissing"], "Create the PodGroup"),
        ("node-0", False, ["PodGroupTakenAway"], "Delete the pod: kubectl -n ml delete pod a"),
        ("node-0", True, [], ""),
    ],
)
async def test_the_group_is_read(node: str, listed: bool, reasons: list[str], advice: str) -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.client.use_version(PODGROUPS.group, "v1alpha2")
    pod = server.pod("a", node=node, group="train")
    server.claim("slice", *([pod] if listed else []))
    found = await explain_pod(server.client, NAMESPACE, "a", server.clock)
    assert [reason for reason, _ in found.reasons()] == reasons
    assert "".join(pod_advice(found)).startswith(advice)
