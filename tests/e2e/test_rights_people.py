"""What users can do with the roles in rbac/users.yaml: see, release, downgrade, uninstall."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl.wire.resources import DEPLOYMENTS, DOWNGRADEPLANS, RESOURCECLAIMS, STATEFULSETS
from tests.e2e import manifests
from tests.e2e.commands import CommandAnswer
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE, Stage
from tests.e2e.office import office
from tests.e2e.sticky import asking, install_policy

pytestmark = pytest.mark.real_time(120)


async def test_a_viewer_sees_and_changes_nothing(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        shown = await made.ask("view", "get", "-n", NAMESPACE)
        assert (shown.code, "deployments/train" in shown.out) == (0, True)
        told = await made.ask("view", "explain", "slice", "-n", NAMESPACE)
        assert (told.code, "holds (WorkloadWantsPods)" in told.out) == (0, True), told
        refused = await made.ask("view", "release", "slice", "-n", NAMESPACE)
        assert refused.code == 1
        assert 'User "view" cannot patch resource "claimreservations"' in refused.err
        elsewhere = await made.ask("view", "get", "-n", "default")
        assert (elsewhere.code, "cannot list resource" in elsewhere.err) == (1, True)


async def test_an_editor_lets_go(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        await made.stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await made.stage.until_running(0)
        asked = await made.ask("edit", "release", "slice", "-n", NAMESPACE)
        assert asked.code == 0, asked
        await made.stage.until_released(within=20)


async def test_an_administrator_prepares_a_downgrade_and_nobody_else(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        for user in ("view", "edit", "nobody"):
            refused = await made.ask(user, "downgrade", "prepare")
            assert (refused.code, "forbidden" in refused.err) == (1, True), refused
        answer = await made.ask("admin", "downgrade", "prepare", "-o", "json")
        assert answer.code == 0, answer
        found = (answer.document["carriedOutBy"], answer.document["phase"])
        assert found == ("controller", "Prepared")


async def test_a_downgrade_without_a_controller_takes_a_controllers_rights(tmp_path: Path) -> None:
    """Before anything is written."""
    async with office(tmp_path) as made:
        await made.stage.stop()
        refused = await made.ask("admin", "downgrade", "prepare")
        assert refused.code == 1, refused
        last = refused.err.splitlines()[-1]
        assert last.startswith("error: no controller runs, and this command cannot do its work")
        assert "resourceclaims" in last
        assert (await made.stage.client.list(DOWNGRADEPLANS)).items == ()


async def test_an_uninstall_is_for_those_with_its_role(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        for user in ("view", "edit", "admin", "nobody"):
            refused = await made.ask(user, "uninstall", "prepare")
            errors = [line for line in refused.err.splitlines() if line.startswith("error: ")]
            assert (refused.code, len(errors)) == (1, 1), refused
            # the admin may list what is in the way of an upgrade, but no policies
            assert ("cannot list" if user == "admin" else "cannot get") in errors[0]
        before = await made.ask("remover", "uninstall", "verify")
        assert before.code == 3, before
        done = await made.ask("remover", "uninstall", "prepare", "-o", "json")
        assert (done.code, done.document["left"]) == (0, []), done
        after = await made.ask("remover", "uninstall", "verify")
        assert after.code == 0, after
        assert len(await made.stage.running()) == 1


async def test_an_uninstall_without_a_controller_names_the_rights_for_its_work(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as made:
        await made.stage.stop()
        refused = await made.ask("remover", "uninstall", "prepare")
        assert refused.code == 1, refused
        last = refused.err.splitlines()[-1]
        assert last.startswith("error: ")
        assert "resourceclaims" in last


async def test_a_right_that_is_lost_on_the_way_ends_an_uninstall_with_one_line(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as made:
        role = made.stage.embedded.admin.get("clusterroles", "", "claimctl-uninstall")
        rules = [rule for rule in role["rules"] if "delete" not in rule["verbs"]]
        made.stage.embedded.admin.patch("clusterroles", "", "claimctl-uninstall", {"rules": rules})
        refused = await made.ask("remover", "uninstall", "prepare")
        assert refused.code == 1, refused
        errors = [line for line in refused.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1
        assert 'User "remover" cannot delete resource "claimreservations"' in errors[0]


async def test_an_administrator_sees_the_status_of_a_downgrade(tmp_path: Path) -> None:
    """Without the right to create claims, the API server's row says so."""
    async with office(tmp_path) as made:
        answer = await made.ask("admin", "downgrade", "status", "-o", "json")
        refused = await made.ask("edit", "downgrade", "status")
    assert answer.code == 0, answer
    (found,) = [each for each in answer.document["components"] if each["component"] == "api-server"]
    assert (found["feature"], "forbidden" in found["now"]) == ("Unknown", True)
    assert (refused.code, "forbidden" in refused.err) == (1, True), refused


