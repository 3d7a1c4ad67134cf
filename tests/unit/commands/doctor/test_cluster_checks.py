"""The checks of ``claimctl doctor``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.commands.doctor.cluster_checks import checks, findings
from claimctl.commands.doctor.dangling import uids
from claimctl.commands.doctor.model import Finding, ObservedCluster
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import ScannedClaim
from claimctl.commands.orphans.scan import scan_claims
from claimctl.reservation.facts.references import POD_GROUP
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import Reference
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS
from tests.support.builders import NOW, claim, pending, pod_ref, written_by_claimctl
from tests.support.claim_server import NAMESPACE, Server


@pytest.mark.parametrize("plural", ["pods", "resourceclaims", "claimreservations"])
async def test_doctor_names_what_cannot_be_read_and_judges_the_rest(plural: str) -> None:
    made = Server.with_unreadable(plural, "bad")
    made.orphan()
    made.claim("bad")
    made.pod("bad")
    made.reservation("bad", claim="bad", workload="x")
    seen = await scan_claims(made.client, made.clock)
    found = findings(
        ObservedCluster(
            "hold", tuple(scanned.claim for scanned in seen.claims), unreadable=seen.unreadable
        )
    )
    (bad,) = [each for each in found if each.check == "unreadable-objects"]
    assert (bad.namespace, bad.object) == (NAMESPACE, "bad")
    assert "cannot be read: Expected `int`" in bad.message
    assert "slice" in {scanned.claim.metadata.name for scanned in seen.claims}


async def test_doctor_takes_nobody_for_gone_who_may_be_there_unreadable() -> None:
    made = Server.with_unreadable("pods", "bad", "metadata", "uid")
    made.claim("slice", {"resource": "pods", "name": "bad", "uid": "x"}, shared=False)
    made.pod("bad")
    claims = (await made.client.list(RESOURCECLAIMS)).items
    for partial in (True, False):
        listed = await made.client.list(PODS, partial=True)
        known = uids(listed) if partial else frozenset({"other"})
        found = findings(ObservedCluster("hold", claims, uids={("", "pods"): known}))
        assert [each.check for each in found] == ([] if partial else ["dangling-references"])


def test_doctor_says_nothing_about_entries_of_resources_that_it_did_not_list() -> None:
    for group, resource in (("batch.volcano.sh", "jobs"), ("scheduling.volcano.sh", "podgroups")):
        foreign = Reference(api_group=group, resource=resource, name="train", uid="theirs")
        listed = dict.fromkeys([("batch", "jobs"), POD_GROUP], frozenset({"ours"}))
        assert list(findings(ObservedCluster("podgroup", (claim(foreign),), uids=listed))) == []
    ours = Reference(api_group="batch", resource="jobs", name="train", uid="gone")
    found = findings(ObservedCluster("podgroup", (claim(ours),), uids=listed))
    assert [each.check for each in found] == ["dangling-references"]


def test_doctor_names_the_pods_that_claimctl_has_left_in_a_list() -> None:
    on = written_by_claimctl(claim(pod_ref("a"), pod_ref("b")), ["uid-a", "uid-b"])
    live = LiveList("10", (pending("a"), pending("b")), frozenset({"uid-a", "uid-b"}))
    orphan = judge(ScannedClaim(on, live, NOW))
    assert orphan is not None
    (one,) = findings(ObservedCluster("hold", (on,), orphans={on.metadata.uid: orphan}))
    assert (one.check, one.namespace, one.object) == ("listed-ahead", "train", "slice")
    assert one.message == (
        "lists 2 waiting pods for claimctl, which does not hold the claim any more: a, b; their "
        "entries may keep the devices where no pod can use them; take them out: "
        "`claimctl doctor orphans -n train --yes`"
    )


def test_the_checks_of_extensions_have_lines_of_their_own() -> None:
    more = {"tides": "the water is low", "winds": "no wind"}
    found = Finding("tides", "the water is high", object="n1")
    observed = ObservedCluster("hold", more_checks=more, more_problems=(found,))
    assert findings(observed) == (found,)
    lines = [(line.check, line.message) for line in checks(observed)]
    assert lines[-2:] == [("winds", "no wind"), ("tides", "the water is high")]


async def test_a_reservation_that_reserves_nothing_is_a_problem_with_a_next_step() -> None:
    made = Server.started()
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "ClaimNotNamedByPodTemplate",
        "message": "the pod template does not name it",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
    }
    made.reservation("wrong", claim="nosuch", status={"conditions": [condition]})
    reservations = (await made.client.list(CLAIMRESERVATIONS)).items
    (finding,) = findings(ObservedCluster("hold", reservations=reservations))
    assert (finding.check, finding.object, finding.verdict) == ("reservations", "wrong", "problem")
    assert finding.message == (
        "not ready (ClaimNotNamedByPodTemplate): the pod template does not name it; "
        "see `claimctl explain crsv/wrong -n ml`"
    )


async def without_workload(made: Server, dialect: str = "native") -> ObservedCluster:
    """What doctor has read when the Deployment train is not listed any more."""
    return ObservedCluster(
        dialect,
        (await made.client.list(RESOURCECLAIMS)).items,
        uids={("apps", "deployments"): frozenset({"other"})},
        reservations=(await made.client.list(CLAIMRESERVATIONS)).items,
    )


def dangling(seen: ObservedCluster) -> Finding:
    (finding,) = findings(seen)
    assert finding.check == "dangling-references"
    return finding


def said(type_: str, status: str, reason: str) -> dict[str, object]:
    """A status with this condition."""
    told = {"type": type_, "status": status, "reason": reason, "message": "why"}
    return {"conditions": [{**told, "lastTransitionTime": "2026-03-01T12:00:00Z"}]}


@pytest.mark.parametrize(
    ("dialect", "status", "verdict"),
    [
        pytest.param("hold", said("Released", "False", "ForceDeletedPods"), "waits", id="a ghost"),
        pytest.param("hold", said("Released", "False", "Releasing"), "fact", id="it goes"),
        pytest.param("hold", said("Released", "False", "Held"), "problem", id="it does not go"),
        pytest.param("native", said("Reserved", "True", "Reserved"), "fact", id="for its pods"),
    ],
)
async def test_a_workload_that_is_gone_waits_for_the_release_that_takes_its_entry_out(
    dialect: str, status: dict[str, object], verdict: str
) -> None:
    seen = await without_workload(Server.holding(status=status), dialect)
    assert dangling(seen).verdict == verdict
    used = replace(seen, in_use=frozenset({seen.claims[0].metadata.uid}))
    assert dangling(used).verdict == "waits", "its last pods end"


async def test_a_hold_that_a_policy_keeps_for_a_workload_that_is_gone_is_a_fact() -> None:
    seen = await without_workload(Server.holding(retentionPolicy="Manual"))
    assert dangling(seen).verdict == "fact"
    assert dangling(seen).message.endswith("`claimctl release slice -n ml` frees them")
    assert dangling(replace(seen, reservations=())).verdict == "problem"


async def test_what_is_gone_from_a_list_is_no_problem_while_the_claim_is_released() -> None:
    release = {"step": "Fenced", "reason": "Withdrawn", "claimUID": "any"}
    seen = await without_workload(Server.holding(status={"release": release, "reservedFor": None}))
    assert dangling(seen).verdict == "fact"
    assert dangling(replace(seen, reservations=())).verdict == "problem"


def test_one_cause_of_many_missing_rights_is_one_line() -> None:
    rights = tuple(f"get things{number}" for number in range(29))
    (finding,) = findings(ObservedCluster("hold", missing_rights=rights))
    assert finding.message == (
        "the controller lacks 29 rights, such as get things0, get things1 and 27 more; "
        "`claimctl install --component rbac` applies its roles"
    )
    assert len(findings(ObservedCluster("hold", missing_rights=rights[:3]))) == 3
