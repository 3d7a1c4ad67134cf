"""Reservations by annotation: which ClaimReservations an annotated workload should have.

The annotation ``claimctl.io/reserve`` is ``*`` (every claim that the pod template names by
resourceClaimName) or a comma-separated list of claim names. Each claim gets a ClaimReservation
that the workload owns, unless a user has created one for the same workload and claim. An annotation
that an object above decides about makes none (``facts.ancestors``).

``plan`` compares what the annotations ask for with the reservations that are there:
``_wanted_claims`` reads the claims, and ``settings_of`` the settings from the other annotations.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

import msgspec

from claimctl.reservation.facts.ancestors import OWN, AnnotationStanding, Authority
from claimctl.reservation.facts.reasons import Reason, RetentionPolicy
from claimctl.reservation.facts.workloads import WorkloadPhase, named_claims, observe
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import PodTemplateSpec
from claimctl.wire.reservations import (
    FINALIZER,
    MANAGED_LABEL,
    POD_GROUP_ANNOTATION,
    RESERVE_ANNOTATION,
    STICKY_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    WorkloadRef,
)
from claimctl.wire.workloads import Workload, template_of

RETENTION_ANNOTATION = "claimctl.io/retention-policy"
IDLE_TIMEOUT_ANNOTATION = "claimctl.io/idle-timeout-seconds"
WHEN_SCALED_ANNOTATION = "claimctl.io/when-scaled"
"""What happens to the sticky claims of ordinals that are scaled away: Retain or Delete."""
WHEN_DELETED_ANNOTATION = "claimctl.io/when-deleted"
"""What happens to the sticky claims of a workload that is deleted: Delete or Retain."""
_PREFIX = "claimctl.io/"
OF_WORKLOADS = (
    *(RESERVE_ANNOTATION, RETENTION_ANNOTATION, IDLE_TIMEOUT_ANNOTATION),
    *(WHEN_SCALED_ANNOTATION, WHEN_DELETED_ANNOTATION),
    *(POD_GROUP_ANNOTATION, STICKY_ANNOTATION),
)
"""The annotations that people write on workloads."""
MOST_CLAIMS = 256
"""The most claims that are reserved for one workload by annotation, and the most entries of its
list that are read."""
MOST_PROBLEMS = 10
"""The most problems of one workload that are reported at a time."""
MAX_NAME = 253
_HASH_LENGTH = 10
_DIGEST = re.compile(rf"[0-9a-f]{{{_HASH_LENGTH}}}")
_MAX_TIMEOUT = 2**31 - 1
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an annotation. The controller records it as an Event on the workload."""

    reason: Reason
    note: str


