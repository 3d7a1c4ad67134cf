"""The kubelets of all nodes: they start bound pods that may use their claims, and stop pods.

For a pod that is being deleted, the kubelet first stops the containers and writes a terminal phase.
Then it deletes the object with grace period 0.
"""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.kubelet.admission import Admission
from kube_in_process.components.kubelet.sizes import (
    PENDING,
    RETRY_SECONDS,
    Answer,
    Sizes,
    Verdict,
    is_resized,
    restarts,
)
from kube_in_process.components.kubelet.statuses import (
    failed,
    finished,
    rejected,
    resize_begins,
    resize_ends,
    resize_reverted,
    resize_waits,
    running,
    stopped,
    waiting,
    waits_for_sandbox,
)
from kube_in_process.components.objects import (
    annotations_of,
    condition,
    controller_of,
    deleting,
    key_of,
    name,
    namespace,
    uid,
)
from kube_in_process.components.pods import (
    allocation_of,
    claims_used,
    ended,
    group_name,
    is_group,
    node_name,
    on_node,
    phase,
    pod_claims,
    reserved_for,
)
from kube_in_process.errors import NotFound
from kube_in_process.kinds.pod_requests import amounts
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change
from kube_in_process.storage.requests import DeleteOptions

RUN_SECONDS = "kube-in-process/run-seconds"
EXIT_CODE = "kube-in-process/exit-code"
PREPARE_FAILS = "kube-in-process/prepare-fails"
"""On a Node: the error with which its driver fails to prepare devices."""
PREPARE_FAILED = "FailedPrepareDynamicResources"

Task = tuple[str, str, str]
"""('start', 'finish', 'restart', 'sandbox', 'resized' or 'stop', namespace, name), or ('resizes',
'', name of a node)."""


