"""Compares how a story went on two clusters, step by step.

For each step it compares the answers, every object in full at rest, the states that each object
went through, and the order of actions among related objects. It ignores only what differs between
two runs of the same cluster:

- Equal pods are interchangeable.
- A counter may take one write or several to its value, since a late controller merges changes. Both
  clusters must have the same turning points.
- A pod may or may not have failed because other pods were faster (``RACES``), or because it was
  created before KCM freed the claim of the pod before it.
- A claim that KCM's two halves write for ever (kubernetes/kubernetes#141274) is compared as the
  set of its states.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from kube_in_process.components.controllers.jobs.count import TRACKING
from kube_in_process.components.controllers.jobs.indexes import parsed
from kube_in_process.components.pods import claims_used, ended

from judges.differential.actions.clusters import Seen
from judges.differential.actions.level import (
    is_race,
    level,
    level_message,
    level_text,
    shortened,
    whole,
)
from judges.differential.actions.play import PlayedStory, Segment

Object = dict[str, Any]
Name = tuple[str, str]
_COUNTED = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "PodDisruptionBudget")
"""Kinds whose status is counters that controllers write late."""
_MERGED = ("generation", "status.observedGeneration")
"""Fields of a ReplicaSet that count the writes of its size, which are merged."""
_SUMS = {
    "Deployment": ("status.", "conditions.Available"),
    "ReplicaSet": ("status.",),
    "PodDisruptionBudget": ("status.", "conditions."),
}
"""Fields that sum up other compared things (pods, sizes). During a rollout they change sooner or
later, so they are compared at rest. These conditions repeat counters in words."""
_NO_SUMS: tuple[str, ...] = ()
_AT_REST = ("Namespace", "Node", "ControllerRevision")
"""Kinds that several controllers write independently; compared only at rest."""
_MANY = 20
"""From this number of Events about one object on, a real controller drops some."""
_GANG_COMES = "waiting for minCount pods from a gang"
"""The scheduler's message if the cycle of a gang begins before the last pod is in the queue. A
moment later it schedules all of them."""
_GROUP_SCHEDULED = "PodGroupScheduled"
_UNRELATED = {("Pod added", f"ResourceClaim {did}") for did in ("lists nobody", "not allocated")}
"""A workload's controller creates a pod again, and kube-controller-manager (KCM) frees the claim
of the old one: neither waits for the other."""
_LOOP = 6
"""From this number of states in one step on, half of them repeated, it is a loop."""


@dataclass(frozen=True, slots=True)
class StoryDifference:
    """One difference. ``kind`` has no values of the run; ``theirs`` is the real cluster's value."""

    step: int
    kind: str
    theirs: str
    ours: str

    def shown(self) -> str:
        return f"{self.kind}\n      real:     {self.theirs}\n      embedded: {self.ours}"


def differences(theirs: PlayedStory, ours: PlayedStory) -> list[StoryDifference]:
    """The differences of the first step that differs; later ones may follow from it.

    Kubernetes Events are compared if nothing else differs.
    """
    for failure in ours.failures:
        return [StoryDifference(0, "component fails", "", failure)]
    for number, (real, emulated) in enumerate(zip(theirs.segments, ours.segments, strict=True), 1):
        kinds = [StoryDifference(number, kind, *both) for kind, *both in _segment(real, emulated)]
        if kinds:
            return kinds
    last = len(theirs.segments)
    return [StoryDifference(last, kind, *both) for kind, *both in _messages(theirs, ours)]


Found = Iterator[tuple[str, str, str]]


def _segment(theirs: Segment, ours: Segment) -> Found:
    theirs, ours = (_without_remade(played) for played in (theirs, ours))
    yield from _answers(theirs, ours)
    yield from _rests(theirs, ours)
    yield from _histories(theirs, ours)
    yield from _orders(theirs, ours)


