"""Random stories. The same seed makes the same stories."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from judges.differential.actions.manifests import NONE, OWN, SHARED, Manifests
from judges.differential.actions.story import KUBELETS, NODE, POD, WAIT, Story, StoryStep, send

CASCADES = ("Background", "Foreground", "Orphan")
NODES = 3

Steps = list[StoryStep]


def pods(
    note: str, of: str, what: str, state: str = "live", count: int = 1, **more: Any
) -> StoryStep:
    args = {"of": of, "what": what, "state": state, "count": count, **more}
    return StoryStep(POD, note, args)


def node(note: str, what: str, **more: Any) -> StoryStep:
    return StoryStep(NODE, note, {"what": what, **more})


def kubelets(note: str, **more: bool) -> StoryStep:
    return StoryStep(KUBELETS, note, dict(more))


def wait(seconds: float) -> StoryStep:
    return StoryStep(WAIT, f"wait {seconds:g} s", {"seconds": seconds})


class Teller:
    """Makes one story from one random source."""

    def __init__(self, chance: Random, version: tuple[int, int], groups: bool) -> None:
        self.chance = chance
        self.version = version
        self.groups = groups
        self.make = Manifests(version, NODES)

    def tell(self, theme: str = "") -> Story:
        chosen = (
            theme or self.chance.choices(*zip(*_weights(self.version, self.groups), strict=True))[0]
        )
        devices = self.chance.choice((1, 2, 4))
        steps = THEMES[chosen](self)
        if chosen == "job" and _has_indexes(steps):
            # Which of the indexes get scarce devices depends on a race between their pods.
            devices = 4
        return Story(chosen, tuple(steps), NODES, devices)

    def some(self, count: tuple[int, int], *makers: Callable[[], Steps]) -> Steps:
        steps: Steps = []
        for _ in range(self.chance.randint(*count)):
            steps += self.chance.choice(makers)()
        return steps

    def claims(self) -> str:
        return self.chance.choice((SHARED, OWN, NONE))

    def sometimes(self, *steps: StoryStep, odds: float = 0.3) -> Steps:
        return list(steps) if self.chance.random() < odds else []

    def way(self) -> str:
        """How to scale a workload: through /scale as kubectl does, or through the object."""
        return self.chance.choice(("", "scale"))

    # Events of pods of any workload

    def harm(self, of: str) -> Steps:
        what = self.chance.choice(("delete", "force", "evict"))
        state = self.chance.choice(("live", "running"))
        count = self.chance.choice((1, 1, 2))
        return [pods(f"{what} {count} {state} pods of {of}", of, what, state, count)]

    def unready(self, of: str) -> Steps:
        return [pods(f"a pod of {of} is not ready any more", of, "unready", "ready")]

    def slow(self) -> Steps:
        on = self.chance.choice((True, False))
        if self.chance.random() < 0.5:
            return [kubelets(f"kubelets {'start' if on else 'do not start'} pods", start=on)]
        return [kubelets(f"kubelets {'stop' if on else 'do not stop'} pods", stop=on)]

    def end(self, plural: str, plain: str) -> Steps:
        steps = [self.make.delete(plural, plain, self.chance.choice(CASCADES))]
        return [*steps, kubelets("kubelets start and stop pods", start=True, stop=True)]

    def claim_harm(self, claims: str) -> Steps:
        if claims != SHARED:
            return []
        steps = [self.make.delete("resourceclaims", "shared")]
        return steps + self.sometimes(self.make.claim("shared"), odds=0.7)


def _has_indexes(steps: Steps) -> bool:
    bodies = (step.args.get("body") or {} for step in steps)
    return any((body.get("spec") or {}).get("completionMode") == "Indexed" for body in bodies)


def _deployment_body(tell: Teller, plain: str, claims: str, size: int) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": "Recreate"}
    if tell.chance.random() < 0.75:
        rolling = tell.chance.choice(
            (
                None,
                {"maxSurge": 1, "maxUnavailable": 0},
                {"maxSurge": 0, "maxUnavailable": 1},
                {"maxSurge": "50%", "maxUnavailable": "50%"},
                {"maxSurge": 2, "maxUnavailable": 1},
            )
        )
        strategy = {"type": "RollingUpdate", **({"rollingUpdate": rolling} if rolling else {})}
    spec: dict[str, Any] = {
        "replicas": size,
        "selector": {"matchLabels": {"a": plain}},
        "strategy": strategy,
        "template": tell.make.pod_template(plain, tell.make.pod_spec(claims)),
    }
    if tell.chance.random() < 0.2:
        spec["revisionHistoryLimit"] = tell.chance.choice((0, 1))
    if tell.chance.random() < 0.15:
        spec["minReadySeconds"] = 3
    return spec


def deployment(tell: Teller) -> Steps:
    make, chance, claims = tell.make, tell.chance, tell.claims()
    spec = _deployment_body(tell, "web", claims, chance.randint(1, 4))
    steps = [*make.needs(claims), make.create("deployments", "web", spec=spec)]
    return (
        steps
        + tell.some(
            (3, 6),
            lambda: [make.scale("deployments", "web", chance.randint(0, 6), tell.way())],
            lambda: [make.roll("deployments", "web", chance.randint(1, 3))],
            lambda: [make.roll("deployments", "web", chance.randint(1, 3))],
            lambda: [_paused(make, chance.random() < 0.5)],
            lambda: tell.harm("web-"),
            lambda: tell.slow(),
            lambda: tell.unready("web-"),
            lambda: tell.claim_harm(claims),
            lambda: [_pods_change(make, chance)],
        )
        + _sometimes_end(tell, "deployments", "web", spec)
    )


def _paused(make: Manifests, on: bool) -> StoryStep:
    said = "pause web" if on else "resume web"
    return make.patch("deployments", "web", said, {"spec": {"paused": on}})


def _pods_change(make: Manifests, chance: Random) -> StoryStep:
    """Change labels and annotations of the Deployment; its ReplicaSets take some of them over."""
    value = f"x{chance.randint(1, 3)}"
    what = chance.choice(("labels", "annotations"))
    body = {"metadata": {what: {"team": value}}}
    return make.patch("deployments", "web", f"set {what} of web", body)


def _sometimes_end(tell: Teller, plural: str, plain: str, spec: dict[str, Any]) -> Steps:
    if tell.chance.random() > 0.6:
        return []
    steps = tell.end(plural, plain)
    if tell.chance.random() < 0.5:
        steps.append(tell.make.create(plural, plain, f"create {plain} anew", spec=spec))
    return steps


def replica_set(tell: Teller) -> Steps:
    make, chance, claims = tell.make, tell.chance, tell.claims()
    template = make.pod_template("rs", make.pod_spec(claims))
    selector = {"matchLabels": {"a": "rs"}}
    spec = {"replicas": chance.randint(1, 3), "selector": selector, "template": template}
    alone = make.create("pods", "stray", metadata={"labels": {"a": "rs"}}, spec=make.pod_spec())
    steps = [*make.needs(claims), *tell.sometimes(alone)]
    steps.append(make.create("replicasets", "rs", spec=spec))
    unlabel = {"metadata": {"labels": {"a": "other"}}}
    relabel = pods("a pod of rs leaves its selector", "rs-", "patch", "live", body=unlabel)
    return (
        steps
        + tell.some(
            (3, 5),
            lambda: [make.scale("replicasets", "rs", chance.randint(0, 4), tell.way())],
            lambda: tell.harm("rs-"),
            lambda: [relabel],
            lambda: tell.slow(),
            lambda: [pods("a pod of rs ends", "rs-", "end", "running", code=chance.choice((0, 1)))],
        )
        + _sometimes_end(tell, "replicasets", "rs", spec)
    )


def stateful_set(tell: Teller) -> Steps:
    make, chance, claims = tell.make, tell.chance, tell.claims()
    spec: dict[str, Any] = {
        "replicas": chance.randint(1, 3),
        "serviceName": "db",
        "selector": {"matchLabels": {"a": "db"}},
        "template": make.pod_template("db", make.pod_spec(claims)),
        "podManagementPolicy": chance.choice(("OrderedReady", "OrderedReady", "Parallel")),
    }
    kind = chance.choice(("", "partition", "OnDelete"))
    if kind == "partition":
        rolling = {"partition": chance.randint(0, 3)}
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    elif kind:
        spec["updateStrategy"] = {"type": "OnDelete"}
    if chance.random() < 0.15:
        spec["ordinals"] = {"start": 2}
    steps = [*make.needs(claims), make.create("statefulsets", "db", spec=spec)]
    return (
        steps
        + tell.some(
            (3, 5),
            lambda: [make.scale("statefulsets", "db", chance.randint(0, 4), tell.way())],
            lambda: [make.roll("statefulsets", "db", chance.randint(1, 3))],
            lambda: [make.roll("statefulsets", "db", chance.randint(1, 3))],
            lambda: [_partition(make, chance.randint(0, 2))],
            lambda: tell.harm("db-"),
            lambda: tell.slow(),
            lambda: tell.unready("db-"),
            lambda: [pods("a pod of db ends", "db-", "end", "running", code=chance.choice((0, 1)))],
        )
        + _sometimes_end(tell, "statefulsets", "db", spec)
    )


def _partition(make: Manifests, number: int) -> StoryStep:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}
    body = {"spec": {"updateStrategy": strategy}}
    return make.patch("statefulsets", "db", f"set the partition to {number}", body)


def _job_spec(tell: Teller, claims: str) -> dict[str, Any]:
    make, chance = tell.make, tell.chance
    policy = chance.choice(("Never", "Never", "OnFailure"))
    template = make.pod_template("job", make.pod_spec(claims, restartPolicy=policy))
    spec: dict[str, Any] = {"parallelism": chance.randint(1, 3), "template": template}
    if chance.random() < 0.85:
        spec["completions"] = chance.randint(1, 4)
    if "completions" in spec and chance.random() < 0.5:
        spec["completionMode"] = "Indexed"
    if chance.random() < 0.5:
        spec["backoffLimit"] = chance.randint(0, 2)
    if chance.random() < 0.3:
        spec["podReplacementPolicy"] = chance.choice(("Failed", "TerminatingOrFailed"))
    if chance.random() < 0.25:
        spec["suspend"] = True
    if chance.random() < 0.2:
        spec["ttlSecondsAfterFinished"] = chance.choice((0, 3))
    if policy == "Never" and chance.random() < 0.3:
        spec.pop("podReplacementPolicy", None)
        spec["podFailurePolicy"] = {"rules": [_rule(chance, spec)]}
    elif policy == "Never" and "completionMode" in spec and chance.random() < 0.3:
        spec["backoffLimitPerIndex"] = chance.randint(0, 1)
        spec.pop("backoffLimit", None)
    if "completionMode" in spec and chance.random() < 0.15:
        rule = chance.choice(({"succeededCount": 1}, {"succeededIndexes": "0"}))
        spec["successPolicy"] = {"rules": [rule]}
    return spec


def _rule(chance: Random, spec: dict[str, Any]) -> dict[str, Any]:
    action = chance.choice(("FailJob", "Ignore", "Count"))
    codes = {"containerName": "c", "operator": "In", "values": [42]}
    return {"action": action, "onExitCodes": codes}


def job(tell: Teller) -> Steps:
    make, chance, claims = tell.make, tell.chance, tell.claims()
    spec = _job_spec(tell, claims)
    steps = [*make.needs(claims), make.create("jobs", "job", spec=spec)]
    patch = make.patch

    def failed() -> Steps:
        code = chance.choice((1, 42))
        said = f"a pod of job fails with {code}"
        return [pods(said, "job-", "end", "running", code=code), wait(12)]

    def ended() -> Steps:
        count = chance.choice((1, 1, 2))
        return [pods(f"{count} pods of job succeed", "job-", "end", "running", count)]

    def suspended() -> Steps:
        on = chance.random() < 0.5
        said = "suspend job" if on else "resume job"
        return [patch("jobs", "job", said, {"spec": {"suspend": on}})]

    def parallel() -> Steps:
        size = chance.randint(0, 4)
        said = f"set parallelism of job to {size}"
        return [patch("jobs", "job", said, {"spec": {"parallelism": size}})]

    def harmed() -> Steps:
        return [*tell.harm("job-"), wait(12)]

    steps += tell.some((3, 6), ended, ended, ended, failed, suspended, parallel, harmed, tell.slow)
    return steps + tell.sometimes(*tell.end("jobs", "job"), odds=0.4)


def bare_pods(tell: Teller) -> Steps:
    """Pods with claims, too few devices, and claims that are created or deleted."""
    make, chance = tell.make, tell.chance
    steps: Steps = []
    serial = iter(range(100))

    def pod() -> Steps:
        claims = tell.claims()
        gates = {"schedulingGates": [{"name": "g"}]} if chance.random() < 0.1 else {}
        spec = make.pod_spec(claims, restartPolicy=chance.choice(("Always", "Never")), **gates)
        return [make.create("pods", f"p{next(serial)}", spec=spec)]

    def ended() -> Steps:
        return [pods("a pod ends", "p", "end", "running", code=chance.choice((0, 1)))]

    first = [make.claim("shared", chance.choice((1, 1, 2))), make.template("each")]
    steps += [step for step in first if chance.random() < 0.8]
    return steps + tell.some(
        (5, 9),
        pod,
        pod,
        pod,
        lambda: tell.harm("p"),
        ended,
        lambda: [make.delete("resourceclaims", "shared")],
        lambda: [make.claim("shared", 1)],
        lambda: [make.template("each")],
        lambda: [make.delete("resourceclaimtemplates", "each")],
        lambda: [pods("a pod loses its gates", "p", "patch", "pending", body=UNGATE)],
        tell.slow,
    )


UNGATE: dict[str, Any] = {"spec": {"schedulingGates": []}}


def held(tell: Teller) -> Steps:
    """A claim with a reference that is no pod's: beside pods, beside finished pods, and alone."""
    make, chance = tell.make, tell.chance
    spec = _deployment_body(tell, "web", SHARED, chance.randint(1, 3))
    reference = {"apiGroup": "apps", "resource": "deployments", "name": "web", "uid": "held"}
    path = make.path("resourceclaims", "shared", "status")

    def hold() -> Steps:
        body = {"status": {"reservedFor": [reference]}}
        return [send("hold the claim", "PATCH", path, body, patch="strategic")]

    def let_go() -> Steps:
        gone = {"$patch": "delete", "uid": "held"}
        body = {"status": {"reservedFor": [gone]}}
        return [send("let the claim go", "PATCH", path, body, patch="strategic")]

    alone = make.pod_spec(SHARED, restartPolicy="Never")
    steps = [make.claim("shared"), make.create("deployments", "web", spec=spec), *hold()]
    serial = iter(range(100))
    return steps + tell.some(
        (3, 6),
        lambda: [make.scale("deployments", "web", chance.randint(0, 3))],
        lambda: [make.roll("deployments", "web", chance.randint(1, 3))],
        lambda: tell.harm("web-"),
        hold,
        let_go,
        lambda: [make.create("pods", f"p{next(serial)}", spec=alone)],
        lambda: [pods("a pod ends", "p", "end", "running")],
        lambda: [make.delete("resourceclaims", "shared")],
    )


