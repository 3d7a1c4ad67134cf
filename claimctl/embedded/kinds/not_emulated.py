"""What a real server acts on and this one does not: refused (501), so that nobody relies on it."""

from __future__ import annotations

from collections.abc import Mapping

from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds.kind import Kind

_ADMISSION = "admission control"
_KINDS: dict[tuple[str, str], str] = {
    **{
        ("admissionregistration.k8s.io", plural): _ADMISSION
        for plural in (
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        )
    },
    ("", "limitranges"): "limits on new objects",
    ("", "resourcequotas"): "quotas",
    ("apiregistration.k8s.io", "apiservices"): "API aggregation",
    ("autoscaling", "horizontalpodautoscalers"): "autoscaling",
    ("certificates.k8s.io", "certificatesigningrequests"): "signing of certificates",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "priority and fairness",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "priority and fairness",
    ("node.k8s.io", "runtimeclasses"): "overhead of runtime classes",
}
"""Kinds that change what the API server or a controller does to other objects."""
_SUBRESOURCES: dict[tuple[str, str, str], str] = {
    ("", "pods", "resize"): "resizing of pods",
    ("", "pods", "ephemeralcontainers"): "ephemeral containers",
}
_POD_SECURITY = "pod-security.kubernetes.io/"
_MODES = ("enforce", "warn", "audit")


def refusal(what: str, where: str) -> StatusError:
    """501, whose message says what is not emulated."""
    return StatusError(501, "NotImplemented", f"{where}: {what} is not emulated")


def check_kind(kind: Kind, subresource: str) -> None:
    """Refuse to write what nobody here would act on. Raises StatusError 501."""
    what = _KINDS.get((kind.group, kind.plural))
    if what is None:
        what = _SUBRESOURCES.get((kind.group, kind.plural, subresource))
    if what is not None:
        where = f"{kind.resource}/{subresource}" if subresource else kind.resource
        raise refusal(what, where)


def check_pod_security(labels: Mapping[str, str]) -> None:
    """Refuse labels of a namespace that ask for a Pod Security level. Raises StatusError 501."""
    for mode in _MODES:
        key = f"{_POD_SECURITY}{mode}"
        if labels.get(key, "privileged") != "privileged":
            raise refusal("Pod Security", f"namespace label {key}={labels[key]}")
