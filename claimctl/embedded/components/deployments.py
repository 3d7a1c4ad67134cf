"""The Deployment controller: one ReplicaSet per pod template, and the way from old to new."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.embedded.components.deployment_status import (
    FOUND,
    NEW_CREATED,
    calculated,
    complete,
    progressed,
    with_progress,
)
from claimctl.embedded.components.objects import (
    annotations_of,
    condition,
    controller_of,
    controller_reference,
    controller_uid,
    deleting,
    key_of,
    labels,
    matches,
    name,
    namespace,
    owners,
    short_hash,
    uid,
    with_metadata,
)
from claimctl.embedded.components.pods import ended
from claimctl.embedded.components.rollout import (
    DESIRED,
    HASH_LABEL,
    MAXIMUM,
    REVISION,
    max_replicas,
    new_size,
    old_sizes,
    proportional,
    replicas,
    same_template,
    zeroed,
)
from claimctl.embedded.requests import DeleteOptions
from claimctl.embedded.runtime import Component
from claimctl.embedded.views import Change, Key, Object

GATHER_SECONDS = 0.005


class DeploymentController(Component[Key]):
    name = "deployment-controller"

    def watch(self) -> None:
        self.views["replicasets"].index("controller", controller_uid)
        self.views["pods"].index("controller", controller_uid)
        self.views["deployments"].subscribe(lambda change: self.queue.add(change.key))
        self.views["replicasets"].subscribe(self._replica_set_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _replica_set_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "Deployment":
            self.queue.add_after((change.key[0], owner["name"]), GATHER_SECONDS)
        else:
            self._add_matching(change.object)
        if change.old is not None and change.new is not None:
            before = controller_of(change.old)
            if before is not None and before != owner:
                self.queue.add_after((change.key[0], before["name"]), GATHER_SECONDS)

    def _add_matching(self, replica_set: Object) -> None:
        for each in self.views["deployments"].items():
            if namespace(each) == namespace(replica_set) and _selects(each, replica_set):
                self.queue.add_after(key_of(each), GATHER_SECONDS)

    def _pod_changed(self, change: Change) -> None:
        """Recreate goes on when the last old pod is gone."""
        if change.new is not None and not ended(change.new):
            return
        owner = controller_of(change.object)
        if owner is None or owner["kind"] != "ReplicaSet":
            return
        replica_set = self.views["replicasets"].get(change.key[0], owner["name"])
        above = None if replica_set is None else controller_of(replica_set)
        deployment = above and self.views["deployments"].get(change.key[0], above["name"])
        if deployment and deployment["spec"]["strategy"]["type"] == "Recreate":
            self.queue.add((change.key[0], name(deployment)))

    def sync(self, key: Key) -> None:
        deployment = self.views["deployments"].get(*key)
        if deployment is None:
            return
        found = self._replica_sets(deployment)
        if deleting(deployment):
            self._write_status(deployment, found, progress=False)
        elif deployment["spec"].get("paused") or self._scaling(deployment, found):
            self._scale_all(deployment, found)
            self._write_status(deployment, self._replica_sets(deployment), progress=False)
        else:
            self._roll(deployment, found)

    # ReplicaSets

    def _replica_sets(self, deployment: Object) -> list[Object]:
        """Oldest first; those that nobody owns and the selector matches are adopted."""
        found = list(self.views["replicasets"].by("controller", uid(deployment)))
        if not deleting(deployment):
            found += list(self._adopted(deployment))
        return sorted(found, key=lambda each: (_revision(each), each["metadata"]["uid"]))

    def _adopted(self, deployment: Object) -> Iterator[Object]:
        for each in tuple(self.views["replicasets"].items()):
            orphan = namespace(each) == namespace(deployment) and controller_of(each) is None
            if orphan and not deleting(each) and _selects(deployment, each):
                references = [*owners(each), controller_reference(deployment)]
                patch = {"metadata": {"uid": uid(each), "ownerReferences": references}}
                yield self.api.patch("replicasets", *key_of(each), patch)

    def _new_of(self, deployment: Object, found: list[Object]) -> Object | None:
        return next((each for each in found if same_template(deployment, each)), None)

    def _scaling(self, deployment: Object, found: list[Object]) -> bool:
        wanted = str(replicas(deployment))
        return any(
            replicas(each) and annotations_of(each).get(DESIRED, wanted) != wanted for each in found
        )

    def _scale_all(self, deployment: Object, found: list[Object]) -> None:
        """spec.replicas changed: the sizes change in proportion, the rollout waits."""
        for each, size in proportional(deployment, found, self._new_of(deployment, found)):
            self._scale(deployment, each, size)

    def _roll(self, deployment: Object, found: list[Object]) -> None:
        new = self._new_of(deployment, found)
        recreate = deployment["spec"]["strategy"]["type"] == "Recreate"
        old = [each for each in found if new is None or uid(each) != uid(new)]
        if recreate and self._still_old(deployment, old):
            self._write_status(deployment, self._replica_sets(deployment))
            return
        new, deployment = self._ensure_new(deployment, new, old)
        if not self._scale(deployment, new, new_size(deployment, new, old, recreate=recreate)):
            for each, size in old_sizes(deployment, new, old):
                self._scale(deployment, each, size)
        if complete(deployment):
            self._clean_up(deployment, old)
        self._write_status(deployment, self._replica_sets(deployment))

    def _still_old(self, deployment: Object, old: list[Object]) -> bool:
        """Recreate: every old pod has to be gone before the first new one comes."""
        scaled = [self._scale(deployment, each, 0) for each in old]
        pods = self.views["pods"]
        left = (pod for each in old for pod in pods.by("controller", uid(each)))
        return any(scaled) or any(not ended(pod) for pod in left)

    def _ensure_new(
        self, deployment: Object, new: Object | None, old: list[Object]
    ) -> tuple[Object, Object]:
        revision = max((_revision(each) for each in old), default=0) + 1
        reason = FOUND
        if new is None:
            new = self._create(deployment, old, revision)
            reason = NEW_CREATED
        elif _revision(new) < revision:
            marks = {**annotations_of(new), REVISION: str(revision)}
            new = self.api.update("replicasets", with_metadata(new, annotations=marks))
        if reason == NEW_CREATED or condition(deployment, "Progressing") is None:
            status = with_progress(deployment, reason, name(new), self.context.now())
        else:
            status = deployment.get("status") or {}
        marks = {**annotations_of(deployment), REVISION: str(_revision(new))}
        wanted = {**with_metadata(deployment, annotations=marks), "status": status}
        if wanted != deployment:
            deployment = self.api.update("deployments", wanted, "status")
        return new, deployment

    def _create(self, deployment: Object, old: list[Object], revision: int) -> Object:
        template = deployment["spec"]["template"]
        collisions = (deployment.get("status") or {}).get("collisionCount", 0)
        digest = short_hash([template, collisions] if collisions else template)
        marked = {**labels({"metadata": template.get("metadata") or {}}), HASH_LABEL: digest}
        selector = deployment["spec"]["selector"]
        fixed = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
        empty = {"spec": {"replicas": 0}, "metadata": {"annotations": {}}}
        recreate = deployment["spec"]["strategy"]["type"] == "Recreate"
        size = new_size(deployment, empty, old, recreate=recreate)
        created = self.api.create(
            "replicasets",
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{name(deployment)}-{digest}",
                    "namespace": namespace(deployment),
                    "labels": marked,
                    "annotations": {
                        **_copied(deployment),
                        DESIRED: str(replicas(deployment)),
                        MAXIMUM: str(max_replicas(deployment)),
                        REVISION: str(revision),
                    },
                    "ownerReferences": [controller_reference(deployment)],
                },
                "spec": {
                    "replicas": size,
                    "selector": {**selector, "matchLabels": fixed},
                    "template": {
                        **template,
                        "metadata": {**(template.get("metadata") or {}), "labels": marked},
                    },
                },
            },
        )
        if size:
            self._say_scaled(deployment, created, 0, size)
        return created

    def _scale(self, deployment: Object, replica_set: Object, size: int) -> bool:
        """Whether the size had to change."""
        before = replicas(replica_set)
        marks = {
            **annotations_of(replica_set),
            DESIRED: str(replicas(deployment)),
            MAXIMUM: str(max_replicas(deployment)),
        }
        if before == size and marks == annotations_of(replica_set):
            return False
        resized = {**replica_set, "spec": {**replica_set["spec"], "replicas": size}}
        self.api.update("replicasets", with_metadata(resized, annotations=marks))
        if before != size:
            self._say_scaled(deployment, replica_set, before, size)
        return before != size

    def _say_scaled(self, deployment: Object, replica_set: Object, before: int, size: int) -> None:
        way = "up" if size > before else "down"
        message = f"Scaled {way} replica set {name(replica_set)} from {before} to {size}"
        self.event(deployment, "Normal", "ScalingReplicaSet", message)

    def _clean_up(self, deployment: Object, old: list[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        idle = [each for each in old if zeroed(each) and not deleting(each)]
        for each in idle[: max(len(idle) - limit, 0)]:
            self.api.delete("replicasets", *key_of(each), DeleteOptions(uid(each)))

    # Status

    def _write_status(
        self, deployment: Object, found: list[Object], *, progress: bool = True
    ) -> None:
        current = self.views["deployments"].get(*key_of(deployment))
        if current is None:
            return
        new = self._new_of(current, found)
        now = self.context.now()
        status = calculated(current, found, new, self.context.features.version, now)
        if progress:
            status = progressed(current, status, new, now)
        if status != (current.get("status") or {}):
            self.api.update("deployments", {**current, "status": status}, "status")


def _selects(deployment: Object, replica_set: Object) -> bool:
    return matches(deployment["spec"]["selector"], labels(replica_set))


def _revision(replica_set: Object) -> int:
    return int(annotations_of(replica_set).get(REVISION, "0"))


def _copied(deployment: Object) -> dict[str, str]:
    """Annotations that a ReplicaSet inherits."""
    own = (REVISION, DESIRED, MAXIMUM, "kubectl.kubernetes.io/last-applied-configuration")
    return {key: value for key, value in annotations_of(deployment).items() if key not in own}