def nodes(tell: Teller) -> Steps:
    """Nodes with pods are cordoned, tainted, deleted or lost."""
    make, chance = tell.make, tell.chance
    plural = chance.choice(("deployments", "statefulsets"))
    tolerations = _tolerating(chance)
    spec: dict[str, Any] = {
        "replicas": chance.randint(1, 3),
        "selector": {"matchLabels": {"a": "web"}},
        "template": make.pod_template("web", make.pod_spec(SHARED, tolerations=tolerations)),
    }
    if plural == "statefulsets":
        spec["serviceName"] = "web"
    steps = [make.claim("shared"), make.create(plural, "web", spec=spec)]
    key = {"key": "broken", "value": "yes"}
    effects = chance.choice((["NoSchedule"], ["NoExecute"], ["NoSchedule", "NoExecute"]))
    if tolerations[0]["key"] == key["key"]:
        # Otherwise the chosen node would decide whether the next pod is evicted again.
        effects = ["NoSchedule", "NoExecute"]
    taints = [{**key, "effect": effect} for effect in effects]
    trouble: list[Steps] = [
        [node("cordon the node of web", "cordon", of="web")],
        [node(f"taint the node of web: {', '.join(effects)}", "taint", of="web", taints=taints)],
        [node("the node of web is lost", "lose", of="web"), wait(NODE_LOST)],
    ]
    over = {0: "uncordon", 1: "untaint", 2: "restore"}
    for _ in range(chance.randint(1, 2)):
        which = chance.choice((0, 0, 1, 1, 2))
        steps += trouble[which]
        steps += tell.some(
            (1, 2),
            lambda: tell.harm("web-"),
            lambda: [make.scale(plural, "web", chance.randint(0, 3))],
            lambda: [make.roll(plural, "web", chance.randint(1, 3))],
        )
        if chance.random() < 0.7:
            steps += [node(f"{over[which]} the node", over[which]), wait(2)]
    return steps