class Kubelet(Component[Task]):
    name = "kubelet"
    user = "system:node"
    manager = "kubelet"

    def __init__(self, context: Context) -> None:
        self.lost: dict[str, None] = {}
        """Nodes that are cut off: their kubelets start, stop and report nothing."""
        self._restarts: dict[str, int] = {}
        self._waiting: dict[str, set[str]] = {}
        """By node: the pods (UIDs) whose resize waits for room."""
        self._admission = Admission()
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("node", on_node)
        self.views["pods"].index("waiting", self._waits_for)
        self.views["pods"].subscribe(self._pod_changed)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["nodes"].subscribe(self._node_changed)

    def lose(self, node: str) -> None:
        """Cut the node off: its containers go on running, and its kubelet reports nothing."""
        self.lost[node] = None

    def recover(self, node: str, *, rebooted: bool) -> None:
        """Connect the node again. After a reboot its containers are gone."""
        self.lost.pop(node, None)
        for pod in self.views["pods"].by("node", node):
            if rebooted and phase(pod) == "Running" and not deleting(pod):
                self.queue.add(("sandbox", *key_of(pod)))
            else:
                self._add(pod)

    def retry_waiting(self) -> None:
        """Try again to start pods that wait, because something other than a claim has changed."""
        for pod in self.views["pods"].items():
            if node_name(pod) and phase(pod) == "Pending":
                self._add(pod)

    def sync(self, key: Task) -> None:
        task, space, plain = key
        if task == "resizes":
            self._retry_resizes(plain)
            return
        pod = self.views["pods"].get(space, plain)
        if pod is None or node_name(pod) in self.lost:
            return
        if task == "start":
            self._start(pod)
        elif task == "finish":
            self._finish(pod)
        elif task == "restart":
            self._restart(pod)
        elif task == "sandbox":
            self._new_sandbox(pod)
        elif task == "resized":
            self._end_resize(pod)
        else:
            self._stop(pod)

    # Changes of objects

    def _waits_for(self, pod: Object) -> tuple[str, ...]:
        waits = phase(pod) == "Pending" or (phase(pod) == "Running" and waits_for_sandbox(pod))
        if not node_name(pod) or not waits:
            return ()
        return claims_used(pod)

    def _claim_changed(self, change: Change) -> None:
        for pod in self.views["pods"].by("waiting", "/".join(change.key)):
            task = "start" if phase(pod) == "Pending" else "sandbox"
            self.queue.add_after((task, *key_of(pod)), self.context.timings.pod_start)

    def _node_changed(self, change: Change) -> None:
        """Try again to prepare devices when the driver of a node works again."""
        if change.new is not None and self._has_waiting(change.key[1]):
            self._look_at_resizes(change.key[1])
        before = annotations_of(change.old or change.object).get(PREPARE_FAILS)
        if before and not annotations_of(change.object).get(PREPARE_FAILS):
            for pod in self.views["pods"].by("node", change.key[1]):
                self._add(pod)

    def _pod_changed(self, change: Change) -> None:
        if change.new is None or ended(change.new):
            self._admission.forget(uid(change.object))
            if self._has_waiting(node_name(change.object)):
                self._look_at_resizes(node_name(change.object))
        elif change.old is not None and change.old["spec"] != change.new["spec"]:
            self._watch_resize(change.new)
        if change.new is None:
            self._restarts.pop(uid(change.object), None)
        elif node_name(change.new) and (change.old is None or _is_relevant(change.old, change.new)):
            self._add(change.new)

    def _add(self, pod: Object) -> None:
        timings = self.context.timings
        key = key_of(pod)
        if deleting(pod):
            self.queue.add_after(("stop", *key), 0.0 if ended(pod) else timings.pod_stop)
        elif phase(pod) == "Pending":
            self.queue.add_after(("start", *key), timings.pod_start)
        elif phase(pod) == "Running":
            seconds = self._run_seconds(pod)
            if seconds is not None:
                self.queue.add_after(("finish", *key), seconds)

    def _run_seconds(self, pod: Object) -> float | None:
        """How long the containers run; None means until the pod is deleted."""
        given = annotations_of(pod).get(RUN_SECONDS)
        if given is not None:
            return float(given)
        owner = controller_of(pod)
        of_job = owner is not None and owner["kind"] == "Job"
        return self.context.timings.job_pod_run if of_job else None

    # One pod

    def _start(self, pod: Object) -> None:
        if phase(pod) != "Pending" or deleting(pod) or not self._admitted(pod):
            return
        missing = self._missing(pod) or self._unprepared(pod)
        if missing:
            self.event(pod, "Warning", PREPARE_FAILED, missing)
            return
        self._run(pod, self._restarts.get(uid(pod), 0))

    def _run(self, pod: Object, restarts: int) -> None:
        sizes = self._admission.sizes(pod)
        self._status(pod, running(pod, self.context.now(), restarts, sizes))
        self._watch_resize(pod)

    def _admitted(self, pod: Object) -> bool:
        """Whether the node takes the pod; if it does not, the pod has failed."""
        node = self.views["nodes"].get("", node_name(pod))
        if node is None or self._admission.admitted(pod):
            return True
        refusal = self._admission.admit(pod, node)
        if refusal is None:
            return True
        reason, message = refusal
        self.event(pod, "Warning", reason, message)
        self._status(pod, rejected(pod, self.context.now(), reason, message))
        return False

    def _unprepared(self, pod: Object) -> str:
        """The error of the node's driver, for a pod with claims; or ''."""
        node = self.views["nodes"].get("", node_name(pod))
        error = annotations_of(node).get(PREPARE_FAILS, "") if node is not None else ""
        if not error or not any(each.claim for each in pod_claims(pod)):
            return ""
        return f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"

    def _missing(self, pod: Object) -> str:
        """Why the devices of a pod cannot be prepared; '' if they can."""
        for each in pod_claims(pod):
            if each.claim == "":
                continue
            shown = f"{namespace(pod)}/{each.claim or each.template}"
            claim = self.views["resourceclaims"].get(namespace(pod), each.claim or "")
            if claim is None:
                return f"failed to fetch ResourceClaim {shown}: not found"
            if allocation_of(claim) is None:
                return f"resource claim {shown} is not allocated"
            if not self._may_use(pod, claim):
                return f"pod {name(pod)} ({uid(pod)}) is not allowed to use ResourceClaim {shown}"
        return ""

    def _may_use(self, pod: Object, claim: Object) -> bool:
        """Whether the pod may use the claim. A group counts by name: pods do not know its UID."""
        features = self.context.features
        allocation = allocation_of(claim) or {}
        if features.kubelet_reserved_for and allocation.get("reservedForAnyPod"):
            return True
        listed = reserved_for(claim)
        if any(each["uid"] == uid(pod) for each in listed):
            return True
        if not features.kubelet_pod_groups or not group_name(pod):
            return False
        return any(is_group(each) and each["name"] == group_name(pod) for each in listed)

    def _finish(self, pod: Object) -> None:
        if phase(pod) != "Running" or deleting(pod):
            return
        code = int(annotations_of(pod).get(EXIT_CODE, "0"))
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            self._restart(pod)
            return
        self._status(pod, finished(pod, self.context.now(), code, self._restarts.get(uid(pod), 0)))

    def _new_sandbox(self, pod: Object) -> None:
        """After a reboot: check the claim's list again, as at the first start."""
        missing = self._missing(pod)
        if missing and phase(pod) == "Running" and not deleting(pod):
            self.event(pod, "Warning", PREPARE_FAILED, missing)
            self._status(pod, waiting(pod, self.context.now()))
        else:
            self._restart(pod)

    def _restart(self, pod: Object) -> None:
        if phase(pod) != "Running" or deleting(pod):
            return
        if pod["spec"].get("restartPolicy", "Always") == "Never":
            self._status(pod, failed(pod, self.context.now()))
            return
        self._restarts[uid(pod)] = self._restarts.get(uid(pod), 0) + 1
        self._run(pod, self._restarts[uid(pod)])
        seconds = self._run_seconds(pod)
        if seconds is not None:
            self.queue.add_after(("finish", *key_of(pod)), seconds)

    # Resizes

    def _watch_resize(self, pod: Object) -> None:
        resized = is_resized(pod, self._admission.sizes(pod)) or condition(pod, PENDING)
        if node_name(pod) and resized:
            self._waiting.setdefault(node_name(pod), set()).add(uid(pod))
            self._look_at_resizes(node_name(pod))

    def _has_waiting(self, node: str) -> bool:
        return bool(self._waiting.get(node))

    def _look_at_resizes(self, node: str) -> None:
        self.queue.add_after(("resizes", "", node), self.context.timings.pod_start)

    def _retry_resizes(self, plain: str) -> None:
        node = self.views["nodes"].get("", plain)
        if node is None or plain in self.lost:
            return
        there = amounts((node.get("status") or {}).get("allocatable") or {})
        here = self._admission.node(self.views["pods"].by("node", plain))
        self._waiting[plain] = set()
        for pod in list(here.reverted()):
            self._status(pod, resize_reverted(pod))
        for verdict in here.retry(there):
            if verdict.answer is Answer.ADMITTED:
                self._begin_resize(verdict.pod, here.sizes[uid(verdict.pod)])
            else:
                self._report_waiting(verdict)
                if verdict.answer is Answer.DEFERRED:
                    self._waiting[plain].add(uid(verdict.pod))
        if self._has_waiting(plain):
            self.queue.add_after(("resizes", "", plain), RETRY_SECONDS)

    def _begin_resize(self, pod: Object, sizes: Sizes) -> None:
        self._admission.resize(pod, sizes)
        self._status(pod, resize_begins(pod, self.context.now(), sizes))
        self.queue.add_after(("resized", *key_of(pod)), self.context.timings.pod_start)

    def _report_waiting(self, verdict: Verdict) -> None:
        reason, message = str(verdict.answer), verdict.message
        self._status(verdict.pod, resize_waits(verdict.pod, self.context.now(), reason, message))

    def _end_resize(self, pod: Object) -> None:
        """Give the containers what was admitted. What they leave may be room for other pods."""
        if phase(pod) != "Running":
            return
        before = self._admission.sizes(pod)
        after = Sizes(before.allocated, before.allocated)
        self._admission.resize(pod, after)
        self._status(pod, resize_ends(pod, after, restarts(pod, before)))
        if self._has_waiting(node_name(pod)):
            self._look_at_resizes(node_name(pod))

    def _stop(self, pod: Object) -> None:
        if not deleting(pod):
            return
        if not ended(pod):
            # since Kubernetes 1.27, a pod that never started gets a terminal phase, too
            pending = phase(pod) == "Pending"
            self._status(pod, {"phase": "Failed"} if pending else stopped(pod, self.context.now()))
        with suppress(NotFound):
            self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod), grace_period_seconds=0))

    def _status(self, pod: Object, status: Object) -> None:
        with suppress(NotFound):
            self.api.patch("pods", *key_of(pod), {"status": status}, "status", kind="strategic")


def _is_relevant(old: Object, new: Object) -> bool:
    """Whether the pod was bound, started, ended or marked for deletion."""
    return (
        node_name(old) != node_name(new)
        or phase(old) != phase(new)
        or deleting(old) != deleting(new)
        or uid(old) != uid(new)
    )
