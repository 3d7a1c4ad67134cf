"""UnplaceablePods: pods that their node refuses, or whose devices it cannot prepare, go elsewhere.

Only the pods of the same owner avoid the node. Refused pods have ended: they are not evicted, and
their replacements are kept off the node. A stuck pod is evicted once, after the avoidance is in
place; a held claim that pins it is given up by the controller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from msgspec.structs import replace as with_fields

from claimctl.text import counted
from claimctl.wire.meta import OwnerReference
from claimctl.wire.traces import AVOID_TAINT
from claimctl_reschedule.plan import avoidance, brake
from claimctl_reschedule.plan.facts import by_name, created_at, reference
from claimctl_reschedule.plan.fit import Unknown
from claimctl_reschedule.plan.inventory import Placement
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import AvoidStep, Release, TaintStep
from claimctl_reschedule.plan.policy import Avoid, MoveHeldClaims, UnplaceablePods
from claimctl_reschedule.plan.protections import replaces
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.refusals import AVOIDS, Refusal, is_braked, refusal, why_stuck
from claimctl_reschedule.plan.run import Context, Run, taint_step
from claimctl_reschedule.plan.units import Unit
from claimctl_reschedule.plan.world import PREFER_NO_SCHEDULE, Relocation, WorldPod
from claimctl_reschedule.shapes.records import RecordedAvoidance
from claimctl_reschedule.shapes.scheduling import SchedulingPod

MOST_CLEANED = 60
"""How many refused pods one run removes at most."""
_ACTS_AFTER = timedelta(seconds=30)
"""After this time the admission policy has seen a new record."""
_CLEANED_KINDS = frozenset({"ReplicaSet", "ReplicationController"})
"""A Job counts its failed pods, and a StatefulSet removes them itself."""
_LISTED = frozenset({"ReplicaSet", "Job"})
"""The kinds of owners of which all are known."""


def place_elsewhere(run: Run, context: Context, wanted: UnplaceablePods) -> None:
    """Plan what is done about refused and stuck pods, owner by owner."""
    _Placing(run, context, wanted).all()


def stop_avoiding(run: Run) -> None:
    """Undo everything for a policy that does not ask for the strategy any more."""
    for entry in run.observed.record.avoidances:
        run.avoidances.append(AvoidStep(entry=RecordedAvoidance(owner_uid=entry.owner_uid)))
    why = "the policy does not name UnplaceablePods"
    for pod in sorted(run.observed.pods, key=by_name):
        if is_braked(pod) and not pod.metadata.deleting:
            run.releases.append(Release(pod=reference(pod), why=why))


@dataclass(slots=True)
class _Owner:
    """The pods of one controller owner, by name, and what is remembered of it."""

    entry: RecordedAvoidance
    pods: list[SchedulingPod] = field(default_factory=list)
    refused: list[SchedulingPod] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)
    """Why pods are stuck, by UID."""
    news: list[str] = field(default_factory=list)

    @property
    def running(self) -> list[SchedulingPod]:
        return [pod for pod in self.pods if pod.status.phase == "Running"]


class _Placing:
    def __init__(self, run: Run, context: Context, wanted: UnplaceablePods) -> None:
        self._run, self._context, self._wanted = run, context, wanted
        observed = run.observed
        self._now, self._admission = observed.now, observed.admission
        self._window = timedelta(seconds=wanted.budget.window_seconds)
        self._digests = avoidance.digests_of(observed.nodes, observed.slices)
        self._evictor = replace(context.profile.evictor, move_held_claims=MoveHeldClaims.WHOLE_UNIT)
        self._before = {entry.owner_uid: entry for entry in observed.record.avoidances}
        self._owners = self._known_owners(observed)

    def _known_owners(self, observed: Observed) -> dict[str, _Owner]:
        """The owners with refused or stuck pods, and those that the record names, by UID."""
        pods: dict[str, list[SchedulingPod]] = defaultdict(list)
        refs: dict[str, tuple[str, OwnerReference]] = {}
        for pod in sorted(observed.pods, key=by_name):
            ref = pod.metadata.controller()
            if ref is not None and replaces(ref, self._context.profile.evictor):
                pods[ref.uid].append(pod)
                refs[ref.uid] = (pod.metadata.namespace, ref)
        present = {owner.metadata.uid for owner in observed.owners}
        owners: dict[str, _Owner] = {}
        for uid in sorted({*pods, *self._before}):
            owner = _Owner(self._entry(uid, refs), pods[uid])
            seconds = self._wanted.stuck_seconds
            for pod in owner.pods:
                chosen = self._context.protections.selects_node(pod.spec.node_name)
                if chosen and refusal(pod) is Refusal.BY_NODE:
                    owner.refused.append(pod)
                if why := why_stuck(pod, observed.unprepared, self._now, seconds):
                    owner.stuck[pod.metadata.uid] = why
            gone = owner.entry.kind in _LISTED and uid not in present and not owner.pods
            known = uid in self._before or any(map(is_braked, owner.pods))
            if not gone and (owner.refused or owner.stuck or known):
                owners[uid] = owner
            for pod in owner.pods:
                if refusal(pod) is Refusal.FOR_ITSELF:
                    self._skip(pod, Ground.REFUSED_FOR_ITSELF, pod.status.reason)
        return owners

    def _entry(self, uid: str, refs: dict[str, tuple[str, OwnerReference]]) -> RecordedAvoidance:
        if uid in self._before:
            return self._before[uid]
        namespace, ref = refs[uid]
        return RecordedAvoidance(owner_uid=uid, kind=ref.kind, namespace=namespace, name=ref.name)

    def all(self) -> None:
        for owner in self._owners.values():
            entry = avoidance.with_refusals(owner.entry, owner.refused, self._now, self._window)
            owner.entry = avoidance.without_outdated(entry, self._digests, owner.running, self._now)
            if owner.entry.braked:
                self._brake(owner)
            if not owner.entry.braked:
                self._avoid(owner)
        for owner in self._owners.values():
            self._ask_again(owner)
            self._leave_stuck(owner)
        self._remember()
        self._release_strays()
        for owner in self._owners.values():
            self._clean(owner)
        self._suspect()

    # the brake

    def _brake(self, owner: _Owner) -> None:
        if not self._wanted.brake or not self._admission:
            why = "the policy does not ask for it" if self._admission else _NOT_INSTALLED
            owner.entry = brake.loosen(owner.entry)
            owner.news.append(f"the brake is off: {why}")
            return
        step = brake.next_step(owner.entry, owner.pods, self._now)
        owner.entry = step.entry
        for pod in step.released:
            self._run.releases.append(Release(pod=reference(pod), why=step.why))
        if step.why:
            owner.news.append(step.why)
        text, due = "", step.entry.brake.next_probe if step.entry.brake is not None else None
        if due is not None:
            self._run.look_again(due)
            text = f"the next probe is due at {due.isoformat(timespec='seconds')}"
        for pod in owner.pods:
            if is_braked(pod) and pod not in step.released:
                self._skip(pod, Ground.BRAKED, text)

    def _put_brake_on(self, owner: _Owner) -> bool:
        """Whether the brake is on now, because the owner has too many refused pods."""
        if not brake.is_due(owner.entry, owner.pods, self._wanted.budget.refusals):
            return False
        count = len(owner.entry.refusals)
        text = f"{counted(count, 'pod')} refused within {self._wanted.budget.window_seconds:g} s"
        acts = self._admission and self._wanted.avoid in (Avoid.AUTO, Avoid.ADMISSION)
        if not self._wanted.brake or not acts:
            why = "brake is off" if not self._wanted.brake else _NOT_INSTALLED
            self._note(owner, f"{text}; new pods are still made: {why}")
            return False
        owner.entry = brake.braked(owner.entry, self._now)
        owner.news = [f"{text}: new pods wait"]
        self._run.look_again(self._now + brake.FIRST_PROBE)
        return True

    def _release_strays(self) -> None:
        """Let pods go whose owner is not braked any more, such as after a killed run."""
        chosen = {release.pod.uid for release in self._run.releases}
        for owner in self._owners.values():
            for pod in owner.pods:
                stray = is_braked(pod) and not owner.entry.braked and not pod.metadata.deleting
                if stray and pod.metadata.uid not in chosen:
                    why = "the owner is not braked"
                    self._run.releases.append(Release(pod=reference(pod), why=why))

    # avoidance

    def _may_avoid(self) -> bool:
        avoid = self._wanted.avoid
        return self._admission if avoid is Avoid.ADMISSION else avoid is not Avoid.REPORT

    def _avoid(self, owner: _Owner) -> None:
        self._recheck(owner)
        for node in avoidance.refusers(owner.entry, self._now):
            pods = [pod for pod in owner.refused if pod.spec.node_name == node]
            pod = max(pods, key=created_at, default=None)
            if pod is not None and (obstacle := self._against_avoiding(owner, node, pod)):
                self._run.skip(pod, self._context, obstacle)
            elif pod is not None:
                self._close(owner, node, _cause(pod))
        if self._put_brake_on(owner):
            return
        closed = avoidance.in_force(owner.entry, self._now)
        for pod in owner.refused:
            if pod.spec.node_name not in closed and pod.metadata.uid not in self._run.skipped:
                self._skip(pod, Ground.REFUSED_BY_NODE, f"{pod.spec.node_name}: {_cause(pod)}")

    def _close(self, owner: _Owner, node: str, why: str) -> None:
        """Let the new pods of the owner avoid the node."""
        seen = self._digests.get(node, "")
        owner.entry = avoidance.avoiding(owner.entry, node, seen, self._now)
        owner.news.append(f"its new pods avoid {node}: {why}")

    def _against_avoiding(self, owner: _Owner, node: str, pod: SchedulingPod) -> Obstacle | None:
        if not self._may_avoid():
            why = _NOT_INSTALLED if self._wanted.avoid is Avoid.ADMISSION else "avoid is Report"
            return Obstacle(Ground.REFUSED_BY_NODE, f"{node}: {_cause(pod)}; {why}")
        unit = self._run.units.unit_of(pod, self._evictor)
        if unit.obstacle is not None:
            return unit.obstacle
        live = [member for member in unit.pods if not self._cannot_run(member)]
        if live:
            return Obstacle(Ground.PINNED, f"{live[0].metadata.name} uses its claim on {node}")
        return self._elsewhere(owner, node, (pod,), commit=False)

    def _cannot_run(self, pod: SchedulingPod) -> bool:
        ref = pod.metadata.controller()
        owner = self._owners.get(ref.uid) if ref is not None else None
        return refusal(pod) is not None or (owner is not None and pod.metadata.uid in owner.stuck)

    def _recheck(self, owner: _Owner) -> None:
        """End avoidances that leave the owner's pods no node."""
        for node in avoidance.in_force(owner.entry, self._now):
            sample = next((pod for pod in owner.pods if not pod.metadata.deleting), None)
            if sample is None:
                continue
            if self._elsewhere(owner, "", (_as_if_on(sample, node),), commit=False):
                owner.entry = avoidance.ended(owner.entry, node, self._now)
                owner.news.append(f"its pods avoid {node} no longer: no other node fits them")

    def _ask_again(self, owner: _Owner) -> None:
        """Ask for the held claims that tie waiting pods to a node that they avoid. The request of
        an earlier run may have been withdrawn before the claim was free."""
        for node in avoidance.in_force(owner.entry, self._now):
            for pod in owner.pods:
                waits = not pod.spec.node_name and pod.status.phase == "Pending"
                if not waits or pod.metadata.deleting or not pod.metadata.annotation(AVOIDS):
                    continue
                unit = self._run.units.unit_of(_as_if_on(pod, node), self._evictor)
                uid = pod.metadata.uid
                others = (member for member in unit.pods if member.metadata.uid != uid)
                if unit.obstacle is None and all(map(self._cannot_run, others)):
                    asked = (with_fields(claim, unit="") for claim in unit.reallocate)
                    known = self._run.reallocations
                    known += [claim for claim in asked if claim not in known]

    def _elsewhere(
        self, owner: _Owner, node: str, pods: Sequence[SchedulingPod], *, commit: bool
    ) -> Obstacle | None:
        """Why a replacement of the first of these pods, which leave together, could run on no node
        but ``node`` and those that are avoided. With ``commit`` they leave for good if it could."""
        closed = {node, *avoidance.in_force(owner.entry, self._now)}
        elsewhere = any(pod.spec.node_name not in closed for pod in owner.running)
        if elsewhere and not commit:
            return None
        run = self._run
        mark = run.world.mark()
        for pod in pods:
            known = run.world.pods.get(pod.metadata.uid)
            if known is not None:
                run.world.remove(known)
        run.devices.leave(tuple(pods), source_closed=True)
        obstacle = None if elsewhere else self._search(pods[0], closed)
        if obstacle is None and commit:
            run.devices.commit()
        else:
            run.world.rollback(mark)
            run.devices.undo()
        return obstacle

    def _search(self, pod: SchedulingPod, closed: set[str]) -> Obstacle | None:
        run = self._run
        unknown: Obstacle | None = None
        try:
            fitting = run.predictor.fitter.of(run.world.seen(pod))
        except Unknown as error:
            return Obstacle(Ground.FIT_UNKNOWN, str(error))
        for name, node in run.world.nodes.items():
            if name in closed or fitting.problem(node):
                continue
            placement = run.devices.place(pod, name)
            if isinstance(placement, Placement):
                return None
            unknown = unknown or (placement if placement.reason is Ground.FIT_UNKNOWN else None)
        text = f"no other node fits than {', '.join(sorted(closed - {''}))}"
        return unknown or Obstacle(Ground.NO_OTHER_NODE, text)

    # stuck pods

    def _leave_stuck(self, owner: _Owner) -> None:
        for pod in owner.pods:
            stays = pod.metadata.uid in owner.stuck and pod.metadata.uid not in self._run.moved
            if stays and (obstacle := self._leave(owner, pod)):
                self._run.skip(pod, self._context, obstacle)

    def _leave(self, owner: _Owner, pod: SchedulingPod) -> Obstacle | None:
        node, why = pod.spec.node_name, owner.stuck[pod.metadata.uid]
        known = self._run.world.pods.get(pod.metadata.uid)
        if known is None:
            return Obstacle(Ground.NOT_SCHEDULED)
        if not self._may_avoid():
            return Obstacle(Ground.REFUSED_BY_NODE, f"{node}: {why}; nothing would keep pods off")
        past = avoidance.of_node(owner.entry, node)
        # times of objects are whole seconds
        if past and past.since and created_at(pod) >= int(past.since.timestamp()):
            return Obstacle(Ground.STUCK_AGAIN, f"{node}: {why}")
        if obstacle := self._context.protections.obstacle(known):
            return obstacle
        unit = self._run.units.unit_of(pod, self._evictor)
        live = [member for member in unit.pods if not self._cannot_run(member)]
        if live:
            return self._leave_alone(owner, known, live[0], why)
        if unit.obstacle is not None:
            return unit.obstacle
        return self._leave_together(owner, known, unit, why)

    def _forbidden(self, unit: Unit, pods: Sequence[WorldPod], first: WorldPod) -> Obstacle | None:
        """Why the unit may not be evicted now; stuck pods of an owner rest as moved ones do."""
        obstacle = self._run.forbidden(unit, pods, first, self._context)
        return obstacle or self._run.ledger.resting(self._context.strategy, pods)

    def _leave_alone(
        self, owner: _Owner, pod: WorldPod, live: SchedulingPod, why: str
    ) -> Obstacle | None:
        """Evict the pod once although its claim stays: another try on the same node."""
        alone = Unit((pod.pod,))
        if obstacle := self._forbidden(alone, [pod], pod):
            return obstacle
        node = pod.node
        if avoidance.of_node(owner.entry, node) is None:
            seen = self._digests.get(node, "")
            owner.entry = avoidance.avoiding(owner.entry, node, seen, self._now, once=True)
        self._run.world.remove(pod)
        text = f"{node} cannot prepare its devices ({why}); {live.metadata.name} uses its claim"
        self._run.chosen(Relocation(pod, node, ""), self._context, text)
        return None

    def _leave_together(
        self, owner: _Owner, pod: WorldPod, unit: Unit, why: str
    ) -> Obstacle | None:
        """Evict all pods of the unit, none of which runs, and let the claim go."""
        run, node = self._run, pod.node
        members = run.members(unit)
        if obstacle := self._forbidden(unit, members, pod):
            return obstacle
        order = (pod.pod, *(member for member in unit.pods if member is not pod.pod))
        if obstacle := self._elsewhere(owner, node, order, commit=True):
            return obstacle
        for uid in dict.fromkeys(member.owner_uid for member in members):
            if node not in avoidance.in_force(self._owners[uid].entry, self._now):
                self._close(self._owners[uid], node, why)
        run.reallocations += [with_fields(claim, unit=unit.id) for claim in unit.reallocate]
        for member in members:
            text = f"{node} cannot prepare its devices: {why}"
            run.chosen(Relocation(member, node, ""), self._context, text, unit=unit.id)
        return None

    # what is written

    def _remember(self) -> None:
        for uid in sorted(self._before.keys() - self._owners.keys()):
            self._run.avoidances.append(AvoidStep(entry=RecordedAvoidance(owner_uid=uid)))
        for uid, owner in self._owners.items():
            nodes = avoidance.in_force(owner.entry, self._now)
            owner.entry = with_fields(owner.entry, nodes=() if owner.entry.braked else nodes)
            taints = tuple(self._taints(owner))
            blank = brake.loosen(owner.entry)
            before = self._before.get(uid, blank)
            if owner.entry != before or taints:
                known = {recorded.pod_uid for recorded in before.refusals}
                new = sum(recorded.pod_uid not in known for recorded in owner.entry.refusals)
                why = "; ".join(owner.news)
                step = AvoidStep(entry=owner.entry, taints=taints, why=why, refused=new)
                self._run.avoidances.append(step)

    def _taints(self, owner: _Owner) -> Iterator[TaintStep]:
        if not owner.entry.nodes or not self._needs_taints(owner):
            return
        for past in owner.entry.avoided:
            node = self._run.world.nodes.get(past.node)
            sample = next((pod for pod in owner.pods if pod.spec.node_name == past.node), None)
            if node is None or sample is None or past.until is None:
                continue
            tainted = any(taint.key == AVOID_TAINT for taint in node.node.spec.taints)
            if past.node in owner.entry.nodes and not tainted:
                seconds, uid = (past.until - self._now).total_seconds(), owner.entry.owner_uid
                more = {"effect": PREFER_NO_SCHEDULE, "pod": reference(sample)}
                yield taint_step(node, AVOID_TAINT, uid, "", timeout_seconds=seconds, **more)

    def _needs_taints(self, owner: _Owner) -> bool:
        """Whether the admission policy is missing, or pods were made in spite of it."""
        if self._wanted.avoid is Avoid.TAINT or not self._admission:
            return self._wanted.avoid is not Avoid.ADMISSION
        entry = owner.entry
        since = (past.since for past in entry.avoided if past.node in entry.nodes)
        start = min((time for time in since if time is not None), default=None)
        missed = start is not None and any(
            created_at(pod) > (start + _ACTS_AFTER).timestamp()
            and pod.metadata.annotation(AVOIDS) is None
            for pod in owner.pods
        )
        if missed:
            self._note(owner, "the admission policy claimctl-avoidance does not act on its pods")
        return missed and self._wanted.avoid is Avoid.AUTO

    def _clean(self, owner: _Owner) -> None:
        keep = self._wanted.keep_refused
        if keep is None or owner.entry.kind not in _CLEANED_KINDS:
            return
        newest = sorted(owner.refused, key=lambda pod: (-created_at(pod), pod.metadata.name))
        for pod in newest[keep:]:
            cleaned = sum(move.cleans for move in self._run.moves)
            if cleaned < MOST_CLEANED and not pod.metadata.deleting:
                self._run.cleaned(pod, self._context, f"keepRefused is {keep}")

    def _suspect(self) -> None:
        """Name the nodes that several owners avoid: their kubelet may be out of order."""
        refusals = (owner.entry.refusals for owner in self._owners.values())
        counts = Counter(name for refused in refusals for name in {past.node for past in refused})
        for name, count in sorted(counts.items()):
            if count >= _SUSPECT:
                self._run.note(self._context, f"{name} refused pods of {count} owners")

    def _skip(self, pod: SchedulingPod, reason: Ground, detail: str) -> None:
        self._run.skip(pod, self._context, Obstacle(reason, detail))

    def _note(self, owner: _Owner, text: str) -> None:
        entry = owner.entry
        self._run.note(self._context, f"{entry.kind} {entry.namespace}/{entry.name}: {text}")


_NOT_INSTALLED = "the admission policy claimctl-avoidance is not installed"
_SUSPECT = 3
"""A node that refused the pods of so many owners is named in a note."""


def _as_if_on(pod: SchedulingPod, node: str) -> SchedulingPod:
    """A pod that waits, as if it were on the node and about to leave it."""
    if pod.spec.node_name:
        return pod
    return with_fields(pod, spec=with_fields(pod.spec, node_name=node))


def _cause(pod: SchedulingPod) -> str:
    return pod.status.reason or pod.status.message
