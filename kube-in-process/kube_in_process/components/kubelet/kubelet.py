"""The kubelets of all nodes: they start bound pods that may use their claims, and stop pods.

For a pod that is being deleted, the kubelet first stops the containers and writes a terminal phase.
Then it deletes the object with grace period 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from random import Random

from kube_in_process.components.drivers.driver import WITHDRAWN_AFTER, Drivers
from kube_in_process.components.kubelet.admission import Admission
from kube_in_process.components.kubelet.dra import (
    TICK,
    ContainerRefused,
    DraManager,
    PrepareFailed,
    UnprepareFailed,
)
from kube_in_process.components.kubelet.sizes import (
    PENDING,
    RETRY_SECONDS,
    ResizeAnswer,
    Sizes,
    Verdict,
    is_resized,
    restarts,
)
from kube_in_process.components.kubelet.statuses import (
    creating,
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
    labels,
    uid,
)
from kube_in_process.components.pods import ended, node_name, on_node, phase, pod_claims
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
CREATE_FAILED = "Failed"
SYNC = (60.0, 90.0)
"""Seconds until a kubelet looks again at a pod whose devices could not be prepared: least, most."""
BACKOFF = (10.0, 15.0)
"""Seconds until it tries again to end a pod whose devices could not be unprepared: least, most."""
GRACE = 30.0
"""``terminationGracePeriodSeconds`` of a pod that names none."""
WORK = (0.5, 4.0)
"""Seconds that the end of a pod takes after its grace if its object is gone: least, most."""
RECONCILE = 60.0
"""Seconds after which a kubelet looks again for prepared claims of pods that it does not know."""
NO_SLICES = 13.0
"""Seconds after the start of a kubelet in which the slices of its node are not published."""
_ADDRESSES = IPv4Network("10.1.0.0/16")
"""The addresses of pods."""

Task = tuple[str, str, str]
"""One of:

