"""Sticky claims: which claim belongs to which ordinal of a workload, and who still wants it.

The policies of the component ``sticky-claims`` give each pod the name of its ordinal's claim when
the pod is created. Here is the same rule, so that claimctl believes no pod that says something
else. The name tells the ordinal: a workload whose pods have host names has no dot in its name, and
an entry of ``spec.resourceClaims`` never has one.

The pods of a LeaderWorkerSet belong to StatefulSets: those of the leaders to one with its name,
which counts the groups, and the workers of a group to one with the name of their leader.

A kind whose pods have another form of name is a case of ``_candidates``. Whether a workload wants
an ordinal is a case of ``wire.ordinals``, or of ``_wish`` if a WorkloadKind says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from claimctl.reservation.facts.pods import claim_names, is_done
from claimctl.reservation.facts.workloads import JudgedWorkload, WorkloadPhase, WorkloadState
from claimctl.wire.meta import OwnerReference
from claimctl.wire.ordinals import (
    LEADER_WORKER_SET,
    STATEFUL_SET,
    Ordinal,
    OrdinalWish,
    WorkloadPart,
    has_groups,
    may_have_earlier_template,
    ordinal_wish,
    ordinal_word,
    part_for,
)
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
from claimctl.wire.workloads import CustomWorkload, Workload, template_of

_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class OrdinalFacts:
    """What says which claim the next pod of an ordinal has, besides the workload."""

    pods: tuple[Pod, ...] = ()
    """The workload's pods of the ordinal."""
    part: Workload | None = None
    """The part of the workload that makes them; None if it is not there, or not known."""


NOTHING_KNOWN = OrdinalFacts()


@dataclass(frozen=True, slots=True)
class StickyEntry:
    """An entry of a pod that names the claim of the pod's ordinal."""

    claim: str
    template: str
    ordinal: Ordinal
    workload: WorkloadRef
    owner: OwnerReference | None
    """The pod's controller, if that is the workload; else the pod does not name its UID."""


def claim_name(ref: WorkloadRef, ordinal: Ordinal, entry: str, template: str) -> str:
    """The name of an ordinal's claim; the workload's kind has ordinals."""
    word = ordinal_word(ref.api_group, ref.kind)
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
    for entry in pod.spec.resource_claims:
        template, name = templates.get(entry.name, ""), entry.resource_claim_name or ""
        for ref, ordinal in _candidates(pod, owner, name) if template else ():
            if name == claim_name(ref, ordinal, entry.name, template):
                direct = owner if ref == owner_ref(owner) else None
                yield StickyEntry(name, template, ordinal, ref, direct)


def _candidates(
    pod: Pod, owner: OwnerReference, claim: str
) -> Iterator[tuple[WorkloadRef, Ordinal]]:
    """The workloads, each with an ordinal, that a claim of this name may belong to."""
    ref = owner_ref(owner)
    kind = (ref.api_group, ref.kind)
    if ordinal_word(*kind) and claim.startswith(f"{ref.name}-"):
        # NAME-NUMBER, or NAME-GROUP-MEMBER
        index, dash, member = claim[len(ref.name) + 1 :].partition(".")[0].partition("-")
        if not dash and (number := _number(index)) is not None:
            yield ref, Ordinal(number)
        elif has_groups(ref.api_group):
            yield from _in_group(ref.name, index, member, *kind)
    yield from _wholes(pod, owner)


def places_by_name(pod: Pod) -> Iterator[tuple[WorkloadRef, Ordinal]]:
    """The workloads, each with an ordinal, that a pod may belong to by its name, whatever claims it
    names."""
    owner = pod.metadata.controller()
    if owner is None or _kind(owner) != STATEFUL_SET:
        return
    if (number := _number(_after_owner(pod, owner))) is not None:
        yield owner_ref(owner), Ordinal(number)
    yield from _wholes(pod, owner)


def _wholes(pod: Pod, owner: OwnerReference) -> Iterator[tuple[WorkloadRef, Ordinal]]:
    """The workloads that the pod's StatefulSet may be a part of, each with the pod's ordinal."""
    if _kind(owner) == STATEFUL_SET:
        last = _after_owner(pod, owner)
        yield from _in_group(owner.name, last, "0", *LEADER_WORKER_SET)
        name, _, group = owner.name.rpartition("-")
        yield from _in_group(name, group, last, *LEADER_WORKER_SET)


def _kind(owner: OwnerReference) -> tuple[str, str]:
    ref = owner_ref(owner)
    return ref.api_group, ref.kind


def _after_owner(pod: Pod, owner: OwnerReference) -> str:
    """What the pod's name has after that of its owner."""
    return pod.metadata.name.removeprefix(f"{owner.name}-")


