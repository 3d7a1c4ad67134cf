"""The pods of a DaemonSet: on which nodes they may run, and what the controller adds to them."""

from __future__ import annotations

from kube_in_process.components.controllers.replicasets import pod_from
from kube_in_process.components.fit import selects, tolerated, untolerated
from kube_in_process.components.objects import annotations_of, labels
from kube_in_process.components.pods import node_name
from kube_in_process.objects import Object

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NO_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def daemon_pod(workload: Object, node: str, digest: str) -> Object:
    """The pod of a DaemonSet for one node, as the controller creates it.

    The rules are those of k8s.io/kubernetes/pkg/controller/daemon/util.
    """
    pod = pod_from(workload)
    generation = annotations_of(workload).get(GENERATION)
    added = {HASH_LABEL: digest}
    if generation is not None:
        added[GENERATION_LABEL] = generation
    pod["metadata"]["labels"] = {**labels(pod), **added}
    spec = dict(pod["spec"])
    spec["tolerations"] = _tolerations(spec)
    spec["affinity"] = _only_on(spec.get("affinity") or {}, node)
    return {**pod, "spec": spec}


def _tolerations(spec: Object) -> list[Object]:
    wanted = (*_TOLERATED, _NO_NETWORK) if spec.get("hostNetwork") else _TOLERATED
    own = list(spec.get("tolerations") or ())
    more = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    return own + [toleration for toleration in more if toleration not in own]


def _only_on(affinity: Object, node: str) -> Object:
    """The affinity with the node's name in place of the required terms."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def target(pod: Object) -> str:
    """The node of a pod, or the one for which it was created; '' if it names none."""
    if node_name(pod):
        return node_name(pod)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def should_run(workload: Object, node: Object) -> tuple[bool, bool]:
    """Whether a node should have a pod, and whether a pod that is there may go on running."""
    template = workload["spec"]["template"]["spec"]
    # the node affinity of the template counts here, not the one for a single node
    if not selects({"spec": template}, node):
        return False, False
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerations = _tolerations(template)
    if untolerated(taints, tolerations) is None:
        return True, True
    expelled = any(
        taint["effect"] == "NoExecute" and not tolerated(taint, tolerations) for taint in taints
    )
    return False, not expelled
