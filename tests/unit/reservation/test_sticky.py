"""The ClaimReservations of sticky claims: which a pod asks for, and with which settings."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.annotation import WHEN_DELETED_ANNOTATION, WHEN_SCALED_ANNOTATION
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.sticky import (
    asked_for,
    entry_of,
    problems,
    reservation_name,
    with_present_settings,
)
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import PodStatus
from claimctl.wire.reservations import (
    DELETE,
    RETAIN,
    STICKY_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
    ClaimReservation,
    StickyClaim,
    WorkloadRef,
)
from claimctl.wire.workloads import Deployment, StatefulSet, Workload
from tests.support.builders import NAMESPACE, NOW
from tests.support.sticky_cases import (
    NAME,
    OWNER,
    SET,
    job,
    pod,
    stateful_set,
    template,
)


def wanted(workload: Workload | None = None, *known: ClaimReservation) -> ClaimReservation | None:
    entry = entry_of(NAME, [pod()])
    assert entry is not None
    return asked_for(NAMESPACE, entry, known, workload)


def annotated(**annotations: str) -> Workload:
    named = {f"claimctl.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    made = stateful_set()
    return replace(made, metadata=replace(made.metadata, annotations=named))


def test_a_pod_asks_for_the_reservation_of_its_claim() -> None:
    made = wanted()
    assert made is not None
    assert made.spec.resource_claim_name == NAME
    assert made.spec.resource_claim_template_name == "big"
    assert made.spec.workload_ref == SET
    assert made.spec.sticky == StickyClaim(ordinal=2, when_scaled=RETAIN, when_deleted=DELETE)
    (owner,) = made.metadata.owner_references
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (OWNER.uid, True, False)


@pytest.mark.parametrize(
    "gone",
    [
        replace(pod(), metadata=replace(pod().metadata, deletion_timestamp=NOW)),
        replace(pod(), status=PodStatus(phase="Succeeded")),
        pod(note=None),
    ],
    ids=["being deleted", "done", "not rewritten"],
)
def test_only_a_pod_that_is_to_run_asks_for_it(gone: object) -> None:
    assert entry_of(NAME, [gone]) is None  # type: ignore[list-item]  # pods
    assert entry_of("another", [pod()]) is None


def test_there_is_one_reservation_at_a_time() -> None:
    made = wanted()
    assert made is not None
    assert wanted(None, made) is None
    leaving = replace(made, metadata=replace(made.metadata, deletion_timestamp=NOW))
    assert wanted(None, leaving) is None
    # a user's own counts, too, until it goes
    name = ObjectMeta(name="mine")
    assert wanted(None, replace(made, metadata=name)) is None
    assert wanted(None, replace(leaving, metadata=replace(name, deletion_timestamp=NOW)))


def test_the_settings_stand_on_the_workload() -> None:
    made = wanted(
        annotated(when_scaled="Delete", when_deleted="Retain", retention_policy="Persistent")
    )
    assert made is not None
    assert made.spec.sticky == StickyClaim(ordinal=2, when_scaled=DELETE, when_deleted=RETAIN)
    assert made.spec.retention_policy == "Persistent"
    assert made.metadata.owner_references == ()


def test_settings_that_change_change_the_reservation_and_its_owner() -> None:
    made = wanted()
    assert made is not None
    assert with_present_settings(made, stateful_set()) == made
    kept = with_present_settings(made, annotated(when_deleted="Retain", idle_timeout_seconds="5"))
    assert kept.metadata.owner_references == ()
    assert kept.spec.idle_timeout_seconds == 5
    assert with_present_settings(kept, stateful_set()) == made


def test_a_claim_that_is_needed_no_more_goes_with_the_workload() -> None:
    made = wanted(annotated(when_deleted="Retain"))
    assert made is not None
    assert made.metadata.owner_references == ()
    kept = annotated(when_deleted="Retain")
    assert isinstance(kept, StatefulSet)
    other = replace(kept, spec=replace(kept.spec, template=template("*", ("gpu", "other"))))
    goes = with_present_settings(made, other)
    assert goes.spec.sticky == StickyClaim(ordinal=2, when_deleted=DELETE)
    assert len(goes.metadata.owner_references) == 1
    # the pod template may ask for it again
    assert with_present_settings(goes, kept) == made


def test_a_new_workload_of_the_name_takes_over_what_is_still_there() -> None:
    made = wanted()
    assert made is not None
    new = replace(stateful_set(), metadata=replace(stateful_set().metadata, uid="uid-new"))
    (owner,) = with_present_settings(made, new).metadata.owner_references
    assert (owner.uid, owner.controller) == ("uid-new", True)
    # garbage collection has taken the owner out, and left the dependents
    orphan = replace(made, metadata=replace(made.metadata, owner_references=()))
    assert with_present_settings(orphan, stateful_set()) == made
    leaving = replace(new, metadata=replace(new.metadata, deletion_timestamp=NOW))
    assert with_present_settings(made, leaving) == made


def test_a_setting_that_is_invalid_changes_nothing() -> None:
    made = wanted(annotated(when_scaled="Delete", retention_policy="Persistent"))
    assert made is not None
    assert with_present_settings(made, annotated(when_scaled="No", retention_policy="No")) == made


def test_a_reservation_that_a_user_made_keeps_its_settings() -> None:
    made = wanted()
    assert made is not None
    mine = replace(made, metadata=replace(made.metadata, labels=None))
    assert with_present_settings(mine, annotated(when_deleted="Retain")) is mine


def test_a_forged_reservation_of_a_kind_without_ordinals_stays_as_it_is() -> None:
    made = wanted()
    assert made is not None
    ref = WorkloadRef(api_group="apps", kind="Deployment", name="train")
    forged = replace(made, spec=replace(made.spec, workload_ref=ref))
    assert with_present_settings(forged, annotated(when_deleted="Retain")) is forged


def test_the_name_of_the_reservation_fits_and_is_that_of_the_claim_alone() -> None:
    names = {reservation_name(SET, claim) for claim in (NAME, f"{NAME}x", "t" * 253, "t" * 252)}
    names.add(reservation_name(replace(SET, name="other"), NAME))
    assert len(names) == 5
    assert max(map(len, names)) <= 253


DEPLOYMENT = WorkloadRef(api_group="apps", kind="Deployment", name="train")
IN_TEMPLATE = replace(Deployment(), spec=replace(Deployment().spec, template=template()))


@pytest.mark.parametrize(
    ("workload", "ref", "said"),
    [
        (stateful_set(), SET, None),
        (stateful_set(sticky=None), SET, None),
        (job(), replace(SET, api_group="batch", kind="Job"), None),
        (annotated(sticky="*"), SET, "write it into the metadata of the pod template"),
        (IN_TEMPLATE, DEPLOYMENT, "the pods of a Deployment have no ordinals"),
        (stateful_set(sticky="gpu,nic"), SET, 'names entry "nic"'),
        (stateful_set(sticky=" , "), SET, 'names entry ""'),
        (stateful_set(group="train"), SET, '"*" matches no entry: the pods have a PodGroup'),
        (
            replace(job(), spec=replace(job().spec, completion_mode="NonIndexed")),
            replace(SET, api_group="batch", kind="Job"),
            "set spec.completionMode Indexed",
        ),
        (annotated(when_scaled="Keep"), SET, f'{WHEN_SCALED_ANNOTATION}: "Keep" is not Retain'),
        (annotated(when_deleted=""), SET, f'{WHEN_DELETED_ANNOTATION}: "" is not Retain or Delete'),
        (annotated(retention_policy="Manual"), SET, '"Manual" is not possible by annotation'),
    ],
)
def test_what_is_wrong_with_a_wish(workload: Workload, ref: WorkloadRef, said: str | None) -> None:
    notes = [problem.note for problem in problems(workload, ref, ())]
    assert len(notes) == (said is not None)
    assert all((said or "") in note for note in notes), notes


def test_the_note_of_the_policy_does_not_belong_into_a_pod_template() -> None:
    made = stateful_set()
    annotations = {STICKY_ANNOTATION: "*", STICKY_CLAIMS_ANNOTATION: "gpu=big"}
    copied = replace(made.spec.template, metadata=ObjectMeta(annotations=annotations))
    workload = replace(made, spec=replace(made.spec, template=copied))
    (problem,) = problems(workload, SET, ())
    assert f"{STICKY_CLAIMS_ANNOTATION} in the pod template" in problem.note


def test_pods_that_no_policy_has_rewritten_are_named() -> None:
    (problem,) = problems(stateful_set(), SET, ["train-1", "train-0"])
    assert problem.reason is Reason.STICKY_NOT_IN_FORCE
    assert STICKY_ANNOTATION in problem.note
    assert "train-0 and train-1" in problem.note or "train-0, train-1" in problem.note
