"""One schedule: what a seed does to a workload, its rule, its pods and the way to the server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from kube_in_process.errors import StatusError
from kube_in_process.storage.requests import DeleteOptions

from labs.kinds.grammar import Json, RandomRule, draw
from labs.kinds.judge import Facts, Sample, facts_of
from labs.kinds.site import (
    CLAIM,
    GROUP,
    POD_SPEC,
    ROOT,
    TEAMS,
    KindsSite,
    owner_of,
    team_definition,
)
from labs.torture.stored import Line
from tests.e2e.kinds import GANGS, definition
from tests.e2e.site import NAMESPACE

PAUSES = (0.0, 0.0, 0.0, 0.2, 0.2, 1.5, 1.5, 4.0, 12.0, 35.0, 70.0, 140.0)
LONG_PAUSES = (1.5, 12.0, 35.0, 70.0, 140.0)
"""Without pods, a release may begin."""
CYCLES = (0.0, 0.0, 0.0, 0.5, 3.0, 15.0)
"""Seconds between the scheduler's write to a claim and the binding of the pod."""
CHILD_KINDS = (("batch", "Job"), (GROUP, "Team"))
API_VERSION = GANGS.api_version
RULE, SECOND_RULE = f"gangs.{GROUP}", f"first.{GROUP}"
"""The names of WorkloadKinds: the right one, and one that is not the plural of the kind."""
DEFINITIONS = (RULE, f"{TEAMS}.{GROUP}")


