"""A sticky claim is made when a pod names it, and deleted when nobody will use it again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import (
    ChangeReservation,
    ConfirmWorkload,
    CreateClaim,
    CreateReservation,
    DeleteClaim,
    DeleteReservation,
    ListLivePods,
    WriteList,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import LiveList, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, StickyClaim
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    pending,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import held_status
from tests.support.stage import DecisionStage

WANTED = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
OVER = replace(WANTED, claim_over=True, names_claim=False)
HOLD = deployment_ref()
STICKY = StickyClaim(ordinal=0)
MAKER = OwnerReference(kind="ClaimReservation", uid="uid-train-slice", controller=True)


def sticky(**changes: object) -> ClaimReservation:
    spec = {"sticky": STICKY, "resource_claim_template_name": "big"}
    return reservation(**{**spec, **changes})  # type: ignore[arg-type]  # fields of the spec


def made(found: ResourceClaim) -> ResourceClaim:
    """The claim, made by claimctl."""
    return structs.replace(
        found, metadata=structs.replace(found.metadata, owner_references=(MAKER,))
    )


FREE = made(claim(allocated=False, finalizer=False))


def snapshot(
    found: ResourceClaim | None,
    state: WorkloadState = WANTED,
    *pods: Pod,
    of: ClaimReservation | None = None,
) -> Snapshot:
    given = of or sticky()
    on = DecisionStage(found, {given.metadata.name: (given, state)})
    for pod in pods:
        on.put(pod)
    return on.snapshot()


@pytest.mark.parametrize(
    ("pods", "creates"),
    [((pending("a"),), True), ((), False), ((finished("a"),), False)],
    ids=["a pod names it", "no pod", "its pod has ended"],
)
def test_a_claim_is_made_for_a_pod_that_names_it(pods: tuple[Pod, ...], creates: bool) -> None:
    assert isinstance(decide(snapshot(None, WANTED, *pods)).write, CreateClaim) == creates


def test_a_missing_reservation_comes_before_everything_else() -> None:
    wanted = sticky()
    asked = replace(snapshot(None), reservations=(), to_create=wanted)
    assert decide(asked).write == CreateReservation(wanted)
    retires = replace(asked, rules=Rules(makes_reservations=False))
    assert decide(retires).write is None


def test_a_setting_that_has_changed_is_written() -> None:
    known = snapshot(FREE, WANTED, pending("a"))
    wanted = sticky(retention_policy="Persistent")
    (held,) = known.reservations
    changed = replace(known, reservations=(replace(held, wanted=wanted),))
    assert decide(changed).write == ChangeReservation(held.reservation, wanted)
    same = replace(known, reservations=(replace(held, wanted=held.reservation),))
    assert not isinstance(decide(same).write, ChangeReservation)


def live(found: Snapshot, *pods: Pod, version: str = "10") -> Snapshot:
    """The snapshot with the answer of a live LIST."""
    listed = LiveList(version, pods, frozenset(pod.metadata.uid for pod in pods))
    return replace(found, evidence=replace(found.evidence, live=listed))


def settled(found: Snapshot) -> Snapshot:
    """The snapshot after all statuses are written."""
    for _ in range(5):
        statuses = decide(found).statuses
        found = replace(
            found,
            reservations=tuple(
                replace(
                    held,
                    reservation=structs.replace(
                        held.reservation, status=statuses.get(held.name, held.reservation.status)
                    ),
                )
                for held in found.reservations
            ),
        )
    return found


def test_a_claim_that_is_over_is_deleted_after_a_live_list_without_a_pod() -> None:
    found = settled(snapshot(FREE, OVER))
    assert decide(found).needs == (ListLivePods("10", vanished=False),)
    assert decide(live(found)).write == DeleteClaim("uid-slice", "10")
    assert decide(live(found, finished("a"))).write == DeleteClaim("uid-slice", "10")
    # the cache was late
    for pod in (pending("a"), running("a")):
        decision = decide(live(found, pod))
        assert (decision.write, decision.needs) == (None, ())
    # the LIST was made for another version
    assert decide(live(found, version="9")).needs == (ListLivePods("10", vanished=False),)


@pytest.mark.parametrize(
    ("found", "state", "pods"),
    [
        (FREE, WANTED, ()),
        (FREE, OVER, (pending("a"),)),
        (claim(allocated=False, finalizer=False), OVER, ()),
    ],
    ids=["still wanted", "a pod names it", "somebody else made it"],
)
def test_a_claim_stays(found: ResourceClaim, state: WorkloadState, pods: tuple[Pod, ...]) -> None:
    decision = decide(live(settled(snapshot(found, state, *pods))))
    assert not isinstance(decision.write, DeleteClaim)


LEAVING = structs.replace(
    running("a"), metadata=ObjectMeta(name="a", uid="a", deletion_timestamp=NOW)
)


@pytest.mark.parametrize(
    ("found", "of", "pods", "goes"),
    [
        (made(claim(HOLD)), sticky(deleting=True), (), True),
        (made(claim(HOLD, pod_ref("a"))), sticky(deleting=True), (LEAVING, pending("b")), True),
        (made(claim(HOLD, pod_ref("a"))), sticky(deleting=True), (running("a"),), False),
        (claim(HOLD), sticky(deleting=True), (), False),
        (made(claim(HOLD)), reservation(deleting=True), (), False),
        (made(claim(HOLD)), sticky(), (), False),
    ],
    ids=["unused", "its pod leaves", "its pod runs", "another's", "not sticky", "stays"],
)
def test_a_claim_takes_no_new_pod_while_its_reservation_goes(
    found: ResourceClaim, of: ClaimReservation, pods: tuple[Pod, ...], goes: bool
) -> None:
    known = snapshot(found, WANTED, *pods, of=of)
    assert isinstance(decide(known).write, DeleteClaim) == goes
    # without the right to do so, the release goes on
    assert not isinstance(decide(replace(known, deletion_refused=True)).write, DeleteClaim)


def test_the_reservation_goes_after_its_claim() -> None:
    gone = snapshot(None, OVER)
    assert decide(gone).write == DeleteReservation(gone.reservations[0].reservation)
    for stays in (snapshot(None, WANTED), snapshot(None, OVER, pending("a"))):
        assert not isinstance(decide(stays).write, DeleteReservation)
    # one that is no sticky claim's
    plain = snapshot(None, OVER, of=reservation())
    assert not isinstance(decide(plain).write, DeleteReservation)


def test_the_reservation_goes_whose_claim_somebody_else_made() -> None:
    foreign = settled(snapshot(claim(allocated=False, finalizer=False), OVER))
    assert isinstance(decide(foreign).write, DeleteReservation)


@pytest.mark.parametrize(
    ("state", "pods", "policy", "releases"),
    [
        (OVER, (), "Persistent", True),
        (OVER, (), "Manual", False),
        (OVER, (running("a"),), "WhileRunning", False),
        (OVER, (pending("a"),), "WhileRunning", False),
        (WANTED, (), "WhileRunning", False),
    ],
)
def test_a_claim_that_is_over_is_released_when_its_last_pod_is_gone(
    state: WorkloadState, pods: tuple[Pod, ...], policy: str, releases: bool
) -> None:
    listed = [HOLD, *(pod_ref(pod.metadata.name) for pod in pods)]
    of, live = sticky(retention_policy=policy, status=held_status()), replace(state, confirmed=True)
    decision = decide(snapshot(made(claim(*listed)), live, *pods, of=of))
    assert (decision.releasing is Reason.ORDINAL_ENDED) == releases


def test_a_device_is_not_given_up_by_a_late_cache_of_workloads() -> None:
    found, of = made(claim(HOLD)), sticky(status=held_status())
    (need,) = decide(snapshot(found, OVER, of=of)).needs
    assert isinstance(need, ConfirmWorkload)
    # the workload is gone, or a pod uses the claim: then there is nothing to ask
    gone = WorkloadState(WorkloadPhase.ABSENT, claim_over=True)
    assert decide(snapshot(found, gone, of=of)).needs == ()
    used = decide(snapshot(made(claim(HOLD, pod_ref("a"))), OVER, running("a"), of=of))
    assert used.needs == ()


def test_a_claim_that_somebody_else_made_is_not_held() -> None:
    pod = running("a")
    foreign = decide(snapshot(claim(pod_ref("a")), WANTED, pod))
    (status,) = foreign.statuses.values()
    ready = next(found for found in status.conditions if found.type == "Ready")
    assert (ready.status, ready.reason) == ("False", Reason.STICKY_NAME_TAKEN)
    ours = decide(snapshot(made(claim(pod_ref("a"))), WANTED, pod))
    assert isinstance(ours.write, WriteList)
    assert HOLD in ours.write.reserved_for