@dataclass(frozen=True, slots=True)
class AnnotationPlan:
    """The changes that give the workload the reservations that its annotations ask for."""

    create: tuple[ClaimReservation, ...] = ()
    update: tuple[tuple[ClaimReservation, ClaimReservationSpec], ...] = ()
    delete: tuple[ClaimReservation, ...] = ()
    left_over: tuple[ClaimReservation, ...] = ()
    """Those of earlier workloads of that name, to be deleted after the new ones are there."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotated:
    """A workload and the reservations in its namespace that name it or are owned by it.

    Those that the workload owns were made for its annotation (``owned``). Others name it: a user
    has created them (``explicit``), or they are those of earlier workloads of its name
    (``left_over``).
    """

    ref: WorkloadRef
    api_version: str
    workload: Workload
    reservations: tuple[ClaimReservation, ...] = ()
    by_pods: frozenset[str] | None = None
    """The claims that pods of the workload have named; None if its pod template says it."""
    authority: Authority = OWN
    """Whether the annotation of the workload counts."""
    kept: frozenset[str] = frozenset()
    """The claims that the workload holds on although an object above decides (``must_keep``)."""

    @property
    def meta(self) -> ObjectMeta:
        return self.workload.metadata

    def owned(self) -> dict[str, ClaimReservation]:
        """The reservations that the workload owns, by claim; not those of sticky claims, which come
        and go with its ordinals."""
        owners = [
            (reservation, reservation.metadata.controller()) for reservation in self.reservations
        ]
        return {
            reservation.spec.resource_claim_name: reservation
            for reservation, owner in owners
            if owner is not None and owner.uid == self.meta.uid and not reservation.spec.sticky
        }

    def explicit(self) -> frozenset[str]:
        """The claims for which a user has created a ClaimReservation of this workload."""
        left = {reservation.metadata.name for reservation in self.left_over()}
        return frozenset(
            reservation.spec.resource_claim_name
            for reservation in self.reservations
            if reservation.spec.workload_ref == self.ref
            and reservation.metadata.controller() is None
            and reservation.metadata.name not in left
        )

    def left_over(self) -> tuple[ClaimReservation, ...]:
        """The reservations of earlier workloads of that name (see ``is_orphan``)."""
        return tuple(
            reservation
            for reservation in self.reservations
            if is_orphan(reservation)
            and reservation.metadata.name
            != reservation_name(self.ref, self.meta.uid, reservation.spec.resource_claim_name)
        )


def plan(annotated: Annotated) -> AnnotationPlan:
    """The reservations to create, update and delete, and what is wrong with the annotations."""
    # 1. Nothing changes if the workload is being deleted, or if it is open whether the annotation
    # counts. If an object above decides, the annotation makes nothing.
    standing = annotated.authority.standing
    if annotated.meta.deleting or standing is AnnotationStanding.OPEN:
        return AnnotationPlan()
    if standing is AnnotationStanding.ABOVE:
        return _left_to_ancestor(annotated)
    # 2. What the annotation does not ask for goes, and what earlier workloads have left over.
    wanted, problems = _wanted_claims(annotated)
    spec, invalid_settings = _settings(annotated)
    owned = annotated.owned()
    unwanted = [owned[claim] for claim in sorted(owned.keys() - set(wanted))]
    changes = AnnotationPlan(
        delete=tuple(reservation for reservation in unwanted if not reservation.metadata.deleting),
        left_over=tuple(
            reservation
            for reservation in annotated.left_over()
            if not reservation.metadata.deleting
        ),
        problems=(*problems, *invalid_settings),
    )
    if invalid_settings:
        return changes
    # 3. A reservation that is there gets the settings of the annotations.
    updates = []
    for reservation in (owned[claim] for claim in wanted if claim in owned):
        updated = msgspec.structs.replace(
            reservation.spec,
            retention_policy=spec.retention_policy,
            idle_timeout_seconds=spec.idle_timeout_seconds,
        )
        if updated != reservation.spec and not reservation.metadata.deleting:
            updates.append((reservation, updated))
    # 4. A missing one is made. A finished Job gets none.
    ended = observe(annotated.workload, "").phase is WorkloadPhase.ENDED
    missing = (claim for claim in wanted if claim not in owned and not ended)
    create = tuple(_make(annotated, spec, claim) for claim in missing)
    return replace(changes, create=create, update=tuple(updates))


def _left_to_ancestor(annotated: Annotated) -> AnnotationPlan:
    """Give up what the annotation has made, apart from what has to be kept."""
    made = (*annotated.owned().values(), *annotated.left_over())
    given_up = (
        reservation
        for reservation in made
        if reservation.spec.resource_claim_name not in annotated.kept
        and not reservation.metadata.deleting
    )
    return AnnotationPlan(delete=tuple(sorted(given_up, key=lambda it: it.metadata.name)))


def must_keep(
    annotated: Annotated, claim: ResourceClaim, reservations: Iterable[ClaimReservation]
) -> bool:
    """Whether the workload's hold of a claim has to stay although an object above decides: that
    object asks for the claim, and would lose its devices between the two holds.

    Args:
        reservations: all those of the claim.
    """
    ancestor = annotated.authority.ancestor
    asked = ancestor.annotations.get(RESERVE_ANNOTATION) if ancestor is not None else None
    if ancestor is None or asked is None or claim.status.allocation is None:
        return False
    name = claim.metadata.name
    if asked.strip() != "*" and name not in {part.strip() for part in asked.split(",")}:
        return False
    listed = {entry.uid for entry in claim.status.reserved_for}
    ref = WorkloadRef(api_group=ancestor.group, kind=ancestor.kind, name=ancestor.name)
    is_asked_for = any(
        reservation.spec.workload_ref == ref and not reservation.metadata.deleting
        for reservation in reservations
    )
    # beside a PodGroup, or for a driver that wants one pod alone, neither hold is in the list
    taken_over = ancestor.uid in listed or annotated.meta.uid not in listed
    return not (is_asked_for and taken_over)


_TOO_MANY = Problem(
    Reason.LIMIT_EXCEEDED,
    f"{RESERVE_ANNOTATION} asks for more than {MOST_CLAIMS} claims, and the others are not "
    "reserved: create ClaimReservations for them",
)


def _wanted_claims(annotated: Annotated) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The claims to reserve, in the order of the annotation, and the problems of the others."""
    value = annotated.meta.annotation(RESERVE_ANNOTATION)
    if value is None:
        return (), ()
    named, explicit = named_claims(template_of(annotated.workload)), annotated.explicit()
    if annotated.by_pods is not None:
        # a claim stays reserved between two pods, and while the workload waits for its first one
        owned = annotated.owned()
        new = annotated.by_pods - owned.keys()
        named = (*sorted(owned), *sorted(new))
    if value.strip() != "*":
        return _listed_claims(annotated, value, frozenset(named), explicit)
    if not named and annotated.by_pods is None:
        return (), (_matches_nothing(template_of(annotated.workload)),)
    wanted = tuple(claim for claim in named if claim not in explicit)
    return wanted[:MOST_CLAIMS], (_TOO_MANY,) if len(wanted) > MOST_CLAIMS else ()