@dataclass
class KindsSchedule:
    """Each method without an argument is one action. One that is impossible now does nothing."""

    site: KindsSite
    rng: Random
    log: list[Line] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    cycles: list[tuple[float, str]] = field(default_factory=list)
    """When which pod is bound."""
    made: int = 0
    _bodies: tuple[Json, ...] = ()

    async def play(self, steps: int) -> None:
        self.begin()
        self.site.start()
        await self.pass_time(5.0)
        if self.rng.random() < 0.9:
            # most schedules begin with a claim that is held
            self.act(self.create_first_pod)
            await self.pass_time(20.0)
        for _ in range(steps):
            self.site.revive()
            action = self.rng.choice(self.actions())
            self.act(action)
            self.others()
            pauses = PAUSES if self.site.all("pods") else LONG_PAUSES
            await self.pass_time(self.rng.choice(pauses))
            if self.rng.random() < 0.04 and not self.facts.forbidden:
                self.log.append((self.now, "restart of the controller"))
                await self.site.stop()
                self.site.start()

    @property
    def now(self) -> float:
        return self.site.clock.monotonic()

    def _add(self, text: str) -> None:
        at, before = self.log[-1]
        self.log[-1] = (at, before + text)

    def act(self, action: Callable[[], None]) -> None:
        self.log.append((self.now, action.__name__))
        before = self.facts.readable()
        try:
            action()
        except (StatusError, LookupError) as error:
            self._add(f": {getattr(error, 'reason', '') or type(error).__name__}")
        found = {name for name in DEFINITIONS if self._is_defined(name)}
        # a finalizer of an object keeps its definition, which is served until then
        self.facts.lost = frozenset(DEFINITIONS) - found
        if self.facts.readable() != before:
            self.facts.past.append((self.now, before))
        self.samples.append(facts_of(self.site, self.facts))

    def _is_defined(self, name: str) -> bool:
        return self.site.admin.find("customresourcedefinitions", "", name) is not None

    def others(self) -> None:
        """What schedulers, kubelets and kube-controller-manager do meanwhile."""
        for at, pod in [one for one in self.cycles if one[0] <= self.now]:
            self.cycles.remove((at, pod))
            with suppress(StatusError):
                self.site.bind(pod)
        if self.rng.random() < 0.6:
            self.site.clean_list()
        if self.rng.random() < 0.4:
            self.site.collect_garbage()
        self.samples.append(facts_of(self.site, self.facts))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass; pods are bound when they are due."""
        end = self.now + seconds
        if seconds:
            # the server deletes the objects of a deleted definition a moment later
            await self.site.clock.sleep(0.1)
            self.samples.append(facts_of(self.site, self.facts))
        while due := [at for at, _ in self.cycles if at <= end]:
            await self.site.clock.sleep(max(min(due) - self.now, 0.0))
            self.others()
        await self.site.clock.sleep(max(end - self.now, 0.0))

    # -- the workload

    def begin(self) -> None:
        """A claim, a workload with an annotation or a ClaimReservation, and perhaps a rule."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}
        meta = {"name": CLAIM, "namespace": NAMESPACE}
        self.site.admin.create(
            "resourceclaims", {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
        )
        if self.rng.random() < 0.9:
            self.act(self.describe)
        self.act(self.create_root)
        annotated = self._root()["metadata"].get("annotations", {})
        if "claimctl.io/reserve" not in annotated or self.rng.random() < 0.4:
            self.act(self.reserve)
        if self.rng.random() < 0.7:
            self.act(self.write_status)

    def actions(self) -> list[Callable[[], None]]:
        """What may be done next; what is lost comes back soon."""
        facts, back = self.facts, []
        if facts.unserved or facts.lost:
            back += [self.find_kind] * 10
        if facts.forbidden:
            back += [self.give_right] * 10
        if SECOND_RULE in facts.rules:
            back += [self.describe_twice] * 10
        if self.site.find(GANGS.plural, ROOT) is None:
            back += [self.create_root] * 10
        return [
            *back,
            *[self.create_pod] * 5,
            *[self.end_pod] * 6,
            *[self.end_pods] * 8,
            *[self.delete_pod] * 2,
            self.force_delete_pod,
            *[self.write_status] * 10,
            *[self.write_spec] * 4,
            *[self.create_child] * 2,
            *[self.end_child] * 2,
            self.delete_child,
            self.orphan_child,
            *[self.describe] * 4,
            self.describe_twice,
            self.forget_rule,
            self.lose_kind,
            self.delete_definition,
            self.lose_right,
            self.delete_root,
            self.orphan_root,
            self.guard_root,
            self.annotate,
            self.reserve,
            self.withdraw,
            self.change_policy,
        ]

    def _root(self) -> Json:
        found = self.site.find(GANGS.plural, ROOT)
        if found is None:
            raise LookupError(ROOT)
        return found

    def create_root(self) -> None:
        notes = {"claimctl.io/reserve": "*"} if self.rng.random() < 0.7 else {}
        if self.rng.random() < 0.6:
            notes["claimctl.io/idle-timeout-seconds"] = self.rng.choice(["0", "20"])
        meta = {"name": ROOT, "namespace": NAMESPACE, "annotations": notes}
        body = {"apiVersion": API_VERSION, "kind": "Gang", "metadata": meta, "spec": {}}
        made = self.site.admin.create(GANGS.plural, body)
        self.facts.roots.append(made["metadata"]["uid"])

    def delete_root(self) -> None:
        self.site.admin.delete(GANGS.plural, NAMESPACE, ROOT)

    def orphan_root(self) -> None:
        self.site.orphan(self._root())
        self.delete_root()

    def guard_root(self) -> None:
        """Put a finalizer on the workload, or take it away."""
        guard = [] if self._root()["metadata"].get("finalizers") else ["acme.example/guard"]
        change = {"metadata": {"finalizers": guard}}
        self.site.admin.patch(GANGS.plural, NAMESPACE, ROOT, change)

    def write_status(self) -> None:
        """The workload's controller writes a status: true, late, or a lie."""
        status: Json = {}
        rng = self.rng
        status["phase"] = rng.choice(["Done", "Done", "Running", "Waiting", None, 7])
        status["done"] = rng.choice([True, False, "yes", None])
        done = {"type": rng.choice(["Done", "Ready"]), "status": rng.choice(["True", "False"])}
        status["conditions"] = rng.choice([None, [], [done], [done]])
        generation = self._root()["metadata"]["generation"]
        status["observedGeneration"] = rng.choice([None, generation, generation, generation - 1])
        change = {"status": status}
        self.site.admin.patch(GANGS.plural, NAMESPACE, ROOT, change, "status")

    def write_spec(self) -> None:
        rng = self.rng
        spec = {
            "paused": rng.choice([True, True, False, None, "maybe"]),
            "replicas": rng.choice([0, 1, None]),
            "other": rng.random(),
        }
        self.site.admin.patch(GANGS.plural, NAMESPACE, ROOT, {"spec": spec})

    # -- pods and children

    def _name(self, head: str) -> str:
        self.made += 1
        return f"{head}-{self.made}"

    def create_pod(self) -> None:
        """A pod of the workload, of a child, of another pod, or of nobody."""
        owners = [*self.site.all(GANGS.plural), *self._children(), *self.site.all("pods")[:1]]
        self._create_pod(self.rng.choice([None, *owners]))

    def create_first_pod(self) -> None:
        self._create_pod(self._root())

    def _create_pod(self, owner: Json | None) -> None:
        name = self._name("pod")
        meta: Json = {"name": name, "namespace": NAMESPACE}
        if owner is not None:
            meta["ownerReferences"] = owner_of(owner)
        self.site.admin.create("pods", {"metadata": meta, "spec": POD_SPEC})
        if self.rng.random() < 0.85:
            self.site.reserve(name)
            self.cycles.append((self.now + self.rng.choice(CYCLES), name))

    def _pod(self) -> str:
        return str(self.rng.choice(self.site.all("pods"))["metadata"]["name"])

    def end_pod(self) -> None:
        self.site.end(self._pod())

    def end_pods(self) -> None:
        """All pods end, and their objects go."""
        self.cycles.clear()
        for each in self.site.all("pods"):
            self.site.end(each["metadata"]["name"])
            with suppress(StatusError):
                self.site.remove(each["metadata"]["name"])

    def delete_pod(self) -> None:
        self.site.admin.delete(
            "pods", NAMESPACE, self._pod(), DeleteOptions(grace_period_seconds=30)
        )

    def force_delete_pod(self) -> None:
        self.site.remove(self._pod())

    def _children(self) -> list[Json]:
        return [*self.site.all("jobs"), *self.site.all(TEAMS)]

    def _child(self) -> tuple[str, str]:
        child = self.rng.choice(self._children())
        plural = "jobs" if child["kind"] == "Job" else TEAMS
        return plural, child["metadata"]["name"]

    def create_child(self) -> None:
        """A Job or a Team, of the workload or of another child."""
        owner = self.rng.choice([*self.site.all(GANGS.plural), *self._children()[:1]])
        name = self._name("child")
        meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": owner_of(owner)}
        if self.rng.random() < 0.6:
            template = {"spec": {**POD_SPEC, "restartPolicy": "Never"}}
            body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta}
            self.site.admin.create("jobs", {**body, "spec": {"template": template}})
        else:
            body = {"apiVersion": API_VERSION, "kind": "Team", "metadata": meta}
            self.site.admin.create(TEAMS, {**body, "spec": {"template": {"spec": POD_SPEC}}})

    def end_child(self) -> None:
        plural, name = self._child()
        done = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        self.site.admin.patch(plural, NAMESPACE, name, done, "status")

    def delete_child(self) -> None:
        plural, name = self._child()
        self.site.admin.delete(plural, NAMESPACE, name, DeleteOptions(propagation="Background"))

    def orphan_child(self) -> None:
        plural, name = self._child()
        self.site.admin.patch(plural, NAMESPACE, name, {"metadata": {"ownerReferences": None}})

    # -- the rule, the kind and the rights

    def describe(self) -> None:
        """Write a random rule for the kind."""
        self._describe(RULE)

    def describe_twice(self) -> None:
        """Write a second rule for the kind, or delete it."""
        if SECOND_RULE in self.facts.rules:
            del self.facts.rules[SECOND_RULE]
            self.site.admin.delete("workloadkinds", "", SECOND_RULE)
        else:
            self._describe(SECOND_RULE)

    def _describe(self, name: str) -> None:
        kinds = self.rng.choice([(), CHILD_KINDS[:1], CHILD_KINDS, CHILD_KINDS])
        rule = RandomRule(draw(self.rng), draw(self.rng), tuple(kinds))
        spec = {
            "group": GROUP,
            "kind": "Gang",
            "idle": rule.idle.source,
            "ended": rule.ended.source,
            "children": [{"group": group, "kind": kind} for group, kind in kinds],
        }
        self._add(f" {name} idle: {rule.idle.source!r} ended: {rule.ended.source!r} {kinds}")
        if name in self.facts.rules:
            self.site.admin.patch("workloadkinds", "", name, {"spec": spec})
        else:
            self.site.admin.create("workloadkinds", {"metadata": {"name": name}, "spec": spec})
        self.facts.rules[name] = rule

    def forget_rule(self) -> None:
        del self.facts.rules[RULE]
        self.site.admin.delete("workloadkinds", "", RULE)

    def lose_kind(self) -> None:
        """The kind is not served any more; its objects are still stored."""
        self.facts.unserved = True
        self._pass()

    def find_kind(self) -> None:
        """The kind is served again."""
        self.facts.unserved = False
        self._pass()
        for body in (definition(GANGS), team_definition()):
            if not self._is_defined(body["metadata"]["name"]):
                self.site.admin.create("customresourcedefinitions", body)

    def delete_definition(self) -> None:
        """The server deletes all objects of the kind with its definition."""
        name = self.rng.choice(DEFINITIONS)
        self.site.admin.delete("customresourcedefinitions", "", name)

    def lose_right(self) -> None:
        self.facts.forbidden |= {self.rng.choice([GANGS.plural, "jobs", TEAMS])}
        self._pass()

    def give_right(self) -> None:
        self.facts.forbidden = frozenset()
        self._pass()

    def _pass(self) -> None:
        facts = self.facts
        self.site.passage.set(unserved=facts.unserved, forbidden=facts.forbidden)

    # -- reservations

    def annotate(self) -> None:
        """Remove the annotation, or add it again."""
        there = "claimctl.io/reserve" in self._root()["metadata"].get("annotations", {})
        change = {"metadata": {"annotations": {"claimctl.io/reserve": None if there else "*"}}}
        self.site.admin.patch(GANGS.plural, NAMESPACE, ROOT, change)

    def reserve(self) -> None:
        """Create a ClaimReservation for the workload."""
        spec = {
            "resourceClaimName": CLAIM,
            "workloadRef": {"apiGroup": GROUP, "kind": "Gang", "name": ROOT},
            "retentionPolicy": self.rng.choice(
                ["WhileRunning", "WhileRunning", "Persistent", "Manual"]
            ),
            "idleTimeoutSeconds": self.rng.choice([0, 5, 60]),
        }
        meta = {"name": self.rng.choice(["a", "b"]), "namespace": NAMESPACE}
        head = {"apiVersion": "claimctl.io/v1alpha1", "kind": "ClaimReservation"}
        self.site.admin.create("claimreservations", {**head, "metadata": meta, "spec": spec})

    def _reservation(self) -> str:
        return str(self.rng.choice(self.site.all("claimreservations"))["metadata"]["name"])

    def withdraw(self) -> None:
        self.site.admin.delete("claimreservations", NAMESPACE, self._reservation())

    def change_policy(self) -> None:
        policy = self.rng.choice(["WhileRunning", "Persistent", "Manual"])
        change = {"spec": {"retentionPolicy": policy}}
        self.site.admin.patch("claimreservations", NAMESPACE, self._reservation(), change)

    # -- the end

    async def conclude(self) -> None:
        """Everything can be read again, and nothing wants the claim: it has to become free."""
        self.log.append((self.now, "the end"))
        self.facts.forbidden = frozenset()
        self.find_kind()
        self.end_pods()
        for plural in (GANGS.plural, "jobs", TEAMS):
            for each in self.site.all(plural):
                name = each["metadata"]["name"]
                change = {"metadata": {"finalizers": None, "ownerReferences": None}}
                self.site.admin.patch(plural, NAMESPACE, name, change)
                with suppress(StatusError):
                    options = DeleteOptions(propagation="Background")
                    self.site.admin.delete(plural, NAMESPACE, name, options)
        for each in self.site.all("claimreservations"):
            # one that was made for an annotation, and was orphaned, stays as one of a user
            if not each["metadata"].get("ownerReferences"):
                self.site.admin.delete("claimreservations", NAMESPACE, each["metadata"]["name"])
        for _ in range(8):
            self.site.revive()
            self.site.collect_garbage()
            self.site.clean_list()
            self.samples.append(facts_of(self.site, self.facts))
            await self.site.clock.sleep(60.0)