NODE_LOST = 26.0
"""Seconds until the node lifecycle controller has noticed a lost node and tainted it."""


def _tolerating(chance: Random) -> list[dict[str, Any]]:
    key = chance.choice(("node.kubernetes.io/unreachable", "broken"))
    toleration: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    seconds = chance.choice((None, 1, 1, 1))
    return [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]


def devices(tell: Teller) -> Steps:
    """Drivers taint the devices of nodes, and remove the taints.

    Each pod has a claim of its own. With a shared claim, KCM would evict each new pod at once, for
    ever, because the claim stays allocated.
    """
    make, chance = tell.make, tell.chance
    plural = chance.choice(("deployments", "statefulsets"))
    spec: dict[str, Any] = {
        "replicas": chance.randint(1, 3),
        "selector": {"matchLabels": {"a": "web"}},
        "template": make.pod_template("web", make.pod_spec(OWN)),
    }
    if plural == "statefulsets":
        spec["serviceName"] = "web"
    bears = {"key": BROKEN, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    bearing = chance.choice(((), (), (bears,)))
    steps = [*make.needs(OWN, tolerations=bearing), make.create(plural, "web", spec=spec)]

    def tainted(where: str, **which: Any) -> Steps:
        # Pods that tolerate NoExecute for a while would come back to the same devices.
        kinds = (["NoSchedule", "NoExecute"],) if bearing else (["NoSchedule"], ["NoExecute"])
        effects = chance.choice(kinds)
        taints = [{"key": BROKEN, "effect": effect} for effect in effects]
        said = f"taint the devices of {where}: {', '.join(effects)}"
        return [node(said, "taint devices", taints=taints, lasts=3, **which)]

    return steps + tell.some(
        (3, 5),
        lambda: tainted("web", of="web-"),
        lambda: tainted("web", of="web-"),
        # The scheduler chooses which node has which pods.
        lambda: tainted("a free node", free=True),
        lambda: [node("the devices of the first node are good", "untaint devices")],
        lambda: [node("the devices of the first node are good", "untaint devices")],
        lambda: [make.scale(plural, "web", chance.randint(0, 3))],
        lambda: tell.harm("web-"),
    )


BROKEN = "example.com/broken"


def budgets(tell: Teller) -> Steps:
    make, chance = tell.make, tell.chance
    plural = chance.choice(("deployments", "statefulsets"))
    spec: dict[str, Any] = {
        "replicas": chance.randint(2, 4),
        "selector": {"matchLabels": {"a": "web"}},
        "template": make.pod_template("web", make.pod_spec(tell.claims())),
    }
    claims = make.needs(SHARED) + make.needs(OWN)
    if plural == "statefulsets":
        spec["serviceName"] = "web"
    limit = chance.choice(
        ({"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 1}, {"maxUnavailable": 0})
    )
    policy = chance.choice(({}, {}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}))
    selector = {"selector": {"matchLabels": {"a": "web"}}}
    budget = make.create("poddisruptionbudgets", "pdb", spec={**limit, **policy, **selector})
    workload = make.create(plural, "web", spec=spec)
    steps = [*claims, *chance.sample([budget, workload], 2)]

    def evicted() -> Steps:
        count = chance.choice((1, 2))
        return [pods(f"evict {count} pods of web", "web-", "evict", "live", count)]

    return steps + tell.some(
        (3, 5),
        evicted,
        evicted,
        lambda: [make.scale(plural, "web", chance.randint(0, 4))],
        lambda: [make.roll(plural, "web", chance.randint(1, 3))],
        lambda: tell.unready("web-"),
        tell.slow,
        lambda: [make.delete("poddisruptionbudgets", "pdb")],
    )


def namespace(tell: Teller) -> Steps:
    """A namespace with objects is deleted."""
    chance = tell.chance
    first = chance.choice((deployment, stateful_set, job, bare_pods))(tell)[:5]
    gone = send("delete the namespace", "DELETE", "/api/v1/namespaces/{ns}")
    stop = kubelets("kubelets start and stop pods", start=True, stop=True)
    return [*first, *tell.sometimes(kubelets("kubelets do not stop pods", stop=False)), gone, stop]


def pod_groups(tell: Teller) -> Steps:
    make, chance = tell.make, tell.chance
    entry = chance.choice(
        (
            {"name": "c", "resourceClaimName": "shared"},
            {"name": "c", "resourceClaimTemplateName": "each"},
        )
    )
    claims = SHARED if "resourceClaimName" in entry else OWN
    gang = chance.random() < 0.3
    policy = {"gang": {"minCount": chance.randint(2, 3)}} if gang else {"basic": {}}
    spec: dict[str, Any] = {"schedulingPolicy": policy}
    if chance.random() < 0.8:
        spec["resourceClaims"] = [entry]
    group = make.create("podgroups", "group", spec=spec)
    pod = make.pod_spec(claims, schedulingGroup={"podGroupName": "group"})
    body = {
        "replicas": chance.randint(1, 3),
        "selector": {"matchLabels": {"a": "web"}},
        "template": make.pod_template("web", pod),
    }
    workload = make.create("deployments", "web", spec=body)
    steps = [*make.needs(claims), *chance.choice(([group, workload], [workload, group]))]
    return steps + tell.some(
        (3, 5),
        lambda: [make.scale("deployments", "web", chance.randint(0, 4))],
        lambda: [make.roll("deployments", "web", chance.randint(1, 3))],
        lambda: tell.harm("web-"),
        lambda: [make.delete("podgroups", "group")],
        lambda: [make.delete("podgroups", "group"), group],
        lambda: [group],
        tell.slow,
        lambda: tell.claim_harm(claims),
    )


DEVICE_TAINTS_SINCE = (1, 36)
"""The first version in which device taints are on by default."""
THEMES: dict[str, Callable[[Teller], Steps]] = {
    "deployment": deployment,
    "replica set": replica_set,
    "stateful set": stateful_set,
    "job": job,
    "pods": bare_pods,
    "hold": held,
    "nodes": nodes,
    "devices": devices,
    "budget": budgets,
    "namespace": namespace,
    "pod group": pod_groups,
}
WEIGHTS = {"deployment": 5, "stateful set": 4, "job": 5, "pods": 4, "hold": 2, "pod group": 3}


def _weights(version: tuple[int, int], groups: bool) -> list[tuple[str, int]]:
    without = set() if groups else {"pod group"}
    if version < DEVICE_TAINTS_SINCE:
        without.add("devices")
    return [(theme, WEIGHTS.get(theme, 2)) for theme in THEMES if theme not in without]


def by_chance(
    seed: int, number: int, version: tuple[int, int], groups: bool, theme: str = ""
) -> Story:
    """The story with that number. It does not depend on the other numbers."""
    return Teller(Random(f"{seed}/{number}"), version, groups).tell(theme)
