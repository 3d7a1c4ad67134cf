"""The Deployment controller: one ReplicaSet per pod template, and rollouts between them."""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process.components.controllers.deployments.replica_sets import (
    known_replica_set,
    new_replica_set,
    revision_of,
    sizes,
)
from kube_in_process.components.controllers.deployments.rollout import (
    DESIRED,
    REVISION,
    by_age,
    counted,
    new_size,
    old_sizes,
    replicas,
    resized,
    rolls,
    same_template,
    with_replicas,
)
from kube_in_process.components.controllers.deployments.status import (
    FOUND,
    NEW_CREATED,
    PAUSED,
    TIMED_OUT,
    calculated,
    complete,
    has_deadline,
    progressed,
    with_pause,
    with_progress,
)
from kube_in_process.components.objects import (
    annotations_of,
    condition,
    controller_of,
    controller_uid,
    deleting,
    key_of,
    labels,
    matches,
    name,
    namespace,
    same_but_status,
    uid,
    with_metadata,
    with_owner,
    without_owner,
)
from kube_in_process.components.pods import ended
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions

GATHER_SECONDS = 0.005


class DeploymentController(Component[Key]):
    name = "deployment-controller"

    def watch(self) -> None:
        self.views["replicasets"].index("controller", controller_uid)
        self.views["pods"].index("controller", controller_uid)
        self.views["deployments"].subscribe(self._deployment_changed)
        self.views["replicasets"].subscribe(self._replica_set_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _deployment_changed(self, change: Change) -> None:
        """Look at a new spec at once, and at a new status after the ReplicaSets' controller had its
        turn: upstream needs some requests before it writes the next size."""
        if same_but_status(change.old, change.new):
            self.queue.add_after(change.key, GATHER_SECONDS)
        else:
            self.queue.add(change.key)

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
        for deployment in self.views["deployments"].items():
            if namespace(deployment) == namespace(replica_set) and _selects(
                deployment, replica_set
            ):
                self.queue.add_after(key_of(deployment), GATHER_SECONDS)

    def _pod_changed(self, change: Change) -> None:
        """Recreate: continue when the last old pod is gone."""
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
        replica_sets = self._replica_sets(deployment)
        if deleting(deployment):
            self._resize(deployment, replica_sets, scale=False)
            return
        deployment = self._note_pause(deployment)
        if deployment["spec"].get("paused") or self._scaling(deployment, replica_sets):
            self._resize(deployment, replica_sets)
        elif rolls(deployment):
            self._roll(deployment, replica_sets)
        else:
            self._recreate(deployment, replica_sets)

    def _note_pause(self, deployment: Object) -> Object:
        """Record in the condition Progressing that the Deployment was paused or resumed."""
        old = condition(deployment, "Progressing") or {}
        if not has_deadline(deployment) or old.get("reason") == TIMED_OUT:
            return deployment
        paused = bool(deployment["spec"].get("paused"))
        if paused == (old.get("reason") == PAUSED):
            return deployment
        status = with_pause(deployment, paused=paused, now=self.context.now())
        return self.api.update("deployments", {**deployment, "status": status}, "status")

    # ReplicaSets

    def _replica_sets(self, deployment: Object) -> list[Object]:
        """The ReplicaSets, oldest first; matching ones without an owner are adopted."""
        replica_sets = list(self.views["replicasets"].by("controller", uid(deployment)))
        if not deleting(deployment):
            replica_sets = [*self._kept(deployment, replica_sets), *self._adopted(deployment)]
        return by_age(replica_sets)

    def _kept(self, deployment: Object, replica_sets: list[Object]) -> Iterator[Object]:
        """Release a ReplicaSet whose labels the selector no longer matches."""
        for replica_set in replica_sets:
            if _selects(deployment, replica_set):
                yield replica_set
            elif not deleting(replica_set):
                self.api.patch(
                    "replicasets", *key_of(replica_set), without_owner(replica_set, uid(deployment))
                )

    def _adopted(self, deployment: Object) -> Iterator[Object]:
        for replica_set in tuple(self.views["replicasets"].items()):
            orphan = (
                namespace(replica_set) == namespace(deployment)
                and controller_of(replica_set) is None
            )
            if orphan and not deleting(replica_set) and _selects(deployment, replica_set):
                yield self.api.patch(
                    "replicasets", *key_of(replica_set), with_owner(replica_set, deployment)
                )

    def _scaling(self, deployment: Object, replica_sets: list[Object]) -> bool:
        new, old = self._split(deployment, replica_sets)
        if new is not None:
            new, deployment = self._known(deployment, new, old)
        wanted = str(replicas(deployment))
        active = with_replicas([*old, new] if new is not None else old)
        return any(
            annotations_of(replica_set).get(DESIRED, wanted) != wanted for replica_set in active
        )

    def _resize(
        self, deployment: Object, replica_sets: list[Object], *, scale: bool = True
    ) -> None:
        """Resize without a rollout: new spec.replicas, or the Deployment is paused or deleting."""
        new, old = self._split(deployment, replica_sets)
        if new is not None:
            new, deployment = self._known(deployment, new, old)
        if scale:
            for replica_set, size in resized(deployment, new, old):
                self._scale(deployment, replica_set, size)
            if deployment["spec"].get("paused"):
                self._clean_up(deployment, old)
        self._write_status(deployment, replica_sets, progress=False)

    def _split(
        self, deployment: Object, replica_sets: list[Object]
    ) -> tuple[Object | None, list[Object]]:
        """The ReplicaSet of the current template, and the others."""
        current = [
            self.views["replicasets"].get(*key_of(replica_set)) or replica_set
            for replica_set in replica_sets
        ]
        new = next(
            (
                replica_set
                for replica_set in by_age(current)
                if same_template(deployment, replica_set)
            ),
            None,
        )
        return new, [
            replica_set for replica_set in current if new is None or uid(replica_set) != uid(new)
        ]

    def _roll(self, deployment: Object, replica_sets: list[Object]) -> None:
        new, deployment = self._ensure_new(deployment, replica_sets)
        _, old = self._split(deployment, replica_sets)
        grown = replicas(new) != replicas(deployment) and self._scale(
            deployment, new, new_size(deployment, new, old)
        )
        if not grown:
            view = self.views["replicasets"]
            shrunk = [
                self._scale(deployment, view.get(*key_of(replica_set)) or replica_set, size)
                for replica_set, size in old_sizes(deployment, new, old)
            ]
            if not any(shrunk) and complete(deployment):
                self._clean_up(deployment, old)
        self._write_status(deployment, self._replica_sets(deployment))

    def _recreate(self, deployment: Object, replica_sets: list[Object]) -> None:
        new, old = self._split(deployment, replica_sets)
        if new is not None:
            new, deployment = self._known(deployment, new, old)
        scaled = [self._scale(deployment, replica_set, 0) for replica_set in with_replicas(old)]
        if not any(scaled) and not self._old_pods(new, old, replica_sets):
            new, deployment = self._ensure_new(deployment, replica_sets)
            if replicas(new) != replicas(deployment):
                self._scale(deployment, new, replicas(deployment))
            if complete(deployment):
                self._clean_up(deployment, old)
        self._write_status(deployment, self._replica_sets(deployment))

    def _old_pods(self, new: Object | None, old: list[Object], replica_sets: list[Object]) -> bool:
        """Recreate: whether old pods still run. New pods are created only after their end."""
        if any(counted(replica_set, "replicas") for replica_set in old):
            return True
        pods = self.views["pods"]
        others = [
            replica_set
            for replica_set in replica_sets
            if new is None or uid(replica_set) != uid(new)
        ]
        left = (pod for other in others for pod in pods.by("controller", uid(other)))
        return any(not ended(pod) for pod in left)

    def _ensure_new(self, deployment: Object, replica_sets: list[Object]) -> tuple[Object, Object]:
        new, old = self._split(deployment, replica_sets)
        if new is not None:
            return self._known(deployment, new, old)
        revision = max((revision_of(replica_set) for replica_set in old), default=0) + 1
        new = self._create(deployment, old, revision)
        status = deployment.get("status") or {}
        if has_deadline(deployment):
            status = with_progress(deployment, NEW_CREATED, name(new), self.context.now())
        return new, self._mark(deployment, str(revision), status)

    def _known(self, deployment: Object, new: Object, old: list[Object]) -> tuple[Object, Object]:
        """Update an existing ReplicaSet: annotations and minReadySeconds of the Deployment."""
        revision = max((revision_of(replica_set) for replica_set in old), default=0) + 1
        wanted = known_replica_set(deployment, new, revision)
        if wanted is not None:
            return self.api.update("replicasets", wanted), deployment
        status = deployment.get("status") or {}
        if has_deadline(deployment) and condition(deployment, "Progressing") is None:
            status = with_progress(deployment, FOUND, name(new), self.context.now())
        return new, self._mark(deployment, annotations_of(new).get(REVISION, ""), status)

    def _mark(self, deployment: Object, revision: str, status: Object) -> Object:
        marks = {**annotations_of(deployment), REVISION: revision}
        wanted = {**with_metadata(deployment, annotations=marks), "status": status}
        if wanted == {**deployment, "status": deployment.get("status") or {}}:
            return deployment
        return self.api.update("deployments", wanted, "status")

    def _create(self, deployment: Object, old: list[Object], revision: int) -> Object:
        size = new_size(deployment, {"spec": {"replicas": 0}}, old)
        created = self.api.create("replicasets", new_replica_set(deployment, size, revision))
        if size:
            self._record_scaling(deployment, created, 0, size)
        return created

    def _scale(self, deployment: Object, replica_set: Object, size: int) -> bool:
        """Set the size of a ReplicaSet; return whether it changed."""
        before = replicas(replica_set)
        marks = {**annotations_of(replica_set), **sizes(deployment)}
        if before == size and marks == annotations_of(replica_set):
            return False
        sized = {**replica_set, "spec": {**replica_set["spec"], "replicas": size}}
        self.api.update("replicasets", with_metadata(sized, annotations=marks))
        if before != size:
            self._record_scaling(deployment, replica_set, before, size)
        return before != size

    def _record_scaling(
        self, deployment: Object, replica_set: Object, before: int, size: int
    ) -> None:
        way = "up" if size > before else "down"
        message = f"Scaled {way} replica set {name(replica_set)} from {before} to {size}"
        self.event(deployment, "Normal", "ScalingReplicaSet", message)

    def _clean_up(self, deployment: Object, old: list[Object]) -> None:
        """Delete old ReplicaSets beyond the limit, if they have no pods."""
        alive = sorted(
            (replica_set for replica_set in old if not deleting(replica_set)), key=revision_of
        )
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        for replica_set in alive[: max(len(alive) - limit, 0)]:
            behind = replica_set["metadata"].get("generation", 0) > counted(
                replica_set, "observedGeneration"
            )
            if not (counted(replica_set, "replicas") or replicas(replica_set) or behind):
                self.api.delete(
                    "replicasets", *key_of(replica_set), DeleteOptions(uid(replica_set))
                )

    # Status

    def _write_status(
        self, deployment: Object, replica_sets: list[Object], *, progress: bool = True
    ) -> None:
        current = self.views["deployments"].get(*key_of(deployment))
        if current is None:
            return
        new, old = self._split(current, replica_sets)
        now = self.context.now()
        everything = old if new is None else [*old, new]
        status = calculated(current, everything, new, self.context.features.version, now)
        if progress:
            status = progressed(current, status, new, now)
        if status != (current.get("status") or {}):
            self.api.update("deployments", {**current, "status": status}, "status")


def _selects(deployment: Object, replica_set: Object) -> bool:
    return matches(deployment["spec"]["selector"], labels(replica_set))
