"""Stories that are always played and are recorded: everyday user actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judges.differential.actions.chance import (
    BROKEN,
    DEVICE_TAINTS_SINCE,
    NODE_LOST,
    UNGATE,
    kubelets,
    node,
    pods,
    wait,
)
from judges.differential.actions.manifests import NONE, OWN, SHARED, Manifests
from judges.differential.actions.story import Story, StoryStep, send

Steps = list[StoryStep]
NODES = 3
LISTED = 256
"""The largest number of consumers in a claim's list."""
NODE_GONE = 75.0
"""Seconds until PodGC has collected the pods of a Node that was deleted."""


def _workload(make: Manifests, plain: str, size: int, claims: str, **more: Any) -> dict[str, Any]:
    return {
        "replicas": size,
        "selector": {"matchLabels": {"a": plain}},
        "template": make.pod_template(plain, make.pod_spec(claims)),
        **more,
    }


def indexed_job(make: Manifests) -> Steps:
    template = make.pod_template("job", make.pod_spec(OWN, restartPolicy="Never"))
    spec = {"completions": 3, "parallelism": 2, "completionMode": "Indexed", "template": template}
    return [
        make.template("each"),
        make.create("jobs", "job", spec=spec),
        pods("index 0 succeeds", "job-0", "end", "running"),
        pods("index 1 fails", "job-1", "end", "running", code=1),
        pods("index 1 succeeds", "job-1", "end", "running"),
        pods("index 2 succeeds", "job-2", "end", "running"),
        make.delete("jobs", "job", "Background"),
    ]


def rollout(make: Manifests) -> Steps:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    spec = _workload(make, "web", 3, SHARED, strategy=rolling)
    return [
        make.claim("shared"),
        make.create("deployments", "web", spec=spec),
        kubelets("kubelets do not start pods", start=False),
        make.roll("deployments", "web", 2),
        make.scale("deployments", "web", 5),
        kubelets("kubelets start pods", start=True),
        make.patch("deployments", "web", "pause web", {"spec": {"paused": True}}),
        make.roll("deployments", "web", 3),
        make.patch("deployments", "web", "resume web", {"spec": {"paused": False}}),
        make.roll("deployments", "web", 2),
    ]


def own_claims(make: Manifests) -> Steps:
    spec = _workload(make, "web", 2, OWN)
    return [
        make.create("deployments", "web", spec=spec),
        make.template("each"),
        make.scale("deployments", "web", 3),
        pods("delete a pod of web", "web-", "delete", "running"),
        pods("force a pod of web", "web-", "force", "running"),
        pods("a pod of web ends", "web-", "end", "running"),
        make.scale("deployments", "web", 0),
    ]


def suspend(make: Manifests) -> Steps:
    template = make.pod_template("job", make.pod_spec(OWN, restartPolicy="Never"))
    spec = {"completions": 3, "parallelism": 2, "suspend": True, "template": template}
    return [
        make.template("each"),
        make.create("jobs", "job", spec=spec),
        make.patch("jobs", "job", "resume job", {"spec": {"suspend": False}}),
        pods("a pod of job succeeds", "job-", "end", "running"),
        make.patch("jobs", "job", "suspend job", {"spec": {"suspend": True}}),
        make.patch("jobs", "job", "set parallelism to 1", {"spec": {"parallelism": 1}}),
        make.patch("jobs", "job", "resume job", {"spec": {"suspend": False}}),
        pods("a pod of job succeeds", "job-", "end", "running"),
        pods("a pod of job succeeds", "job-", "end", "running"),
    ]


def cascades(make: Manifests) -> Steps:
    steps = [make.claim("shared")]
    for cascade in ("Background", "Foreground", "Orphan"):
        plain = cascade.lower()
        steps.append(make.create("deployments", plain, spec=_workload(make, plain, 2, SHARED)))
    steps += [
        make.delete("deployments", "background", "Background"),
        make.delete("deployments", "foreground", "Foreground"),
        make.delete("deployments", "orphan", "Orphan"),
    ]
    anew = _workload(make, "orphan", 1, SHARED)
    return [*steps, make.create("deployments", "orphan", "create orphan anew", spec=anew)]


