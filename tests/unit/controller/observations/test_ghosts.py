"""Who becomes a ghost, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.boots import BootIds
from claimctl.controller.observations.ghosts import RETENTION_SECONDS, GhostLedger
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.kube.clock import LoopClock
from claimctl.reservation.facts.memory import SeenGhost
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import OUT_OF_SERVICE, Node, Taint
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    deployment_ref,
    finished,
    node,
    pending,
    pod_ref,
    running,
)
from tests.support.hand_clock import HandClock
from tests.support.seen_ghosts import Seen, ages_of, pods_of, recorded_of, signs_of, uids_of

KEY = ClaimKey(NAMESPACE, CLAIM)


def of(ghosts: GhostLedger, key: ClaimKey, recorded: Iterable[ForceDeletedPod] = ()) -> Seen:
    ghosts.observe_record(key, recorded)
    return ghosts.of(key)


def ledger(clock: HandClock, *nodes: Node) -> GhostLedger:
    boots = BootIds()
    for each in nodes:
        boots.observe(each)
    return GhostLedger(clock, boots)


def test_a_running_pod_that_vanishes_is_a_ghost_with_its_node_and_boot() -> None:
    clock = HandClock()
    ghosts = ledger(clock, node())
    clock.time = 3
    ghosts.observe(running("a"), None)
    clock.time = 10
    ghost = ForceDeletedPod(
        uid="uid-a",
        name="a",
        node_name="node-0",
        boot_id="boot-1",
        since=after(3),
        termination_grace_period_seconds=30,
    )
    assert of(ghosts, KEY) == (SeenGhost(ghost, 7),)
    assert list(ghosts.claims_on("node-0")) == [KEY]


def test_pods_that_went_in_order_leave_no_ghost() -> None:
    ghosts = ledger(HandClock())
    ghosts.observe(finished("a"), None)
    ghosts.observe(pending("b"), None)
    ghosts.observe(None, running("c"))
    ghosts.observe(running("d"), running("d", deleting=True))
    assert of(ghosts, KEY) == ()


def test_a_pod_replaced_under_its_name_is_gone() -> None:
    ghosts = ledger(HandClock())
    successor: Pod = running("a")
    successor = replace(successor, metadata=replace(successor.metadata, uid="uid-other"))
    ghosts.observe(running("a"), successor)
    assert uids_of(of(ghosts, KEY)) == ["uid-a"]


def test_ghosts_on_record_are_known_from_when_they_were_first_read() -> None:
    clock = HandClock()
    ghosts = ledger(clock)
    recorded = ForceDeletedPod(uid="uid-z", name="z", node_name="node-9", since=after(-100))
    of(ghosts, KEY, [recorded])
    clock.time = 4
    ghosts.observe(running("a"), None)
    found = of(ghosts, KEY, [recorded])
    assert uids_of(found) == ["uid-a", "uid-z"]
    assert ages_of(found) == {"uid-a": 0, "uid-z": 4}


@pytest.mark.parametrize(
    ("shown", "ended"),
    [
        pytest.param([node(boot="boot-2")], True, id="another boot"),
        pytest.param([node(boot="")], False, id="no boot ID"),
        pytest.param([node(boot="boot-2", machine="other")], False, id="another machine"),
        pytest.param([node(boot="boot-2", machine="")], False, id="no machine"),
        pytest.param(
            [node(boot="boot-2", machine="other"), node(boot="boot-3", machine="other")],
            False,
            id="another machine, rebooted",
        ),
        pytest.param(
            [node(boot="boot-2", machine="other"), node(boot="boot-3")],
            True,
            id="the same machine after another one",
        ),
    ],
)
def test_another_boot_of_the_same_machine_ends_a_ghost_for_good(
    shown: list[Node], ended: bool
) -> None:
    boots = BootIds()
    boots.observe(node())
    ghosts = GhostLedger(HandClock(), boots)
    ghosts.observe(running("a"), None)
    recorded = pods_of(of(ghosts, KEY))
    for each in shown:
        boots.observe(each)
    assert pods_of(of(ghosts, KEY, recorded)) == (() if ended else recorded)


def test_a_boot_on_record_that_this_process_has_not_seen_proves_nothing() -> None:
    ghosts = ledger(HandClock(), node(boot="boot-2"))
    recorded = ForceDeletedPod(
        uid="uid-z", name="z", node_name="node-0", boot_id="boot-1", since=NOW
    )
    assert pods_of(of(ghosts, KEY, [recorded])) == (recorded,)


@pytest.mark.parametrize("machine", ["other", ""])
def test_the_kubelet_of_another_boot_says_nothing_of_a_ghost(machine: str) -> None:
    """Another machine may have the node's name, and the old one may run, cut off."""
    clock = HandClock()
    kubelets, boots = Kubelets(clock), BootIds()
    boots.observe(node())
    ghosts = GhostLedger(clock, boots, kubelets)
    ghosts.observe(running("a"), None)
    for at in range(3):
        clock.time = at * 10.0
        lease = Lease(spec=LeaseSpec(renew_time=micro_time(after(at * 10))))
        kubelets.read_lease("node-0", lease, clock.time)
    signs = signs_of(ghosts.of(KEY))
    assert len(signs.renewals) == 2
    boots.observe(node(boot="boot-2", machine=machine))
    assert [ghost.signs for ghost in ghosts.of(KEY)] == [None]
    assert ghosts.signs.nodes_to_watch() == {}


