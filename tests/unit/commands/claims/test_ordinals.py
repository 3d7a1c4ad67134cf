"""What commands say of sticky claims."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.commands.claims.ordinals import (
    WITHOUT_LABEL,
    WITHOUT_POLICY,
    fate,
    not_in_force,
    outdated,
    sticky_names,
    unmade,
)
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.meta import Condition, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import (
    DELETE,
    RETAIN,
    STICKY_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    ClaimReservationStatus,
    StickyClaim,
    WorkloadRef,
)
from claimctl.wire.workloads import StatefulSet, StatefulSetSpec
from tests.support.builders import reservation as ordinary
from tests.support.sticky_cases import member

SET = WorkloadRef(api_group="apps", kind="StatefulSet", name="train")
OLD, NEW = "train-2.sts.gpu.big", "train-2.sts.gpu.other"
NEEDED = WorkloadState(WorkloadPhase.ACTIVE, uid="s", names_claim=True)


def reservation(
    claim: str = OLD, sticky: StickyClaim | None = None, *conditions: Condition
) -> ClaimReservation:
    return ClaimReservation(
        metadata=ObjectMeta(name=f"r-{claim}", namespace="ml"),
        spec=ClaimReservationSpec(
            resource_claim_name=claim,
            workload_ref=SET,
            sticky=sticky or StickyClaim(ordinal=2),
        ),
        status=ClaimReservationStatus(conditions=conditions),
    )


def owner(kind: str = "StatefulSet", api: str = "apps/v1") -> OwnerReference:
    return OwnerReference(api_version=api, kind=kind, name="train", uid="s", controller=True)


def pod(claim: str = OLD, template: str = "big") -> Pod:
    """A pod that the policy has rewritten."""
    annotations = {STICKY_ANNOTATION: "*", STICKY_CLAIMS_ANNOTATION: f"gpu={template}"}
    entry = PodResourceClaim(name="gpu", resource_claim_name=claim)
    return Pod(
        metadata=ObjectMeta(
            name="train-2", namespace="ml", annotations=annotations, owner_references=(owner(),)
        ),
        spec=PodSpec(resource_claims=(entry,)),
    )


def generated(of: OwnerReference | None, **labels: str) -> Pod:
    """A pod that asks for sticky claims, and that no policy has rewritten."""
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="big")
    return Pod(
        metadata=ObjectMeta(
            name="train-2",
            annotations={STICKY_ANNOTATION: "*"},
            labels=labels,
            owner_references=(of,) if of else (),
        ),
        spec=PodSpec(resource_claims=(entry,)),
    )


def workload(template: str) -> StatefulSet:
    entry = PodResourceClaim(name="gpu", resource_claim_template_name=template)
    made = PodTemplateSpec(
        metadata=ObjectMeta(annotations={STICKY_ANNOTATION: "*"}),
        spec=PodSpec(resource_claims=(entry,)),
    )
    return StatefulSet(metadata=ObjectMeta(name="train"), spec=StatefulSetSpec(template=made))


@pytest.mark.parametrize(
    ("sticky", "state", "words"),
    [
        (
            StickyClaim(ordinal=2),
            NEEDED,
            "the claim of ordinal 2; scaled away, it is kept like that of an idle workload; "
            "without the workload, it is deleted",
        ),
        (
            StickyClaim(ordinal=2, when_scaled=DELETE, when_deleted=RETAIN),
            NEEDED,
            "the claim of ordinal 2; scaled away, it is deleted; without the workload, it is kept "
            "like that of an idle workload",
        ),
        (
            StickyClaim(ordinal=2),
            WorkloadState(WorkloadPhase.ACTIVE, uid="s", names_claim=False, claim_over=True),
            "the claim of ordinal 2; the pod template asks for another claim now, so it is deleted "
            "when no pod names it any more",
        ),
        (
            StickyClaim(ordinal=2),
            WorkloadState(WorkloadPhase.ABSENT, names_claim=False, claim_over=True),
            "the claim of ordinal 2; no pod will need it, so it is deleted when no pod names it "
            "any more",
        ),
    ],
)
def test_what_becomes_of_the_claim_of_an_ordinal(
    sticky: StickyClaim, state: WorkloadState, words: str
) -> None:
    assert fate(Held(reservation(sticky=sticky), state)) == words


def test_nothing_is_said_of_a_claim_without_an_ordinal() -> None:
    assert fate(Held(ordinary(), NEEDED)) == ""


def test_an_ordinal_is_outdated_while_its_pod_has_the_claim_of_another_template() -> None:
    own = (reservation(OLD), reservation("train-10.sts.gpu.other", StickyClaim(ordinal=10)))
    assert outdated(workload("big"), own[:1], [pod()]) == ()
    assert outdated(workload("other"), own, [pod()]) == (2,)
    assert outdated(workload("other"), own, []) == ()
    assert outdated(workload("other"), (ordinary(),), [pod()]) == ()


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (pod(), ""),
        (generated(owner()), WITHOUT_POLICY),
        (generated(owner("Job", "batch/v1")), WITHOUT_POLICY),
        (generated(owner("ReplicaSet")), "it is a ReplicaSet"),
        (generated(owner("CloneSet", "apps.kruise.io/v1alpha1")), f"{WITHOUT_LABEL}CloneSet"),
        (generated(owner("Job", "batch.volcano.sh/v1alpha1")), f"{WITHOUT_LABEL}Job"),
        (generated(None), ""),
    ],
)
def test_why_a_pod_has_generated_claims(seen: Pod, words: str) -> None:
    assert words in not_in_force(seen)
    assert bool(not_in_force(seen)) == bool(words)


READY = Condition(type="Ready", status="False", reason="TemplateNotFound", message="create it")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ((), "claimctl has not made claim {} of ordinal 2 from template big yet; no controller"),
        (
            (reservation(),),
            "claimctl has not made claim {} of ordinal 2 from template big yet; no controller",
        ),
        (
            (reservation(OLD, None, READY),),
            "claimctl has not made claim {} of ordinal 2 from template big (TemplateNotFound): "
            "create it",
        ),
    ],
)
def test_why_a_claim_is_not_made(made: tuple[ClaimReservation, ...], words: str) -> None:
    assert unmade(pod(), OLD, made, "no controller") == words.format(OLD)


def test_the_claim_of_a_pod_in_a_group_is_not_made_without_its_workload() -> None:
    assert unmade(member(1, 2), "train-1-2.lws.gpu.big", (), "no controller") == (
        "claimctl has not made claim train-1-2.lws.gpu.big of ordinal 1-2 from template big yet: "
        "it has to see LeaderWorkerSet train, which `claimctl install --component workloads` lets "
        "it read; no controller"
    )


def test_only_claims_that_the_policy_has_named_are_sticky() -> None:
    assert sticky_names(pod()) == {OLD}
    assert unmade(pod(), "another", (), "") == ""
    stranger = replace(pod(), metadata=replace(pod().metadata, annotations=None))
    assert sticky_names(stranger) == set()
