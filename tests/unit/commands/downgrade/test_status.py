"""Which step of a downgrade is next, and what each component does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from claimctl.commands.downgrade.sightings import Component, Sighting
from claimctl.commands.downgrade.standing import Standing, StandingClaim
from claimctl.commands.downgrade.status import (
    ComponentName,
    DowngradeStatus,
    DowngradeStep,
    Kubelet,
    Look,
    Switch,
    judge,
)
from claimctl.wire.reservations import (
    RESTORE,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from tests.support.builders import NOW

LISTED = StandingClaim("ml", "slice", "c-1", Standing.LISTED, "", "", "", 0, 0)
TO_PREPARE = structs.replace(LISTED, standing=Standing.TO_PREPARE, reason="NotPrepared")
PUT_BACK = structs.replace(TO_PREPARE, reason="PutBack")
BLOCKED = structs.replace(LISTED, standing=Standing.BLOCKED, reason="NoConsumer")
SKIPPED = structs.replace(LISTED, standing=Standing.SKIPPED)
RECORD = DowngradedClaim(namespace="ml", name="slice", uid="c-1", state="Expanded")
SCHEDULER_ON = Sighting(Component.SCHEDULER, True, NOW, "ml/slice", "listed PodGroup train")
SCHEDULER_OFF = Sighting(Component.SCHEDULER, False, NOW, "ml/slice", "listed pod a")
KCM_ON = replace(SCHEDULER_ON, component=Component.CONTROLLER_MANAGER)


def plan(phase: str = "Prepared", action: str = "") -> DowngradePlan:
    spec = DowngradePlanSpec(action=action) if action else DowngradePlanSpec()
    return DowngradePlan(spec=spec, status=DowngradePlanStatus(phase=phase, claims=(RECORD,)))


def look(*claims: StandingClaim, **parts: object) -> Look:
    """A cluster with PodGroups, where nothing is switched off."""
    base = Look(served=True, why="a probe", used=True, groups=True, claims=claims)
    return replace(base, **parts)  # type: ignore[arg-type]  # the fields vary


def seen(*found: Sighting) -> dict[Component, Sighting]:
    return {each.component: each for each in found}


HOLD = {"served": False, "used": False, "groups": False}
OFF = {"last": seen(SCHEDULER_OFF)}
KUBELETS = {"believed_off": (ComponentName.KUBELETS,)}


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        pytest.param(look(), DowngradeStep.PREPARE, id="nothing was done"),
        pytest.param(look(TO_PREPARE), DowngradeStep.PREPARE, id="a workload holds a claim"),
        pytest.param(look(TO_PREPARE, plan=plan("Expanding")), DowngradeStep.PREPARE, id="it runs"),
        pytest.param(
            look(LISTED, plan=plan("Expanding")), DowngradeStep.PREPARE, id="not reported yet"
        ),
        pytest.param(look(LISTED, plan=plan()), DowngradeStep.SWITCH_OFF_SCHEDULERS, id="prepared"),
        pytest.param(
            look(PUT_BACK, plan=plan(), last=seen(SCHEDULER_ON)),
            DowngradeStep.SWITCH_OFF_SCHEDULERS,
            id="a group is put back while the gates are on",
        ),
        pytest.param(
            look(LISTED, plan=plan(), last=seen(SCHEDULER_OFF, KCM_ON)),
            DowngradeStep.SWITCH_OFF_SCHEDULERS,
            id="off in the scheduler only",
        ),
        pytest.param(
            look(PUT_BACK, plan=plan(), **OFF),
            DowngradeStep.PREPARE_AGAIN,
            id="off, and not prepared",
        ),
        pytest.param(
            look(LISTED, plan=plan(), **OFF), DowngradeStep.SWITCH_OFF_KUBELETS, id="prepared again"
        ),
        pytest.param(
            look(LISTED, plan=plan(), believed_off=(ComponentName.SCHEDULER,)),
            DowngradeStep.SWITCH_OFF_KUBELETS,
            id="off by the administrator's word",
        ),
        pytest.param(
            look(LISTED, plan=plan(), **OFF, **KUBELETS),
            DowngradeStep.SWITCH_OFF_API_SERVER,
            id="off in the kubelets",
        ),
        pytest.param(
            look(LISTED, plan=plan(), served=False, **OFF, **KUBELETS), DowngradeStep.DONE, id="off"
        ),
        pytest.param(
            look(LISTED, plan=plan(), served=None, believed_off=tuple(ComponentName)),
            DowngradeStep.DONE,
            id="off in the API server by the administrator's word",
        ),
        pytest.param(
            look(LISTED, plan=plan(), served=None, **OFF, **KUBELETS),
            DowngradeStep.SWITCH_OFF_API_SERVER,
            id="the API server cannot be asked",
        ),
        pytest.param(
            look(PUT_BACK, plan=plan(), served=False, **OFF),
            DowngradeStep.PREPARE_AGAIN,
            id="the API server was first",
        ),
        pytest.param(
            look(structs.replace(TO_PREPARE, uid="c-2"), plan=plan(), **OFF),
            DowngradeStep.PREPARE,
            id="a new claim",
        ),
        pytest.param(
            look(BLOCKED, plan=plan("Blocked"), **OFF), DowngradeStep.PREPARE, id="blocked"
        ),
        pytest.param(
            look(SKIPPED, plan=plan(), **OFF),
            DowngradeStep.SWITCH_OFF_KUBELETS,
            id="a claim is skipped",
        ),
        pytest.param(look(**HOLD), DowngradeStep.DONE, id="hold, and nothing is held"),
        pytest.param(look(TO_PREPARE, **HOLD), DowngradeStep.PREPARE, id="hold"),
        pytest.param(
            look(PUT_BACK, plan=plan(), **HOLD), DowngradeStep.PREPARE, id="hold, changed since"
        ),
        pytest.param(look(LISTED, plan=plan(), **HOLD), DowngradeStep.DONE, id="hold, prepared"),
        pytest.param(
            look(LISTED, plan=plan("PartlyRestored", RESTORE)),
            DowngradeStep.RESTORE,
            id="the way back",
        ),
    ],
)
def test_the_next_step(seen: Look, step: DowngradeStep) -> None:
    assert judge(seen).step is step


def switch(report: DowngradeStatus, part: ComponentName) -> Switch:
    (found,) = {each.switch for each in report.components if each.part is part}
    return found


@pytest.mark.parametrize(
    ("seen", "part", "expected"),
    [
        (look(), ComponentName.API_SERVER, Switch.ON),
        (look(served=False), ComponentName.API_SERVER, Switch.OFF),
        (look(served=None), ComponentName.API_SERVER, Switch.UNKNOWN),
        (look(), ComponentName.SCHEDULER, Switch.UNKNOWN),
        (look(last=seen(SCHEDULER_ON)), ComponentName.SCHEDULER, Switch.ON),
        (look(last=seen(SCHEDULER_OFF)), ComponentName.SCHEDULER, Switch.OFF),
        (look(), ComponentName.CONTROLLER_MANAGER, Switch.UNKNOWN),
        (look(last=seen(KCM_ON)), ComponentName.CONTROLLER_MANAGER, Switch.ON),
        (look(groups=False), ComponentName.CONTROLLER_MANAGER, Switch.OFF),
        (look(), ComponentName.KUBELETS, Switch.UNKNOWN),
        (look(**KUBELETS), ComponentName.KUBELETS, Switch.OFF),
        (look(kubelets={"n": Kubelet(2, 1, "ml/a", "ml/a")}), ComponentName.KUBELETS, Switch.ON),
        (look(kubelets={"n": Kubelet(2, 1, "ml/a")}), ComponentName.KUBELETS, Switch.UNKNOWN),
        (look(kubelets={"n": Kubelet(2)}), ComponentName.KUBELETS, Switch.UNKNOWN),
        (look(kubelets={"n": Kubelet(2)}, **KUBELETS), ComponentName.KUBELETS, Switch.OFF),
        (
            look(kubelets={"n": Kubelet(2, 1, "ml/a", "", "ml/a")}),
            ComponentName.KUBELETS,
            Switch.OFF,
        ),
    ],
)
def test_whether_a_component_has_the_feature(
    seen: Look, part: ComponentName, expected: Switch
) -> None:
    assert switch(judge(seen), part) is expected


def test_a_group_that_came_back_outweighs_the_administrators_word() -> None:
    told = {"plan": plan(), "last": seen(SCHEDULER_ON), "believed_off": (ComponentName.SCHEDULER,)}
    assert switch(judge(look(LISTED, **told)), ComponentName.SCHEDULER) is Switch.OFF
    report = judge(look(PUT_BACK, **told))
    assert switch(report, ComponentName.SCHEDULER) is Switch.ON
    assert report.step is DowngradeStep.SWITCH_OFF_SCHEDULERS


def test_blocked_claims_and_refused_pods_are_in_the_way() -> None:
    assert judge(look(TO_PREPARE)).clear
    assert judge(look(SKIPPED)).clear
    assert not judge(look(BLOCKED)).clear
    assert not judge(look(kubelets={"n": Kubelet(1, 1, "ml/a", "", "ml/a")})).clear


def test_claims_that_are_ready_are_counted_and_not_listed() -> None:
    report = judge(look(LISTED, BLOCKED, SKIPPED))
    assert (report.ready, report.claims, report.blocked) == (1, (BLOCKED, SKIPPED), 1)


def test_what_to_do_names_the_command_with_the_scope_of_the_plan() -> None:
    spec = DowngradePlanSpec(namespaces=("ml",))
    scoped = DowngradePlan(spec=spec, status=plan().status)
    report = judge(look(PUT_BACK, plan=scoped, **OFF))
    assert report.command == "claimctl downgrade prepare -n ml"
    assert report.todo == f"run `{report.command}` again, until nothing comes back"
    blocked = judge(look(BLOCKED, plan=scoped))
    assert blocked.todo == f"solve the blocked claims, then run `{report.command}`"


@pytest.mark.parametrize("held", [TO_PREPARE, BLOCKED], ids=["with pods", "idle"])
def test_without_the_feature_nothing_has_to_be_prepared(held: StandingClaim) -> None:
    report = judge(look(held, **HOLD))
    assert report.todo.startswith("nothing: no claim depends on the feature, and it is off")
    assert report.command == ""


def test_the_last_line_names_the_way_back_if_there_is_a_record() -> None:
    assert "claimctl downgrade restore" in judge(look(LISTED, plan=plan(), served=False)).todo
    assert "claimctl downgrade restore" not in judge(look(**HOLD)).todo