def _in_group(
    name: str, index: str, member: str, api_group: str, kind: str
) -> Iterator[tuple[WorkloadRef, Ordinal]]:
    """The workload of this name with the ordinal that two numbers make; nothing if they are
    none."""
    numbers = _number(index), _number(member)
    if name and numbers[0] is not None and numbers[1] is not None:
        ref = WorkloadRef(api_group=api_group, kind=kind, name=name)
        yield ref, Ordinal(numbers[0], numbers[1])


def _number(digits: str) -> int | None:
    """The number that the digits say; None if they are none, or too many for an ordinal."""
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
    state: WorkloadState,
    workload: Workload | None,
    spec: ClaimReservationSpec,
    facts: OrdinalFacts = NOTHING_KNOWN,
) -> WorkloadState:
    """The state of a workload as far as it concerns one ordinal's claim.

    Args:
        state: of the workload as a whole.
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
    asked, wish = _asks(workload, spec, facts), _wish(workload, spec, facts)
    idle = state.phase is WorkloadPhase.ACTIVE and wish is not OrdinalWish.YES
    # a rule need not say how many pods its workload wants
    wants = state.wants or (state.by_pods and state.phase is WorkloadPhase.ACTIVE)
    ended = state.phase is WorkloadPhase.ENDED
    return replace(
        state,
        phase=WorkloadPhase.IDLE if idle else state.phase,
        wants=1 if wants and wish is OrdinalWish.YES else 0,
        names_claim=asked,
        claim_over=ended or is_superfluous(workload, spec, facts),
    )


def is_superfluous(
    workload: Workload, spec: ClaimReservationSpec, facts: OrdinalFacts = NOTHING_KNOWN
) -> bool:
    """Whether the workload, as it is, needs an ordinal's claim no more: its pod template asks for
    other claims, or the ordinal is never wanted again, or is scaled away with its claim."""
    sticky = sticky_of(spec)
    if sticky is None:
        return False
    wish = _wish(workload, spec, facts)
    scaled_away = wish is OrdinalWish.NOT_NOW and sticky.when_scaled == DELETE
    return wish is OrdinalWish.NEVER or scaled_away or not _asks(workload, spec, facts)


def sticky_of(spec: ClaimReservationSpec) -> StickyClaim | None:
    """The ordinal of the reservation's claim, and what becomes of it; None also for a kind that has
    no ordinals: a user may have written one all the same."""
    ref = spec.workload_ref
    return spec.sticky if ordinal_word(ref.api_group, ref.kind) else None


def part_of(spec: ClaimReservationSpec) -> WorkloadPart | None:
    """The part of the reservation's workload that makes the pods of the ordinal; None if the
    workload makes them itself, or the claim is not sticky."""
    sticky, ref = sticky_of(spec), spec.workload_ref
    return part_for(ref.api_group, ref.kind, ref.name, sticky.whose) if sticky is not None else None


def _wish(workload: Workload, spec: ClaimReservationSpec, facts: OrdinalFacts) -> OrdinalWish:
    """Whether the workload wants a pod of the ordinal, now or later.

    A part may want more pods than its workload: an update may add groups for a while, and leaves
    the groups that it has not reached as large as they were.
    """
    sticky, part = spec.sticky, part_of(spec)
    assert sticky is not None
    if not isinstance(workload, JudgedWorkload):
        return ordinal_wish(workload, sticky.ordinal)
    in_part = OrdinalWish.NOT_NOW
    if part is not None and facts.part is not None:
        in_part = ordinal_wish(facts.part, part.ordinal)
    if in_part is OrdinalWish.YES:
        return in_part
    for number, count in zip(sticky.whose, workload.verdict.ordinals, strict=False):
        if number is not None and count is not None and number >= count:
            return OrdinalWish.NOT_NOW
    return OrdinalWish.YES


def _asks(workload: Workload, spec: ClaimReservationSpec, facts: OrdinalFacts) -> bool:
    """Whether the pod template of the ordinal's next pod asks for the claim, or may do so.

    The template is that of the workload, or of its part that makes the pod. The present pod of the
    ordinal says it where the template is not read, and below the partition of a rolling update.
    """
    sticky, part = sticky_of(spec), part_of(spec)
    if sticky is None:
        return False
    maker, ordinal = workload, sticky.ordinal
    if part is not None:
        if facts.part is None:
            return True
        maker, ordinal = facts.part, part.ordinal
    claim = spec.resource_claim_name
    if isinstance(maker, CustomWorkload) or may_have_earlier_template(maker, ordinal):
        alive = [pod for pod in facts.pods if not pod.metadata.deleting and not is_done(pod)]
        return not alive or any(claim in claim_names(pod) for pod in alive)
    return claim in asked_names(template_of(maker), spec.workload_ref, sticky.whose)


def asked_names(template: PodTemplateSpec, ref: WorkloadRef, ordinal: Ordinal) -> frozenset[str]:
    """The claims of an ordinal that the pod template asks for, of a kind that has ordinals."""
    return frozenset(
        claim_name(ref, ordinal, entry.name, entry.resource_claim_template_name or "")
        for entry in asked_entries(template)
    )
