"""The StatefulSet controller: numbered pods, in order or all at once.

The rules are those of k8s.io/kubernetes/pkg/controller/statefulset (stateful_set_control.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from kube_in_process.components.controllers.replicasets import available_in, orphaned, pod_from
from kube_in_process.components.controllers.revisions import Revisions
from kube_in_process.components.controllers.statefulsets.volumes import (
    claim_name,
    retained,
    volume_claims,
    with_volumes,
)
from kube_in_process.components.objects import (
    controller_of,
    controller_uid,
    deleting,
    key_of,
    labels,
    matches,
    name,
    namespace,
    owners,
    uid,
    with_owner,
    without_owner,
)
from kube_in_process.components.pods import ended, phase, ready
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions

REVISION_LABEL = "controller-revision-hash"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a StatefulSet in one sync: its pods and its revisions."""

    workload: Object
    pods: list[Object]
    current: Object
    update: Object

    @property
    def ordered(self) -> bool:
        return bool(self.workload["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def replicas(self) -> dict[int, Object | None]:
        """The wanted pods by ordinal; None for a missing one."""
        there = {ordinal(pod): pod for pod in self.pods}
        return {number: there.get(number) for number in _ordinals(self.workload)}

    @property
    def condemned(self) -> list[Object]:
        """The pods beyond the wanted ones, highest ordinal first."""
        wanted = _ordinals(self.workload)
        beyond = [pod for pod in self.pods if ordinal(pod) >= 0 and ordinal(pod) not in wanted]
        return sorted(beyond, key=ordinal, reverse=True)


class StatefulSetController(Component[Key]):
    name = "statefulset-controller"

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        self.views["pods"].index("orphan", orphaned)
        self._revisions = Revisions(self.api, self.views["controllerrevisions"])
        self.views["statefulsets"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == "StatefulSet":
            self.queue.add((change.key[0], owner["name"]))
        elif owner is None and change.new is not None:
            for stateful_set in self.views["statefulsets"].items():
                if namespace(stateful_set) == namespace(pod) and _is_member(stateful_set, pod):
                    self.queue.add(key_of(stateful_set))

    def sync(self, key: Key) -> None:
        workload = self.views["statefulsets"].get(*key)
        if workload is None:
            return
        known = self._revisions.of(workload)
        pods = self._pods(workload)
        update = self._revisions.update(workload, known)
        wanted = (workload.get("status") or {}).get("currentRevision")
        current = next((revision for revision in known if name(revision) == wanted), update)
        state = _State(workload, pods, current, update)
        status = self._status(state)
        if not deleting(workload):
            try:
                rolled = self._act(state)
            except StatusError:
                self._write_status(state, status)
                raise
            if rolled and status.get("currentReplicas"):
                status["currentReplicas"] -= 1
        self._write_status(state, status)
        live = {name(current), name(update), *(revision_of(pod) for pod in pods)}
        self._revisions.truncate(workload, known, live)

    # Pods

    def _pods(self, workload: Object) -> list[Object]:
        pods = list(self.views["pods"].by("controller", uid(workload)))
        if not deleting(workload):
            pods = [pod for pod in pods if self._keeps(workload, pod)]
            for pod in self.views["pods"].by("orphan", namespace(workload)):
                if _is_member(workload, pod) and not deleting(pod):
                    patch = with_owner(pod, workload)
                    pods.append(self.api.patch("pods", *key_of(pod), patch))
        return sorted(pods, key=ordinal)

    def _keeps(self, workload: Object, pod: Object) -> bool:
        """Release a pod whose labels the selector no longer matches."""
        if deleting(pod) or _is_member(workload, pod):
            return True
        self.api.patch("pods", *key_of(pod), without_owner(pod, uid(workload)))
        return False

    def _act(self, state: _State) -> bool:
        """Create missing pods, then delete surplus ones, then those of an old template.

        Returns whether a pod of an old template was deleted.
        """
        self._retain(state)
        if _strategy(state.workload) == "Recreate":
            old = [pod for pod in state.pods if revision_of(pod) != name(state.update)]
            if old:
                self._clear(state, old)
                return False
        for number, pod in state.replicas.items():
            if self._process(state, number, pod):
                return False
        first = _first_unhealthy(state)
        for pod in state.condemned:
            if self._condemn(state, pod, first):
                return False
        return self._roll(state)

    def _clear(self, state: _State, old: list[Object]) -> None:
        """Delete all pods of old templates at once. No pod is created before they are gone.

        By the text of KEP-3541. A server without its gate refuses the strategy.
        """
        for pod in old:
            if not deleting(pod):
                self._delete(state.workload, pod)

    def _process(self, state: _State, number: int, pod: Object | None) -> bool:
        """Handle one wanted pod; return whether the others must wait for it."""
        if pod is None:
            self._create(state, number)
            return state.ordered
        if ended(pod):
            if not deleting(pod):
                self._delete(state.workload, pod)
            return True
        return state.ordered and (deleting(pod) or not self._is_available(state.workload, pod))

    def _condemn(self, state: _State, pod: Object, first: Object | None) -> bool:
        if deleting(pod):
            return state.ordered
        stuck = not self._is_available(state.workload, pod)
        if state.ordered and stuck and (first is None or uid(pod) != uid(first)):
            return True
        self._delete(state.workload, pod)
        return state.ordered

    def _roll(self, state: _State) -> bool:
        """Delete pods of the old template, from the highest ordinal down, one at a time."""
        if _strategy(state.workload) != "RollingUpdate":
            return False
        strategy = state.workload["spec"].get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        first = _ordinals(state.workload).start
        for number, pod in sorted(state.replicas.items(), reverse=True):
            if number < first + partition or pod is None:
                return False
            if revision_of(pod) != name(state.update) and not deleting(pod):
                self._delete(state.workload, pod)
                return True
            if deleting(pod) or not self._is_available(state.workload, pod):
                return False
        return False

    def _is_available(self, workload: Object, pod: Object) -> bool:
        """Whether the pod has been ready for ``minReadySeconds``. If not, look again later."""
        if phase(pod) != "Running" or not ready(pod):
            return False
        wanted = workload["spec"].get("minReadySeconds", 0)
        left = available_in(pod, wanted, self.context.now())
        if left > 0:
            self.queue.add_after(key_of(workload), left)
        return left <= 0

    def _create(self, state: _State, number: int) -> None:
        workload = state.workload
        revision = state.current if _keeps_revision(state, number) else state.update
        template = revision["data"]["spec"]["template"]
        plain = f"{name(workload)}-{number}"
        pod = pod_from({**workload, "spec": {**workload["spec"], "template": template}})
        pod["metadata"]["name"] = plain
        pod["metadata"]["labels"] = {
            **pod["metadata"]["labels"],
            INDEX_LABEL: str(number),
            REVISION_LABEL: name(revision),
            NAME_LABEL: plain,
        }
        pod["spec"] = {**with_volumes(pod["spec"], workload, number), "hostname": plain}
        if workload["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = workload["spec"]["serviceName"]
        self._create_claims(workload, number)
        try:
            self.api.create("pods", pod)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                self._record_event(workload, "Create", plain, error.message)
            raise
        self._record_event(workload, "Create", plain)

    def _create_claims(self, workload: Object, number: int) -> None:
        """Create the PersistentVolumeClaims of a pod that do not exist yet."""
        for claim in volume_claims(workload, number):
            try:
                self.api.create("persistentvolumeclaims", claim)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise

    def _retain(self, state: _State) -> None:
        """Give the claims of the pods the owners that the retention policy asks for."""
        workload = state.workload
        templates = workload["spec"].get("volumeClaimTemplates") or ()
        if not templates:
            return
        wanted = _ordinals(workload)
        for pod, template in ((pod, template) for pod in state.pods for template in templates):
            place = (namespace(workload), claim_name(template, workload, ordinal(pod)))
            claim = self.views["persistentvolumeclaims"].get(*place)
            if claim is None:
                continue
            references = retained(claim, workload, pod, surplus=ordinal(pod) not in wanted)
            if references != owners(claim):
                patch = {"metadata": {"uid": uid(claim), "ownerReferences": references}}
                self.api.patch("persistentvolumeclaims", *place, patch)

    def _delete(self, workload: Object, pod: Object) -> None:
        with suppress(NotFound):
            self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))
        self._record_event(workload, "Delete", name(pod))

    def _record_event(self, workload: Object, verb: str, pod: str, error: str = "") -> None:
        shown = verb if self.context.features.version >= (1, 36) else verb.lower()
        what = f"{shown} Pod {pod} in StatefulSet {name(workload)}"
        if error:
            self.event(workload, "Warning", f"Failed{verb}", f"{what} failed error: {error}")
        else:
            self.event(workload, "Normal", f"Successful{verb}", f"{what} successful")

    # Status

    def _write_status(self, state: _State, status: Object) -> None:
        workload = self.views["statefulsets"].get(*key_of(state.workload))
        if workload is None or uid(workload) != uid(state.workload):
            return
        old = workload.get("status") or {}
        if status != {key: value for key, value in old.items() if key != "conditions"}:
            self.api.update("statefulsets", {**workload, "status": status}, "status")

    def _status(self, state: _State) -> Object:
        """Count the pods as they were before this sync. The next sync counts its changes."""
        workload, current, update = (
            state.workload,
            name(state.current),
            name(state.update),
        )
        are_ready = [pod for pod in state.pods if phase(pod) == "Running" and ready(pod)]
        staying = [pod for pod in state.pods if not deleting(pod)]
        updated = sum(1 for pod in staying if revision_of(pod) == update)
        of_current = sum(1 for pod in staying if revision_of(pod) == current)
        wanted = workload["spec"].get("replicas", 1)
        if _strategy(workload) != "OnDelete" and updated == wanted == len(are_ready) == len(
            state.pods
        ):
            current, of_current = update, updated
        counts = {
            "readyReplicas": len(are_ready),
            "currentReplicas": of_current,
            "updatedReplicas": updated,
        }
        available = sum(1 for pod in are_ready if self._is_available(workload, pod))
        return {
            "observedGeneration": workload["metadata"].get("generation", 1),
            "replicas": len(state.pods),
            **{key: value for key, value in counts.items() if value},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
            "availableReplicas": available,
        }


def _strategy(workload: Object) -> str:
    """RollingUpdate, OnDelete or Recreate."""
    strategy = workload["spec"].get("updateStrategy") or {}
    return str(strategy.get("type", "RollingUpdate"))


def _keeps_revision(state: _State, number: int) -> bool:
    """Whether the pod gets the old template, because it is below the partition."""
    if _strategy(state.workload) != "RollingUpdate":
        return False
    rolling = state.workload["spec"]["updateStrategy"].get("rollingUpdate")
    first = _ordinals(state.workload).start
    if rolling is None:
        kept: int = (state.workload.get("status") or {}).get("currentReplicas", 0)
    else:
        kept = rolling.get("partition", 0)
    return number < first + kept


def _first_unhealthy(state: _State) -> Object | None:
    """The lowest unhealthy pod of the wanted ones, else of the others."""
    for pod in _upward(state):
        if phase(pod) != "Running" or not ready(pod) or deleting(pod):
            return pod
    return None


def _upward(state: _State) -> Iterator[Object]:
    yield from (pod for pod in state.replicas.values() if pod is not None)
    yield from reversed(state.condemned)


def _is_member(workload: Object, pod: Object) -> bool:
    named = name(pod).rpartition("-")[0] == name(workload) and ordinal(pod) >= 0
    return named and matches(workload["spec"]["selector"], labels(pod))


def _ordinals(workload: Object) -> range:
    first = (workload["spec"].get("ordinals") or {}).get("start", 0)
    return range(first, first + workload["spec"].get("replicas", 1))


def ordinal(pod: Object) -> int:
    """The ordinal of a pod; -1 if its name has none."""
    number = name(pod).rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def revision_of(pod: Object) -> str:
    return labels(pod).get(REVISION_LABEL, "")
