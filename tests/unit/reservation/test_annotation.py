"""What an annotation asks for."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.reservation.annotation import (
    IDLE_TIMEOUT_ANNOTATION,
    MOST_CLAIMS,
    MOST_PROBLEMS,
    RETENTION_ANNOTATION,
    Annotated,
    AnnotationPlan,
    Problem,
    is_object_name,
    is_orphan,
    must_keep,
    plan,
    reservation_name,
)
from claimctl.reservation.facts.ancestors import Ancestor, AnnotationStanding, Authority
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.claims import AllocationResult, Reference, ResourceClaim, ResourceClaimStatus
from claimctl.wire.meta import Condition, ManagedObjectMeta, ObjectMeta, OwnerReference
from claimctl.wire.pods import PodResourceClaim, PodSchedulingGroup, PodSpec, PodTemplateSpec
from claimctl.wire.reservations import (
    FINALIZER,
    RESERVE_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    WorkloadRef,
)
from claimctl.wire.workloads import Deployment, Job, JobSpec, JobStatus, ScalableSpec, Workload
from tests.support.builders import NAMESPACE, NOW

REF = WorkloadRef(api_group="apps", kind="Deployment", name="train")
OWNER = OwnerReference(
    api_version="apps/v1", kind="Deployment", name="train", uid="uid-train", controller=True
)


def template(*claims: str) -> PodTemplateSpec:
    named = tuple(PodResourceClaim(name=f"c-{one}", resource_claim_name=one) for one in claims)
    generated = PodResourceClaim(name="own", resource_claim_template_name="per-pod")
    return PodTemplateSpec(spec=PodSpec(resource_claims=(*named, generated)))


def meta(**annotations: str) -> ObjectMeta:
    return ObjectMeta(
        name="train", namespace=NAMESPACE, uid="uid-train", annotations=annotations or None
    )


def deployment(value: str | None, *claims: str, **more: str) -> Deployment:
    annotations = dict(more)
    if value is not None:
        annotations[RESERVE_ANNOTATION] = value
    return Deployment(metadata=meta(**annotations), spec=ScalableSpec(template=template(*claims)))


def made(claim: str, **spec: object) -> ClaimReservation:
    return ClaimReservation(
        metadata=ObjectMeta(
            name=reservation_name(REF, "uid-train", claim),
            namespace=NAMESPACE,
            labels={"app.kubernetes.io/managed-by": "claimctl"},
            owner_references=(OWNER,),
            finalizers=(FINALIZER,),
        ),
        spec=replace(
            ClaimReservationSpec(resource_claim_name=claim, workload_ref=REF),
            **spec,
        ),
    )


def explicit(claim: str) -> ClaimReservation:
    bare = ObjectMeta(name="by-hand", namespace=NAMESPACE, uid="uid-by-hand")
    return replace(made(claim), metadata=bare)


def annotated(workload: Workload, *reservations: ClaimReservation) -> Annotated:
    return Annotated(REF, "apps/v1", workload, reservations)


def test_a_star_reserves_what_the_template_names_and_never_generated_claims() -> None:
    found = plan(annotated(deployment("*", "a", "b")))
    assert found == AnnotationPlan(create=(made("a"), made("b")))


def test_a_star_that_matches_nothing_is_a_problem() -> None:
    """The pods of the template get a claim each, by resourceClaimTemplateName."""
    (problem,) = plan(annotated(deployment("*"))).problems
    assert problem.reason is Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE
    assert problem.note.startswith('claimctl.io/reserve: "*" matches no claim')
    assert "resourceClaimTemplateName" in problem.note
    bare = replace(deployment("*"), spec=ScalableSpec())
    (problem,) = plan(annotated(bare)).problems
    assert "resourceClaimTemplateName" not in problem.note


def test_a_claim_from_a_template_may_be_that_of_the_pod_group() -> None:
    """Its pods share it, if the PodGroup names the same template."""
    workload = deployment("*")
    template = workload.spec.template
    group = PodSchedulingGroup(pod_group_name="gang")
    grouped = replace(template, spec=replace(template.spec, scheduling_group=group))
    spec = replace(workload.spec, template=grouped)
    (problem,) = plan(annotated(replace(workload, spec=spec))).problems
    assert "the PodGroup, or each pod, has a claim of its own" in problem.note
    (problem,) = plan(annotated(deployment("*"))).problems
    assert "resourceClaimTemplateName each pod has a claim of its own" in problem.note


def test_a_star_beside_reservations_by_hand_is_no_problem() -> None:
    assert plan(annotated(deployment("*", "a"), explicit("a"))).problems == ()


def test_a_list_reserves_what_it_names() -> None:
    found = plan(annotated(deployment(" b ,a, b", "a", "b", "c")))
    assert found == AnnotationPlan(create=(made("b"), made("a")))


def test_nothing_is_planned_twice() -> None:
    assert plan(annotated(deployment("*", "a"), made("a"))) == AnnotationPlan()


def test_an_explicit_object_wins() -> None:
    workload = deployment("*", "a")
    assert plan(annotated(workload, explicit("a"))) == AnnotationPlan()
    found = plan(annotated(workload, explicit("a"), made("a")))
    assert found == AnnotationPlan(delete=(made("a"),))


def test_without_the_annotation_the_owned_reservations_go() -> None:
    going = replace(made("b"), metadata=replace(made("b").metadata, deletion_timestamp=NOW))
    found = plan(annotated(deployment(None, "a", "b"), made("a"), going, explicit("b")))
    assert found == AnnotationPlan(delete=(made("a"),))


def test_a_workload_that_is_being_deleted_is_left_to_garbage_collection() -> None:
    workload = deployment("*", "a")
    workload = replace(workload, metadata=replace(workload.metadata, deletion_timestamp=NOW))
    assert plan(annotated(workload, made("b"))) == AnnotationPlan()


def test_nothing_new_is_made_for_a_job_that_has_ended() -> None:
    job = Job(
        metadata=meta(**{RESERVE_ANNOTATION: "*"}),
        spec=JobSpec(template=template("a", "b")),
        status=JobStatus(conditions=(Condition(type="Complete", status="True"),)),
    )
    assert plan(annotated(job, made("a"))) == AnnotationPlan()


def test_manual_by_annotation_is_refused_because_it_could_not_outlive_the_workload() -> None:
    """A present reservation stays as it is, and no new one is made."""
    asked = meta(**{RESERVE_ANNOTATION: "*", "claimctl.io/retention-policy": "Manual"})
    workload = replace(deployment("*", "a", "b"), metadata=asked)
    planned = plan(annotated(workload, made("a")))
    assert (planned.create, planned.update, planned.delete) == ((), (), ())
    (problem,) = planned.problems
    assert problem.reason == Reason.INVALID_ANNOTATION
    assert problem.note.endswith("create a ClaimReservation with retentionPolicy Manual instead")


def test_bad_names_are_named_and_the_others_served() -> None:
    found = plan(annotated(deployment("a,Bad_Name,z", "a")))
    assert found == AnnotationPlan(
        create=(made("a"),),
        problems=(
            Problem(
                Reason.INVALID_ANNOTATION,
                'claimctl.io/reserve: "Bad_Name" is no name of a ResourceClaim',
            ),
            Problem(
                Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE,
                "claimctl.io/reserve names claim z, but the pod template does not "
                "(spec.resourceClaims[].resourceClaimName)",
            ),
        ),
    )


@pytest.mark.parametrize("value", ["", " ", ",,"])
def test_an_annotation_that_names_nothing_is_reported(value: str) -> None:
    found = plan(annotated(deployment(value, "a")))
    assert [problem.reason for problem in found.problems] == [Reason.INVALID_ANNOTATION]
    assert found.create == ()


def test_a_workload_gets_as_many_reservations_as_the_limit_says() -> None:
    names = [f"c-{number:05}" for number in range(45_000)]
    for value in ("*", ",".join(names)):
        found = plan(annotated(deployment(value, *names)))
        assert [new.spec.resource_claim_name for new in found.create] == names[:MOST_CLAIMS]
        (problem,) = found.problems
        assert problem.reason is Reason.LIMIT_EXCEEDED
        assert f"more than {MOST_CLAIMS} claims" in problem.note
        assert problem.note.endswith("create ClaimReservations for them")


def test_the_problems_of_a_long_list_are_few() -> None:
    """And a value as long as an object may have costs no more than the entries that are read."""
    for value in (",".join(f"x-{number}" for number in range(45_000)), "A/b," * 60_000):
        found = plan(annotated(deployment(value, "a")))
        assert found.create == ()
        assert len(found.problems) <= MOST_PROBLEMS + 2
        assert all(len(problem.note) < 400 for problem in found.problems)
    (problem,) = plan(annotated(deployment("," * 250_000, "a"))).problems[:1]
    assert "names no claim" in problem.note
    assert len(problem.note) < 400


def test_what_an_earlier_workload_left_behind_goes_last_and_what_a_user_made_stays() -> None:
    earlier = replace(made("a").metadata, owner_references=())
    earlier = replace(earlier, name=reservation_name(REF, "uid-earlier", "a"))
    left, own = (
        replace(made("a"), metadata=earlier),
        replace(made("a"), metadata=replace(made("a").metadata, owner_references=())),
    )
    assert [is_orphan(each) for each in (left, own, made("a"), explicit("a"))] == [
        True,
        True,
        False,
        False,
    ]
    labeled = replace(explicit("a"), metadata=replace(earlier, name="by-hand"))
    unlabeled = replace(left, metadata=replace(earlier, labels=None))
    assert not is_orphan(labeled)
    assert not is_orphan(unlabeled)
    assert plan(annotated(deployment(None), left)) == AnnotationPlan(left_over=(left,))
    found = plan(annotated(deployment("*", "a"), left))
    assert found == AnnotationPlan(create=(made("a"),), left_over=(left,))
    # of this very workload: somebody has taken it over
    assert plan(annotated(deployment("*", "a"), own)) == AnnotationPlan()


def test_settings_come_from_annotations_and_follow_them() -> None:
    settings = {RETENTION_ANNOTATION: "Persistent", IDLE_TIMEOUT_ANNOTATION: "5"}
    wanted = made("b", retention_policy="Persistent", idle_timeout_seconds=5)
    found = plan(annotated(deployment("*", "a", "b", **settings), made("a")))
    updated = replace(made("a").spec, retention_policy="Persistent", idle_timeout_seconds=5)
    assert found == AnnotationPlan(create=(wanted,), update=((made("a"), updated),))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(RETENTION_ANNOTATION, "persistent"), (IDLE_TIMEOUT_ANNOTATION, "-1")],
)
def test_a_bad_setting_changes_nothing(annotation: str, value: str) -> None:
    found = plan(annotated(deployment("*", "a", "b", **{annotation: value}), made("a")))
    assert (found.create, found.update, found.delete) == ((), (), ())
    assert [problem.reason for problem in found.problems] == [Reason.INVALID_ANNOTATION]
    assert f'{annotation}: "{value}"' in found.problems[0].note


def test_names_fit_and_differ_by_incarnation() -> None:
    ref = replace(REF, name="a" * 252 + ".b")
    name = reservation_name(ref, "uid-1", "c" * 253)
    assert len(name) <= 253
    assert is_object_name(name)
    assert name != reservation_name(ref, "uid-2", "c" * 253)
    assert name != reservation_name(replace(ref, kind="StatefulSet"), "uid-1", "c" * 253)


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a.", "a..b", "a" * 254, "a/b"])
def test_what_is_no_object_name(name: str) -> None:
    assert not is_object_name(name)


ABOVE = Ancestor("lws.example", "Leaders", "serve", "u-leaders", {RESERVE_ANNOTATION: "*"}, True)
ABOVE_REF = WorkloadRef(api_group=ABOVE.group, kind=ABOVE.kind, name=ABOVE.name)
TAKEN = ClaimReservation(
    metadata=ObjectMeta(name="taken", namespace=NAMESPACE),
    spec=ClaimReservationSpec(resource_claim_name="a", workload_ref=ABOVE_REF),
)
LEAVING = replace(TAKEN, metadata=replace(TAKEN.metadata, deletion_timestamp=NOW))


def below(
    value: str | None = "*", standing: AnnotationStanding = AnnotationStanding.ABOVE
) -> Annotated:
    """An annotated workload with a reservation of claim a, under an object."""
    notes = {} if value is None else {RESERVE_ANNOTATION: value}
    ancestor = dataclasses.replace(ABOVE, annotations=notes)
    return Annotated(
        REF,
        "apps/v1",
        deployment("*", "a"),
        (made("a"),),
        authority=Authority(standing, ancestor if standing is AnnotationStanding.ABOVE else None),
    )


def listing(*uids: str, allocated: bool = True) -> ResourceClaim:
    allocation = AllocationResult() if allocated else None
    entries = tuple(Reference(uid=uid) for uid in uids)
    return ResourceClaim(
        metadata=ManagedObjectMeta(name="a", namespace=NAMESPACE),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=entries),
    )


def test_a_copied_annotation_makes_nothing_and_gives_up_what_it_made() -> None:
    wanted = plan(below())
    assert (wanted.create, wanted.update, wanted.problems) == ((), (), ())
    assert wanted.delete == (made("a"),)
    assert plan(dataclasses.replace(below(), kept=frozenset("a"))) == AnnotationPlan()
    without = dataclasses.replace(below(), reservations=())
    assert plan(without) == AnnotationPlan()


def test_while_an_object_above_is_not_known_nothing_changes() -> None:
    undecided = below(standing=AnnotationStanding.OPEN)
    assert plan(undecided) == AnnotationPlan()
    assert plan(dataclasses.replace(undecided, reservations=())) == AnnotationPlan()


@pytest.mark.parametrize(
    ("value", "claim", "reservations", "kept"),
    [
        # the hold of the object above stands in the list
        ("*", listing("uid-train", "u-leaders"), [TAKEN], False),
        ("b, a", listing("uid-train", "u-leaders"), [TAKEN], False),
        # not yet; or its reservation is missing, or about to go
        ("*", listing("uid-train"), [TAKEN], True),
        ("*", listing("uid-train"), [], True),
        ("*", listing("uid-train", "u-leaders"), [], True),
        ("*", listing("uid-train", "u-leaders"), [LEAVING], True),
        # beside a PodGroup neither is listed
        ("*", listing(), [TAKEN], False),
        # the object above does not ask for the claim, or not any more
        ("b", listing("uid-train"), [], False),
        (None, listing("uid-train"), [], False),
        # there is nothing to lose
        ("*", listing("uid-train", allocated=False), [], False),
    ],
)
def test_a_hold_stays_until_the_one_above_stands(
    value: str | None, claim: ResourceClaim, reservations: list[ClaimReservation], kept: bool
) -> None:
    assert must_keep(below(value), claim, reservations) is kept


@given(
    st.lists(st.sampled_from(["uid-train", "u-leaders", "u-pod"]), unique=True),
    st.lists(st.sampled_from([TAKEN, LEAVING, made("a")]), unique_by=id),
)
def test_a_listed_hold_of_an_allocated_claim_never_goes_before_another_stands(
    uids: list[str], reservations: list[ClaimReservation]
) -> None:
    if not must_keep(below(), listing(*uids), reservations) and "uid-train" in uids:
        assert "u-leaders" in uids
        assert TAKEN in reservations
