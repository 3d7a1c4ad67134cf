"""Judges a schedule: by the witness, and by what the schedule itself knows of the workload.

Nothing of claimctl's decisions is used: a rule's value is computed by ``grammar``, and a release
needs a reason that was there within the last seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from kube_in_process.storage.store import Revision

from claimctl_witness.witness import Witness
from claimctl_witness.world import World
from labs.kinds.grammar import Json, RandomRule, Says
from labs.kinds.site import CLAIM, GROUP, ROOT, TEAMS, KindsSite, children_of
from tests.e2e.kinds import GANGS
from tests.e2e.site import CONTROLLER_USER

LATE = 12.0
"""Seconds within which claimctl has noticed a change of a rule, a kind or a right."""
SHORT = 3.0
"""A state that lasted for less may have gone unnoticed."""
PLURAL, KIND = GANGS.plural, f"{GANGS.plural}.{GROUP}"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
POLICIES = ("WhileRunning", "Persistent", "Manual")
"""The first frees the soonest."""
GRACE = 30.0
"""Seconds for which a pod that vanished counts at least."""


@dataclass(frozen=True, slots=True)
class Readable:
    """How the kind can be read and judged."""

    rules: tuple[tuple[str, RandomRule], ...] = ()
    """The WorkloadKinds with their names."""
    forbidden: frozenset[str] = frozenset()
    unserved: bool = False
    lost: frozenset[str] = frozenset()
    """The CustomResourceDefinitions that are deleted."""

    def says(self, root: Json | None) -> Says | None:
        """What can be said about the workload; None if it is gone."""
        unread = self.unserved or PLURAL in self.forbidden or KIND in self.lost
        name, rule = min(self.rules, default=(KIND, RandomRule()))
        if unread or name != KIND or not rule.is_valid:
            return Says.UNKNOWN
        return None if root is None else rule.says(root)


@dataclass
class Facts:
    """What the schedule has done."""

    rules: dict[str, RandomRule] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    unserved: bool = False
    lost: frozenset[str] = frozenset()
    roots: list[str] = field(default_factory=list)
    """UIDs of the incarnations of the workload."""
    past: list[tuple[float, Readable]] = field(default_factory=list)
    """How the kind could be read before, and until when."""

    def readable(self) -> Readable:
        rules = tuple(sorted(self.rules.items(), key=lambda one: one[0]))
        return Readable(rules, self.forbidden, self.unserved, self.lost)

    def recent(self, now: float) -> list[Readable]:
        """How the kind can be read, and how claimctl may still read it."""
        return [self.readable(), *(one for until, one in self.past if until >= now - LATE)]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is true from ``at`` on, until the next sample."""

    at: float
    views: tuple[tuple[Says | None, bool | None], ...]
    """For each way in which the kind may be read now: what is said about the workload, and whether
    something is left that may make pods; None if that cannot be read."""
    policies: tuple[tuple[str, float], ...]
    """Retention policy and idle timeout of each ClaimReservation that is not withdrawn."""

    @property
    def idle(self) -> bool:
        return any(says is Says.IDLE for says, _ in self.views)

    def frees(self, policy: str) -> bool:
        """Whether a reservation of that policy has a reason to give the claim up at once."""
        over = ((None, False), (Says.OVER, False))
        return policy != "Manual" and any(view in over for view in self.views)


def facts_of(site: KindsSite, facts: Facts) -> Sample:
    """The sample of this moment."""
    root, now = site.find(PLURAL, ROOT), site.clock.monotonic()
    views = tuple((one.says(root), _children(site, facts, one, root)) for one in facts.recent(now))
    return Sample(now, views, tuple(_policies(site, root)))


def _policies(site: KindsSite, root: Json | None) -> Iterator[tuple[str, float]]:
    """What each ClaimReservation asks for, or may ask for soon.

    The annotation of the workload that is there decides about those that claimctl made, also about
    one that an earlier workload of the name left behind, without an owner: if it does not ask for
    the claim, they may go. A ``*`` asks for the claims of the workload's pods.
    """
    notes = root["metadata"].get("annotations", {}) if root is not None else {}
    for each in site.all("claimreservations"):
        spec, meta = each["spec"], each["metadata"]
        made = meta.get("labels", {}).get(MANAGED_LABEL) == "claimctl"
        asked = notes.get("claimctl.io/reserve")
        if asked == "*" and root and not meta.get("ownerReferences"):
            family = children_of(site, {root["metadata"]["uid"]}, ("jobs", TEAMS, "pods"))
            asked = any(one["kind"] == "Pod" for one in family)
        withdrawn = made and root and not asked
        if "deletionTimestamp" not in meta and not withdrawn:
            seconds = float(spec.get("idleTimeoutSeconds", 60))
            policies = {spec.get("retentionPolicy", "WhileRunning")}
            if made and root:
                # claimctl may bring the policy of the annotation back at any moment
                policies.add(notes.get("claimctl.io/retention-policy", "WhileRunning"))
            yield min(policies, key=POLICIES.index), seconds


