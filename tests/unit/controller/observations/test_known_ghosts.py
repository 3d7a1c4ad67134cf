"""The store of ghosts answers by claim, by namespace and by node alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.known_ghosts import GhostIndex, KnownGhost
from claimctl.reservation.users.several import several
from claimctl.wire.reservations import ForceDeletedPod

POD = ForceDeletedPod(name="train-0", uid="uid-0", node_name="node-0", boot_id="boot-1")
KEYS = [ClaimKey("ml", "one"), ClaimKey("ml", "two"), ClaimKey("web", "one")]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "end", "drop"]),
        st.sampled_from(KEYS),
        st.integers(0, 2),
        st.sampled_from(["node-0", "node-1", ""]),
    )
)


@given(STEPS)
def test_all_views_agree_after_any_steps(steps: list[tuple[str, ClaimKey, int, str]]) -> None:
    index, model = GhostIndex(), dict[tuple[ClaimKey, str], KnownGhost]()
    for action, key, number, node in steps:
        uid = f"uid-{number}"
        if action == "drop":
            index.drop(key, uid)
            model.pop((key, uid), None)
            continue
        pod = replace(POD, uid=uid, node_name=node)
        ghost = model.setdefault((key, uid), KnownGhost(pod, since=0.0))
        ghost.ended = action == "end"
        index.put(key, ghost)
    for key in KEYS:
        assert set(index.of(key)) == {uid for of, uid in model if of == key}
    for namespace in ("ml", "web"):
        claims = {key for key, _ in model if key.namespace == namespace}
        assert set(index.claims_in(namespace)) == claims
        assert index.count(namespace) == sum(key in claims for key, _ in model)
    active = {place: ghost for place, ghost in model.items() if not ghost.ended}
    nodes = {ghost.pod.node_name for ghost in active.values()} - {""}
    assert set(index.nodes()) == nodes
    for node in nodes:
        there = {(key, ghost.pod.uid) for key, ghost in index.on(node)}
        assert there == {place for place, it in active.items() if it.pod.node_name == node}
    assert bool(index) == bool(model)


def test_a_ghost_that_counts_for_another_pod_counts_as_long_as_either_alone() -> None:
    first = KnownGhost(replace(several(POD), termination_grace_period_seconds=30), 10.0, "5", "6")
    last = KnownGhost(replace(POD, termination_grace_period_seconds=60), 20.0, "9", "8")
    first.ended = first.recorded = True
    first.absorb(last)
    assert (first.since, first.vanished_at, first.gone_by) == (20.0, "9", "8")
    assert first.pod.termination_grace_period_seconds == 60
    assert not first.ended
    assert not first.recorded
    assert first.signs_count_from == ""


def test_a_version_that_one_of_them_lacks_is_unknown() -> None:
    first = KnownGhost(several(POD), 10.0, "5", "6")
    first.absorb(KnownGhost(POD, 20.0))
    assert (first.vanished_at, first.gone_by) == ("", "")
