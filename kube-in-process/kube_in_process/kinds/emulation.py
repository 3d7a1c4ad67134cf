"""What a real control plane acts on and this one does not: it is refused, or the server warns.

So that no test relies on it without notice. ``emulation.json`` has every kind once: emulated,
inert (with what does not happen), or refused (with what it would need).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kube_in_process.errors import StatusError
from kube_in_process.kinds.kind import Kind
from kube_in_process.text.data import table


class Emulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The kinds, by their resources: ``cronjobs.batch``."""

    emulated: frozenset[str]
    inert: Mapping[str, str]
    refused: Mapping[str, str]


EMULATION = table(__package__, "emulation.json", Emulation)
_POD_SECURITY = "pod-security.kubernetes.io/"
_MODES = ("enforce", "warn", "audit")
_NO_LIMITS = "privileged"


def refusal(what: str, where: str) -> StatusError:
    """A 403 that says what is not emulated. Clients repeat what a 5xx answers."""
    return StatusError(403, "Forbidden", f"{where}: {what} is not emulated")


def check_kind(kind: Kind, subresource: str) -> list[str]:
    """Warnings about a write of a kind on which nothing acts.

    Raises:
        StatusError: 403, the write would have an effect only on a real cluster.
    """
    where = f"{kind.resource}/{subresource}" if subresource else kind.resource
    what = EMULATION.refused.get(kind.resource) or EMULATION.refused.get(where)
    if what is not None:
        raise refusal(what, where)
    inert = None if kind.custom else EMULATION.inert.get(kind.resource)
    return [f"kube-in-process: nothing acts on {kind.resource}: {inert}"] if inert else []


def pod_security_warnings(labels: Mapping[str, str]) -> list[str]:
    """Warnings about the labels of a namespace that a real server acts on and this one does not."""
    asked = {f"{_POD_SECURITY}{mode}" for mode in _MODES} & labels.keys()
    return [
        f"metadata.labels[{key}]: this embedded cluster does not check pods: Pod Security is not "
        "emulated"
        for key in sorted(asked)
        if labels[key] != _NO_LIMITS
    ]
