"""What the workloads of a history have asked for, ordinal by ordinal, at any time.

It is written from the objects of the server alone, and uses no rule of claimctl: so it may
contradict them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

Object = dict[str, Any]
KINDS = {"statefulsets": "sts", "jobs": "job", "leaderworkersets": "lws"}
"""The resources whose pods have ordinals, with the word in the names of their claims."""
NAME = re.compile(r"^(.+)-(\d+)(?:\.(sts|job)|-(\d+)\.(lws))\.([^.]+)\.(.+)$")
IDLE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Which pod of which workload it is: the ordinal, or the group and the place in it."""

    word: str
    owner: str
    ordinal: int
    member: int = 0

    def __str__(self) -> str:
        place = f"{self.ordinal}-{self.member}" if self.word == "lws" else f"{self.ordinal}"
        return f"{self.owner}-{place}.{self.word}"


@dataclass(frozen=True, slots=True)
class StickyPlace:
    """The place of a pod, an entry and a template: what one sticky claim is for."""

    pod: PodPlace
    entry: str
    template: str

    @classmethod
    def of(cls, claim: str) -> StickyPlace | None:
        """The place that the name of a claim says; None for another claim."""
        found = NAME.match(claim)
        if found is None:
            return None
        owner, ordinal, word, member, in_groups, entry, template = found.groups()
        pod = PodPlace(word or in_groups, owner, int(ordinal), int(member or 0))
        return cls(pod, entry, template)

    @property
    def in_part(self) -> StickyPlace | None:
        """The same place in the StatefulSet that makes the pods of a group; None without groups."""
        pod = self.pod
        if pod.word != "lws":
            return None
        maker = PodPlace("sts", pod.owner, pod.ordinal)
        if pod.member:
            maker = PodPlace("sts", f"{pod.owner}-{pod.ordinal}", pod.member)
        return replace(self, pod=maker)

    def __str__(self) -> str:
        """The name of the claim."""
        return f"{self.pod}.{self.entry}.{self.template}"


@dataclass(frozen=True, slots=True)
class Wish:
    """What one workload asks for from a time on."""

    at: float
    uid: str = ""
    exists: bool = False
    ordinals: range = range(0)
    """The ordinals, or groups, of which a pod is to run."""
    members: range = range(1)
    """The places in a group; those without groups have one."""
    ended: bool = False
    suspended: bool = False
    never: frozenset[int] = frozenset()
    """The indexes of a Job that have completed, or failed for good."""
    asked: frozenset[tuple[str, str]] = frozenset()
    """The entries, with their templates, of the pod template; in groups, of that of workers."""
    asked_of_leaders: frozenset[tuple[str, str]] = frozenset()
    """The same of the pod template of the leaders of groups."""
    earlier: range | None = range(0)
    """The ordinals whose new pods may have another pod template than ``asked`` tells; None: all."""
    when_scaled: str = "Retain"
    when_deleted: str = "Delete"
    policy: str = "WhileRunning"
    idle_seconds: int = IDLE_SECONDS

    def wants(self, place: StickyPlace) -> bool:
        """Whether a pod of the place's ordinal is to run."""
        return self.exists and not self.suspended and self._counts(place)

    def _counts(self, place: StickyPlace) -> bool:
        return place.pod.ordinal in self.ordinals and place.pod.member in self.members

    def _asks(self, place: StickyPlace) -> bool:
        is_leader = self.earlier is None and not place.pod.member
        asked = self.asked_of_leaders if is_leader else self.asked
        return (place.entry, place.template) in asked

    def is_over(self, place: StickyPlace, superseded: bool) -> str:
        """Why nobody needs the claim of the place any more; '' if somebody may.

        Args:
            superseded: whether the last pod of the place had another claim.
        """
        if not self.exists:
            return "gone" if self.when_deleted == "Delete" else ""
        if self.earlier is None:
            # the update of groups reaches one that has no pods as soon as it is made anew
            another = superseded or not (self._counts(place) or self._asks(place))
        elif place.pod.ordinal in self.earlier:
            another = superseded
        else:
            another = not self._asks(place)
        if another:
            return "another template"
        if self.ended or place.pod.ordinal in self.never:
            return "completed"
        scaled = not self._counts(place) and self.when_scaled == "Delete"
        return "scaled" if scaled else ""