def _without_remade(segment: Segment) -> Segment:
    """The segment without claims that were generated again for a pod that had ended.

    KCM does that if the pod changes, and deletes the claim at once. It does not if it remembers the
    claim before: it remembers the last hundred that it generated, those of other stories too.
    """
    over: set[str] = set()
    remade: set[str] = set()
    for seen in [*_still(segment.before), *segment.events]:
        if seen.kind == "Pod" and ended(seen.object):
            over.add(seen.object["metadata"]["uid"])
        elif seen.kind == "ResourceClaim" and seen.type == "ADDED":
            owners = seen.object["metadata"].get("ownerReferences") or ()
            if over & {owner["uid"] for owner in owners}:
                remade.add(seen.name)
    gone = {name for name in remade if ("ResourceClaim", name) not in segment.rest}
    kept = [event for event in segment.events if event.name not in gone]
    return replace(segment, events=kept)


def _answers(theirs: Segment, ours: Segment) -> Found:
    real, emulated = (sorted(map(level_message, played.answers)) for played in (theirs, ours))
    if real != emulated:
        codes = "/".join(side[0].partition(" ")[0] if side else "-" for side in (real, emulated))
        yield f"answer {codes}", str(real), str(emulated)


# At rest


def _rests(theirs: Segment, ours: Segment) -> Found:
    real, emulated = _looping(theirs), _looping(ours)
    finished = _finished_beside(theirs) | _finished_beside(ours)
    if real - finished != emulated - finished:
        yield "loop", str(sorted(real)), str(sorted(emulated))
    groups = [_grouped(played, real | emulated) for played in (theirs, ours)]
    for key in sorted({*groups[0], *groups[1]}):
        left, right = (group.get(key, []) for group in groups)
        if len(left) != len(right):
            yield f"rest {key[0]}: how many", f"{len(left)} {key[1]}", f"{len(right)} {key[1]}"
            continue
        yield from _paired(key, left, right)


def _grouped(segment: Segment, without: set[Name]) -> dict[Name, list[Object]]:
    by_name: dict[Name, list[Object]] = defaultdict(list)
    going = any("deletionTimestamp" in body["metadata"] for body in _sets(segment))
    for (kind, plain), obj in segment.rest.items():
        if kind == "ControllerRevision" and going:
            # The StatefulSet creates it again, and the garbage collector deletes it again.
            continue
        if (kind, level_text(plain)) not in without:
            by_name[kind, level_text(plain)].append(whole(kind, obj))
    return by_name


def _sets(segment: Segment) -> Iterator[Object]:
    return (obj for (kind, _), obj in segment.rest.items() if kind == "StatefulSet")


def _paired(key: Name, left: list[Object], right: list[Object]) -> Found:
    """Compare interchangeable objects: pair equal ones first."""
    kind, plain = key
    rest = sorted(right, key=_text)
    odd = []
    for obj in sorted(left, key=_text):
        if obj in rest:
            rest.remove(obj)
        else:
            odd.append(obj)
    for first, other in zip(odd, rest, strict=True):
        for path, a, b in _unequal(first, other, ""):
            yield f"rest {kind} {path}", f"{plain}: {_text(a)}", f"{plain}: {_text(b)}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


ABSENT = "(absent)"


