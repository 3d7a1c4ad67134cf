"""The ClaimReservations of sticky claims: which a pod asks for, with which settings.

The annotation stands in the pod template, because a policy sees no workload. The settings stand on
the workload, so that a change of them rolls no pod.

``asked_for`` is the reservation to create, ``with_present_settings`` what one should become, and
``problems`` what a user has written wrong. Which claim an ordinal has, and whether it is needed any
more, is in ``facts.ordinals``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from claimctl.reservation.annotation import (
    WHEN_DELETED_ANNOTATION,
    WHEN_SCALED_ANNOTATION,
    Problem,
    hashed_name,
    settings_of,
)
from claimctl.reservation.facts.ordinals import (
    NOTHING_KNOWN,
    OrdinalFacts,
    StickyEntry,
    asked_entries,
    is_superfluous,
    sticky_entries,
    sticky_of,
)
from claimctl.reservation.facts.pods import is_done
from claimctl.reservation.facts.reasons import Reason
from claimctl.text import listed
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.ordinals import (
    KINDS_WITH_ORDINALS,
    LEADER_WORKER_SET,
    has_ordinals,
    ordinal_word,
)
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    DELETE,
    FINALIZER,
    MANAGED_LABEL,
    RETAIN,
    STICKY_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    StickyClaim,
    WorkloadRef,
)
from claimctl.wire.resources import WORKLOADS
from claimctl.wire.workloads import CustomWorkload, Workload, template_of

_RETENTION = (WHEN_SCALED_ANNOTATION, WHEN_DELETED_ANNOTATION)
_VALUES = (RETAIN, DELETE)
"""What each of these annotations may say."""


def entry_of(claim: str, pods: Iterable[Pod]) -> StickyEntry | None:
    """The entry by which a pod asks for the sticky claim; None if no pod does that is to run.

    Pods that are being deleted do not count: their workload may be gone, and garbage collection
    would delete at once what was made for them.
    """
    for pod in pods:
        if pod.metadata.deleting or is_done(pod):
            continue
        for entry in sticky_entries(pod):
            if entry.claim == claim:
                return entry
    return None


def asked_for(
    namespace: str,
    entry: StickyEntry,
    reservations: Iterable[ClaimReservation],
    workload: Workload | None,
) -> ClaimReservation | None:
    """The reservation to create for the claim that a pod names; None if there is one already, if
    one of that name has to go first, or if nothing names the workload's UID yet.

    Args:
        reservations: all those of the claim.
        workload: the pod's workload, from the cache.
    """
    ref = entry.workload
    name = reservation_name(ref, entry.claim)
    for known in reservations:
        if known.metadata.name == name:
            return None
        if known.spec.workload_ref == ref and not known.metadata.deleting:
            return None
    meta = workload.metadata if workload is not None else ObjectMeta()
    owner = entry.owner
    if owner is None and workload is not None and not meta.deleting:
        owner = _reference(workload, ref)
    if owner is None:
        return None
    sticky = StickyClaim(ordinal=entry.ordinal.number, member=entry.ordinal.member)
    spec = ClaimReservationSpec(
        resource_claim_name=entry.claim,
        resource_claim_template_name=entry.template,
        workload_ref=ref,
        sticky=sticky,
    )
    spec = _with_settings(spec, meta)
    return ClaimReservation(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels={MANAGED_LABEL: "claimctl"},
            owner_references=_owners(spec, owner),
            finalizers=(FINALIZER,),
        ),
        spec=spec,
    )


def reservation_name(ref: WorkloadRef, claim: str) -> str:
    """The name of the reservation of a sticky claim. It is the same for every incarnation of the
    workload: there is one at a time."""
    return hashed_name(claim, ref.api_group, ref.kind, ref.name, claim, "sticky")


def name_taken(known: ClaimReservation, claim: str) -> Problem:
    """What to tell a workload whose sticky claim cannot get a reservation, because that of another
    claim has its name."""
    meta, other = known.metadata, known.spec.resource_claim_name
    note = f"the pods of ResourceClaim {claim} wait: ClaimReservation {meta.name} is that of claim "
    note += f"{other}, and has the name that the one of {claim} needs; delete it"
    return Problem(Reason.STICKY_NAME_TAKEN, note)


def with_present_settings(
    reservation: ClaimReservation, workload: Workload, facts: OrdinalFacts = NOTHING_KNOWN
) -> ClaimReservation:
    """The reservation of a sticky claim as the workload's annotations ask for it now. One that a
    user has created stays as it is.

    A claim that is needed no more goes with its workload in any case: once that is gone, nothing
    else tells that no pod will name the claim. A new workload of the name that comes before garbage
    collection goes on with the claims: its pods may run on them already.
    """
    is_made = (reservation.metadata.labels or {}).get(MANAGED_LABEL) == "claimctl"
    if not is_made or sticky_of(reservation.spec) is None:
        return reservation
    spec = _with_settings(reservation.spec, workload.metadata)
    if spec.sticky is not None and is_superfluous(workload, spec, facts):
        spec = replace(spec, sticky=replace(spec.sticky, when_deleted=DELETE))
    before, after = reservation.spec.sticky, spec.sticky
    owners, uid = reservation.metadata.owner_references, workload.metadata.uid
    controller = reservation.metadata.controller()
    moved = before is not None and after is not None and before.when_deleted != after.when_deleted
    owned = after is not None and after.when_deleted == DELETE
    another = owned and (controller is None or controller.uid != uid)
    if moved or (another and not workload.metadata.deleting):
        owners = _owners(spec, _reference(workload, spec.workload_ref))
    metadata = replace(reservation.metadata, owner_references=owners)
    return replace(reservation, metadata=metadata, spec=spec)


def _reference(workload: Workload, ref: WorkloadRef) -> OwnerReference:
    """The reference to the workload as an owner."""
    known = WORKLOADS.get((ref.api_group, ref.kind))
    version = known.api_version if known is not None else workload.api_version
    uid = workload.metadata.uid
    return OwnerReference(api_version=version, kind=ref.kind, name=ref.name, uid=uid)


def _owners(spec: ClaimReservationSpec, owner: OwnerReference) -> tuple[OwnerReference, ...]:
    """Who owns the reservation: garbage collection deletes it with its workload if that is
    wanted."""
    if spec.sticky is None or spec.sticky.when_deleted != DELETE:
        return ()
    return (replace(owner, controller=True, block_owner_deletion=False),)


def _with_settings(spec: ClaimReservationSpec, meta: ObjectMeta) -> ClaimReservationSpec:
    """The spec with the settings of the workload's annotations. One that is invalid changes
    nothing."""
    changed, problems = settings_of(meta, spec)
    sticky = spec.sticky
    assert sticky is not None
    scaled, deleted = (meta.annotation(name) for name in _RETENTION)
    sticky = replace(
        sticky,
        when_scaled=_setting(scaled, RETAIN, sticky.when_scaled),
        when_deleted=_setting(deleted, DELETE, sticky.when_deleted),
    )
    return replace(spec if problems else changed, sticky=sticky)


def _setting(given: str | None, default: str, present: str) -> str:
    """The value of an annotation: the default without one, the present value if it is invalid."""
    if given is None:
        return default
    return given if given in _VALUES else present


def problems(workload: Workload, ref: WorkloadRef, without: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with a workload's wish for sticky claims.

    Args:
        without: the names of its pods that ask for sticky claims and have generated ones.
    """
    meta, template = workload.metadata, template_of(workload)
    if meta.annotation(STICKY_ANNOTATION) is not None:
        note = f"{STICKY_ANNOTATION} has no effect on a {ref.kind}: write it into the metadata of "
        yield Problem(Reason.INVALID_ANNOTATION, f"{note}the pod template")
    value = template.metadata.annotation(STICKY_ANNOTATION)
    # what stands in a pod template that is not read is unknown
    unread = isinstance(workload, CustomWorkload)
    if value is None and not unread:
        return
    if not ordinal_word(ref.api_group, ref.kind):
        note = f"{STICKY_ANNOTATION}: the pods of a {ref.kind} have no ordinals, so each has a "
        note += f"generated claim; these kinds have some: {listed(KINDS_WITH_ORDINALS)}"
        yield Problem(Reason.INVALID_ANNOTATION, note)
        return
    if value is not None:
        yield from _about_entries(workload, value)
    if template.metadata.annotation(STICKY_CLAIMS_ANNOTATION) is not None:
        note = f"{STICKY_CLAIMS_ANNOTATION} in the pod template keeps the pods from sticky claims: "
        note += "remove it, the policy writes it on each pod"
        yield Problem(Reason.INVALID_ANNOTATION, note)
    if not unread:
        yield from settings_of(meta, ClaimReservationSpec(workload_ref=ref))[1]
    yield from _about_settings(meta)
    if pods := sorted(without):
        note = f"{STICKY_ANNOTATION}: pods have generated claims, which go with them: "
        note += f"{listed(pods)}; run `claimctl install --component sticky-claims` and delete them"
        if unread and (ref.api_group, ref.kind) != LEADER_WORKER_SET:
            note += f"; a WorkloadKind has to name the label with the ordinals of a {ref.kind}"
        yield Problem(Reason.STICKY_NOT_IN_FORCE, note)