def test_a_node_that_is_off_runs_nothing_also_if_it_never_had_a_lease() -> None:
    ghosts = ledger(HandClock(), node())
    ghosts.observe(running("a"), None)
    ghosts.node_changed(node(taints=(Taint(key=OUT_OF_SERVICE, effect="NoExecute"),)))
    signs = signs_of(ghosts.of(KEY))
    assert signs.ended


def test_machines_that_tell_nothing_of_themselves_count_as_different() -> None:
    boots = BootIds()
    for boot in ("boot-1", "boot-2"):
        boots.observe(node(boot=boot, machine=""))
    assert not boots.rebooted("node-0", "boot-1")


def test_a_deleted_claim_takes_along_only_who_had_vanished_before() -> None:
    """The caches are not in step: who vanished later may have used its successor."""
    ghosts = ledger(HandClock())
    ghosts.observe(at_version(running("a"), "7"), None)
    ghosts.observe(at_version(running("b"), "9"), None)
    ghosts.observe(at_version(running("c"), "3"), None, relist=True)
    ghosts.forget(KEY, "8")
    assert uids_of(of(ghosts, KEY)) == ["uid-b", "uid-c"]


def test_a_ghost_outlives_its_claim_for_a_day_at_most() -> None:
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe(at_version(running("a"), "9"), None)
    ghosts.forget(KEY, "8")
    clock.time = RETENTION_SECONDS + 1
    ghosts.forget(ClaimKey(NAMESPACE, "other"), "10")
    assert list(ghosts.claims_on("node-0")) == []


def test_a_ghost_that_ended_is_kept_in_mind_only_while_it_is_on_record() -> None:
    clock, boots = HandClock(), BootIds()
    boots.observe(node())
    ghosts = GhostLedger(clock, boots)
    ghosts.observe(running("a"), None)
    recorded = pods_of(of(ghosts, KEY))
    clock.time = 5
    of(ghosts, KEY, recorded)
    assert ages_of(of(ghosts, KEY, recorded)) == {"uid-a": 5}
    boots.observe(node(boot="boot-2"))
    assert of(ghosts, KEY) == ()
    clock.time = 8
    unknown = replace(recorded[0], boot_id="")
    assert ages_of(of(ghosts, KEY, [unknown])) == {"uid-a": 0}