def _unequal(real: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if real == other:
        return
    if isinstance(real, dict) and isinstance(other, dict):
        for key in sorted({*real, *other}):
            below = f"{path}.{key}".lstrip(".")
            yield from _unequal(real.get(key, ABSENT), other.get(key, ABSENT), below)
    elif isinstance(real, list) and isinstance(other, list) and len(real) == len(other):
        for a, b in zip(real, other, strict=True):
            yield from _unequal(a, b, f"{path}[]")
    else:
        yield path, real, other


# On the way


def _tracks(segment: Segment) -> dict[Name, list[Seen]]:
    tracks: dict[Name, list[Seen]] = defaultdict(list)
    for event in segment.events:
        tracks[event.kind, event.name].append(event)
    return tracks


def _looping(segment: Segment) -> set[Name]:
    names = set()
    for (kind, plain), events in _tracks(segment).items():
        if kind == "ControllerRevision" or kind in _SUMS:
            continue
        states = [state for state, _ in groupby(_state(event) for event in events)]
        if len(states) >= _LOOP and len(set(states)) * 2 <= len(states):
            names.add((kind, level_text(plain)))
    # Counters that go up and down in a rollout do not count.
    return names if any(kind not in _COUNTED for kind, _ in names) else set()


def _state(seen: Seen) -> str:
    return f"{seen.type} {_text(level(shortened(seen.kind, seen.object)))}"


def _histories(theirs: Segment, ours: Segment) -> Found:
    loops = _looping(theirs) | _looping(ours)
    finished = _finished_beside(theirs) | _finished_beside(ours)
    going = _jobs_that_go(theirs)
    groups = [_by_name(_without_early_refusals(played)) for played in (theirs, ours)]
    for key in sorted({*groups[0], *groups[1]}):
        kind, plain = key
        if key in loops or kind in _AT_REST:
            continue
        left, right = (group.get(key, []) for group in groups)
        if kind in _COUNTED:
            yield from _counted(kind, plain, left, right)
        elif key in finished:
            yield from _exact(kind, plain, *map(_unlisted, (left, right)))
        elif kind == "Pod" and going:
            yield from _exact(kind, plain, *(_untracked(side, going) for side in (left, right)))
        else:
            yield from _exact(kind, plain, left, right)


def _without_early_refusals(segment: Segment) -> Segment:
    """The segment without the scheduler's refusals of pods that were created too early."""
    early = _early(segment)
    kept = [
        _without_refusal(seen) if seen.name in early else seen
        for seen in segment.events
        if seen.name not in early or not _is_refused(seen) or _nominated(seen)
    ]
    return replace(segment, events=kept)


def _early(segment: Segment) -> set[str]:
    """Pods that were created while their claim still listed a pod that was gone, and were refused.

    KCM frees such a claim at the same time as another controller creates the next pod. The
    scheduler refuses that pod if it is first and the claim's node cannot take the pod. A claim that
    other pods keep is never free, so the scheduler refuses the pod in any order.
    """
    freed = {
        seen.name for seen in segment.events if seen.kind == "ResourceClaim" and not _listed(seen)
    }
    listed: dict[str, set[str]] = {}
    gone: set[str] = set()
    early: set[str] = set()
    refused: set[str] = set()
    for seen in [*_still(segment.before), *segment.events]:
        if seen.kind == "ResourceClaim":
            listed[seen.name] = _listed(seen)
        elif seen.kind == "Pod" and seen.type == "DELETED":
            gone.add(seen.object["metadata"]["uid"])
        elif seen.kind == "Pod" and seen.type == "ADDED":
            claims = (used.partition("/")[2] for used in claims_used(seen.object))
            if any(claim in freed and listed.get(claim, set()) & gone for claim in claims):
                early.add(seen.name)
        elif seen.name in early and _is_refused(seen):
            refused.add(seen.name)
    return refused


def _is_refused(seen: Seen) -> bool:
    return _condition(seen, "PodScheduled").get("status") == "False"


def _nominated(seen: Seen) -> bool:
    return "nominatedNodeName" in (seen.object.get("status") or {})


def _without_refusal(seen: Seen) -> Seen:
    if not _is_refused(seen):
        return seen
    status = seen.object["status"]
    conditions = [
        condition for condition in status["conditions"] if condition["type"] != "PodScheduled"
    ]
    return replace(seen, object={**seen.object, "status": {**status, "conditions": conditions}})


def _finished_beside(segment: Segment) -> set[Name]:
    """Claims of pods that have ended and still exist.

    KCM's two halves remove and add such a pod while the claim is allocated
    (kubernetes/kubernetes#141274). How many times they do is a race.
    """
    events = [*segment.events, *_still(segment.before)]
    return {
        ("ResourceClaim", level_text(used.partition("/")[2]))
        for seen in events
        if seen.kind == "Pod" and ended(seen.object)
        for used in claims_used(seen.object)
    }


def _still(before: dict[Name, Object]) -> Iterator[Seen]:
    for (kind, plain), obj in before.items():
        yield Seen(0.0, 0, "MODIFIED", kind, plain, obj)


def _unlisted(tracks: list[list[Seen]]) -> list[list[Seen]]:
    """Claims without their list."""
    return [[_bare(seen) for seen in events] for events in tracks]


def _bare(seen: Seen) -> Seen:
    status = {**(seen.object.get("status") or {}), "reservedFor": []}
    return replace(seen, object={**seen.object, "status": status})


def _jobs_that_go(segment: Segment) -> set[str]:
    """The names of deleted Jobs.

    The Job controller removes its finalizer from their pods, and the garbage collector deletes or
    orphans them. Neither waits for the other.
    """
    return {
        seen.name
        for seen in [*segment.events, *_still(segment.before)]
        if seen.kind == "Job"
        and (seen.type == "DELETED" or "deletionTimestamp" in seen.object["metadata"])
    }


def _untracked(tracks: list[list[Seen]], jobs: set[str]) -> list[list[Seen]]:
    """Pods of these Jobs without the Job controller's finalizer."""
    return [
        [_without_tracking(seen) for seen in events] if _owners(events[0]) & jobs else events
        for events in tracks
    ]


def _owners(seen: Seen) -> set[str]:
    """The names of the Jobs that own a pod."""
    owners = seen.object["metadata"].get("ownerReferences") or ()
    return {owner["name"] for owner in owners if owner["kind"] == "Job"}


def _without_tracking(seen: Seen) -> Seen:
    metadata = seen.object["metadata"]
    kept = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != TRACKING]
    return replace(seen, object={**seen.object, "metadata": {**metadata, "finalizers": kept}})


