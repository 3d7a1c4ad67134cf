"""Sticky claims: which claim belongs to which ordinal of a workload, and who still wants it.

The policy ``claimctl-sticky-claims`` gives each pod the name of its ordinal's claim when the pod is
created. Here is the same rule, so that claimctl believes no pod that says something else. The name
tells the ordinal: a workload whose pods have host names has no dot in its name, and an entry of
``spec.resourceClaims`` never has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodTemplateSpec
from claimctl.wire.reservations import (
    DELETE,
    RETAIN,
    STICKY_ANNOTATION,
    STICKY_CLAIMS_ANNOTATION,
    ClaimReservationSpec,
    StickyClaim,
    WorkloadRef,
)
from claimctl.wire.workloads import (
    ORDINAL_WORDS,
    OrdinalWish,
    Workload,
    may_have_earlier_template,
    ordinal_wish,
    template_of,
)

_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class StickyEntry:
    """An entry of a pod that names the claim of the pod's ordinal."""

    claim: str
    template: str
    ordinal: int
    owner: OwnerReference


def claim_name(ref: WorkloadRef, ordinal: int, entry: str, template: str) -> str:
    """The name of an ordinal's claim; the workload's kind has ordinals."""
    word = ORDINAL_WORDS[ref.api_group, ref.kind]
    return f"{ref.name}-{ordinal}.{word}.{entry}.{template}"


def owner_ref(owner: OwnerReference) -> WorkloadRef:
    """The workload that controls a pod."""
    group = owner.api_version.rpartition("/")[0]
    return WorkloadRef(api_group=group, kind=owner.kind, name=owner.name)


def sticky_entries(pod: Pod) -> Iterator[StickyEntry]:
    """The entries of the pod that the policy has rewritten, and that have the right name."""
    note, owner = pod.metadata.annotation(STICKY_CLAIMS_ANNOTATION), pod.metadata.controller()
    if note is None or owner is None:
        return
    templates = dict(part.partition("=")[::2] for part in note.split(","))
    ref = owner_ref(owner)
    for entry in pod.spec.resource_claims:
        template, name = templates.get(entry.name, ""), entry.resource_claim_name or ""
        ordinal = _ordinal_in(name, ref)
        if not template or ordinal is None:
            continue
        if name == claim_name(ref, ordinal, entry.name, template):
            yield StickyEntry(name, template, ordinal, owner)


def _ordinal_in(name: str, ref: WorkloadRef) -> int | None:
    """The ordinal that the name of a claim has, if it begins with the workload's name."""
    if (ref.api_group, ref.kind) not in ORDINAL_WORDS or not name.startswith(f"{ref.name}-"):
        return None
    digits = name[len(ref.name) + 1 :].partition(".")[0]
    fits = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(digits) if fits else None


def asked_entries(template: PodTemplateSpec) -> tuple[PodResourceClaim, ...]:
    """The entries of a pod template whose claims are to be sticky.

    ``*`` leaves the entries of a pod with a PodGroup alone: the group may have claims for them.
    """
    value = template.metadata.annotation(STICKY_ANNOTATION)
    if value is None:
        return ()
    made = (it for it in template.spec.resource_claims if it.resource_claim_template_name)
    names = {part.strip() for part in value.split(",")}
    every = "*" in names and not template.spec.group_name
    return tuple(entry for entry in made if every or entry.name in names)


def waits_for_policy(pod: Pod) -> bool:
    """Whether the pod asks for sticky claims, and no policy has given it any: then each entry has
    a claim that Kubernetes generated for this pod alone."""
    meta = pod.metadata
    if meta.annotation(STICKY_ANNOTATION) is None or meta.annotation(STICKY_CLAIMS_ANNOTATION):
        return False
    return bool(asked_entries(PodTemplateSpec(metadata=meta, spec=pod.spec)))


def for_ordinal(
    state: WorkloadState, workload: Workload | None, spec: ClaimReservationSpec
) -> WorkloadState:
    """The state of a workload as far as it concerns one ordinal's claim.

    Args:
        workload: None if it is gone, or cannot be read.
    """
    sticky = sticky_of(spec)
    if sticky is None:
        return state
    if workload is None:
        gone = state.phase is WorkloadPhase.ABSENT
        if gone and sticky.when_deleted == RETAIN:
            return replace(state, phase=WorkloadPhase.IDLE)
        return replace(state, claim_over=gone)
    asked, still = _asks(workload, spec), ordinal_wish(workload, sticky.ordinal)
    idle = state.phase is WorkloadPhase.ACTIVE and still is not OrdinalWish.YES
    return replace(
        state,
        phase=WorkloadPhase.IDLE if idle else state.phase,
        wants=1 if state.wants and still is OrdinalWish.YES else 0,
        names_claim=asked,
        claim_over=state.phase is WorkloadPhase.ENDED or is_superfluous(workload, spec),
    )


def is_superfluous(workload: Workload, spec: ClaimReservationSpec) -> bool:
    """Whether the workload, as it is, needs an ordinal's claim no more: its pod template asks for
    other claims, or the ordinal is never wanted again, or is scaled away with its claim."""
    sticky = sticky_of(spec)
    if sticky is None:
        return False
    still = ordinal_wish(workload, sticky.ordinal)
    scaled_away = still is OrdinalWish.NOT_NOW and sticky.when_scaled == DELETE
    return still is OrdinalWish.NEVER or scaled_away or not _asks(workload, spec)


def sticky_of(spec: ClaimReservationSpec) -> StickyClaim | None:
    """The ordinal of the reservation's claim, and what becomes of it; None also for a kind that has
    no ordinals: a user may have written one all the same."""
    ref = spec.workload_ref
    return spec.sticky if (ref.api_group, ref.kind) in ORDINAL_WORDS else None


def _asks(workload: Workload, spec: ClaimReservationSpec) -> bool:
    """Whether the pod template of the ordinal's next pod asks for the claim, or may do so: below
    the partition of a rolling update, that pod has an earlier template."""
    sticky = sticky_of(spec)
    if sticky is None:
        return False
    if may_have_earlier_template(workload, sticky.ordinal):
        return True
    names = asked_names(template_of(workload), spec.workload_ref, sticky.ordinal)
    return spec.resource_claim_name in names


def asked_names(template: PodTemplateSpec, ref: WorkloadRef, ordinal: int) -> frozenset[str]:
    """The claims of an ordinal that the pod template asks for, of a kind that has ordinals."""
    return frozenset(
        claim_name(ref, ordinal, entry.name, entry.resource_claim_template_name or "")
        for entry in asked_entries(template)
    )
