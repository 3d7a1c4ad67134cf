"""Deployments, ReplicaSets, StatefulSets and DaemonSets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.defaults import workloads as defaults
from claimctl.embedded.errors import FieldError
from claimctl.embedded.options import Features
from claimctl.embedded.selectors import selects
from claimctl.embedded.strategy import Context, Strategy
from claimctl.embedded.validation.pod_specs import validate_pod_spec

Object = dict[str, Any]
_STATEFUL = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_STATEFUL_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_DAEMON_STATUS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


@dataclass(frozen=True)
class WorkloadStrategy(Strategy):
    """A kind that makes pods from a template.

    ``always`` are status counters that are there when they are zero, ``sometimes`` those that
    are not; ``times`` are the times of its conditions; ``annotations`` says that a change of
    annotations raises the generation.
    """

    default_spec: Callable[[Object], None]
    always: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    times: tuple[str, ...] = ("lastTransitionTime",)
    annotations: bool = False

    def default(self, obj: Object, features: Features) -> None:
        self.default_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in self.sometimes:
            if status.get(key) == 0:
                del status[key]
        for key in self.always:
            status.setdefault(key, 0)
        defaults.default_conditions(status, self.times)

    def prepare_create(self, obj: Object, context: Context) -> None:
        super().prepare_create(obj, context)
        obj["status"] = dict.fromkeys(self.always, 0)

    def spec_changed(self, new: Object, old: Object) -> bool:
        if super().spec_changed(new, old):
            return True
        before, after = old["metadata"], new["metadata"]
        return self.annotations and before.get("annotations") != after.get("annotations")

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return validate_template(obj["spec"])

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        if context.subresource == "status" or new["spec"] == old["spec"]:
            return []
        found = validate_template(new["spec"])
        if new["spec"].get("selector") != old["spec"].get("selector"):
            shown = new["spec"].get("selector")
            found.append(errors.invalid_value("spec.selector", shown, "field is immutable"))
        return found


@dataclass(frozen=True)
class DeploymentStrategy(WorkloadStrategy):
    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        """Annotations pass through /status: that is how the controller sets the revision."""
        annotations = new["metadata"].get("annotations")
        super().prepare_update(new, old, context)
        if context.subresource == "status" and annotations is not None:
            new["metadata"]["annotations"] = annotations


@dataclass(frozen=True)
class StatefulSetStrategy(WorkloadStrategy):
    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        if context.subresource == "status" or new["spec"] == old["spec"]:
            return []
        if _fixed(new["spec"]) != _fixed(old["spec"]):
            return [errors.forbidden_field("spec", _STATEFUL)]
        return validate_template(new["spec"])


def _fixed(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_MUTABLE}


def validate_template(spec: Object) -> list[FieldError]:
    """The selector, the template's labels and its pod spec."""
    found: list[FieldError] = []
    if spec.get("replicas", 0) < 0:
        text = "must be greater than or equal to 0"
        found.append(errors.invalid_value("spec.replicas", spec["replicas"], text))
    selector = spec.get("selector")
    if selector is None:
        found.append(errors.required("spec.selector"))
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        text = "empty selector is invalid for deployment"
        found.append(errors.invalid_value("spec.selector", selector, text))
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None or not selects(selector, labels or {}):
        text = "`selector` does not match template `labels`"
        found.append(errors.invalid_value("spec.template.metadata.labels", labels, text))
    found += validate_pod_spec(template["spec"], "spec.template.spec")
    policy = template["spec"]["restartPolicy"]
    if policy != "Always":
        where = "spec.template.spec.restartPolicy"
        found.append(errors.not_supported(where, policy, ("Always",)))
    return found


DEPLOYMENTS = DeploymentStrategy(
    defaults.default_deployment,
    sometimes=(
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "observedGeneration",
        "collisionCount",
    ),
    times=("lastUpdateTime", "lastTransitionTime"),
    annotations=True,
)
REPLICASETS = WorkloadStrategy(
    defaults.default_replica_set,
    always=("replicas",),
    sometimes=(
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ),
)
STATEFULSETS = StatefulSetStrategy(
    defaults.default_stateful_set,
    always=("replicas", "availableReplicas"),
    sometimes=("readyReplicas", "currentReplicas", "updatedReplicas", "observedGeneration"),
)
DAEMONSETS = WorkloadStrategy(defaults.default_daemon_set, always=_DAEMON_STATUS)