def _by_name(segment: Segment) -> dict[Name, list[list[Seen]]]:
    """The events of each object, beginning with its state before the step."""
    tracks = _tracks(segment)
    for first in _still(segment.before):
        key = (first.kind, first.name)
        if first.kind in _COUNTED or key in tracks:
            tracks[key] = [first, *tracks.get(key, [])]
    by_name: dict[Name, list[list[Seen]]] = defaultdict(list)
    for (kind, plain), events in tracks.items():
        by_name[kind, level_text(plain)].append(events)
    return by_name


def _exact(kind: str, plain: str, left: list[list[Seen]], right: list[list[Seen]]) -> Found:
    raced = any(_raced(seen) for seen in (*left, *right))
    real, emulated = (sorted(_states(seen, raced=raced) for seen in side) for side in (left, right))
    real, emulated = (
        [seen for seen in side if len(seen) > 1 or not _old(seen)] for side in (real, emulated)
    )
    odd, rest = [], list(emulated)
    for states in real:
        if states in rest:
            rest.remove(states)
        else:
            odd.append(states)
    for left_out, other in _zipped(odd, rest):
        yield (
            f"history {kind} {_where(left_out, other)}",
            f"{plain}: {left_out}",
            f"{plain}: {other}",
        )


def _old(states: list[str]) -> bool:
    """Whether there is only the state before the step."""
    return not states or states[0].startswith("MODIFIED")


def _zipped(first: list[Any], other: list[Any]) -> Iterator[tuple[Any, Any]]:
    for number in range(max(len(first), len(other))):
        yield (
            first[number] if number < len(first) else [],
            other[number] if number < len(other) else [],
        )


def _raced(events: list[Seen]) -> bool:
    return any(
        is_race(message) or _GANG_COMES in message
        for seen in events
        for message in [_condition(seen, "PodScheduled").get("message", "")]
    )


def _condition(seen: Seen, wanted: str) -> Object:
    conditions = (seen.object.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == wanted), {})


