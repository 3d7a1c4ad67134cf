"""Remove a withdrawn hold beside a running PodGroup (see ``users.withdrawal``)."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.reservation.facts.decision import (
    Blocker,
    ConfirmPods,
    ConfirmWorkload,
    ListLivePods,
    Need,
    WriteList,
)
from claimctl.reservation.facts.membership import listed_by_group
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    is_pod_group,
    is_tombstone,
    workload_reference,
)
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.release.finalizers import in_doubt
from claimctl.reservation.release.protocol import Step
from claimctl.reservation.users.withdrawal import left_to_group, running_groups


def leave_to_group(snapshot: Snapshot, own: frozenset[str]) -> Step:
    """Remove claimctl's holds from a claim whose reservations are withdrawn.

    The tombstones of the groups' pods go in the same write: KCM finds the group in the list.

    Args:
        own: UIDs of the listed references that are claimctl's own, with those of PodGroups.
    """
    claim = snapshot.claim
    assert claim is not None
    holds = {each.uid for each in snapshot.references if each.uid in own and not is_pod_group(each)}
    if not holds or not left_to_group(snapshot):
        return Step()
    if (left := max(in_doubt(snapshot, held) for held in snapshot.reservations)) > 0:
        text = "waits until every controller sees that the reservation is withdrawn"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    if needs := tuple(_needs(snapshot)):
        return Step(needs=needs)
    live = snapshot.live()
    if live is None or not _keeps_the_claim(snapshot, live):
        return Step()
    finished = Consumers.of(live.pods).finished
    covered = {uid for uid, pod in finished.items() if listed_by_group(snapshot, pod)}
    remaining = tuple(
        each
        for each in snapshot.references
        if each.uid not in holds and not (is_tombstone(each) and each.uid in covered)
    )
    version = claim.metadata.resource_version
    return Step(write=WriteList(version, remaining, reason=Reason.WITHDRAWN))


def _needs(snapshot: Snapshot) -> Iterator[Need]:
    """The live reads that are missing: the workloads, the pods, and the groups with bound pods."""
    claim, evidence = snapshot.claim, snapshot.evidence
    assert claim is not None
    for held in snapshot.reservations:
        if held.workload.exists and not held.workload.confirmed:
            yield ConfirmWorkload(workload_reference(held.reservation.spec.workload_ref, ""))
    live = snapshot.live()
    if live is None:
        yield ListLivePods(claim.metadata.resource_version)
        return
    groups = running_groups(snapshot, live.pods)
    known = evidence.present_pods | evidence.gone_pods
    if unconfirmed := tuple(each for each in groups if each.uid not in known):
        yield ConfirmPods(unconfirmed)


def _keeps_the_claim(snapshot: Snapshot, live: LiveList) -> bool:
    groups = running_groups(snapshot, live.pods)
    return any(each.uid in snapshot.evidence.present_pods for each in groups)