def _children(site: KindsSite, facts: Facts, now: Readable, root: Json | None) -> bool | None:
    kinds = {kind for _, rule in now.rules[:1] for _, kind in rule.children}
    plurals = {"Job": "jobs", "Team": TEAMS}
    wanted = tuple(plurals[kind] for kind in sorted(kinds))
    if now.forbidden.intersection(wanted):
        return None
    family = list(children_of(site, set(facts.roots[-1:]), wanted))
    if root is None:
        every = [each for plural in wanted for each in site.all(plural)]
        family += [each for each in every if not each["metadata"].get("ownerReferences")]
    return any(map(_may_make_pods, family))


def _may_make_pods(child: Json) -> bool:
    conditions = child.get("status", {}).get("conditions", [])
    complete = any(each["type"] == "Complete" for each in conditions)
    over = child["kind"] == "Job" and (complete or child["spec"].get("suspend"))
    return "deletionTimestamp" not in child["metadata"] and not over


def findings(site: KindsSite, samples: list[Sample]) -> Iterator[str]:
    """What claimctl did wrong."""
    witness, world = Witness({CONTROLLER_USER}, grace=GRACE), World()
    world.listen(witness.notice)
    history = list(site.handler.api.store.history(0))
    world.read(history)
    for violation in witness.violations:
        yield f"{violation.rule}: {violation.message}"
    for revision in history:
        given_up = _gives_up(revision)
        if given_up and not is_justified(samples, revision.at):
            last = [each for each in samples if each.at <= revision.at][-1]
            yield f"revision {revision.number}: {given_up} without a reason: {last}"
    claim = site.find("resourceclaims", CLAIM)
    if claim is not None and "allocation" in claim.get("status", {}):
        yield f"the claim is never released: {claim['status']}"
    left = [each["metadata"]["name"] for each in site.all("claimreservations")]
    if left:
        yield f"ClaimReservations are left: {left}"
    if site.manager is not None and site.manager.done() and site.manager.exception():
        yield f"the controller broke: {site.manager.exception()!r}"


def _gives_up(revision: Revision) -> str:
    """What a write of claimctl gives up: the devices, or the hold."""
    mine = revision.plural == "resourceclaims" and revision.actor == CONTROLLER_USER
    if not mine or revision.previous is None or revision.type == "DELETED":
        return ""
    before, after = (
        msgspec.json.decode(data, type=Json).get("status", {})
        for data in (revision.previous, revision.data)
    )
    if "allocation" in before and "allocation" not in after:
        return "deallocated"
    held, holds = (
        any(each["resource"] == PLURAL for each in status.get("reservedFor", []))
        for status in (before, after)
    )
    return "the hold left" if held and not holds else ""


def is_justified(samples: list[Sample], at: float) -> bool:
    """Whether all reservations had a reason to give the claim up lately."""
    ends = [*(each.at for each in samples[1:]), float("inf")]
    spans = [one for one in zip(samples, ends, strict=True) if one[0].at <= at]
    idle = _idle_for(spans, at)
    return any(
        all(
            sample.frees(policy) or (policy == "WhileRunning" and idle >= seconds - SHORT)
            for policy, seconds in sample.policies
        )
        for sample, end in spans
        if end >= at - LATE
    )


def _idle_for(spans: list[tuple[Sample, float]], at: float) -> float:
    """For how many seconds the workload was idle up to now, or lately; -inf if it was not."""
    longest, since = float("-inf"), None
    for sample, end in spans:
        if sample.idle:
            since = sample.at if since is None else since
            if end >= at - LATE:
                longest = max(longest, min(end, at) - since)
        elif end - sample.at > SHORT:
            since = None
    return longest
