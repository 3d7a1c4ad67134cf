"""The Kubernetes releases in which behaviour changed."""

from __future__ import annotations

import re

from claimctl.wire.nodes import Node

Release = tuple[int, int]

FROM_1_34: Release = (1, 34)
"""From here on KCM looks at a claim when it starts and when the claim changes."""
FROM_1_36: Release = (1, 36)
"""From here on KCM takes pods out beside references that it does not know, a change of a claim's
allocation or list needs ``resourceclaims/binding``, and kubelets know PodGroups."""
FROM_1_38: Release = (1, 38)
"""From here on KCM does not list a finished pod again (kubernetes/kubernetes#141274, fixed by
#141276 in 1.38.0-alpha.2; read from its changelog)."""


def knows_pod_groups(node: Node) -> bool:
    """Whether the kubelet takes a pod's PodGroup for the pod's place in the list.

    One whose version cannot be read counts as new enough.
    """
    match = re.match(r"v(\d+)\.(\d+)", node.status.node_info.kubelet_version)
    return match is None or (int(match[1]), int(match[2])) >= FROM_1_36
