"""Faults of kubelets that only claims meet whose pods follow each other, or share it. Pure.

A claim from a template is prepared once. A claim that is held is unprepared and prepared again for
its next pod, often at once and on the same node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from claimctl.text import listed
from claimctl.wire.nodes import Node

Version = tuple[int, int, int]

_NAMED = 3
"""The most nodes that a line names."""


@dataclass(frozen=True, slots=True)
class KubeletFault:
    """A fault of released kubelets.

    Attributes:
        fixed: the first version of each minor release that has the fix, the oldest first; so have
            all later minor releases.
    """

    since: Version
    fixed: tuple[Version, ...]
    what: str
    cure: str

    def has(self, version: Version) -> bool:
        """Whether a kubelet of the version has the fault."""
        of_minor = [fixed for fixed in self.fixed if fixed[:2] == version[:2]]
        return self.since <= version < (of_minor or self.fixed[-1:])[0]


FAULTS = (
    KubeletFault(
        since=(1, 32, 0),
        fixed=((1, 37, 0),),
        what="a pod that comes while the claim's last pod goes may run with devices that are "
        "unprepared (kubernetes/kubernetes#140527)",
        cure="upgrade to 1.37, or keep the devices prepared by a pod that does nothing",
    ),
    KubeletFault(
        since=(1, 34, 0),
        fixed=((1, 34, 4), (1, 35, 1), (1, 36, 0)),
        what="a pod with two claims, of which one is prepared already, does not start "
        "(kubernetes/kubernetes#135901)",
        cure="upgrade to 1.34.4, 1.35.1 or 1.36",
    ),
)
"""#140527 was merged in July 2026, and no earlier release is known to have the fix. The changelogs
name the fix of #135901 for 1.34.4, 1.35.1 and 1.36.0."""


def kubelet_faults(nodes: Iterable[Node]) -> Iterator[str]:
    """One line for each fault that a kubelet has: the nodes, the fault, and what to do."""
    known = sorted((node.metadata.name, node.status.node_info.kubelet_version) for node in nodes)
    for fault in FAULTS:
        concerned = [
            f"{name} ({text})"
            for name, text in known
            if (version := _version(text)) is not None and fault.has(version)
        ]
        if concerned:
            yield f"{fault.what}: {listed(concerned, _NAMED)}; {fault.cure}"


def _version(text: str) -> Version | None:
    match = re.match(r"v(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
