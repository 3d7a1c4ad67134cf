"""Refuse (501), or warn of, what a real server acts on and this one does not.

So that no test relies on it without notice.
"""

from __future__ import annotations

from collections.abc import Mapping

from kube_in_process.errors import StatusError
from kube_in_process.kinds.kind import Kind
from kube_in_process.text.data import table

_REFUSED = table(__package__, "not_emulated.json", dict[str, str])
"""Resources on which a real server or controller acts, and what that would be."""
_POD_SECURITY = "pod-security.kubernetes.io/"
_MODES = ("enforce", "warn", "audit")
_NO_LIMITS = "privileged"


def refusal(what: str, where: str) -> StatusError:
    """A 501 that says what is not emulated."""
    return StatusError(501, "NotImplemented", f"{where}: {what} is not emulated")


def check_kind(kind: Kind, subresource: str) -> None:
    """Refuse a write that would have an effect only on a real cluster. Raises StatusError 501."""
    where = f"{kind.resource}/{subresource}" if subresource else kind.resource
    what = _REFUSED.get(kind.resource) or _REFUSED.get(where)
    if what is not None:
        raise refusal(what, where)


def pod_security_warnings(labels: Mapping[str, str]) -> list[str]:
    """Warnings about the labels of a namespace that a real server acts on and this one does not."""
    asked = {f"{_POD_SECURITY}{mode}" for mode in _MODES} & labels.keys()
    return [
        f"metadata.labels[{key}]: this embedded cluster does not check pods: Pod Security is not "
        "emulated"
        for key in sorted(asked)
        if labels[key] != _NO_LIMITS
    ]
