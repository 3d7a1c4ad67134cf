"""How one claim stands before the feature is switched off, and which command helps."""

from __future__ import annotations

import pytest

from claimctl.commands.downgrade.standing import (
    Standing,
    StandingClaim,
    concerns,
    stand,
)
from claimctl.downgrade.pods import PodsOfClaims
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    ClaimName,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanSpec,
    DowngradePlanStatus,
)
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    claim,
    deployment_ref,
    group_ref,
    pending,
    pod_ref,
    running,
)

HOLD, GROUP = deployment_ref(), group_ref()
FOREIGN = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v-1")
RECORD = DowngradedClaim(
    namespace=NAMESPACE,
    name=CLAIM,
    uid="uid-slice",
    state="Expanded",
    workload_references=(GROUP,),
    replaced_references=(GROUP,),
)


def plan(phase: str = "Prepared", *records: DowngradedClaim, **spec: object) -> DowngradePlan:
    return DowngradePlan(
        spec=DowngradePlanSpec(**spec),  # type: ignore[arg-type]  # the fields vary
        status=DowngradePlanStatus(phase=phase, claims=records),
    )


def judged(
    made: ResourceClaim,
    pods: tuple[Pod, ...] = (),
    plan: DowngradePlan | None = None,
    record: DowngradedClaim | None = None,
) -> StandingClaim:
    return stand(made, PodsOfClaims({CLAIM: list(pods)}, ()), plan, record, {HOLD.uid})


def held(*entries: Reference, allocated: bool = True, deleting: bool = False) -> ResourceClaim:
    return claim(*entries, allocated=allocated, deleting=deleting)


A, B = running("a"), running("b")


@pytest.mark.parametrize(
    ("made", "pods", "standing", "reason", "unlisted", "command"),
    [
        pytest.param(
            held(pod_ref("a")), (A,), Standing.LISTED, "", 0, "", id="only pods are listed"
        ),
        pytest.param(
            held(allocated=False), (), Standing.LISTED, "", 0, "", id="it is not allocated"
        ),
        pytest.param(
            held(GROUP, HOLD),
            (A, B),
            Standing.TO_PREPARE,
            "NotPrepared",
            2,
            "claimctl downgrade prepare",
            id="a group shares it",
        ),
        pytest.param(
            held(HOLD),
            (),
            Standing.BLOCKED,
            "NoConsumer",
            0,
            "claimctl release slice -n train",
            id="no pod uses it",
        ),
        pytest.param(
            held(HOLD, FOREIGN),
            (A,),
            Standing.BLOCKED,
            "UnknownReference",
            1,
            "kubectl get -n train virtualmachines.kubevirt.io vm",
            id="another owner holds it",
        ),
        pytest.param(
            held(HOLD, deleting=True),
            (A,),
            Standing.BLOCKED,
            "BeingDeleted",
            1,
            "kubectl wait --for=delete -n train resourceclaim/slice --timeout=10m",
            id="it is being deleted",
        ),
        pytest.param(
            held(HOLD),
            tuple(running(f"p{number}") for number in range(257)),
            Standing.BLOCKED,
            "TooManyConsumers",
            257,
            "kubectl scale -n train deployments/train --replicas=256",
            id="too many pods use it",
        ),
    ],
)
def test_a_claim_without_a_plan(
    made: ResourceClaim,
    pods: tuple[Pod, ...],
    standing: Standing,
    reason: str,
    unlisted: int,
    command: str,
) -> None:
    found = judged(made, pods)
    assert (found.standing, found.reason, found.unlisted, found.command) == (
        standing,
        reason,
        unlisted,
        command,
    )


def test_a_group_that_returned_after_the_last_run_was_put_back() -> None:
    listed = held(pod_ref("a"), GROUP)
    found = judged(listed, (A,), plan("Prepared", RECORD), RECORD)
    assert (found.standing, found.reason) == (Standing.TO_PREPARE, "PutBack")
    assert found.message == "podgroups/train is in the list again since the last run"


def test_while_the_plan_runs_nothing_counts_as_put_back() -> None:
    found = judged(held(GROUP), (A,), plan("Expanding", RECORD), RECORD)
    assert (found.standing, found.reason) == (Standing.TO_PREPARE, "NotPrepared")


def test_a_pod_of_a_replaced_group_that_a_scheduler_may_be_binding_is_missing() -> None:
    waiting = pending("late", group="train")
    found = judged(held(pod_ref("a")), (A, waiting), plan("Prepared", RECORD), RECORD)
    assert (found.standing, found.reason) == (Standing.TO_PREPARE, "PutBack")
    assert judged(held(pod_ref("a")), (A, waiting)).standing is Standing.LISTED


def test_a_skipped_claim_is_named_and_does_not_block() -> None:
    skipped = plan(skip=(ClaimName(namespace=NAMESPACE, name=CLAIM),))
    found = judged(held(HOLD), (A,), skipped)
    assert (found.standing, found.unlisted) == (Standing.SKIPPED, 1)


@pytest.mark.parametrize(
    ("spec", "standing"),
    [
        ({}, Standing.TO_PREPARE),
        ({"namespaces": (NAMESPACE,)}, Standing.TO_PREPARE),
        ({"namespaces": ("other",)}, Standing.BLOCKED),
        ({"claim_selector": "team=web"}, Standing.BLOCKED),
        ({"claim_selector": "team ~"}, Standing.BLOCKED),
    ],
)
def test_a_claim_that_the_plan_does_not_select_blocks(
    spec: dict[str, object], standing: Standing
) -> None:
    found = judged(held(HOLD), (A,), plan("Prepared", **spec))
    assert found.standing is standing
    if standing is Standing.BLOCKED:
        assert (found.reason, found.command) == (
            "OutsidePlan",
            "kubectl delete downgradeplan claimctl",
        )


@pytest.mark.parametrize(
    ("made", "recorded", "expected"),
    [
        pytest.param(claim(pod_ref("a")), (), False, id="only pods use it"),
        pytest.param(
            claim(
                HOLD,
            ),
            (),
            True,
            id="a workload is listed",
        ),
        pytest.param(claim(shared=True), (), True, id="any pod may use it"),
        pytest.param(claim(), ("uid-slice",), True, id="the plan has a record"),
    ],
)
def test_which_claims_matter(
    made: ResourceClaim, recorded: tuple[str, ...], expected: bool
) -> None:
    assert concerns(made, recorded) is expected
