"""Who uses a claim, who is done, and who may still use it unseen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.pods import (
    Consumers,
    awaited_templates,
    claim_names,
    is_done,
    is_finished,
    unschedulable_since,
    vanishes_as_ghost,
)
from claimctl.wire.base import Present
from claimctl.wire.meta import Condition
from claimctl.wire.pods import (
    ContainerState,
    ContainerStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from tests.support.builders import after, finished, pending, pod, running

WAITING = ContainerState()
RUNNING = ContainerState(running=Present())
ENDED = ContainerState(terminated=Present())


def swept(
    *states: ContainerState,
    initial: tuple[ContainerState, ...] = (),
    node: str = "n",
    reason: str = "DeletionByPodGC",
) -> Pod:
    """A pod whose node is gone: phase and condition are PodGC's, the rest the kubelet's."""
    seen = pod("a", node=node, phase="Failed")
    condition = Condition(type="DisruptionTarget", status="True", reason=reason)
    status = replace(
        seen.status,
        conditions=(condition,),
        container_statuses=tuple(ContainerStatus(state=state) for state in states),
        init_container_statuses=tuple(ContainerStatus(state=state) for state in initial),
    )
    return replace(seen, status=status)


CASES = {
    # pod: done, finished, ghost if it vanished now
    "waiting for a node": (pending("a"), False, False, False),
    "bound and not started": (pod("a", node="n"), False, False, True),
    "running": (running("a"), False, False, True),
    "running and being deleted": (running("a", deleting=True), False, False, True),
    "deleted before it got a node": (pod("a", deleting=True), True, False, False),
    "succeeded": (finished("a"), True, True, False),
    "failed, containers stopped": (pod("a", node="n", phase="Failed"), True, True, False),
    "marked failed by PodGC, containers still running": (
        pod("a", node="n", phase="Failed", running=True),
        False,
        False,
        True,
    ),
    "swept by PodGC, no container reported": (swept(), False, False, True),
    "swept by PodGC, a container waiting": (swept(WAITING), False, False, True),
    "swept by PodGC, one of two waiting": (swept(ENDED, WAITING), False, False, True),
    "swept by PodGC, running": (swept(ENDED, RUNNING), False, False, True),
    "swept by PodGC, all containers terminated": (swept(ENDED, ENDED), True, True, False),
    "swept by PodGC, an init container at work": (
        swept(ENDED, initial=(WAITING,)),
        False,
        False,
        True,
    ),
    "swept by PodGC, never bound": (swept(node=""), True, False, False),
    "disrupted by others": (swept(WAITING, reason="TerminationByKubelet"), True, True, False),
    "failed before it got a node": (pod("a", phase="Failed"), True, False, False),
}


@pytest.mark.parametrize(("seen", "done", "over", "ghost"), CASES.values(), ids=CASES.keys())
def test_a_pod(seen: Pod, done: bool, over: bool, ghost: bool) -> None:
    assert (is_done(seen), is_finished(seen), vanishes_as_ghost(seen)) == (done, over, ghost)


def test_a_claim_can_be_named_in_three_places() -> None:
    seen = Pod(
        spec=PodSpec(
            resource_claims=(
                PodResourceClaim(name="a", resource_claim_name="by-name"),
                PodResourceClaim(name="b", resource_claim_template_name="template"),
            )
        ),
        status=PodStatus(
            resource_claim_statuses=(
                PodResourceClaimStatus(name="b", resource_claim_name="generated"),
                PodResourceClaimStatus(name="c"),
            ),
            extended_resource_claim_status=PodExtendedResourceClaimStatus(
                resource_claim_name="extended"
            ),
        ),
    )
    assert claim_names(seen) == {"by-name", "generated", "extended"}


def test_a_template_is_awaited_until_the_status_has_its_entry() -> None:
    entries = tuple(
        PodResourceClaim(name=name, resource_claim_template_name=f"of-{name}") for name in "ab"
    )
    spec = PodSpec(resource_claims=(PodResourceClaim(name="c", resource_claim_name="c"), *entries))
    made = (PodResourceClaimStatus(name="a", resource_claim_name="generated"),)
    assert awaited_templates(Pod(spec=spec)) == ("of-a", "of-b")
    status = PodStatus(resource_claim_statuses=made)
    assert awaited_templates(Pod(spec=spec, status=status)) == ("of-b",)


def test_pods_are_sorted_by_what_they_mean_for_a_claim() -> None:
    pods = [running("b"), pending("p"), finished("f"), pod("d", deleting=True)]
    sorted_ = Consumers.of(pods)
    assert (
        list(sorted_.bound),
        list(sorted_.pending),
        list(sorted_.finished),
        list(sorted_.dropped),
    ) == (["uid-b"], ["uid-p"], ["uid-f"], ["uid-d"])
    assert sorted_.count == 2
    assert sorted_.nodes() == ("node-0",)


def test_only_an_unschedulable_pod_is_unschedulable() -> None:
    waiting = pending("a", unschedulable_at=after(3))
    assert unschedulable_since(waiting) == after(3)
    assert unschedulable_since(pending("b")) is None
    gated = replace(waiting.status.conditions[0], reason="SchedulingGated")
    assert unschedulable_since(replace(waiting, status=PodStatus(conditions=(gated,)))) is None