def lost_node(make: Manifests) -> Steps:
    bears = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
    tolerations = [{**bears, "effect": "NoExecute", "tolerationSeconds": 1}]
    template = make.pod_template("web", make.pod_spec(OWN, tolerations=tolerations))
    return [
        make.template("each"),
        make.create("deployments", "web", spec=_workload(make, "web", 1, OWN, template=template)),
        node("the node of web is lost", "lose", of="web"),
        wait(NODE_LOST),
        node("the node is back", "restore"),
        wait(2),
    ]


def eviction(make: Manifests) -> Steps:
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"a": "web"}}}
    return [
        make.claim("shared"),
        make.create("deployments", "web", spec=_workload(make, "web", 3, SHARED)),
        make.create("poddisruptionbudgets", "pdb", spec=budget),
        kubelets("kubelets do not start pods", start=False),
        pods("evict a pod of web", "web-", "evict", "running"),
        pods("evict another pod of web", "web-", "evict", "running"),
        kubelets("kubelets start pods", start=True),
        pods("evict a pod of web", "web-", "evict", "running"),
    ]


def stateful_update(make: Manifests) -> Steps:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    spec = _workload(make, "db", 3, SHARED, serviceName="db", updateStrategy=rolling)
    whole = {
        "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
    }
    return [
        make.claim("shared"),
        make.create("statefulsets", "db", spec=spec),
        make.roll("statefulsets", "db", 2),
        make.patch("statefulsets", "db", "set the partition to 0", whole),
        pods("a pod of db is not ready any more", "db-1", "unready", "ready"),
        make.roll("statefulsets", "db", 3),
        make.scale("statefulsets", "db", 1),
        make.delete("statefulsets", "db", "Foreground"),
    ]


def finished_beside_a_hold(make: Manifests) -> Steps:
    path = make.path("resourceclaims", "shared", "status")
    reference = {"apiGroup": "apps", "resource": "deployments", "name": "web", "uid": "held"}
    held = {"status": {"reservedFor": [reference]}}
    free = {"status": {"reservedFor": [{"$patch": "delete", "uid": "held"}]}}
    return [
        make.claim("shared"),
        make.create("pods", "p0", spec=make.pod_spec(SHARED, restartPolicy="Never")),
        send("hold the claim", "PATCH", path, held, patch="strategic"),
        pods("the pod ends", "p0", "end", "running"),
        pods("delete the pod", "p0", "delete", "ended"),
        send("let the claim go", "PATCH", path, free, patch="strategic"),
    ]


def full_list(make: Manifests) -> Steps:
    """A claim lists at most 256 consumers: the next pod waits until one of them is gone."""
    path = make.path("resourceclaims", "shared", "status")
    others = [
        {"apiGroup": "apps", "resource": "deployments", "name": "web", "uid": f"held-{number}"}
        for number in range(LISTED - 1)
    ]
    gone = [{"$patch": "delete", "uid": "held-7"}]
    body = {"status": {"reservedFor": others}}
    free = {"status": {"reservedFor": gone}}
    return [
        make.claim("shared"),
        make.create("pods", "p0", spec=make.pod_spec(SHARED, restartPolicy="Never")),
        send("255 others are listed", "PATCH", path, body, patch="strategic"),
        make.create("pods", "p1", spec=make.pod_spec(SHARED, restartPolicy="Never")),
        send("one of them goes", "PATCH", path, free, patch="strategic"),
        pods("force a pod", "p0", "force", "running"),
        make.create("pods", "p2", spec=make.pod_spec(SHARED, restartPolicy="Never")),
    ]


