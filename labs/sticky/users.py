"""The users of sticky claims, beside the nodes and administrators of every torture run."""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml
from kube_in_process.storage.requests import DeleteOptions

from claimctl.wire.base import Object
from labs.torture.lone_users import LoneUsers
from labs.torture.user_actions import Action, Nothing
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE
from tests.e2e.kinds import definition
from tests.e2e.operators import LEADERS
from tests.e2e.sticky import FILE, asking

PLURALS = {"set": "statefulsets", "job": "jobs", "lws": "leaderworkersets"}
TEMPLATES = ("big", "other")
MOST_ENTRIES = 2
"""The entries of a LeaderWorkerSet's pod."""
SETTINGS = {
    "when-scaled": ("Retain", "Retain", "Delete", None),
    "when-deleted": ("Delete", "Delete", "Retain", None),
    "retention-policy": ("WhileRunning", "WhileRunning", "Persistent"),
    "idle-timeout-seconds": ("1", "8", "40"),
}


@dataclass(frozen=True, slots=True)
class StickySize:
    """How much there is."""

    sets: int = 3
    ordinals: int = 4
    jobs: int = 1
    actions: int = 25
    nodes: int = 3
    lws: int = 1
    groups: int = 2
    members: int = 2

    @property
    def devices(self) -> int:
        """The devices of a node: some more than all ordinals need together."""
        in_groups = self.lws * self.groups * self.members * MOST_ENTRIES
        ordinals = (self.sets + self.jobs) * self.ordinals + in_groups
        return -(-ordinals * 5 // (4 * self.nodes))


@dataclass
class StickyUsers(LoneUsers):
    """Each method is one action on one workload, or on one node."""

    size: StickySize = field(default_factory=StickySize)
    trouble: bool = True
    """Whether nodes and devices have faults, too."""
    pieces: dict[str, list[Object]] = field(default_factory=dict)
    """By ResourceSlice: its devices at the beginning."""

    def actions(self) -> list[Action]:
        users: list[Action] = [
            *[self.scale] * 6,
            *[self.delete_pods] * 4,
            *[self.force_delete_pods] * 2,
            *[self.recreate] * 2,
            *[self.change_template] * 2,
            self.delete,
            self.create,
            self.restart,
            self.move_start,
            self.resize,
            *[self.stop_rollout] * 2,
            *[self.restart_group] * 2,
            self.set_up,
            self.set_up,
            self.fail_pod,
            self.ask_no_more,
        ]
        nodes: list[Action] = [
            self.cordon,
            self.taint,
            self.break_one,
            self.reboot_node,
            self.lose_node,
        ]
        return [*users, *nodes, self.restore_node] if self.trouble else users

    # -- workloads

    async def begin(self) -> None:
        """Install the policy, and create everything."""
        kinds = {
            "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
            "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
        }
        for document in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
            self.admin.create(kinds[document["kind"]], document)
        for piece in self.admin.list("resourceslices"):
            self.pieces[piece["metadata"]["name"]] = piece["spec"]["devices"]
        self.admin.create("customresourcedefinitions", definition(LEADERS))
        for name in TEMPLATES:
            self.admin.create("resourceclaimtemplates", manifests.claim_template(name))
        for name in self.names():
            self._make(name)

    def names(self) -> list[str]:
        sets = [f"set-{number}" for number in range(self.size.sets)]
        leaders = [f"lws-{number}" for number in range(self.size.lws)]
        return [*sets, *(f"job-{number}" for number in range(self.size.jobs)), *leaders]

    def _make(self, name: str) -> None:
        plural, count = _plural(name), self.rng.randint(0, self.size.ordinals)
        if plural == "leaderworkersets":
            body = self._leader_set(name)
        elif plural == "statefulsets":
            body = manifests.stateful_set(name, count)
            policy = self.rng.choice(["Parallel", "Parallel", "OrderedReady"])
            body["spec"]["podManagementPolicy"] = policy
            body["spec"]["updateStrategy"] = {
                "type": self.rng.choice(["RollingUpdate", "RollingUpdate", "OnDelete"])
            }
        else:
            body = manifests.job(name, max(count, 1), seconds=self.rng.choice([2, 10, 60]))
            body["spec"] |= {"completionMode": "Indexed", "backoffLimitPerIndex": 2}
            body["spec"]["parallelism"] = self.rng.randint(1, self.size.ordinals)
            template = body["spec"]["template"]["metadata"]
            template["annotations"]["kube-in-process/exit-code"] = self.rng.choice(["0", "0", "1"])
        if plural != "leaderworkersets":
            asking(body, "*", ("gpu", self.rng.choice(TEMPLATES)))
        body["metadata"]["annotations"] = self._settings()
        self.admin.create(plural, body)

    def _leader_set(self, name: str) -> Object:
        """Some have a template of their own for leaders, and some have two entries."""
        entries = ("gpu", "nic")[: self.rng.choice([1, MOST_ENTRIES])]
        keys = ["workerTemplate", "leaderTemplate"][: self.rng.choice([1, 2])]
        group: Object = {
            "size": self.rng.randint(1, self.size.members),
            "restartPolicy": self.rng.choice(["RecreateGroupOnPodRestart", "None"]),
        }
        for key in keys:
            wanted = [(entry, self.rng.choice(TEMPLATES)) for entry in entries]
            body = asking(manifests.stateful_set(), "*", *wanted)
            group[key] = body["spec"]["template"]
        spec = {"replicas": self.rng.randint(0, self.size.groups), "leaderWorkerTemplate": group}
        return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}

    def _settings(self) -> dict[str, str | None]:
        chosen = {f"claimctl.io/{key}": self.rng.choice(values) for key, values in SETTINGS.items()}
        return {key: value for key, value in chosen.items() if value is not None}

    async def create(self) -> None:
        self._make(self._some_workload())

    async def scale(self) -> None:
        name = self._some_workload()
        most = self.size.groups if _is_leader_set(name) else self.size.ordinals
        wanted = self.rng.choice([0, most, self.rng.randint(0, most)])
        spec = {"suspend": not wanted} if _is_job(name) else {"replicas": wanted}
        self._change(name, {"spec": spec})

    async def move_start(self) -> None:
        self._change(self._set(), {"spec": {"ordinals": {"start": self.rng.choice([0, 1, 5])}}})

    async def resize(self) -> None:
        """Change the number of pods in each group."""
        group = {"size": self.rng.randint(1, self.size.members)}
        self._change(self._leaders(), {"spec": {"leaderWorkerTemplate": group}})

    async def stop_rollout(self) -> None:
        """Raise or lower the partition of a rolling update."""
        partition = self.rng.choice([0, self.rng.randint(0, self.size.ordinals)])
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        self._change(self._set(), {"spec": {"updateStrategy": strategy}})

    async def restart(self) -> None:
        note = {"restarted": str(self.rng.random())}
        self._change_pods({"metadata": {"annotations": note}})

    async def restart_group(self) -> None:
        """Delete the leader of a group."""
        name = f"{self._leaders()}-{self.rng.randrange(self.size.groups)}"
        self.admin.delete("pods", NAMESPACE, name)

    async def change_template(self) -> None:
        """Let one entry have another template, or both."""
        names = self.rng.sample(["gpu", "nic"], self.rng.choice([1, 2]))
        chosen = {name: self.rng.choice(TEMPLATES) for name in names}
        name = self._rolling()
        workload = self.admin.get(_plural(name), NAMESPACE, name)
        key = self._template_key(workload)
        entries = [
            {**entry, "resourceClaimTemplateName": chosen[entry["name"]]}
            if entry["name"] in chosen
            else entry
            for entry in _at(workload["spec"], key)["spec"]["resourceClaims"]
        ]
        self._change(name, {"spec": _within(key, {"spec": {"resourceClaims": entries}})})

    async def ask_no_more(self) -> None:
        """Take the annotation from the pod template, or give it back."""
        note = {"claimctl.io/sticky": self.rng.choice([None, "*", "gpu"])}
        self._change_pods({"metadata": {"annotations": note}})

    def _change_pods(self, change: Object) -> None:
        """Change a pod template of a workload with rolling updates."""
        name = self._rolling()
        key = self._template_key(self.admin.get(_plural(name), NAMESPACE, name))
        self._change(name, {"spec": _within(key, change)})

    def _template_key(self, workload: Object) -> tuple[str, ...]:
        """Where one of the pod templates is in the spec."""
        group = workload["spec"].get("leaderWorkerTemplate")
        if group is None:
            return ("template",)
        keys = [key for key in ("leaderTemplate", "workerTemplate") if key in group]
        return ("leaderWorkerTemplate", self.rng.choice(keys))

    async def set_up(self) -> None:
        """Change the settings of a workload."""
        name, settings = self._some_workload(), self._settings()
        missing = {f"claimctl.io/{key}": None for key in SETTINGS}
        self._change(name, {"metadata": {"annotations": {**missing, **settings}}})

    async def delete(self) -> None:
        self._remove(self._some_workload())

    async def recreate(self) -> None:
        name = self._some_workload()
        self._remove(name)
        self._make(name)

    def _remove(self, name: str) -> None:
        options = DeleteOptions(propagation=self.rng.choice(["Background", "Foreground"]))
        self.admin.delete(_plural(name), NAMESPACE, name, options)

    # -- pods

    async def delete_pods(self) -> None:
        for name in self._pods():
            self.admin.delete("pods", NAMESPACE, name)

    async def force_delete_pods(self) -> None:
        for name in self._pods():
            self.place.cluster.force_delete(NAMESPACE, name)

    def _pods(self) -> list[str]:
        """Some pods of one workload."""
        workload = self._some_workload()
        names = [pod["metadata"]["name"] for pod in self.place.objects("pods")]
        own = sorted(name for name in names if name.startswith(f"{workload}-"))
        return self.rng.sample(own, self.rng.randint(0, len(own)))

    async def help(self) -> None:
        """Bring devices back, and delete pods that were bound while their device went."""
        self.mend()
        for pod in self.place.objects("pods"):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                self.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])

    # -- devices

    async def break_one(self) -> None:
        """Let one device go from a node, or come back."""
        name = self.rng.choice(sorted(self.pieces))
        there = self.admin.get("resourceslices", "", name)["spec"]["devices"]
        gone = [device for device in self.pieces[name] if device not in there]
        if gone and self.rng.random() < 0.5:
            there.append(self.rng.choice(gone))
        else:
            there.pop(self.rng.randrange(len(there)))
        self._publish(name, there)

    def mend(self) -> None:
        """Bring all devices back."""
        for name, devices in self.pieces.items():
            if self.admin.find("resourceslices", "", name) is not None:
                self._publish(name, devices)

    def _publish(self, name: str, devices: list[Object]) -> None:
        piece = self.admin.get("resourceslices", "", name)
        spec = {**piece["spec"], "devices": devices or piece["spec"]["devices"]}
        self.admin.update("resourceslices", {**piece, "spec": spec})

    # -- choices

    def _change(self, name: str, body: Object) -> None:
        self._add(f" {name} {body}")
        self.admin.patch(_plural(name), NAMESPACE, name, body)

    def _some_workload(self) -> str:
        return self.rng.choice(self.names())

    def _set(self) -> str:
        return self._one_of("set")

    def _leaders(self) -> str:
        return self._one_of("lws")

    def _rolling(self) -> str:
        """A workload whose pod template can change; both kinds are chosen as often."""
        there = {name.partition("-")[0] for name in self.names()} - {"job"}
        return self._one_of(self.rng.choice(sorted(there) or ["set"]))

    def _one_of(self, kind: str) -> str:
        names = [name for name in self.names() if name.partition("-")[0] == kind]
        if not names:
            raise Nothing("no workload")
        return self.rng.choice(names)


def _plural(name: str) -> str:
    return PLURALS[name.partition("-")[0]]


def _is_job(name: str) -> bool:
    return name.startswith("job")


def _is_leader_set(name: str) -> bool:
    return name.startswith("lws")


def _at(spec: Object, key: tuple[str, ...]) -> Object:
    for part in key:
        spec = spec[part]
    return spec


def _within(key: tuple[str, ...], value: Object) -> Object:
    """The value, in objects one in the other."""
    for part in reversed(key):
        value = {part: value}
    return value