def _about_settings(meta: ObjectMeta) -> Iterator[Problem]:
    """What is wrong with the annotations that say how long an ordinal keeps its claim."""
    for name in _RETENTION:
        given = meta.annotation(name)
        if given is not None and given not in _VALUES:
            note = f'{name}: "{given[:80]}" is not {RETAIN} or {DELETE}'
            yield Problem(Reason.INVALID_ANNOTATION, note)


def _about_entries(workload: Workload, value: str) -> Iterator[Problem]:
    """What is wrong with the annotation in the pod template of a kind with ordinals."""
    template = template_of(workload)
    made = {it.name for it in template.spec.resource_claims if it.resource_claim_template_name}
    asked = {part.strip() for part in value.split(",")} - {""}
    if not has_ordinals(workload):
        note = f"{STICKY_ANNOTATION}: the pods have no indexes; set spec.completionMode "
        yield Problem(Reason.INVALID_ANNOTATION, f"{note}Indexed")
    elif "*" in asked and not asked_entries(template):
        why = "the pod template has none with a resourceClaimTemplateName"
        if template.spec.group_name and made:
            why = "the pods have a PodGroup, whose claims they may be; name the entries"
        yield Problem(
            Reason.INVALID_ANNOTATION, f'{STICKY_ANNOTATION}: "*" matches no entry: {why}'
        )
    elif "*" not in asked:
        for name in sorted(asked - made) or ([""] if not asked else []):
            note = f'{STICKY_ANNOTATION} names entry "{name[:80]}", but spec.resourceClaims of the '
            note += "pod template has none of that name with a resourceClaimTemplateName"
            yield Problem(Reason.INVALID_ANNOTATION, note)
