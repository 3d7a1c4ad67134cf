"""User actions: of users, administrators and nodes, and of a writer that breaks the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube_in_process.errors import StatusError
from kube_in_process.storage.requests import DeleteOptions

from labs.torture.drivers import results_of
from labs.torture.reference import KINDS, reservation, workload
from labs.torture.stored import PLURALS, meddled
from labs.torture.testbed import Testbed
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE

Object = dict[str, Any]
RETENTIONS = ("WhileRunning", "WhileRunning", "WhileRunning", "Persistent", "Manual")


@dataclass
class UserActions:
    """Each method is one action. An action that is impossible now does nothing."""

    testbed: Testbed
    rng: Random
    dialect: str
    log: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """The kinds of the workloads: there is one of each, and they share the claim."""

    @property
    def admin(self) -> Any:
        return self.testbed.cluster.admin

    def act(self) -> None:
        action = self.rng.choice(self.actions())
        self.log.append(f"{self.testbed.cluster.clock.monotonic():9.3f} {action.__name__}")
        try:
            action()
        except StatusError as error:
            self.log[-1] += f": {error.reason or error.code}"

    def actions(self) -> list[Callable[[], None]]:
        return [
            *[self.scale] * 6,
            *[self.delete_pod] * 2,
            *[self.force_delete] * 2,
            *[self.recreate] * 2,
            self.create,
            self.delete,
            self.restart,
            self.fail_pod,
            self.delete_claim,
            self.withdraw,
            self.reserve,
            self.ask_for_release,
            self.annotate,
            self.cordon,
            self.lose_node,
            self.reboot_node,
            self.restore_node,
            self.taint,
            *[self.break_device] * 2,
            self.disturb_device,
            *[self.change_mind] * 2,
            self.come_elsewhere,
            self.meddle,
            self.meddle,
            self.freeze,
        ]

    # -- users

    def begin(self) -> None:
        """Create one workload, or two that share a claim, reserved by object or annotation."""
        self.kinds = self.rng.sample(KINDS, self.rng.choice([1, 1, 2]))
        self.admin.create("resourceclaimtemplates", manifests.claim_template())
        if self.rng.random() < 0.3:
            self.admin.create("resourceclaims", manifests.claim())
        for kind in self.kinds:
            self._reserve(kind)
            self._create(kind)

    def _reserve(self, kind: str) -> None:
        spec: Object = {"retentionPolicy": self.rng.choice(RETENTIONS)}
        if self.rng.random() < 0.3:
            spec["resourceClaimTemplateName"] = None
        body = reservation(kind, name=f"r-{kind.lower()}", **spec)
        body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
        self.admin.create("claimreservations", body)

    def _create(self, kind: str) -> None:
        self.admin.create(PLURALS[kind], self._workload(kind))

    def _workload(self, kind: str) -> Object:
        pods = self.rng.choice([0, 1, 2, 3])
        note = {"reserve": "*"} if self.rng.random() < 0.2 else {}
        body = workload(self.dialect, kind, pods, **note)
        if kind == "Job":
            body["spec"] |= {"backoffLimit": 1}
            extra = body["spec"]["template"]["metadata"].setdefault("annotations", {})
            extra["kube-in-process/run-seconds"] = self.rng.choice(["1", "5", "40"])
            extra["kube-in-process/exit-code"] = self.rng.choice(["0", "0", "1"])
        return body

    def create(self) -> None:
        self._create(self.rng.choice(self.kinds))

    def scale(self) -> None:
        kind = self.rng.choice(self.kinds)
        pods = self.rng.choice([0, 0, 1, 2, 4])
        spec = {"suspend": not pods} if kind == "Job" else {"replicas": pods}
        self.admin.patch(PLURALS[kind], NAMESPACE, "train", {"spec": spec})

    def restart(self) -> None:
        kind = self.rng.choice(self.kinds)
        note = {"restarted": str(self.rng.random())}
        template = {"metadata": {"annotations": note}}
        self.admin.patch(PLURALS[kind], NAMESPACE, "train", {"spec": {"template": template}})

    def delete(self) -> None:
        kind = self.rng.choice(self.kinds)
        cascade = self.rng.choice(["Background", "Foreground", "Orphan"])
        self.log[-1] += f" {kind} {cascade}"
        options = DeleteOptions(propagation=cascade)
        self.admin.delete(PLURALS[kind], NAMESPACE, "train", options)

    def recreate(self) -> None:
        """Delete a workload without waiting for its pods, and create it again under its name."""
        self.delete()
        self.create()

    def delete_pod(self) -> None:
        self.admin.delete("pods", NAMESPACE, self._pod())

    def force_delete(self) -> None:
        self.testbed.cluster.force_delete(NAMESPACE, self._pod())

    def fail_pod(self) -> None:
        """Let a container fail; the pod's object stays."""
        status = {"phase": "Failed", "containerStatuses": []}
        self.admin.patch("pods", NAMESPACE, self._pod(), {"status": status}, "status")

    def delete_claim(self) -> None:
        self.admin.delete("resourceclaims", NAMESPACE, "slice")

    def withdraw(self) -> None:
        name = f"r-{self.rng.choice(self.kinds).lower()}"
        self.admin.delete("claimreservations", NAMESPACE, name)

    def reserve(self) -> None:
        self._reserve(self.rng.choice(self.kinds))

    def ask_for_release(self) -> None:
        claim = self.admin.get("resourceclaims", NAMESPACE, "slice")
        patch = {"metadata": {"annotations": {"claimctl.io/release": claim["metadata"]["uid"]}}}
        name = f"r-{self.rng.choice(self.kinds).lower()}"
        self.admin.patch("claimreservations", NAMESPACE, name, patch)

    def annotate(self) -> None:
        kind = self.rng.choice(self.kinds)
        value = self.rng.choice(["*", "slice", None])
        patch = {"metadata": {"annotations": {"claimctl.io/reserve": value}}}
        self.admin.patch(PLURALS[kind], NAMESPACE, "train", patch)

    def change_mind(self) -> None:
        """Withdraw a reservation, and perhaps reserve the claim again at once."""
        kind = self.rng.choice(self.kinds)
        self.admin.delete("claimreservations", NAMESPACE, f"r-{kind.lower()}")
        if self.rng.random() < 0.5:
            self._reserve(kind)

    def come_elsewhere(self) -> None:
        """Create a pod of nobody's that needs the claim on one of the nodes."""
        body = workload("", "Deployment", 1)["spec"]["template"]
        spec = {**body["spec"], "nodeSelector": {"kubernetes.io/hostname": self._node()}}
        name = f"stranger-{self.rng.randrange(10**6)}"
        self.admin.create(
            "pods", {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
        )

    # -- nodes and administrators

    def cordon(self) -> None:
        self.testbed.cluster.cordon(self._node(), unschedulable=self.rng.random() < 0.6)

    def lose_node(self) -> None:
        self.testbed.cluster.lose_node(self._node())

    def restore_node(self) -> None:
        self.testbed.cluster.restore_node(self._node())

    def reboot_node(self) -> None:
        self.testbed.cluster.reboot_node(self._node())

    def taint(self) -> None:
        """Taint the devices of a node, or remove the taint."""
        name = f"{self._node()}-gpu.example.com"
        piece = self.admin.get("resourceslices", "", name)
        taints = [{"key": "broken", "effect": self.rng.choice(["NoSchedule", "NoExecute"])}]
        tainted = self.rng.random() < 0.5
        for device in piece["spec"]["devices"]:
            device.pop("taints", None)
            if tainted:
                device["taints"] = taints
        self.admin.update("resourceslices", piece)

    def break_device(self) -> None:
        """Taint the devices of the claim, so that its pods are evicted."""
        claim = self.admin.get("resourceclaims", NAMESPACE, "slice")
        for result in results_of(claim):
            piece = self.admin.get("resourceslices", "", f"{result['pool']}-{result['driver']}")
            for device in piece["spec"]["devices"]:
                if device["name"] == result["device"]:
                    device["taints"] = [{"key": "broken", "effect": "NoExecute"}]
            self.admin.update("resourceslices", piece)

    def disturb_device(self) -> None:
        """Let the driver of the claim's devices report that they are not ready any more."""
        claim = self.admin.get("resourceclaims", NAMESPACE, "slice")
        driver, now = self.testbed.driver, self.testbed.cluster.clock.monotonic()
        patch = driver and driver.disturb(claim, now)
        if patch:
            self.testbed.report(claim, patch)

    def freeze(self) -> None:
        """Create or delete the DowngradePlan."""
        if self.admin.find("downgradeplans", "", "claimctl") is not None:
            self.admin.delete("downgradeplans", "", "claimctl")
        else:
            self.admin.create("downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {}})

    def meddle(self) -> None:
        """Add, remove or reorder references as a foreign writer."""
        claim = self.admin.get("resourceclaims", NAMESPACE, "slice")
        how, listed = meddled(claim.get("status", {}).get("reservedFor") or (), self.rng)
        self.log[-1] += f" {how}"
        status = {**claim["status"], "reservedFor": listed}
        if not listed:
            del status["reservedFor"]
        self.admin.update("resourceclaims", {**claim, "status": status}, "status")

    # -- choices

    def _pod(self) -> str:
        names: list[str] = [pod["metadata"]["name"] for pod in self.testbed.objects("pods")]
        if not names:
            raise StatusError(404, "NotFound", "no pod")
        return self.rng.choice(sorted(names))

    def _node(self) -> str:
        return f"node-{self.rng.randrange(2)}"
