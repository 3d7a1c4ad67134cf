"""To whom a claim is left when its reservation is withdrawn: to bound pods, and to nobody else."""

from __future__ import annotations

from claimctl.reservation.decision import SetFinalizer
from tests.support.builders import claim, finished, pending, pod_ref, reservation, running
from tests.support.stage import Stage
from tests.unit.reservation.test_protocol import ACTIVE, WORKLOAD, held_status, lists, stage


def withdrawn(*listed: str, held: bool = True) -> Stage:
    made = reservation(status=held_status(), deleting=True)
    refs = [*map(pod_ref, listed), *([WORKLOAD] if held else [])]
    return stage(claim(*refs), ACTIVE, reserved=made)


def test_a_listed_pod_that_is_not_bound_yet_is_not_left_alone_with_the_claim() -> None:
    on = withdrawn("a")
    on.put(pending("a"))
    assert on.settle(seconds=600) == []
    on.put(running("a"))
    writes = on.settle(seconds=600)
    assert lists(writes) == [((pod_ref("a"),), False)]
    assert [type(write) for write in writes[1:]] == [SetFinalizer]


def test_a_claim_that_the_scheduler_gives_up_is_released_before_its_reservation_goes() -> None:
    on = withdrawn("a")
    on.put(pending("a"))
    on.settle(seconds=60)
    assert on.claim is not None
    on.claim = claim(WORKLOAD, version="11")
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}


def test_the_reservation_stays_while_none_but_unbound_pods_are_listed() -> None:
    on = withdrawn("a", held=False)
    on.put(pending("a"))
    assert on.settle(seconds=600) == []
    on.claim = claim(version="11")
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}


def test_the_reservation_stays_until_kcm_has_taken_out_the_last_finished_pod() -> None:
    on = withdrawn("a", held=False)
    on.put(finished("a"))
    assert on.settle(seconds=9) == []
    on.claim = claim(allocated=False, version="11")
    on.settle(seconds=60)
    assert on.reservations == {}


def test_one_bound_pod_is_enough() -> None:
    on = withdrawn("a", "b")
    on.put(running("a"), pending("b"))
    assert lists(on.settle(seconds=60)) == [((pod_ref("a"), pod_ref("b")), False)]
    assert on.reservations == {}
