"""Random sequences of requests, each about one kind in its own namespace."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from judges.differential.exemplars import Exemplar
from judges.differential.mutations import bent, fragment, pointer
from judges.differential.recorder import WATCH_SECONDS, Sequence
from judges.differential.templates import Step, query

Object = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
LABEL = "differential"
_LABEL_SELECTORS = (
    "app=a",
    "app!=a",
    "app in (a,b)",
    "app notin (a)",
    "app",
    "!app",
    "app=a,tier=b",
    "app in (",
    "=",
    "app==a",
    "a b=c",
    "app=a b",
    "app>1",
    "x" * 64,
)


@dataclass
class Writer:
    """Writes the steps of one sequence about one kind."""

    rng: Random
    kind: Exemplar
    namespace: str
    version: tuple[int, int]
    generated: int = 0
    """How many objects were sent without a name."""

    def name(self) -> str:
        short = self.rng.choice(("a", "a", "b", "c"))
        return short if self.kind.namespaced else f"{self.namespace}-{short}"

    def other(self, name: str) -> str:
        """A unique name, also for objects without a namespace."""
        return name if self.kind.namespaced else f"{self.namespace}-{name}"

    def path(self, name: str, subresource: str = "", namespace: str = "") -> str:
        parts = [self.kind.collection(namespace or self.namespace), name, subresource]
        return "/".join(part for part in parts if part)

    def known(self, name: str) -> str:
        return f"{self.kind.plural}/{name}"

    def body(self, name: str) -> Object:
        """A valid object."""
        chosen = copy.deepcopy(self.rng.choice(self.kind.bodies))
        text = json.dumps(chosen).replace("<ns>", self.namespace)
        metadata: Object = {"name": name}
        if self.kind.namespaced and self.rng.random() < 0.3:
            metadata["namespace"] = self.namespace
        labels = {"app": "a"} if self.rng.random() < 0.5 else {}
        if not self.kind.namespaced:
            labels[LABEL] = self.namespace
        if labels:
            metadata["labels"] = labels
        head = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return {**head, "metadata": metadata, **json.loads(text)}

    def steps(self, count: int) -> list[Step]:
        first = [self.create(valid=True)]
        return first + [self._any() for _ in range(count)]

    def _any(self) -> Step:
        makers: list[tuple[Callable[[], Step], int]] = [
            (self.create, 8),
            (self.get, 3),
            (self.list_all, 4),
            (self.put, 6),
            (self.patch, 10),
            (self.delete, 3),
            (self.delete_collection, 1),
            (self.odd, 2),
        ]
        if self.kind.subresources:
            makers.append((self.subresource, 8))
        chosen = self.rng.choices([m for m, _ in makers], [w for _, w in makers])[0]
        return chosen()

    def create(self, *, valid: bool = False) -> Step:
        rng, body = self.rng, self.body(self.name())
        parameters: dict[str, str] = {}
        if not valid and rng.random() < 0.7:
            body = bent(rng, body)
            self._keep_apart(body)
        if not valid and rng.random() < 0.15:
            body["metadata"].pop("name", None)
            self.generated += 1
            # Lists are in the order of names, so each name is made of another text.
            body["metadata"]["generateName"] = f"{self.namespace}-{self.generated}-"
        if not valid and rng.random() < 0.2:
            parameters = self._write_parameters()
        return _step("POST", self.path("") + query(**parameters), body)

    def _keep_apart(self, body: Object) -> None:
        """Give objects without a namespace names that are unique to the sequence."""
        metadata = body.get("metadata")
        if self.kind.namespaced or not isinstance(metadata, dict):
            return
        name = metadata.get("name")
        if isinstance(name, str) and name and not name.startswith(self.namespace):
            metadata["name"] = f"{self.namespace}-{name}"

    def _write_parameters(self) -> dict[str, str]:
        choices = (
            {"dryRun": "All"},
            {"fieldValidation": "Strict"},
            {"fieldValidation": "Ignore"},
            {"fieldValidation": "Odd"},
            {"dryRun": "Odd"},
            {"fieldManager": "somebody"},
            {"fieldManager": "x" * 129},
            {"fieldValidation": "Strict", "dryRun": "All"},
        )
        return dict(self.rng.choice(choices))

    def get(self) -> Step:
        rng = self.rng
        name = rng.choice((self.name(), self.name(), self.other("missing")))
        headers = {}
        if rng.random() < 0.4:
            headers["accept"] = rng.choice((TABLE, PARTIAL, "application/json", "text/html"))
        parameters = {}
        if rng.random() < 0.2:
            parameters["resourceVersion"] = rng.choice(("0", "x", "1"))
        return _step("GET", self.path(name) + query(**parameters), headers=headers)

    def list_all(self) -> Step:
        rng = self.rng
        parameters: dict[str, str] = {}
        if not self.kind.namespaced:
            parameters["labelSelector"] = f"{LABEL}={self.namespace}"
        elif rng.random() < 0.3:
            parameters["labelSelector"] = rng.choice(_LABEL_SELECTORS)
        if rng.random() < 0.3:
            parameters["fieldSelector"] = self._field_selector()
        if rng.random() < 0.2:
            parameters["limit"] = rng.choice(("1", "2", "0", "-1", "x"))
            if not self.kind.namespaced:
                # Where a page ends depends on objects of other sequences.
                del parameters["limit"]
        if rng.random() < 0.15:
            parameters |= rng.choice(
                (
                    {"resourceVersion": "0"},
                    {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
                    {"resourceVersionMatch": "Exact"},
                    {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
                    {"resourceVersion": "x"},
                    {"continue": "odd"},
                    {"resourceVersion": "0", "resourceVersionMatch": "Odd"},
                )
            )
        headers = {}
        if rng.random() < 0.4:
            headers["accept"] = rng.choice(
                (TABLE, TABLE, PARTIAL_LIST, PARTIAL, "application/json")
            )
            if headers["accept"] == TABLE and rng.random() < 0.3:
                parameters["includeObject"] = rng.choice(("None", "Object", "Metadata", "Odd"))
        return _step("GET", self.path("") + query(**parameters), headers=headers)

    def _field_selector(self) -> str:
        rng = self.rng
        key = rng.choice(("metadata.name", "metadata.namespace", "nosuch", *self.kind.fields * 2))
        value = rng.choice(("", "a", "node-0", "gpu.example.com", "p", self.namespace, "Pending"))
        return f"{key}{rng.choice(('=', '=', '==', '!='))}{value}"

    def put(self, subresource: str = "") -> Step:
        rng, name = self.rng, self.name()
        operations: list[Any] = []
        if rng.random() < 0.3:
            operations.append(["del", ["metadata", "resourceVersion"]])
        if rng.random() < 0.1:
            operations.append(["set", ["metadata", "resourceVersion"], rng.choice(("1", "0", "x"))])
        if rng.random() < 0.1:
            operations.append(["set", ["metadata", "uid"], "other-uid"])
        other = self.body(name)
        if subresource == "status" and self.kind.statuses:
            operations.append(["set", ["status"], self._status()])
        elif rng.random() < 0.7:
            changed = bent(rng, other)
            for key in changed:
                if key not in ("apiVersion", "kind", "metadata"):
                    operations.append(["set", [key], changed[key]])
            for key, value in (changed.get("metadata") or {}).items():
                operations.append(["set", ["metadata", key], value])
        body = {"$from": self.known(name), "ops": operations, "else": other}
        parameters = self._write_parameters() if rng.random() < 0.1 else {}
        return _step("PUT", self.path(name, subresource) + query(**parameters), body)

    def _status(self) -> Object:
        status = copy.deepcopy(self.rng.choice(self.kind.statuses))
        return dict(bent(self.rng, status)) if self.rng.random() < 0.5 else status

    def patch(self, subresource: str = "") -> Step:
        rng, name = self.rng, self.name()
        how = rng.choice(("json", "merge", "merge", "strategic", "strategic", "apply"))
        whole = self.body(name)
        if subresource == "status":
            whole = {"status": self._status() if self.kind.statuses else {"x": "y"}}
        headers = {"content-type": PATCH_TYPES[how]}
        parameters: dict[str, str] = {}
        body: Any
        if how == "json":
            body = self._operations(whole)
        elif how == "apply":
            body = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **whole}
            body["metadata"] = {"name": name}
            if rng.random() < 0.5:
                body = bent(rng, body)
            if rng.random() < 0.95:
                parameters["fieldManager"] = rng.choice(("one", "two"))
            if rng.random() < 0.4:
                parameters["force"] = "true"
        else:
            body = fragment(rng, bent(rng, whole) if rng.random() < 0.7 else whole)
            if rng.random() < 0.1:
                body = bent(rng, body)
        if rng.random() < 0.1:
            parameters |= self._write_parameters()
        return _step("PATCH", self.path(name, subresource) + query(**parameters), body, headers)

    def _operations(self, whole: Object) -> list[Any]:
        rng = self.rng
        operations: list[Any] = []
        for _ in range(rng.randint(0, 2)):
            operation: Object = {
                "op": rng.choice(
                    ("add", "add", "replace", "remove", "test", "copy", "move", "odd")
                ),
                "path": pointer(rng, whole),
            }
            if operation["op"] in ("add", "replace", "test"):
                operation["value"] = rng.choice(("x", 1, True, None, {}, [], "a"))
            if operation["op"] in ("copy", "move"):
                operation["from"] = pointer(rng, whole)
            operations.append(operation)
        return operations

    def delete(self) -> Step:
        rng, name = self.rng, self.name()
        parameters: dict[str, str] = {}
        body: Any = None
        if rng.random() < 0.3:
            parameters = rng.choice(
                (
                    {"propagationPolicy": "Foreground"},
                    {"propagationPolicy": "Orphan"},
                    {"propagationPolicy": "Odd"},
                    {"gracePeriodSeconds": "0"},
                    {"gracePeriodSeconds": "x"},
                    {"dryRun": "All"},
                    {"orphanDependents": "true"},
                )
            )
        elif rng.random() < 0.4:
            body = rng.choice(
                (
                    {"preconditions": {"uid": "other"}},
                    {"preconditions": {"resourceVersion": "1"}},
                    {"preconditions": {"uid": f"<={self.known(name)}#metadata.uid>"}},
                    {"propagationPolicy": "Background", "gracePeriodSeconds": 1},
                    {"propagationPolicy": "Odd"},
                    {"gracePeriodSeconds": -1},
                    {"kind": "Odd", "apiVersion": "v1"},
                    {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
                    {"orphanDependents": True, "propagationPolicy": "Orphan"},
                    {"dryRun": ["Odd"]},
                )
            )
        return _step("DELETE", self.path(name) + query(**parameters), body)

    def delete_collection(self) -> Step:
        if not self.kind.namespaced:
            selector = f"{LABEL}={self.namespace}"
            return _step("DELETE", self.path("") + query(labelSelector=selector))
        selector = self.rng.choice(("app=a", "app=b", "app in (", ""))
        return _step("DELETE", self.path("") + query(labelSelector=selector))

    def odd(self) -> Step:
        """A request that fails before the server reads the object."""
        rng, name = self.rng, self.name()
        body, missing = self.body(name), self.other("missing")
        choices: tuple[tuple[str, str, Any, dict[str, str]], ...] = (
            ("POST", self.path(""), "{", {}),
            ("POST", self.path(""), "", {}),
            ("POST", self.path(""), "[]", {}),
            ("POST", self.path(""), "null", {}),
            ("POST", self.path(""), {**body, "kind": "Odd"}, {}),
            ("POST", self.path(""), {**body, "apiVersion": "odd/v1"}, {}),
            ("POST", self.path(""), body, {"content-type": "text/plain"}),
            ("POST", self.path(name), body, {}),
            ("PUT", self.path(""), body, {}),
            ("PUT", self.path(self.other("other")), body, {}),
            ("PATCH", self.path(name), body, {"content-type": "application/json"}),
            ("PATCH", self.path(name), "{", {"content-type": PATCH_TYPES["merge"]}),
            ("PATCH", self.path(name), [], {"content-type": PATCH_TYPES["merge"]}),
            ("PATCH", self.path(name), {}, {"content-type": PATCH_TYPES["json"]}),
            ("GET", self.path(name, "nosuch"), None, {}),
            ("GET", self.path(name, "status"), None, {}),
            ("GET", self.path(name, "scale"), None, {}),
            ("POST", self.path("", namespace="nowhere"), body, {}),
            ("GET", self.path("", namespace="nowhere"), None, {}),
            ("DELETE", self.path(self.other("missing")), None, {}),
            ("PUT", self.path(missing), {**body, "metadata": {"name": missing}}, {}),
        )
        method, path, content, headers = rng.choice(choices)
        if path == self.kind.collection("") and method == "GET":
            path += query(labelSelector=f"{LABEL}={self.namespace}")
        return _step(method, path, content, headers)

    def subresource(self) -> Step:
        rng, name = self.rng, self.name()
        chosen = rng.choice((*self.kind.subresources, "status"))
        if chosen == "binding":
            target = rng.choice(({"name": "node-0"}, {"name": ""}, {}, {"name": "n", "kind": "X"}))
            body: Object = {"metadata": {"name": name}, "target": target}
            return _step("POST", self.path(name, "binding"), body)
        if chosen == "eviction":
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            if rng.random() < 0.4:
                body = bent(rng, {**body, "deleteOptions": {"gracePeriodSeconds": 0}})
            return _step("POST", self.path(name, "eviction"), body)
        if chosen == "token":
            body = {"spec": {"audiences": ["x"], "expirationSeconds": 600}}
            return _step("POST", self.path(name, "token"), bent(rng, body))
        if chosen == "scale":
            return self._scale(name)
        if chosen == "resize":
            resources = {"requests": {"cpu": rng.choice(("1", "200m", "x"))}}
            body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
            headers = {"content-type": PATCH_TYPES["strategic"]}
            return _step("PATCH", self.path(name, "resize"), body, headers)
        if chosen == "ephemeralcontainers":
            body = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "x"}]}}
            headers = {"content-type": PATCH_TYPES["strategic"]}
            return _step("PATCH", self.path(name, chosen), bent(rng, body), headers)
        if chosen == "finalize":
            operations = [["set", ["spec", "finalizers"], rng.choice(([], ["kubernetes"], ["x"]))]]
            body = {"$from": self.known(name), "ops": operations, "else": self.body(name)}
            return _step("PUT", self.path(name, "finalize"), body)
        return self.put("status") if rng.random() < 0.5 else self.patch("status")

    def _scale(self, name: str) -> Step:
        rng = self.rng
        how = rng.randrange(3)
        if how == 0:
            return _step("GET", self.path(name, "scale"))
        if how == 1:
            body: Object = {"spec": {"replicas": rng.choice((0, 5, -1, "x"))}}
            headers = {"content-type": PATCH_TYPES["merge"]}
            return _step("PATCH", self.path(name, "scale"), body, headers)
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"replicas": rng.choice((0, 1, 4))},
        }
        return _step("PUT", self.path(name, "scale"), bent(rng, body))


def _step(method: str, path: str, body: Any = None, headers: Object | None = None) -> Step:
    request: Step = {"method": method, "path": path}
    if headers:
        request["headers"] = headers
    if body is not None:
        request["body"] = body
    return {"request": request}


def namespace_step(name: str) -> Step:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    step = _step("POST", "/api/v1/namespaces", body)
    return {"note": "the namespace", **step}


def random_sequence(
    rng: Random, kind: Exemplar, name: str, version: tuple[int, int], length: int
) -> Sequence:
    """Random requests about one kind, some of them during a watch."""
    writer = Writer(rng, kind, name, version)
    steps = [namespace_step(name)]
    written = writer.steps(length)
    if rng.random() < 0.15:
        steps.append({**watch_step(writer), "during": written})
    else:
        steps += written
    return Sequence(name, tuple(steps), managed_fields=rng.random() < 0.2)


def watch_step(writer: Writer) -> Step:
    rng = writer.rng
    parameters = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS)}
    if not writer.kind.namespaced:
        parameters["labelSelector"] = f"{LABEL}={writer.namespace}"
    elif rng.random() < 0.4:
        parameters["labelSelector"] = rng.choice(("app=a", "!app", "app in (a,b)"))
    elif rng.random() < 0.3:
        parameters["fieldSelector"] = writer._field_selector()
    if rng.random() < 0.3:
        parameters["allowWatchBookmarks"] = "true"
    if rng.random() < 0.2:
        parameters |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    headers = {"accept": TABLE} if rng.random() < 0.2 else {}
    return _step("GET", writer.path("") + query(**parameters), headers=headers)