def two_holds(make: Manifests) -> Steps:
    """256 pods on a claim with two holds: the last pods wait until the holds are removed.

    253 pods are listed before the scheduler sees them; listing them one by one takes minutes.
    """
    path = make.path("resourceclaims", "shared", "status")
    holds = [
        {"apiGroup": "apps", "resource": "deployments", "name": plain, "uid": f"held-{plain}"}
        for plain in ("one", "two")
    ]
    ahead = [
        {"resource": "pods", "name": f"db-{number}", "uid": f"{{uid Pod/db-{number}}}"}
        for number in range(LISTED - 3)
    ]
    body = {"status": {"reservedFor": [*holds, *ahead]}}

    def ungate(said: str, of: str, count: int = 1) -> StoryStep:
        return pods(said, of, "patch", "pending", count, body=UNGATE)

    def let_go(plain: str) -> StoryStep:
        gone = {"status": {"reservedFor": [{"$patch": "delete", "uid": f"held-{plain}"}]}}
        return send(f"hold {plain} goes", "PATCH", path, gone, patch="strategic")

    gates = {"schedulingGates": [{"name": "g"}]}
    template = make.pod_template("db", make.pod_spec(SHARED, **gates))
    spec = _workload(make, "db", LISTED, SHARED, serviceName="db", template=template)
    spec["podManagementPolicy"] = "Parallel"
    return [
        make.claim("shared"),
        make.create("pods", "p0", spec=make.pod_spec(SHARED, restartPolicy="Never")),
        make.create("statefulsets", "db", spec=spec),
        send(
            "two holds and 253 pods of db are listed ahead", "PATCH", path, body, patch="strategic"
        ),
        kubelets("kubelets do not start pods", start=False),
        ungate("254 pods of db lose their gates", "db-", LISTED - 2),
        pods("force the other pod", "p0", "force", "running"),
        let_go("one"),
        ungate("the next pod loses its gate", "db-254"),
        let_go("two"),
        ungate("the last pod loses its gate", "db-255"),
    ]


def tainted_devices(make: Manifests) -> Steps:
    """Devices with pods are tainted."""
    taint = {"key": BROKEN, "value": "yes"}
    spec = _workload(make, "web", 2, OWN)
    return [
        make.template("each"),
        node(
            "the devices of node 0 take no pods",
            "taint devices",
            index=0,
            taints=[{**taint, "effect": "NoSchedule"}],
        ),
        node(
            "the devices of node 1 take no pods",
            "taint devices",
            index=1,
            taints=[{**taint, "effect": "NoSchedule"}],
        ),
        make.create("deployments", "web", spec=spec),
        node("the devices of node 0 are good again", "taint devices", index=0, taints=[]),
        node(
            "the devices of web go out of use",
            "taint devices",
            of="web",
            taints=[{**taint, "effect": "NoExecute"}],
        ),
        node(
            "all devices of node 0 go out of use, too",
            "taint devices",
            index=0,
            taints=[{**taint, "effect": "NoExecute"}],
        ),
        node("the devices of node 1 are good again", "taint devices", index=1, taints=[]),
    ]


def deleted_node(make: Manifests) -> Steps:
    """PodGC deletes the pods of a deleted Node object."""
    return [
        make.template("each"),
        make.create("deployments", "web", spec=_workload(make, "web", 2, OWN)),
        node("the Node object of web is deleted", "delete", of="web"),
        wait(NODE_GONE),
    ]


def many_pods(make: Manifests) -> Steps:
    spec = _workload(make, "web", 40, NONE)
    return [
        make.create("deployments", "web", spec=spec),
        make.scale("deployments", "web", 3),
        make.roll("deployments", "web", 2),
    ]


CLASSICS: dict[str, Callable[[Manifests], Steps]] = {
    "indexed-job": indexed_job,
    "rollout": rollout,
    "own-claims": own_claims,
    "suspend": suspend,
    "cascades": cascades,
    "lost-node": lost_node,
    "eviction": eviction,
    "stateful-update": stateful_update,
    "finished-beside-a-hold": finished_beside_a_hold,
    "many-pods": many_pods,
    "full-list": full_list,
    "two-holds": two_holds,
    "tainted-devices": tainted_devices,
    "deleted-node": deleted_node,
}


def classics_of(version: tuple[int, int]) -> list[str]:
    """The names of the stories that a Kubernetes version can play with its default gates."""
    return [
        title for title in CLASSICS if title != "tainted-devices" or version >= DEVICE_TAINTS_SINCE
    ]


def classic(name: str, version: tuple[int, int]) -> Story:
    steps = CLASSICS[name](Manifests(version, NODES))
    return Story(name, tuple(steps), NODES)
