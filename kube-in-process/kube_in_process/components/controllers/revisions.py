"""The ControllerRevisions of a workload: one for each pod template that it has had.

The rules are those of k8s.io/kubernetes/pkg/controller/history.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_in_process.components.objects import (
    controller_of,
    controller_reference,
    key_of,
    labels,
    matches,
    name,
    namespace,
    short_hash,
    uid,
    with_metadata,
    with_owner,
)
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import View
from kube_in_process.storage.requests import DeleteOptions

HASH = "controller.kubernetes.io/hash"


class Revisions:
    """Stores the templates of StatefulSets or DaemonSets.

    ``label`` is the label of a revision with its hash. ``replaces``: a stored template says that it
    replaces another one as a whole.
    """

    def __init__(
        self, api: ApiFor, view: View, label: str = HASH, *, replaces: bool = False
    ) -> None:
        self._api = api
        self._view = view
        self._label = label
        self._more = {"$patch": "replace"} if replaces else {}

    def of(self, workload: Object) -> list[Object]:
        """The revisions, oldest first; matching ones without an owner are adopted."""
        revisions = []
        for revision in tuple(self._view.items()):
            if namespace(revision) != namespace(workload):
                continue
            owner = controller_of(revision)
            if owner is not None and owner["uid"] == uid(workload):
                revisions.append(revision)
            elif owner is None and matches(workload["spec"]["selector"], labels(revision)):
                patch = with_owner(revision, workload)
                revisions.append(self._api.patch("controllerrevisions", *key_of(revision), patch))
        return sorted(revisions, key=lambda revision: (revision["revision"], name(revision)))

    def update(self, workload: Object, known: list[Object]) -> Object:
        """The revision of the current template; an old one with it becomes the newest."""
        template = {**workload["spec"]["template"], **self._more}
        equal = [revision for revision in known if revision["data"]["spec"]["template"] == template]
        number = known[-1]["revision"] + 1 if known else 1
        if not equal:
            return self._create(workload, number)
        if equal[-1] is known[-1]:
            return equal[-1]
        again = {**equal[-1], "revision": number}
        return self._api.update("controllerrevisions", again)

    def _create(self, workload: Object, number: int) -> Object:
        template = workload["spec"]["template"]
        digest = short_hash(template)
        given = labels({"metadata": template.get("metadata") or {}})
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{name(workload)}-{digest}",
                "namespace": namespace(workload),
                "labels": {**given, self._label: digest},
                "ownerReferences": [controller_reference(workload)],
            },
            "data": {"spec": {"template": {**template, **self._more}}},
            "revision": number,
        }
        try:
            return self._api.create("controllerrevisions", body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        old = self._api.get("controllerrevisions", namespace(workload), name(body))
        return self._api.update("controllerrevisions", with_metadata({**old, **_content(body)}))

    def truncate(self, workload: Object, known: list[Object], live: Iterable[str]) -> None:
        """Delete the oldest revisions that no pod has, beyond revisionHistoryLimit."""
        used = set(live)
        dead = [revision for revision in known if name(revision) not in used]
        limit = workload["spec"].get("revisionHistoryLimit", 10)
        for revision in dead[: max(len(dead) - limit, 0)]:
            self._api.delete("controllerrevisions", *key_of(revision), DeleteOptions(uid(revision)))


def _content(body: Object) -> Object:
    return {"data": body["data"], "revision": body["revision"]}