def test_a_pod_that_only_a_relist_shows_to_be_gone_may_have_been_bound_meanwhile() -> None:
    ghosts = ledger(HandClock())
    ghosts.observe(pending("a"), None, relist=True)
    ghosts.observe(finished("b"), None, relist=True)
    assert uids_of(of(ghosts, KEY)) == ["uid-a"]


def test_a_listed_pod_that_nobody_saw_counts_until_it_is_seen() -> None:
    ghosts = ledger(HandClock())
    ghosts.observe(finished("done"), None)
    listed = [pod_ref("unseen"), pod_ref("done"), pod_ref("there"), deployment_ref()]
    ghosts.observe_list(KEY, listed, {"uid-there"})
    assert uids_of(of(ghosts, KEY)) == ["uid-unseen"]
    ghosts.observe(None, running("unseen"))
    assert of(ghosts, KEY) == ()


def test_a_ghost_on_record_is_remembered_for_as_long_as_that() -> None:
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe(running("a"), None)
    recorded = pods_of(of(ghosts, KEY))
    clock.time = RETENTION_SECONDS + 1
    assert pods_of(of(ghosts, KEY, recorded)) == recorded
    assert of(ghosts, KEY) == ()


def at_version(pod: Pod, version: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))


def vanished_and_booted(
    pod_version: str, version: str, *, relist: bool = False, machine: str = "machine-1"
) -> GhostLedger:
    """A ledger that sees a pod vanish, and then its node with another boot ID."""
    boots = BootIds()
    boots.observe(node())
    ghosts = GhostLedger(HandClock(), boots)
    ghosts.observe(at_version(running("a"), pod_version), None)
    meta = ObjectMeta(name="node-0", resource_version=version)
    anew = replace(node(boot="boot-2", machine=machine), metadata=meta)
    boots.observe(anew)
    ghosts.node_booted(anew, relist=relist)
    return ghosts


@pytest.mark.parametrize(
    ("pod_version", "node_version", "relist", "ended"),
    [
        ("100", "200", False, True),
        ("300", "200", False, False),
        ("100", "200", True, False),
        ("", "200", False, False),
        ("b", "c", False, False),
    ],
)
def test_a_boot_that_may_have_been_the_pods_own_does_not_end_its_ghost(
    pod_version: str, node_version: str, relist: bool, ended: bool
) -> None:
    ghosts = vanished_and_booted(pod_version, node_version, relist=relist)
    assert [ghost.pod.boot_id for ghost in of(ghosts, KEY)] == ([] if ended else ["boot-2"])


def test_if_a_pod_may_have_run_on_either_of_two_machines_no_boot_ends_its_ghost() -> None:
    ghosts = vanished_and_booted("300", "200", machine="other")
    assert [ghost.pod.boot_id for ghost in of(ghosts, KEY)] == [""]


def test_what_a_relist_shows_to_be_gone_went_at_an_unknown_time() -> None:
    boots = BootIds()
    boots.observe(node())
    ghosts = GhostLedger(HandClock(), boots)
    ghosts.observe(at_version(running("a"), "100"), None, relist=True)
    anew = replace(node(boot="boot-2"), metadata=ObjectMeta(name="node-0", resource_version="200"))
    boots.observe(anew)
    ghosts.node_booted(anew, relist=False)
    assert [ghost.pod.boot_id for ghost in of(ghosts, KEY)] == ["boot-2"]


def test_the_next_reservation_of_a_claim_is_told_of_its_ghosts_anew() -> None:
    ghosts = ledger(HandClock())
    ghosts.observe(running("a"), None)
    recorded = pods_of(of(ghosts, KEY))
    assert recorded_of(of(ghosts, KEY, recorded)) == ["uid-a"]
    ghosts.forget_record(KEY)
    assert recorded_of(of(ghosts, KEY)) == []


