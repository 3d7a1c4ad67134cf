"""Everybody but claimctl: scheduler, KCM, kubelet, workload controller, user.

Each gives the states that its next step may lead to. A step that is fair is taken some time if it
stays possible; the others may happen or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.dialects import Dialect, list_pod
from tests.model.server import Bounds, drop_views, write_claim, write_group, write_reservation
from tests.model.state import Claim, Entry, Life, Pod, State, There, Workload, put


class Step(NamedTuple):
    who: str
    what: str
    state: State
    fair: bool = True
    broken: str = ""
    """Which promise the step breaks."""


class Cluster:
    def __init__(self, dialect: Dialect, bounds: Bounds) -> None:
        self._dialect = dialect
        self._bounds = bounds

    def steps(self, state: State) -> Iterator[Step]:
        yield from self._scheduler(state)
        yield from self._kcm(state)
        yield from self._nodes(state)
        yield from self._workload(state)
        if self._dialect.groups:
            yield from self._group(state)
        if state.left.actions:
            yield from self._user(state)

    def _write(self, state: State, claim: Claim) -> State:
        return write_claim(state, claim, self._dialect, self._bounds)

    # scheduler

    def _scheduler(self, state: State) -> Iterator[Step]:
        for pod, there in enumerate(state.pods):
            if state.cleared[pod] >= 0:
                yield self._bind(state, pod) if there == Pod.PENDING else self._undo(state, pod)
            elif there == Pod.PENDING and (state.group_seen >= 0 or not self._dialect.groups):
                yield from self._plan(state, pod)
        if self._dialect.groups and Pod.PENDING in state.pods:
            yield from self._post_filter(state)

    def _plan(self, state: State, pod: int) -> Iterator[Step]:
        age = state.free[pod]
        if age >= 0:
            seen = drop_views(state, age)
            how = "sees a claim that it may use" if age == 0 else f"on a view {age} versions old"
            cleared = seen._replace(cleared=put(seen.cleared, pod, age))
            yield Step("scheduler", f"plans p{pod}: {how}", cleared)
        if age != 0 and state.claim.there == There.YES:
            yield self._reserve(drop_views(state, 0), pod)
        if self._bounds.mixed_schedulers and age == 0 and state.claim.entries[pod] == Entry.NONE:
            yield self._reserve_as_of_old(drop_views(state, 0), pod)

    def _reserve(self, state: State, pod: int) -> Step:
        claim = state.claim
        if not claim.allocated and not claim.finalizer:
            protected = self._write(state, claim._replace(finalizer=1))
            return Step("scheduler", "protects the claim by its finalizer", protected)
        what = "reserves" if claim.allocated else "allocates"
        ours = state.ours if claim.allocated else 0
        claim = self._dialect.reserve(claim, pod, state.group_seen)._replace(allocated=1)
        state = self._write(state._replace(ours=ours), claim)
        state = state._replace(cleared=put(state.cleared, pod, 0))
        return Step("scheduler", f"{what} the claim for p{pod}", state)

    def _post_filter(self, state: State) -> Iterator[Step]:
        """A group none of whose pods is scheduled does not hold by itself."""
        claim = state.claim
        alone = claim.groups and not claim.holders and not any(claim.entries)
        scheduled = any(there in (Pod.BOUND, Pod.DONE) for there in state.pods)
        if alone and claim.usable and not scheduled and state.group_seen >= 0:
            stripped = self._write(state, claim._replace(groups=0))
            yield Step("scheduler", "(PostFilter) takes the group out", stripped, fair=False)

    def _reserve_as_of_old(self, state: State, pod: int) -> Step:
        state = self._write(state, list_pod(state.claim, pod))
        state = state._replace(cleared=put(state.cleared, pod, 0))
        return Step("scheduler", f"(without the feature) lists p{pod}", state, fair=False)

    def _bind(self, state: State, pod: int) -> Step:
        broken = "" if state.claim.allocated else f"p{pod} is bound on a claim without allocation"
        state = state._replace(
            pods=put(state.pods, pod, Pod.BOUND), cleared=put(state.cleared, pod, -1)
        )
        return Step("scheduler", f"binds p{pod}", state, broken=broken)

    def _undo(self, state: State, pod: int) -> Step:
        """The pod is gone: its entry is taken out by UID, whatever the version."""
        state = state._replace(cleared=put(state.cleared, pod, -1))
        if state.claim.entries[pod] == Entry.POD:
            entries = put(state.claim.entries, pod, Entry.NONE)
            state = self._write(state, state.claim._replace(entries=entries))
        return Step("scheduler", f"gives p{pod} up, which is gone", state)

    # KCM

    def _kcm(self, state: State) -> Iterator[Step]:
        claim = state.claim
        if claim.there == There.GONE:
            return
        yield from self._clean(state)
        if not claim.usable or self._dialect.shared:
            return
        if self._dialect.groups:
            if lacks_group(state, self._dialect):
                listed = self._write(state, claim._replace(groups=1 << state.group_seen))
                yield Step("KCM", "puts the group back for its pods", listed)
            return
        for pod in _unlisted(state):
            yield Step("KCM", f"puts p{pod} back", self._write(state, list_pod(claim, pod)))

    def _clean(self, state: State) -> Iterator[Step]:
        claim = state.claim
        unknown = claim.holders or Entry.TOMBSTONE in claim.entries
        if unknown and not self._dialect.kcm_keeps_unknown:
            return
        stays = tuple(
            Entry.NONE if entry == Entry.POD and there not in (Pod.PENDING, Pod.BOUND) else entry
            for entry, there in zip(claim.entries, state.pods, strict=True)
        )
        group = state.group
        present = 0 if group.there == There.GONE else 1 << group.incarnation
        cleaned = claim._replace(entries=stays, groups=claim.groups & present)
        emptied = cleaned != claim or claim.there == There.DELETING
        if emptied and cleaned.empty and claim.finalizer:
            cleaned = cleaned._replace(allocated=0, finalizer=0)
            after = self._write(state._replace(ours=0), cleaned)
            yield Step("KCM", "takes the last entries out and deallocates", after)
        elif cleaned != claim:
            what = "dead pods" if cleaned.groups == claim.groups else "a group that is gone"
            yield Step("KCM", f"takes {what} out of the list", self._write(state, cleaned))

    # group

    def _group(self, state: State) -> Iterator[Step]:
        group = state.group
        there = -1 if group.there == There.GONE else group.incarnation
        if there != state.group_seen:
            seen = state._replace(group_seen=there)
            yield Step("scheduler", "is shown the group", seen)
        owned = state.workload.life != Life.ABSENT and state.workload.incarnation == group.owner
        if group.there == There.YES and not owned:
            gone = write_group(state, group._replace(there=There.DELETING))
            yield Step("GC", "deletes the group, whose owner is gone", gone)
        used = any(there in (Pod.PENDING, Pod.BOUND) for there in state.pods)
        if group.there == There.DELETING and group.protected and not used:
            after = write_group(state, group._replace(protected=0))
            yield Step("KCM", "finds no pod of the group and lets it go", after)

    # nodes

    def _nodes(self, state: State) -> Iterator[Step]:
        """A pod that nobody wants has to stop; another one may. Objects of finished pods go."""
        unwanted = state.workload.life != Life.ACTIVE
        kept = state.workload.life in (Life.ACTIVE, Life.ENDED)
        for pod, there in enumerate(state.pods):
            if there == Pod.GHOST:
                yield self._moved(state, pod, Pod.EXPIRED, "time", "is past its grace")
            elif not unwanted and not self._bounds.finish:
                continue
            elif there == Pod.BOUND:
                yield self._moved(state, pod, Pod.DONE, "kubelet", "finishes", fair=unwanted)
            elif there == Pod.DONE:
                yield self._moved(state, pod, Pod.QUIET, "server", "is deleted", fair=not kept)
            elif there == Pod.PENDING and unwanted:
                yield self._moved(state, pod, Pod.QUIET, "workload", "is deleted, never bound")

    def _moved(
        self, state: State, pod: int, to: Pod, who: str, what: str, *, fair: bool = True
    ) -> Step:
        return Step(who, f"p{pod} {what}", state._replace(pods=put(state.pods, pod, to)), fair)

    # workload

    def _workload(self, state: State) -> Iterator[Step]:
        if Pod.NONE not in state.pods or not (state.late or state.workload.life == Life.ACTIVE):
            return
        pod = state.pods.index(Pod.NONE)
        made = state._replace(pods=put(state.pods, pod, Pod.PENDING))
        if state.group.there == There.GONE and self._bounds.group_end_seen:
            made = made._replace(group_seen=-1)
        if state.late:
            late = " although it is not wanted any more"
            yield Step("workload", f"makes p{pod}{late}", made._replace(late=0), fair=False)
            yield Step("workload", "has seen that no pod is wanted", state._replace(late=0))
        else:
            yield Step("workload", f"makes p{pod}", made)

    # user

    def _user(self, state: State) -> Iterator[Step]:
        for kind, what, after in self._actions(state):
            if kind in self._bounds.kinds:
                left = after.left._replace(actions=after.left.actions - 1)
                yield Step("user", what, after._replace(left=left), fair=False)

    def _actions(self, state: State) -> Iterator[tuple[str, str, State]]:
        yield from self._on_workload(state)
        for pod, there in enumerate(state.pods):
            if there in (Pod.BOUND, Pod.PENDING):
                to = Pod.GHOST if there == Pod.BOUND else Pod.QUIET
                yield "force", f"force-deletes p{pod}", _with_pod(state, pod, to)
        shared = state.claim.groups if self._dialect.groups else not state.claim.empty
        fenced = state.claim.allocated and not shared and self._bounds.fence_left_alone
        if state.claim.there == There.YES and not fenced:
            deleted = state.claim._replace(there=There.DELETING)
            yield "delete claim", "deletes the claim", self._write(state, deleted)
        if state.reservation.there == There.YES and state.reservation.finalizer:
            deleting = state.reservation._replace(there=There.DELETING)
            withdrawn = write_reservation(state, deleting)
            yield "withdraw", "deletes the reservation", withdrawn
        if state.group.there == There.YES:
            deleting_group = state.group._replace(there=There.DELETING)
            yield "delete group", "deletes the group", write_group(state, deleting_group)

    def _on_workload(self, state: State) -> Iterator[tuple[str, str, State]]:
        life, incarnation = state.workload
        if life == Life.ACTIVE:
            yield "scale", "scales to zero", _lives(state, Life.IDLE)
            yield "end", "sees the workload complete", _lives(state, Life.ENDED)
        if life == Life.IDLE:
            yield "scale", "scales up again", _lives(state, Life.ACTIVE)
        if life != Life.ABSENT:
            yield "delete", "deletes the workload", _lives(state, Life.ABSENT)
        elif incarnation == 0:
            again = state._replace(workload=Workload(Life.ACTIVE, 1), late=0)
            yield "recreate", "makes the workload again", again


def _unlisted(state: State) -> Iterator[int]:
    """Pods that KCM puts back, finished ones too."""
    for pod, there in enumerate(state.pods):
        if there in (Pod.BOUND, Pod.DONE) and state.claim.entries[pod] == Entry.NONE:
            yield pod


def lacks_group(state: State, dialect: Dialect) -> bool:
    """Whether KCM puts the group back; where there is none it writes nothing for its pods."""
    missing = state.claim.usable and not state.claim.groups and state.group_seen >= 0
    return dialect.groups and missing and any(True for _ in _unlisted(state))


def _lives(state: State, life: Life) -> State:
    late = int(state.workload.life == Life.ACTIVE)
    return state._replace(workload=state.workload._replace(life=life), late=late)


def _with_pod(state: State, pod: int, to: Pod) -> State:
    return state._replace(pods=put(state.pods, pod, to))