@dataclass(slots=True)
class Wishes:
    """The wishes of one workload in order of time."""

    listed: list[Wish] = field(default_factory=list)

    def note(self, wish: Wish) -> None:
        if not self.listed or replace(self.listed[-1], at=wish.at) != wish:
            self.listed.append(wish)

    @property
    def last(self) -> Wish:
        return self.listed[-1]

    def end(self, at: float) -> None:
        """The workload is gone; its settings are the last ones that it had."""
        if self.listed:
            self.note(replace(self.last, at=at, exists=False))

    def ask_for_another(self, place: StickyPlace, since: float) -> bool:
        """Whether the pod template of a StatefulSet's next pod of the place does not ask for the
        claim, or did not at some time since."""
        return any(
            wish.exists and wish.is_over(place, superseded=False) == "another template"
            for number, wish in enumerate(self.listed, 1)
            if number == len(self.listed) or self.listed[number].at >= since
        )

    def excuse(
        self, place: StickyPlace, at: float, slack: float, since: float, superseded: bool
    ) -> str:
        """Why the device of a place may be given up at a time; '' if there is no reason.

        Args:
            superseded: whether a pod of the place has had another claim shortly before.
            slack: for how long a reason still counts that has passed.
            since: when the claim was made. A workload that was deleted after it takes the claim
                along, even if it has been created anew since.
        """
        until = at
        for wish in reversed(self.listed):
            if wish.at > at:
                continue
            if until < since:
                break
            over = wish.is_over(place, superseded)
            if not wish.exists and self._went_with_claims(wish.at, slack):
                over = "gone"
            if over and (until >= at - slack or over == "gone"):
                return over
            idle = self._idle(place, until)
            limit = wish.idle_seconds if wish.policy == "WhileRunning" else None
            if limit is not None and idle >= limit and until >= at - slack:
                return "idle"
            if wish.exists:
                until = wish.at
            # what nobody needed before the workload went, nobody needs after it
        return ""

    def _went_with_claims(self, at: float, slack: float) -> bool:
        """Whether the settings asked to delete the claims with the workload, that went at a time,
        or did so shortly before: nobody may have noticed the change."""
        until = at
        for wish in reversed(self.listed):
            if wish.at > at:
                continue
            if until < at - slack:
                break
            if wish.when_deleted == "Delete":
                return True
            until = wish.at
        return False

    def _idle(self, place: StickyPlace, at: float) -> float:
        """For how long nobody has wanted a pod of the place, up to a time; -1: somebody does."""
        began = None
        for wish in reversed(self.listed):
            if wish.at >= at:
                continue
            if wish.wants(place):
                break
            began = wish.at
        return -1.0 if began is None else at - began


def wish_of(plural: str, workload: Object, at: float) -> Wish:
    """What a workload asks for."""
    meta, spec, status = workload["metadata"], workload["spec"], workload.get("status") or {}
    notes = meta.get("annotations") or {}
    wish = Wish(
        at=at,
        uid=meta["uid"],
        exists="deletionTimestamp" not in meta,
        when_scaled=notes.get("claimctl.io/when-scaled", "Retain"),
        when_deleted=notes.get("claimctl.io/when-deleted", "Delete"),
        policy=notes.get("claimctl.io/retention-policy", "WhileRunning"),
        idle_seconds=int(notes.get("claimctl.io/idle-timeout-seconds", IDLE_SECONDS)),
    )
    if plural == "leaderworkersets":
        groups = spec["leaderWorkerTemplate"]
        leaders = groups.get("leaderTemplate") or groups["workerTemplate"]
        return replace(
            wish,
            ordinals=range(spec["replicas"]),
            members=range(groups["size"]),
            asked=_asked(groups["workerTemplate"]),
            asked_of_leaders=_asked(leaders),
            earlier=None,
        )
    wish = replace(wish, asked=_asked(spec["template"]))
    if plural == "statefulsets":
        start = (spec.get("ordinals") or {}).get("start", 0)
        ordinals = range(start, start + spec.get("replicas", 1))
        return replace(wish, ordinals=ordinals, earlier=_earlier(workload, start))
    ended = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
    never = f"{status.get('completedIndexes') or ''},{status.get('failedIndexes') or ''}"
    return replace(
        wish,
        ordinals=range(spec.get("completions") or 0),
        suspended=bool(spec.get("suspend")),
        ended=bool(ended & {"Complete", "Failed"}),
        never=frozenset(_indexes(never)),
    )


def _earlier(workload: Object, start: int) -> range:
    """The ordinals below the partition of a StatefulSet's rolling update that is not over."""
    spec, status = workload["spec"], workload.get("status") or {}
    strategy = spec.get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    seen = status.get("observedGeneration") == workload["metadata"].get("generation")
    over = seen and status.get("currentRevision") == status.get("updateRevision")
    rolling = strategy.get("type") == "RollingUpdate" and not over
    return range(start, start + (partition if rolling else 0))


def _asked(template: Object) -> frozenset[tuple[str, str]]:
    """The entries, with their templates, that are to have sticky claims."""
    value = (template.get("metadata", {}).get("annotations") or {}).get("claimctl.io/sticky")
    if value is None:
        return frozenset()
    names = {part.strip() for part in value.split(",")}
    return frozenset(
        (entry["name"], entry["resourceClaimTemplateName"])
        for entry in template["spec"].get("resourceClaims") or ()
        if entry.get("resourceClaimTemplateName") and names & {"*", entry["name"]}
    )


def _indexes(text: str) -> set[int]:
    """The indexes of a text like ``1,3-5``."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
