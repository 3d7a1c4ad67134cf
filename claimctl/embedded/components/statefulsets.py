"""The StatefulSet controller: numbered pods, one after the other or all at once."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.embedded.components.objects import (
    controller_of,
    controller_reference,
    controller_uid,
    deleting,
    key_of,
    labels,
    name,
    namespace,
    short_hash,
    uid,
)
from claimctl.embedded.components.pods import ended, ready
from claimctl.embedded.components.replicasets import pod_from
from claimctl.embedded.errors import StatusError
from claimctl.embedded.requests import DeleteOptions
from claimctl.embedded.runtime import Component
from claimctl.embedded.views import Change, Key, Object

REVISION_LABEL = "controller-revision-hash"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSetController(Component[Key]):
    name = "statefulset-controller"

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        self.views["controllerrevisions"].index("controller", controller_uid)
        self.views["statefulsets"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "StatefulSet":
            self.queue.add((change.key[0], owner["name"]))

    def sync(self, key: Key) -> None:
        workload = self.views["statefulsets"].get(*key)
        if workload is None:
            return
        update = self._revision(workload)
        current = (workload.get("status") or {}).get("currentRevision") or update
        self._write_status(workload, current, update)
        if deleting(workload):
            return
        workload = self.views["statefulsets"].get(*key) or workload
        self._act(workload, current, update)
        self._write_status(workload, current, update)

    def _pods(self, workload: Object) -> list[Object]:
        found = self.views["pods"].by("controller", uid(workload))
        return sorted(found, key=_ordinal)

    # Revisions of the template

    def _revision(self, workload: Object) -> str:
        template = workload["spec"]["template"]
        wanted = f"{name(workload)}-{short_hash(template)}"
        known = self.views["controllerrevisions"].by("controller", uid(workload))
        if not any(name(each) == wanted for each in known):
            number = max((each["revision"] for each in known), default=0) + 1
            self._keep_revision(workload, wanted, number)
        return wanted

    def _keep_revision(self, workload: Object, wanted: str, number: int) -> None:
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": wanted,
                "namespace": namespace(workload),
                "labels": {
                    **labels({"metadata": workload["spec"]["template"].get("metadata") or {}}),
                    "controller.kubernetes.io/hash": wanted.rpartition("-")[2],
                },
                "ownerReferences": [controller_reference(workload)],
            },
            "data": {"spec": {"template": workload["spec"]["template"]}},
            "revision": number,
        }
        try:
            self.api.create("controllerrevisions", body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    def _template_of(self, workload: Object, revision: str) -> Object:
        kept = self.views["controllerrevisions"].get(namespace(workload), revision)
        found: Object = (kept or {"data": workload})["data"]["spec"]["template"]
        return found

    # Pods

    def _act(self, workload: Object, current: str, update: str) -> None:
        """Missing pods first, then surplus ones, then those of an old template."""
        ordered = workload["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        pods = {_ordinal(pod): pod for pod in self._pods(workload)}
        for step in self._steps(workload, pods, current, update):
            if step == "wait" and ordered:
                return
        condemned = [n for n in sorted(pods, reverse=True) if n not in _ordinals(workload)]
        for number in condemned:
            if not deleting(pods[number]):
                self._delete(workload, pods[number])
            if ordered:
                return
        if not condemned:
            self._roll(workload, pods, update)

    def _steps(
        self, workload: Object, pods: dict[int, Object], current: str, update: str
    ) -> Iterator[str]:
        for number in _ordinals(workload):
            pod = pods.get(number)
            if pod is None:
                self._create(workload, number, self._wanted(workload, number, current, update))
                yield "wait"
            elif ended(pod) and not deleting(pod):
                self._delete(workload, pod)
                yield "wait"
            else:
                yield "wait" if deleting(pod) or not ready(pod) else "next"

    def _wanted(self, workload: Object, number: int, current: str, update: str) -> str:
        """Pods below the partition, or of a set that updates on deletion, stay as they were."""
        rolling = workload["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}
        return current if number < rolling.get("partition", 0) else update

    def _roll(self, workload: Object, pods: dict[int, Object], update: str) -> None:
        """From the highest ordinal down, one at a time, each after the one before is ready."""
        strategy = workload["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for number in sorted((n for n in pods if n >= partition), reverse=True):
            pod = pods[number]
            if deleting(pod):
                return
            if _revision_of(pod) != update:
                self._delete(workload, pod)
                return
            if not ready(pod):
                return

    def _create(self, workload: Object, number: int, revision: str) -> None:
        plain = f"{name(workload)}-{number}"
        template = self._template_of(workload, revision)
        pod = pod_from({**workload, "spec": {**workload["spec"], "template": template}})
        pod["metadata"]["name"] = plain
        pod["metadata"]["labels"] = {
            **pod["metadata"]["labels"],
            INDEX_LABEL: str(number),
            REVISION_LABEL: revision,
            NAME_LABEL: plain,
        }
        pod["spec"] = {**pod["spec"], "hostname": plain}
        if workload["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = workload["spec"]["serviceName"]
        self.api.create("pods", pod)
        self._say(workload, "Create", plain)

    def _delete(self, workload: Object, pod: Object) -> None:
        self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))
        self._say(workload, "Delete", name(pod))

    def _say(self, workload: Object, verb: str, pod: str) -> None:
        shown = verb if self.context.features.version >= (1, 36) else verb.lower()
        message = f"{shown} Pod {pod} in StatefulSet {name(workload)} successful"
        self.event(workload, "Normal", f"Successful{verb}", message)

    # Status

    def _write_status(self, workload: Object, current: str, update: str) -> None:
        workload = self.views["statefulsets"].get(*key_of(workload)) or workload
        status = self._status(workload, current, update)
        if status != (workload.get("status") or {}):
            self.api.update("statefulsets", {**workload, "status": status}, "status")

    def _status(self, workload: Object, current: str, update: str) -> Object:
        pods = self._pods(workload)
        staying = [each for each in pods if not deleting(each)]
        are_ready = sum(1 for each in pods if ready(each) and not ended(each))
        updated = sum(1 for each in staying if _revision_of(each) == update)
        wanted = workload["spec"].get("replicas", 1)
        if updated == wanted == are_ready == len(pods):
            current = update
        counts = {
            "readyReplicas": are_ready,
            "currentReplicas": sum(1 for each in staying if _revision_of(each) == current),
            "updatedReplicas": updated,
        }
        return {
            "observedGeneration": workload["metadata"].get("generation", 1),
            "replicas": len(pods),
            **{key: value for key, value in counts.items() if value},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
            "availableReplicas": are_ready,
        }


def _ordinals(workload: Object) -> range:
    first = (workload["spec"].get("ordinals") or {}).get("start", 0)
    return range(first, first + workload["spec"].get("replicas", 1))


def _ordinal(pod: Object) -> int:
    number = name(pod).rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _revision_of(pod: Object) -> str:
    return labels(pod).get(REVISION_LABEL, "")
