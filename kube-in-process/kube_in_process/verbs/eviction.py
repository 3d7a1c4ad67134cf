"""POST pods/NAME/eviction: a deletion that a PodDisruptionBudget can refuse."""

from __future__ import annotations

from msgspec.structs import replace

from kube_in_process import errors
from kube_in_process.errors import StatusError, Subject, bad_request
from kube_in_process.kinds.namespaces import admit_namespace
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor, DeleteOptions, WriteOptions
from kube_in_process.storage.selectors import parse_labels
from kube_in_process.text.label_text import selector_text
from kube_in_process.text.times import timestamp
from kube_in_process.verbs import patching, writing
from kube_in_process.verbs.deleting import Removal, delete
from kube_in_process.verbs.reading import Target, stored
from kube_in_process.verbs.writing import Write

_SERVER = Actor("system:apiserver", ("system:masters",), "kube-apiserver")
_UNASKED = WriteOptions(internal=True, admission=False)
"""What the server writes for an eviction is no request of its own."""
_ENDED = ("Succeeded", "Failed", "Pending")
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def evict(write: Write, eviction: Object) -> Object:
    """Evict a pod; the answer is a Status.

    The budget is charged before the preconditions of the deletion are checked. So an eviction that
    fails on them was charged, too.

    Raises:
        StatusError: 400, 404, 409, 429 where a budget does not allow it, 500 under two budgets.
    """
    target = write.target
    _check_names(write, eviction)
    admit_namespace(write.state.store, target.kind, target.namespace, target.name)
    pod = stored(write.state, target)
    options = _delete_options(eviction, dry_run=write.options.dry_run)
    if not _unprotected(pod):
        budget = _budget(write, pod)
        if budget is not None and not _is_unhealthy(pod, budget):
            _charge(write, budget, pod, dry_run=bool(options.dry_run))
    _check_preconditions(pod, options)
    if not options.dry_run:
        _mark_disrupted(write, pod)
    main = replace(target, subresource="")
    delete(Removal(write.state, write.actor, main, options, admission=False))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _check_names(write: Write, eviction: Object) -> None:
    meta = eviction.get("metadata") or {}
    kind, version = eviction.get("kind"), eviction.get("apiVersion")
    if kind not in (None, "Eviction"):
        short = str(version or "").rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{short}" cannot be handled as a Eviction: converting '
            f"({short}.{kind}) to (policy.Eviction): unknown conversion"
        )
    if meta.get("namespace", write.target.namespace) != write.target.namespace:
        raise bad_request(errors.OTHER_NAMESPACE)
    if meta.get("name") != write.target.name:
        raise bad_request("name in URL does not match name in Eviction object")


def _delete_options(eviction: Object, *, dry_run: bool) -> DeleteOptions:
    given = eviction.get("deleteOptions") or {}
    conditions = given.get("preconditions") or {}
    return DeleteOptions(
        uid=conditions.get("uid", ""),
        resource_version=conditions.get("resourceVersion", ""),
        propagation=given.get("propagationPolicy", ""),
        grace_period_seconds=given.get("gracePeriodSeconds"),
        dry_run=("All",) if dry_run else tuple(given.get("dryRun") or ()),
    )


def _unprotected(pod: Object) -> bool:
    """Whether budgets ignore the pod: it has ended, has not started, or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in _ENDED or bool(pod["metadata"].get("deletionTimestamp"))


def _is_unhealthy(pod: Object, budget: Object) -> bool:
    """Whether the pod may be evicted because it is not ready.

    The rule is that of k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go.
    """
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    ):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy") or 0
    return 0 < desired <= (status.get("currentHealthy") or 0)


def _budget(write: Write, pod: Object) -> Object | None:
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in write.state.store.list(
            "policy", "poddisruptionbudgets", write.target.namespace
        )
        if _selects(budget, labels)
    ]
    if len(budgets) > 1:
        raise StatusError(500, "", _TWO_BUDGETS)
    return budgets[0] if budgets else None


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    return all(one.matches(labels) for one in parse_labels(selector_text(selector)))


def _charge(write: Write, budget: Object, pod: Object, *, dry_run: bool) -> None:
    """Take one disruption from a budget, and record the pod."""
    status, meta = budget.setdefault("status", {}), budget["metadata"]
    name = meta["name"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, {"retryAfterSeconds": 10}, {"retry-after": "10"})
    if status.get("disruptionsAllowed", 0) <= 0:
        raise _too_many(_insufficient(name, status))
    if dry_run:
        return
    status["disruptionsAllowed"] -= 1
    moment = timestamp(write.state.clock.now())
    status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = moment
    if status["disruptionsAllowed"] == 0:
        _disallow(status, meta.get("generation", 0), moment)
    kind = write.state.kinds.named("poddisruptionbudgets")
    target = Target(kind, meta["namespace"], name, "status")
    writing.update(Write(write.state, _SERVER, target, "update", _UNASKED), budget)


def _insufficient(name: str, status: Object) -> str:
    if not status.get("desiredHealthy") and not status.get("expectedPods"):
        return f"The disruption budget {name} does not allow evicting pods currently"
    wanted = status.get("desiredHealthy", 0)
    healthy = status.get("currentHealthy", 0) - len(status.get("disruptedPods") or ())
    return f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"


def _disallow(status: Object, generation: int, moment: str) -> None:
    others = [c for c in status.get("conditions") or () if c["type"] != "DisruptionAllowed"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": moment,
        "reason": "InsufficientPods",
        "message": "",
    }
    status["conditions"] = [*others, condition]


def _too_many(
    why: str, more: Object | None = None, headers: dict[str, str] | None = None
) -> StatusError:
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}], **(more or {})}
    return StatusError(429, "TooManyRequests", _REFUSED, details, headers)


def _check_preconditions(pod: Object, options: DeleteOptions) -> None:
    meta = pod["metadata"]
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({meta['uid']}). The object might have been deleted and then recreated"
        )
        raise errors.conflict(Subject("", "Pod", meta["name"]), why)


def _mark_disrupted(write: Write, pod: Object) -> None:
    """Set the condition DisruptionTarget of an evicted pod."""
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or () if c["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": timestamp(write.state.clock.now()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    patch = {"status": {"conditions": [*others, condition]}}
    target = replace(write.target, subresource="status", version="")
    marked = Write(write.state, _SERVER, target, "patch", _UNASKED)
    patching.patch(marked, "merge", patch)