def _unknown(answer: CommandAnswer) -> set[str]:
    return {one["check"] for one in answer.document["checks"] if one["verdict"] == "unknown"}


async def test_the_doctor_answers_everybody_and_says_what_may_not_be_read(tmp_path: Path) -> None:
    async with office(tmp_path) as made:
        full = await made.ask("doctor", "doctor", "-o", "json")
        own = await made.ask(CONTROLLER_USER, "doctor", "-o", "json")
        viewer = await made.ask("view", "doctor", "-n", NAMESPACE, "-o", "json")
        stranger = await made.ask("nobody", "doctor", "-o", "json")
        await install_policy(made.stage)
        body = asking(manifests.stateful_set("sticky"), "*", ("gpu", "big"))
        await made.stage.create(STATEFULSETS, body)
        # without a controller, doctor asks for the rights that an installed one would have
        await made.stage.stop()
        lacking = await made.ask("doctor", "doctor", "-o", "json")
    (finding,) = (it for it in lacking.document["findings"] if it["check"] == "sticky-claims")
    assert "team/statefulset/sticky wait: the controller may not get " in finding["message"]
    assert _unknown(lacking) == set()
    for answer in (full, own, viewer, stranger):
        assert (answer.code, answer.document["findings"]) == (0, []), answer
    assert _unknown(full) == set()
    assert full.document["dialect"] == viewer.document["dialect"] == "hold"
    assert _unknown(own) == {"avoidances", "refused-pods", "resizes", "stale-taints"}
    assert "orphans" not in _unknown(viewer)
    assert {"permissions", "controller"} <= _unknown(viewer)
    assert {"orphans", "controller", "permissions", "reservation-mode"} <= _unknown(stranger)


async def _leave_over(stage: Stage) -> None:
    """An allocated claim that no pod uses and no workload holds."""
    await stage.create(RESOURCECLAIMS, manifests.claim("emptied"))
    device = {"request": "gpu", "driver": "d", "pool": "p", "device": "x"}
    status = {"allocation": {"devices": {"results": [device]}}}
    stage.embedded.admin.patch("resourceclaims", NAMESPACE, "emptied", {"status": status}, "status")


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ("view", "not permitted: create claimreservations.claimctl.io, "),
        ("edit", "not permitted: patch claimreservations/status.claimctl.io"),
    ],
)
async def test_who_may_not_free_a_leftover_is_told_which_right_is_missing(
    tmp_path: Path, user: str, told: str
) -> None:
    async with office(tmp_path) as made:
        await _leave_over(made.stage)
        seen = await made.ask(user, "doctor", "orphans", "-n", NAMESPACE)
        assert (seen.code, "AllocatedToNobody   p/x       WouldFree" in seen.out) == (3, True), seen
        done = await made.ask(user, "doctor", "orphans", "-n", NAMESPACE, "--yes")
        assert (done.code, "Failed" in done.out) == (1, True), done
        assert told in done.err, done
        everywhere = await made.ask(user, "doctor", "orphans", "-A")
        assert (everywhere.code, everywhere.err.count("\n")) == (1, 1), everywhere