def test_what_has_been_on_record_is_known_to_have_been_told() -> None:
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe(running("a"), None)
    assert recorded_of(of(ghosts, KEY)) == []
    recorded = pods_of(of(ghosts, KEY))
    assert recorded_of(of(ghosts, KEY, recorded)) == ["uid-a"]
    assert recorded_of(of(ghosts, KEY)) == ["uid-a"]
    ghosts.observe(None, running("a"))
    ghosts.observe(at_version(running("a"), "7"), None)
    assert recorded_of(of(ghosts, KEY)) == []
    of(ghosts, KEY, recorded)
    ghosts.forget(KEY, "9")
    assert recorded_of(of(ghosts, KEY)) == []


def test_no_wall_clock_makes_a_ghost_older() -> None:
    """Neither ours, when it jumps, nor that of who put it on record."""
    clock = HandClock()
    ghosts = ledger(clock)
    long_ago = ForceDeletedPod(uid="uid-z", name="z", node_name="node-9", since=after(-86_400))
    of(ghosts, KEY, [long_ago])
    ghosts.observe(running("a"), None)
    clock.now = lambda: after(7 * 86_400)  # type: ignore[method-assign]  # the wall clock jumps
    clock.time = 3
    assert ages_of(of(ghosts, KEY, [long_ago])) == {"uid-a": 3, "uid-z": 3}


def unreadable_pod(name: str) -> Unreadable:
    return Unreadable(PODS, "?", NAMESPACE, name, f"uid-{name}", "7", b'{"spec":{"nodeName":"n"}}')


async def test_a_pod_that_went_unread_counts_from_its_end_unless_it_was_done_before() -> None:
    clock = LoopClock(NOW)
    ledger = GhostLedger(clock, BootIds())
    done: Pod = finished("done")
    ledger.observe(done, None)
    ledger.observe_list(KEY, [pod_ref("early")], set())
    await asyncio.sleep(100)
    for each in ("done", "early"):
        ledger.vanished_unread(unreadable_pod(each), [KEY])
    await asyncio.sleep(5)
    found = ledger.of(KEY)
    assert ages_of(found) == {"uid-early": 5.0}


def test_a_listed_pod_that_the_cache_never_showed_counts_from_the_list_that_lacks_it() -> None:
    """The cache was late: the pod may have run until then."""
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe_list(KEY, [pod_ref("a")], (), version="7")
    clock.time = 100
    ghosts.pods_listed("6")
    assert ages_of(of(ghosts, KEY)) == {"uid-a": 0}


def test_a_listed_pod_that_was_gone_before_counts_from_its_first_sight() -> None:
    """The cache had reached the version of the claim, and the pod was not there."""
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe_list(KEY, [pod_ref("a")], (), version="7")
    clock.time = 100
    ghosts.pods_listed("8")
    assert ages_of(of(ghosts, KEY)) == {"uid-a": 100}


def test_a_ghost_that_was_seen_to_vanish_is_not_young_again_after_a_list() -> None:
    clock = HandClock()
    ghosts = ledger(clock)
    ghosts.observe_list(KEY, [pod_ref("a")], (), version="7")
    ghosts.observe(None, running("a"))
    ghosts.observe(running("a"), None)
    clock.time = 100
    ghosts.pods_listed("6")
    assert ages_of(of(ghosts, KEY)) == {"uid-a": 100}


def test_a_listed_pod_that_was_never_shown_counts_for_each_of_its_claims_from_the_relist() -> None:
    """The watch of pods was stuck: the pod may have vanished only now."""
    clock = HandClock()
    ghosts = ledger(clock)
    keys = (KEY, ClaimKey(NAMESPACE, "another"))
    for key in keys:
        ghosts.observe_list(key, [pod_ref("p")], (), "30")
    clock.time = 401
    ghosts.pods_listed("20")
    assert [ages_of(of(ghosts, key)) for key in keys] == [{"uid-p": 0}] * 2