def _without_short_cycles(events: list[Seen]) -> list[Seen]:
    """The events of a scheduled group without cycles that began before its last pod was there."""
    if _condition(events[-1], _GROUP_SCHEDULED).get("status") != "True":
        return events
    refused = [_condition(event, _GROUP_SCHEDULED).get("status") == "False" for event in events]
    return [event for event, short in zip(events, refused, strict=True) if not short]


def _states(events: list[Seen], *, raced: bool) -> list[str]:
    texts: list[str] = []
    for seen in _without_short_cycles(events):
        fields = level(shortened(seen.kind, seen.object))
        if raced:
            fields.pop("nominatedNodeName", None)
            conditions = fields.get("conditions", {})
            if conditions.get("PodScheduled", "").startswith("False"):
                conditions.pop("PodScheduled")
            if not conditions:
                fields.pop("conditions", None)
        if seen.kind == "ResourceClaim":
            fields["reservedFor"] = sorted(fields["reservedFor"])
            if fields.get("owners"):
                # A race: the garbage collector deletes it after its pod, and KCM deallocates it.
                fields.pop("deleting", None)
                fields.pop("finalizers", None)
        state = _text(fields)
        if not (raced and texts and texts[-1].endswith(f" {state}") and seen.type == "MODIFIED"):
            texts.append(f"{seen.type} {state}")
    if events[0].kind == "ResourceClaim":
        texts = _merged(events, texts)
        return _without_pause([state for state, _ in groupby(texts)])
    return [state for state, _ in groupby(texts)]


def _without_pause(states: list[str]) -> list[str]:
    """The states without a missing finalizer of a claim that is allocated anew: that is a race.

    KCM deallocates the claim and removes the finalizer in a second write. A faster scheduler
    allocates in between; a slower one adds the finalizer first.
    """
    kept: list[str] = []
    for state in states:
        again = len(kept) >= 2 and kept[-2] == state
        if again and _FREED in state and _without_finalizers(state) == kept[-1]:
            kept.pop()
        else:
            kept.append(state)
    return kept


_FREED = '"allocation": null'


def _without_finalizers(state: str) -> str:
    change, _, text = state.partition(" ")
    fields = {key: value for key, value in json.loads(text).items() if key != "finalizers"}
    return f"{change} {_text(fields)}"


def _merged(events: list[Seen], states: list[str]) -> list[str]:
    """The states with changes of the list merged.

    One write may add or remove one reference or several, and additions and removals do not wait for
    each other. So of states that differ only in the list, the first and the last are kept, and how
    many references came and went.
    """
    kept: list[str] = []
    both = zip(events, states, strict=True)
    for _, run in groupby(both, key=lambda change: _without_list(change[1])):
        same = list(run)
        lists = [_listed(seen) for seen, _ in same]
        came = sum(len(new - old) for old, new in pairwise(lists))
        went = sum(len(old - new) for old, new in pairwise(lists))
        kept.append(same[0][1])
        if came or went:
            kept += [f'LIST {{"came": {came}, "went": {went}}}', same[-1][1]]
    return kept


def _without_list(state: str) -> str:
    change, _, text = state.partition(" ")
    return change + _text({**json.loads(text), "reservedFor": []})


def _listed(seen: Seen) -> set[str]:
    return {entry["uid"] for entry in (seen.object.get("status") or {}).get("reservedFor") or ()}


def _where(real: list[str], other: list[str]) -> str:
    """The fields that differ at the first difference."""
    for a, b in zip(real, other, strict=False):
        if a != b:
            left, right = (json.loads(values.partition(" ")[2]) for values in (a, b))
            paths = [path for path, *_ in _unequal(left, right, "")]
            return ", ".join(paths) or "type of event"
    return "has fewer states" if len(real) < len(other) else "has more states"


