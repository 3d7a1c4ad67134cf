"""Names of objects as users give them: ``NAME``, or ``kind/NAME`` as kubectl prints them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import typer

from claimctl.cli.errors import UsageError

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
CLAIM, RESERVATION, POD, NODE = "ResourceClaim", "ClaimReservation", "Pod", "Node"
RESERVED_FOR = ("Deployment", "StatefulSet", "Job")
"""The kinds of Kubernetes' own workloads that a claim can be reserved for. ``others`` of ``parse``
lets in the kinds that WorkloadKinds describe."""
WORKLOADS = (*RESERVED_FOR, "ReplicaSet")
"""The kinds that own pods. A claim is reserved for the Deployment of a ReplicaSet."""
_NAMES = {
    CLAIM: ("resourceclaim", "resourceclaims", "claim", "claims"),
    RESERVATION: ("claimreservation", "claimreservations", "crsv"),
    POD: ("pod", "pods", "po"),
    NODE: ("node", "nodes", "no"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "Job": ("job", "jobs"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
}
_PRINTED = {
    CLAIM: "resourceclaim.resource.k8s.io",
    RESERVATION: "claimreservation.claimctl.io",
    "Deployment": "deployment.apps",
    "StatefulSet": "statefulset.apps",
    "ReplicaSet": "replicaset.apps",
    "Job": "job.batch",
}
"""The names of kinds that kubectl prints with their API group."""
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}


def parse(
    given: str, default: str, kinds: Collection[str], *, others: bool = False
) -> tuple[str, str]:
    """The kind and the name of ``NAME`` or ``kind/NAME``.

    The kind may be singular, plural, a short name, or have its API group behind a dot, as in
    ``resourceclaim.resource.k8s.io/train``.

    Args:
        default: the kind of a name without one.
        kinds: the kinds that the command takes.
        others: whether the cluster may know the kind: then the word before the slash is its name.

    Raises:
        UsageError: the kind is not one of ``kinds``.
        typer.BadParameter: the name is not a DNS name.
    """
    word, slash, name = given.rpartition("/")
    if not slash:
        return default, object_name(given)
    kind = kind_of(word)
    if others and not kind and _SUBDOMAIN.fullmatch(word.lower()):
        return word.lower(), object_name(name)
    if kind not in kinds:
        # the singular, and the short name if there is one
        known = (_NAMES[kind] for kind in _NAMES if kind in kinds)
        shown = dict.fromkeys(name for names in known for name in (names[0], *names[2:3]))
        expected = ", ".join(shown)
        raise UsageError(f"{given!r}: the kind before '/' must be one of: {expected}")
    return kind, object_name(name)


def resource_name(kind: str, name: str) -> str:
    """The name of an object as ``-o name`` prints it: ``pod/train-0``."""
    return f"{_PRINTED.get(kind, kind.lower())}/{name}"


def printed_name(document: Mapping[str, Any]) -> str:
    """The name of a whole object as ``-o name`` prints it: ``deployment.apps/train``."""
    group, slash, _ = document["apiVersion"].rpartition("/")
    kind = f"{document['kind'].lower()}{'.' if slash else ''}{group}"
    return f"{kind}/{document['metadata']['name']}"


def kind_of(word: str) -> str:
    """The kind that a word before a slash names; '' if claimctl does not know it."""
    return _KINDS.get(word.split(".")[0].lower(), "")


def object_name(value: str) -> str:
    """Check a name by the API server's rule (RFC 1123 subdomain, at most 253 characters)."""
    if len(value) > 253 or not _SUBDOMAIN.fullmatch(value):
        raise typer.BadParameter(
            f"{value!r} is not a DNS name: lower-case letters, digits, '-' and '.' are expected"
        )
    return value
