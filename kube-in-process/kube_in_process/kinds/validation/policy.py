"""Validation of PodDisruptionBudgets."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.amounts import not_negative
from kube_in_process.kinds.validation.conditions import condition_errors
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.kinds.validation.workload_specs import at_most_all, int_or_percent
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class BudgetStrategy(Strategy):
    """The metadata of a budget is not checked."""

    name_check = staticmethod(names.path_segment)
    standard_finalizers = False
    status_alone = True
    revalidates = False
    validates_metadata = False
    status_keeps = ()

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for key in _COUNTERS:
            status.setdefault(key, 0)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = dict.fromkeys(_COUNTERS, 0)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = [
            *int_or_percent(spec.get("minAvailable"), "spec.minAvailable"),
            *at_most_all(spec.get("minAvailable"), "spec.minAvailable"),
            *int_or_percent(spec.get("maxUnavailable"), "spec.maxUnavailable"),
            *at_most_all(spec.get("maxUnavailable"), "spec.maxUnavailable"),
            *label_selector(spec.get("selector") or {}, "spec.selector"),
        ]
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (*_POLICIES, None):
            path = "spec.unhealthyPodEvictionPolicy"
            field_errors.append(errors.not_supported(path, policy, _POLICIES))
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            text = "minAvailable and maxUnavailable cannot be both set"
            shown = go_text(spec, STRUCTS["disruption_budget_spec"])
            return [errors.invalid_text("spec", shown, text), *field_errors]
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource != "status":
            return self.validate(new, context)
        conditions = condition_errors(new["status"].get("conditions") or [], "status.conditions")
        return [*conditions, *not_negative(new["status"], _COUNTERS, "status")]
