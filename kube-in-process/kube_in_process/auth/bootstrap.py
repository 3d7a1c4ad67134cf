"""The roles and bindings that every API server makes at its start.

``policy.json`` has those of v1.36, as ``python -m judges policy-record`` reads them from a real
server. There, a controller manager fills in the rules of aggregated ClusterRoles a moment later.
Here they have them from the start.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from kube_in_process.auth.aggregation import AGGREGATION, aggregated_rules
from kube_in_process.auth.rbac import GROUP
from kube_in_process.kinds.metadata import new_uid
from kube_in_process.objects import Object
from kube_in_process.storage.store import Address, Author, Store, encode
from kube_in_process.text.data import table

LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
_SERVER = "kube-apiserver"
_AUTHOR = Author("system:apiserver", "create")
_VERSION, _MOMENT = "\0version", "\0moment"
"""What stands in an object for its version, and for the time of its creation."""
_ENCODED_VERSION, _ENCODED_MOMENT = encode(_VERSION)[1:-1], encode(_MOMENT)[1:-1]


def make_policy(store: Store, moment: str) -> None:
    """Store all roles and bindings, as if the server had made them at that time."""
    for address, encoded in _policy():
        version = str(store.revision + 1)
        data = encoded.replace(_ENCODED_VERSION, version.encode())
        store.put_bytes(address, data.replace(_ENCODED_MOMENT, moment.encode()), _AUTHOR)


@lru_cache(maxsize=1)
def _policy() -> tuple[tuple[Address, bytes], ...]:
    """The same for all clusters of this process: nothing changes it."""
    recorded = table(__package__, "policy.json", dict[str, list[Object]])
    listed = {plural: [_whole(obj) for obj in objects] for plural, objects in recorded.items()}
    roles = listed["clusterroles"]
    while any(_gather(role, roles) for role in roles):
        pass
    return tuple(_encoded(plural, obj) for plural, objects in listed.items() for obj in objects)


def _whole(recorded: Object) -> Object:
    meta = {key: recorded[key] for key in ("name", "namespace") if key in recorded}
    labels = {**LABELS, **recorded.get("labels", {})}
    body = {key: recorded[key] for key in recorded if key not in (*meta, "labels")}
    # the place of rules that are gathered below
    rules: Object = {"rules": []} if "aggregationRule" in body else {}
    return {"metadata": {**meta, "labels": labels, "annotations": _ANNOTATIONS}, **rules, **body}


def _gather(role: Object, roles: list[Object]) -> bool:
    """Fill in the rules of an aggregated role; return whether that changed it."""
    rules = aggregated_rules(role, roles)
    if rules is None or rules == role.get("rules"):
        return False
    role["rules"] = rules
    return True


def _encoded(plural: str, obj: Object) -> tuple[Address, bytes]:
    meta, body = obj["metadata"], {key: obj[key] for key in obj if key != "metadata"}
    namespace, name = meta.get("namespace", ""), meta["name"]
    place = {key: meta[key] for key in ("name", "namespace") if key in meta}
    rest = {key: meta[key] for key in ("labels", "annotations")}
    uid = new_uid(Random(f"{plural}/{namespace}/{name}"))
    by_server = {"uid": uid, "resourceVersion": _VERSION, "creationTimestamp": _MOMENT}
    owners = {"managedFields": _owners(rest, body)}
    head = {"kind": _KINDS[plural], "apiVersion": f"{GROUP}/v1"}
    whole = {**head, "metadata": {**place, **by_server, **rest, **owners}, **body}
    return Address(GROUP, plural, namespace, name), encode(whole)


def _owners(meta: Object, body: Object) -> list[Object]:
    """The entries of managedFields: of the server, and of the controller that aggregates."""
    owned = {f"f:{key}": _listed(values) for key, values in sorted(meta.items())}
    fields: Object = {"f:metadata": owned, **{f"f:{key}": {} for key in sorted(body)}}
    if "aggregationRule" not in body:
        return [_owner(_SERVER, "Update", fields)]
    del fields["f:rules"]
    fields["f:aggregationRule"] = _listed({"clusterRoleSelectors": ()})
    fields = dict(sorted(fields.items()))
    gathered = _owner(AGGREGATION, "Apply", {"f:rules": {}})
    return [gathered, _owner(_SERVER, "Update", fields)]


def _listed(values: Object) -> Object:
    return {".": {}, **{f"f:{key}": {} for key in sorted(values)}}


def _owner(manager: str, operation: str, fields: Object) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": f"{GROUP}/v1",
        "time": _MOMENT,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