def _counted(kind: str, plain: str, left: list[list[Seen]], right: list[list[Seen]]) -> Found:
    """Compare field by field: each must have the same turning points."""
    real, emulated = (sorted(map(_ways, side), key=_text) for side in (left, right))
    for theirs, other in _zipped(real, emulated):
        theirs, other = theirs or {}, other or {}
        for path in sorted({*theirs, *other}):
            a, b = theirs.get(path, []), other.get(path, [])
            if a != b:
                yield f"history {kind} {path}", f"{plain}: {a}", f"{plain}: {b}"


def _ways(events: list[Seen]) -> dict[str, list[Any]]:
    ways: dict[str, list[Any]] = defaultdict(list)
    flat = [dict(_flat(event)) for event in events]
    gone = events[-1].type == "DELETED"
    for path in {path for value in flat for path in value}:
        if gone and path.startswith(("status.", "conditions.")):
            # A race: its controller still writes while the garbage collector removes it.
            continue
        if events[0].kind == "ReplicaSet" and path in _MERGED:
            continue
        if path.startswith(_SUMS.get(events[0].kind, _NO_SUMS)):
            continue
        values = [_amount(path, value.get(path)) for value in flat]
        ways[path] = sorted(map(bool, set(values))) if "uncounted" in path else turns(values)
    return dict(ways)


def _amount(path: str, value: Any) -> Any:
    """The value, or the length of a list: its items are compared at rest."""
    if path.endswith("Indexes"):
        return len(parsed(value or ""))
    return len(value) if "uncounted" in path and value else value


