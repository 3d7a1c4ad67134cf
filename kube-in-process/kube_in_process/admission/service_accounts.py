"""The admission plugin ServiceAccount: each pod has an account, and a token of it.

The account ``default`` counts as there from the first moment of its namespace. A real server waits
up to a second for the controller that makes it.
"""

from __future__ import annotations

from random import Random

from kube_in_process.errors import Subject, forbidden
from kube_in_process.kinds.metadata import generated_name
from kube_in_process.objects import Object
from kube_in_process.storage.store import Address, Store
from kube_in_process.webhook_calls import Replies

_MIRROR = "kubernetes.io/config.mirror"
_VOLUME = "kube-api-access-"
_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT = "default"


def give_account(pod: Object, store: Store, rng: Random, replies: Replies) -> None:
    """Give a new pod its account, what the account has for it, and a volume with a token.

    Raises:
        StatusError: 403, the account does not exist.
    """
    meta, spec = pod["metadata"], pod["spec"]
    if _MIRROR in (meta.get("annotations") or {}):
        return
    name = spec.get("serviceAccountName") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = meta.get("namespace", "")
    account = store.get(Address("", "serviceaccounts", namespace, name))
    if account is None and name == _DEFAULT:
        account = {}
    if account is None:
        subject = Subject("", "pods", meta.get("name") or meta.get("generateName") or "Unknown")
        missing = f'serviceaccount "{name}" not found'
        why = f"error looking up service account {namespace}/{name}: {missing}"
        raise forbidden(subject, why)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if _mounts(spec, account):
        replies.token_volume = replies.token_volume or generated_name(_VOLUME, rng)
        _mount(spec, replies.token_volume)


def _mounts(spec: Object, account: Object) -> bool:
    """Whether the pod, or else its account, wants the token."""
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    return wanted is None or bool(wanted)


def _mount(spec: Object, new_name: str) -> None:
    """Mount the volume with the token in each container that has nothing at its place.
    ``new_name`` is the name of that volume if the pod has none."""
    volumes = spec.get("volumes") or []
    names = [volume["name"] for volume in volumes if str(volume.get("name")).startswith(_VOLUME)]
    bare = [
        container
        for key in ("initContainers", "containers")
        for container in spec.get(key) or ()
        if all(mount.get("mountPath") != _PATH for mount in container.get("volumeMounts") or ())
    ]
    if not bare:
        return
    name = names[0] if names else new_name
    for container in bare:
        mount = {"name": name, "readOnly": True, "mountPath": _PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if not names:
        spec["volumes"] = [*volumes, _volume(name)]


def _volume(name: str) -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
