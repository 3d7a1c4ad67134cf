"""The lines of ``claimctl doctor`` on clusters where claimctl is missing, dead or well."""

from __future__ import annotations

import pytest

from claimctl import __version__
from claimctl.commands.doctor.model import CheckVerdict
from claimctl.installation import VERSION_LABEL
from tests.support.claim_server import Server
from tests.support.diagnosing import CHECKS, diagnosed, elected, problems, the

CRDS = ("claimreservations", "downgradeplans", "reschedulerecords", "workloadkinds")


async def test_a_cluster_without_claimctl_says_so() -> None:
    found = await diagnosed(Server.started(crds=False))
    assert problems(found) == [
        ("installation", ""),
        ("controller", ""),
    ]
    line = the(found, "installation").message
    assert "workloadkinds.claimctl.io; install them: `claimctl install --image IMAGE`" in line
    assert all(line.count(f"{plural}.claimctl.io") == 1 for plural in CRDS)
    assert the(found, "permissions").verdict is CheckVerdict.FACT
    assert {each.check for each in found} == CHECKS


async def test_a_controller_that_is_dead_is_a_problem() -> None:
    made = Server.started()
    elected(made, renewed_before=60.0)
    found = await diagnosed(made)
    assert problems(found) == [("controller", "")]
    assert "held by one and has not been renewed for 60s" in the(found, "controller").message


@pytest.mark.parametrize(
    ("crds", "verdict"), [(__version__, "ok"), ("9.9.0", "problem"), ("", "fact")]
)
async def test_versions_that_differ_are_a_problem(crds: str, verdict: str) -> None:
    made = Server.started()
    elected(made)
    labels = {"metadata": {"labels": {VERSION_LABEL: crds or None}}}
    name = "claimreservations.claimctl.io"
    made.admin.patch("customresourcedefinitions", "", name, labels)
    assert the(await diagnosed(made), "versions").verdict == verdict


async def test_a_healthy_cluster_has_a_line_for_every_check_and_no_problem() -> None:
    made = Server.started()
    elected(made)
    found = await diagnosed(made)
    assert problems(found) == []
    assert {each.check for each in found} == CHECKS
    assert {each.verdict for each in found} == {CheckVerdict.OK, CheckVerdict.FACT}