def _flat(seen: Seen) -> Iterator[tuple[str, Any]]:
    if seen.type != "MODIFIED":
        yield seen.type, True
    for path, value, _ in _unequal(level(shortened(seen.kind, seen.object)), {}, ""):
        yield from _leaves(path, value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    else:
        yield path, value


def turns(values: Iterable[Any]) -> list[Any]:
    """The first, last and turning points of numbers; every change of other values."""
    shortest: list[Any] = []
    for value in values:
        if shortest and shortest[-1] == value:
            continue
        if len(shortest) >= 2 and _between(shortest[-2], shortest[-1], value):
            shortest[-1] = value
        else:
            shortest.append(value)
    return shortest


def _between(first: Any, middle: Any, last: Any) -> bool:
    numbers = [0 if value is None else value for value in (first, middle, last)]
    if not all(type(number) is int for number in numbers):
        return False
    return numbers == sorted(numbers) or numbers == sorted(numbers, reverse=True)


# Order of actions


def _orders(theirs: Segment, ours: Segment) -> Found:
    real, emulated = _relations(theirs), _relations(ours)
    for pair in sorted(set(real) & set(emulated) - _UNRELATED):
        if not real[pair] & emulated[pair]:
            shown = [_relation(pair, side[pair]) for side in (real, emulated)]
            yield f"order {pair[0]}, {pair[1]}", shown[0], shown[1]


def _relation(pair: tuple[str, str], signs: set[str]) -> str:
    return f"{pair[0]} {'/'.join(sorted(signs))} {pair[1]}"


def _relations(segment: Segment) -> dict[tuple[str, str], set[str]]:
    """For each change of an object, which changes of related objects came before and after it."""
    before = {mark for seen in _still(segment.before) for mark in _marks(seen)}
    related = _related(segment.events)
    racing = _finished_beside(segment)
    going = _namespace_goes(segment)
    relations: dict[tuple[str, str], set[str]] = defaultdict(set)
    firsts: dict[tuple[Name, str], int] = {}
    for number, seen in enumerate(segment.events):
        for mark in _marks(seen):
            kind, plain = mark[0]
            if mark not in before and (kind, level_text(plain)) not in racing:
                firsts.setdefault(mark, number)
    items = sorted(firsts.items(), key=lambda pair: pair[1])
    if len(items) > 400:
        return {}
    for (name, did), at in items:
        for (other, did_too), later in items:
            if going and "Pod" not in (name[0], other[0]):
                continue
            if at < later and frozenset((name, other)) in related:
                _note(relations, f"{name[0]} {did}", f"{other[0]} {did_too}")
    return relations


def _namespace_goes(segment: Segment) -> bool:
    """Whether the namespace is being deleted. The namespace controller deletes pods first, and then
    the other kinds in the random order of a Go map."""
    return any(
        seen.kind == "Namespace" and "deletionTimestamp" in seen.object["metadata"]
        for seen in [*segment.events, *_still(segment.before)]
    )


def _note(relations: dict[tuple[str, str], set[str]], first: str, second: str) -> None:
    if first == second:
        return
    if first < second:
        relations[first, second].add("<")
    else:
        relations[second, first].add(">")


def _related(events: Sequence[Seen]) -> set[frozenset[Name]]:
    """Pairs of owners and owned objects, and of claims and listed pods."""
    related = set()
    for seen in events:
        own = (seen.kind, seen.name)
        for owner in seen.object["metadata"].get("ownerReferences") or ():
            related.add(frozenset((own, (owner["kind"], owner["name"]))))
        if seen.kind == "ResourceClaim":
            for entry in (seen.object.get("status") or {}).get("reservedFor") or ():
                related.add(frozenset((own, ("Pod", entry["name"]))))
    return related


def _marks(seen: Seen) -> Iterator[tuple[Name, str]]:
    """The changes that a watch event shows; only the first of each kind counts."""
    own = (seen.kind, seen.name)
    if seen.type != "MODIFIED":
        yield own, seen.type.lower()
    obj = seen.object
    if "deletionTimestamp" in obj["metadata"] and seen.type != "DELETED":
        yield own, "deleting"
    if seen.kind == "Pod" and obj["spec"].get("nodeName"):
        yield own, "bound"
    if seen.kind == "ResourceClaim" and seen.type != "DELETED":
        status = obj.get("status") or {}
        yield own, "allocated" if status.get("allocation") else "not allocated"
        if not status.get("reservedFor"):
            yield own, "lists nobody"


# Events


def _messages(theirs: PlayedStory, ours: PlayedStory) -> Found:
    crowded = _crowded(theirs) | _crowded(ours)
    real, emulated = (
        [text for text in _told(played) if text.partition(" ")[0] not in crowded]
        for played in (theirs, ours)
    )
    for event in sorted(set(real) - set(emulated)):
        yield f"event {event.partition(':')[0]} is missing", event, ""
    for event in sorted(set(emulated) - set(real)):
        yield f"event {event.partition(':')[0]} is too much", "", event


def _crowded(played: PlayedStory) -> set[str]:
    """Kinds with too many Events about one object."""
    counts = Counter(
        (message["involvedObject"]["kind"], message["involvedObject"]["name"])
        for message in played.messages
    )
    combined = {
        message["involvedObject"]["kind"]
        for message in played.messages
        if _COMBINED in message.get("message", "")
    }
    return combined | {kind for (kind, _), count in counts.items() if count >= _MANY}


_COMBINED = "combined from similar"
_STEPS = re.compile(r"(Scaled (?:up|down) replica set \S+) from \d+ to \d+")
"""How many steps a Deployment's controller takes depends on when it sees pods. The sizes are
compared."""
_UNSTEADY = (_COMBINED, "had untolerated taint", _GANG_COMES)
"""Unsteady Events: combined ones, ones between two writes to a node, ones of a too early cycle."""


def _told(played: PlayedStory) -> dict[str, None]:
    texts: dict[str, None] = {}
    early = {name for segment in played.segments for name in _early(segment)}
    for message in played.messages:
        regarding = message["involvedObject"]
        if regarding["name"] in early and message["reason"] == "FailedScheduling":
            continue
        text = _STEPS.sub(r"\1", message.get("message", ""))
        if is_race(text) or any(word in text for word in _UNSTEADY):
            continue
        shown = f"{regarding['kind']} {message.get('type')} {message['reason']}"
        texts[f"{shown}: {level_text(regarding['name'])} {level_message(text)}"] = None
    return texts
