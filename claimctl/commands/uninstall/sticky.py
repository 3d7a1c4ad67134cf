"""What is left of sticky claims, and in which order it goes.

While the policy is in force, new pods name claims that only a controller makes. A controller makes
a ClaimReservation for each pod that has the policy's note. So the binding of the policy goes first,
then the notes of the pods, then the ClaimReservations. Pods run on, and own their claims from then
on: the claims go with them, as generated ones do.
"""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.commands.uninstall.model import Scan, Why
from claimctl.reservation.facts.ordinals import sticky_entries
from claimctl.reservation.facts.snapshot import is_made_for
from claimctl.text import listed
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import STICKY_ANNOTATION, STICKY_CLAIMS_ANNOTATION, ClaimReservation

POLICY_BINDING = "MutatingAdmissionPolicyBinding"
IN_FORCE = (
    "gives new pods of ordinals claims that only claimctl makes; if it comes back, remove it where "
    "the manifest is kept"
)
IN_FORCE_ELSEWHERE = (
    "gives new pods of ordinals claims that claimctl makes, in every namespace: leave --namespace "
    f"out, or remove {STICKY_ANNOTATION} from the pod templates of the namespace first"
)


def unmade(pod: Pod, scan: Scan) -> tuple[str, ...]:
    """The sticky claims that the pod waits for because nobody has made them."""
    place = pod.metadata.namespace
    return tuple(it.claim for it in sticky_entries(pod) if (place, it.claim) not in scan.claim_of)


def withdrawable(scan: Scan) -> Iterator[ClaimReservation]:
    """The ClaimReservations that may be deleted now.

    Those of sticky claims wait until the policy is out of force, and until no pod waits for their
    claim.
    """
    waiting = {(pod.metadata.namespace, name) for pod in scan.noted for name in unmade(pod, scan)}
    for reservation in scan.reservations:
        meta, spec = reservation.metadata, reservation.spec
        if meta.deleting:
            continue
        needed = (meta.namespace, spec.resource_claim_name) in waiting
        if spec.sticky is None or not (scan.bindings or needed):
            yield reservation


def may_lose_note(scan: Scan) -> Iterator[Pod]:
    """The pods whose note may go: the policy is out of force, and each has its claims."""
    for pod in scan.noted if not scan.bindings else ():
        if not unmade(pod, scan):
            yield pod


def left(scan: Scan) -> Iterator[tuple[ObjectMeta, str, str, str]]:
    """What is left besides ClaimReservations: of each object its metadata, its kind, the reason and
    the message."""
    text = IN_FORCE_ELSEWHERE if scan.scoped else IN_FORCE
    for binding in scan.bindings:
        yield binding.metadata, POLICY_BINDING, Why.NAMES_CLAIMS, text
    for pod in scan.noted:
        meta, missing = pod.metadata, unmade(pod, scan)
        if missing:
            text = (
                f"waits for {listed(missing)}, which claimctl has not made: run again, or delete "
                "the pod, then the next one gets a generated claim (kubectl delete pod "
                f"-n {meta.namespace} {meta.name})"
            )
            yield meta, "Pod", Why.WAITS_FOR_CLAIM, text
        elif not scan.scoped or not scan.bindings:
            text = f"has the annotation {STICKY_CLAIMS_ANNOTATION}"
            yield meta, "Pod", Why.ANNOTATED, f"{text}, by which a controller holds its claims"


def fate(reservation: ClaimReservation, scan: Scan) -> str:
    """What becomes of the claim of an ordinal when its ClaimReservation is deleted; '' for other
    reservations, and where somebody else made the claim."""
    meta, spec = reservation.metadata, reservation.spec
    scanned = scan.claim_of.get((meta.namespace, spec.resource_claim_name))
    if spec.sticky is None or scanned is None or not is_made_for(scanned.claim, reservation):
        return ""
    if names := sorted(pod.metadata.name for pod in scanned.live.pods):
        return f"its claim goes with the pods that name it: {listed(names)}"
    if scanned.live.unreadable:
        return "its claim stays: pods cannot be read"
    return "its claim is deleted: no pod names it"