- ('start', 'finish', 'restart', 'sandbox', 'resized' or 'stop', namespace, name) of a pod
- ('gone', node, UID) of a pod whose object was deleted while its containers ran
- ('resizes', '', node)
- ('withdraw' or 'publish', driver, node): its slices
"""


@dataclass(slots=True)
class _Vanished:
    """A pod whose object is gone, and whose claims may be prepared."""

    node: str
    grace: float
    """How long its containers go on after the kubelet has learned of the deletion, in seconds."""
    due: float = 0.0
    """When its claims are unprepared, in seconds of the clock."""
    is_known: bool = True
    """Whether the kubelet has run since the deletion; else it only finds the prepared claims."""


class Kubelet(Component[Task]):
    name = "kubelet"
    user = "system:node"
    manager = "kubelet"

    def __init__(self, context: Context) -> None:
        self.lost: dict[str, None] = {}
        """Nodes that are cut off or have no kubelet: nobody starts, stops or reports anything."""
        self.deaths: dict[str, list[float]] = {}
        """By node: when it lost power, in seconds of the clock. Its containers were gone then."""
        self._restarts: dict[str, int] = {}
        self._waiting: dict[str, set[str]] = {}
        """By node: the pods (UIDs) whose resize waits for room."""
        self._admission = Admission()
        self.drivers = Drivers(context, self._driver_left)
        self._dra = DraManager(context, self.drivers, self._read_claim)
        self._rng = Random(f"kubelet {context.options.seed}")
        self._addresses = itertools.count()
        self._vanished: dict[str, _Vanished] = {}
        """By UID of the pod."""
        self._publish_due: dict[str, float] = {}
        """By node: when drivers publish again, in seconds of the clock."""
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("node", on_node)
        self.views["pods"].subscribe(self._pod_changed)
        self.views["nodes"].subscribe(self._node_changed)

    def join_unprepares(self, *, joins: bool) -> None:
        """Give the kubelets a fault (``DraManager.joins_unprepares``), or take it away."""
        self._dra.joins_unprepares = joins

    def lose(self, node: str) -> None:
        """Cut the node off or end its kubelet: its containers run on, and nobody reports them."""
        self.lost[node] = None

    def die(self, node: str) -> None:
        """The node has no power: its containers are gone at once."""
        self.deaths.setdefault(node, []).append(self.context.clock.monotonic())

    def recover(self, node: str) -> None:
        """Connect the node again. Its kubelet ran on, and hears now which pods are deleted."""
        self.lost.pop(node, None)
        for pod, vanished in self._vanished_on(node):
            if vanished.is_known:
                self._plan_end(pod, vanished.grace + self._rng.uniform(*WORK))
            else:
                self.queue.add(("gone", node, pod))
        for pod_there in self.views["pods"].by("node", node):
            self._add(pod_there)

    def restart(self, node: str, *, rebooted: bool = False) -> None:
        """The process of a node's kubelet starts, and looks at all pods at once.

        Containers run on, and what is prepared stays prepared, unless the node was rebooted. Claims
        of pods that have vanished are found up to a minute later. The slices of the node are gone
        for 13 s, until the drivers have been registered again.
        """
        self.lost.pop(node, None)
        if rebooted:
            self._dra.boot(node)
            self.die(node)
        found_after = self._rng.uniform(0, RECONCILE)
        for gone, vanished in self._vanished_on(node):
            vanished.is_known = False
            self._plan_end(gone, found_after)
        self._withdraw_for_start(node)
        for pod in self.views["pods"].by("node", node):
            lost = rebooted or waits_for_sandbox(pod)
            if lost and phase(pod) == "Running" and not deleting(pod):
                self.queue.add(("sandbox", *key_of(pod)))
            else:
                self._add(pod)

    def retry_waiting(self) -> None:
        """Try again to start pods that wait: feature gates of the kubelets have changed."""
        for pod in self.views["pods"].items():
            if node_name(pod) and phase(pod) == "Pending":
                self._add(pod)
            elif phase(pod) == "Running" and waits_for_sandbox(pod):
                self.queue.add(("sandbox", *key_of(pod)))

    def sync(self, key: Task) -> None:
        task, space, plain = key
        if task == "resizes":
            self._retry_resizes(plain)
        elif task == "gone":
            self._end_gone(space, plain)
        elif task == "withdraw":
            self._withdraw(space, plain)
        elif task == "publish":
            self._publish_again(space, plain)
        else:
            self._sync_pod(task, space, plain)

    def _sync_pod(self, task: str, space: str, plain: str) -> None:
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

    def _node_changed(self, change: Change) -> None:
        if change.new is not None and self._has_waiting(change.key[1]):
            self._look_at_resizes(change.key[1])

    def _pod_changed(self, change: Change) -> None:
        if change.new is None or ended(change.new):
            self._admission.forget(uid(change.object))
            if self._has_waiting(node_name(change.object)):
                self._look_at_resizes(node_name(change.object))
        elif change.old is not None and change.old["spec"] != change.new["spec"]:
            self._watch_resize(change.new)
        if change.new is None:
            self._restarts.pop(uid(change.object), None)
            self._object_gone(change.object)
        elif node_name(change.new) and (change.old is None or _is_relevant(change.old, change.new)):
            self._add(change.new)

    def _object_gone(self, pod: Object) -> None:
        """The containers of a pod that was deleted by force go on until the end of its grace."""
        if self._dra.uses(uid(pod)):
            given = pod["spec"].get("terminationGracePeriodSeconds", GRACE)
            grace = 0.0 if phase(pod) == "Pending" else given
            self._vanished[uid(pod)] = _Vanished(node_name(pod), grace)
            self._plan_end(uid(pod), grace + self._rng.uniform(*WORK))

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
        if self._prepared(pod, "start"):
            self._run(pod, self._restarts.get(uid(pod), 0))

    def _run(self, pod: Object, restarts: int) -> None:
        sizes = self._admission.sizes(pod)
        address = (pod.get("status") or {}).get("podIP") or self._next_address()
        self._status(pod, running(pod, self.context.now(), restarts, sizes, address))
        self._watch_resize(pod)

    def _next_address(self) -> str:
        """An address that no pod has, or has had for long."""
        number = next(self._addresses) % (_ADDRESSES.num_addresses - 2)
        return str(_ADDRESSES[number + 1])

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

    def _finish(self, pod: Object) -> None:
        if phase(pod) != "Running" or deleting(pod):
            return
        code = int(annotations_of(pod).get(EXIT_CODE, "0"))
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            self._restart(pod)
            return
        if self._unprepared(pod, "finish"):
            restarts = self._restarts.get(uid(pod), 0)
            self._status(pod, finished(pod, self.context.now(), code, restarts))

    def _new_sandbox(self, pod: Object) -> None:
        """After a reboot: prepare the claims again, as at the first start."""
        if phase(pod) != "Running" or deleting(pod):
            return
        never = pod["spec"].get("restartPolicy", "Always") == "Never"
        if never or self._prepared(pod, "sandbox"):
            self._restart(pod)

    def _restart(self, pod: Object) -> None:
        if phase(pod) != "Running" or deleting(pod):
            return
        if pod["spec"].get("restartPolicy", "Always") == "Never":
            if self._unprepared(pod, "restart"):
                self._status(pod, failed(pod, self.context.now()))
            return
        self._restarts[uid(pod)] = self._restarts.get(uid(pod), 0) + 1
        self._run(pod, self._restarts[uid(pod)])
        seconds = self._run_seconds(pod)
        if seconds is not None:
            self.queue.add_after(("finish", *key_of(pod)), seconds)

    # Devices

    def _read_claim(self, space: str, plain: str) -> Object | None:
        return self.api.find("resourceclaims", space, plain)

    def _prepared(self, pod: Object, task: str) -> bool:
        """Whether the pod's devices are prepared; if not, ``task`` is done again later."""
        try:
            self._check_node(pod)
            wait = self._dra.prepare(pod)
        except PrepareFailed as refusal:
            text = f"Failed to prepare dynamic resources: prepare dynamic resources: {refusal}"
            self.event(pod, "Warning", PREPARE_FAILED, text)
            wait = self._rng.uniform(*SYNC)
        except ContainerRefused as refusal:
            text = f"Error: failed to create containerd container: {refusal}"
            self.event(pod, "Warning", CREATE_FAILED, text)
            wait = self._rng.uniform(*BACKOFF)
        if wait:
            self.queue.add_after((task, *key_of(pod)), wait)
            if not waits_for_sandbox(pod):
                begun = creating if phase(pod) == "Pending" else waiting
                self._status(pod, begun(pod, self.context.now()))
        return not wait

    def _check_node(self, pod: Object) -> None:
        """Raises PrepareFailed where an annotation of the node says so."""
        node = self.views["nodes"].get("", node_name(pod))
        error = annotations_of(node).get(PREPARE_FAILS, "") if node is not None else ""
        if error and any(pod_claim.claim for pod_claim in pod_claims(pod)):
            raise PrepareFailed(error)

    def _unprepared(self, pod: Object, task: str) -> bool:
        """Whether the claims of a pod whose containers ended are unprepared; else as above."""
        wait = self._unprepare(uid(pod))
        if wait:
            self.queue.add_after((task, *key_of(pod)), wait)
        return not wait

    def _unprepare(self, pod: str, retry: tuple[float, float] = BACKOFF) -> float:
        """Seconds until the kubelet has to look again; 0 if nothing is left to do."""
        try:
            return self._dra.unprepare(pod)
        except UnprepareFailed:
            return self._rng.uniform(*retry)

    # Pods that have vanished

    def _vanished_on(self, node: str) -> Iterator[tuple[str, _Vanished]]:
        yield from (entry for entry in self._vanished.items() if entry[1].node == node)

    def _plan_end(self, pod: str, seconds: float) -> None:
        vanished = self._vanished[pod]
        vanished.due = self.context.clock.monotonic() + seconds
        self.queue.add_after(("gone", vanished.node, pod), seconds)

    def _end_gone(self, node: str, pod: str) -> None:
        vanished = self._vanished.get(pod)
        if vanished is None or node in self.lost:
            return
        wait = self._left(vanished.due)
        if not wait:
            retry = BACKOFF if vanished.is_known else (RECONCILE, RECONCILE)
            wait = self._unprepare(pod, retry)
        if wait:
            self.queue.add_after(("gone", node, pod), wait)
        else:
            del self._vanished[pod]

    def _left(self, due: float) -> float:
        """Seconds until a time of the clock; 0 if it is over."""
        seconds = due - self.context.clock.monotonic()
        return seconds if seconds > TICK else 0.0

    # Slices

    def _withdraw_for_start(self, node: str) -> None:
        self._publish_due[node] = self.context.clock.monotonic() + NO_SLICES
        for resource_slice in list(self.views["resourceslices"].items()):
            if resource_slice["spec"].get("nodeName") == node:
                self.drivers[resource_slice["spec"]["driver"]].withdraw(node)
                self.queue.add_after(("publish", resource_slice["spec"]["driver"], node), NO_SLICES)

    def _publish_again(self, driver: str, node: str) -> None:
        """Publish the slices of a node, unless its kubelet was started once more meanwhile."""
        left = self._left(self._publish_due[node])
        if left:
            self.queue.add_after(("publish", driver, node), left)
        else:
            self.drivers[driver].publish_again(node)

    def _driver_left(self, driver: str, node: str) -> None:
        self.queue.add_after(("withdraw", driver, node), WITHDRAWN_AFTER)

    def _withdraw(self, driver: str, node: str) -> None:
        left = self.drivers[driver].overdue(node)
        if left > 0:
            self.queue.add_after(("withdraw", driver, node), left)
        elif left == 0:
            self.drivers[driver].withdraw_all(node)

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
            if verdict.answer is ResizeAnswer.ADMITTED:
                self._begin_resize(verdict.pod, here.sizes[uid(verdict.pod)])
            else:
                self._report_waiting(verdict)
                if verdict.answer is ResizeAnswer.DEFERRED:
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
        if not deleting(pod) or not self._unprepared(pod, "stop"):
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
    """Whether the pod was bound, started, ended or marked for deletion, or may start now.

    A kubelet looks at a pod at once when somebody has changed its labels or annotations.
    """
    if phase(new) == "Pending" and (
        labels(old) != labels(new) or annotations_of(old) != annotations_of(new)
    ):
        return True
    return (
        node_name(old) != node_name(new)
        or phase(old) != phase(new)
        or deleting(old) != deleting(new)
        or uid(old) != uid(new)
    )