def _listed_claims(
    annotated: Annotated, value: str, named: frozenset[str], explicit: frozenset[str]
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The claims to reserve, and the problems, of an annotation that is a list of claims."""
    # of a value of 250 kB, only the first entries are split off
    first = value.split(",", MOST_CLAIMS)
    rest = first.pop() if len(first) > MOST_CLAIMS else ""
    asked = dict.fromkeys(part.strip() for part in first if part.strip())
    problems = []
    if not asked:
        note = f'{RESERVE_ANNOTATION}: "{_short(value)}" names no claim: use "*" or claim names'
        problems.append(Problem(Reason.INVALID_ANNOTATION, note))
    for claim in asked:
        if not is_object_name(claim):
            note = f'{RESERVE_ANNOTATION}: "{_short(claim)}" is no name of a ResourceClaim'
            problems.append(Problem(Reason.INVALID_ANNOTATION, note))
        elif claim not in named and annotated.by_pods is None:
            note = (
                f"{RESERVE_ANNOTATION} names claim {claim}, but the pod template does not "
                "(spec.resourceClaims[].resourceClaimName)"
            )
            problems.append(Problem(Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE, note))
    if more := len(problems[MOST_PROBLEMS:]):
        note = f"{RESERVE_ANNOTATION}: {more} more entries have such problems; correct the "
        note += f"{MOST_PROBLEMS} reported ones first"
        problems[MOST_PROBLEMS:] = [Problem(Reason.INVALID_ANNOTATION, note)]
    wanted = tuple(claim for claim in asked if claim in named and claim not in explicit)
    return wanted, (*problems, *((_TOO_MANY,) if rest.strip() else ()))


def _matches_nothing(template: PodTemplateSpec) -> Problem:
    """What to tell a workload whose ``*`` asks for no claim."""
    note = f'{RESERVE_ANNOTATION}: "*" matches no claim: the pod template names none by '
    note += "spec.resourceClaims[].resourceClaimName"
    if any(claim.resource_claim_template_name for claim in template.spec.resource_claims):
        whose, it = ("each pod", "the pod")
        if template.spec.group_name:
            whose, it = ("the PodGroup, or each pod,", "it")
        note += (
            f", and with resourceClaimTemplateName {whose} has a claim of its own, which goes "
            f"with {it}; name one claim for all pods instead, or write {STICKY_ANNOTATION} into "
            "the pod template"
        )
    return Problem(Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE, note)


def _settings(annotated: Annotated) -> tuple[ClaimReservationSpec, tuple[Problem, ...]]:
    """The settings by the other annotations, and a problem for each invalid annotation. Without
    ``claimctl.io/reserve`` they have no effect."""
    spec = ClaimReservationSpec(workload_ref=annotated.ref)
    if annotated.meta.annotation(RESERVE_ANNOTATION) is None:
        return spec, ()
    return settings_of(annotated.meta, spec)


def settings_of(
    meta: ObjectMeta, spec: ClaimReservationSpec
) -> tuple[ClaimReservationSpec, tuple[Problem, ...]]:
    """The spec with the settings by the workload's annotations, the defaults where there is none;
    and a problem for each invalid annotation.

    A further setting has its annotation in ``OF_WORKLOADS``, is read here, and has a line in step
    3 of ``plan``. Those of sticky claims alone are read in ``reservation.sticky``.
    """
    default, problems = ClaimReservationSpec(), []
    spec = msgspec.structs.replace(
        spec,
        retention_policy=default.retention_policy,
        idle_timeout_seconds=default.idle_timeout_seconds,
    )
    policy = meta.annotation(RETENTION_ANNOTATION)
    if policy == RetentionPolicy.MANUAL:
        # the reservation is owned by the workload, so that it could not outlive it
        note = f'{RETENTION_ANNOTATION}: "Manual" is not possible by annotation, because the '
        note += "reservation goes with its workload; create a ClaimReservation with "
        note += "retentionPolicy Manual instead"
        problems.append(Problem(Reason.INVALID_ANNOTATION, note))
    elif policy is not None and policy not in set(RetentionPolicy):
        problems.append(_problem(RETENTION_ANNOTATION, policy, "WhileRunning or Persistent"))
    elif policy is not None:
        spec = msgspec.structs.replace(spec, retention_policy=policy)
    timeout = meta.annotation(IDLE_TIMEOUT_ANNOTATION)
    digits = timeout is not None and re.fullmatch(r"[0-9]{1,10}", timeout) is not None
    if timeout is not None and (not digits or int(timeout) > _MAX_TIMEOUT):
        problems.append(_problem(IDLE_TIMEOUT_ANNOTATION, timeout, "a whole number of seconds"))
    elif timeout is not None:
        spec = msgspec.structs.replace(spec, idle_timeout_seconds=int(timeout))
    return spec, tuple(problems)


def _problem(annotation: str, value: str, wanted: str) -> Problem:
    return Problem(Reason.INVALID_ANNOTATION, f'{annotation}: "{_short(value)}" is not {wanted}')


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _make(annotated: Annotated, spec: ClaimReservationSpec, claim: str) -> ClaimReservation:
    """The reservation of a claim; the workload owns it."""
    meta = annotated.meta
    return ClaimReservation(
        metadata=ObjectMeta(
            name=reservation_name(annotated.ref, meta.uid, claim),
            namespace=meta.namespace,
            labels={MANAGED_LABEL: "claimctl"},
            owner_references=(
                OwnerReference(
                    api_version=annotated.api_version,
                    kind=annotated.ref.kind,
                    name=meta.name,
                    uid=meta.uid,
                    controller=True,
                ),
            ),
            finalizers=(FINALIZER,),
        ),
        spec=msgspec.structs.replace(spec, resource_claim_name=claim),
    )


def reservation_name(ref: WorkloadRef, uid: str, claim: str) -> str:
    """The deterministic name of the reservation that a workload owns for a claim."""
    return hashed_name(f"{ref.name}-{claim}", ref.api_group, ref.kind, ref.name, uid, claim)


def is_orphan(reservation: ClaimReservation) -> bool:
    """Whether claimctl made the reservation for an annotation, and nothing owns it any more: a
    workload that is deleted with cascade=orphan (what batch/v1 does by default) leaves it behind.
    """
    meta, spec = reservation.metadata, reservation.spec
    if spec.sticky or meta.owner_references:
        return False
    if (meta.labels or {}).get(MANAGED_LABEL) != "claimctl":
        return False
    stem, _, digest = meta.name.rpartition("-")
    form = hashed_name(f"{spec.workload_ref.name}-{spec.resource_claim_name}")
    return stem == form.rpartition("-")[0] and _DIGEST.fullmatch(digest) is not None


def hashed_name(stem: str, *parts: str) -> str:
    """The name that the parts determine. It begins with the stem, as far as that fits."""
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:_HASH_LENGTH]
    return f"{stem[: MAX_NAME - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


def is_object_name(name: str) -> bool:
    """Whether the API server accepts the name for a claim (RFC 1123 subdomain)."""
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def misspelled(meta: ObjectMeta) -> tuple[str, ...]:
    """What is wrong with the names of a workload's annotations: those of claimctl's prefix that
    claimctl does not know, each as a sentence with the name that is meant."""
    unknown = (name for name in meta.annotations or () if name.startswith(_PREFIX))
    return tuple(
        f"claimctl knows no annotation {name}; did you mean "
        f"{next(iter(get_close_matches(name, OF_WORKLOADS, 1, 0.0)))}?"
        for name in sorted(unknown)
        if name not in OF_WORKLOADS
    )
