"""PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors, names
from claimctl.embedded.errors import FieldError
from claimctl.embedded.go_text import Struct, go_text
from claimctl.embedded.options import Features
from claimctl.embedded.strategy import Context, Strategy

Object = dict[str, Any]
_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_SPEC: Struct = {
    "MinAvailable": None,
    "Selector": None,
    "MaxUnavailable": None,
    "UnhealthyPodEvictionPolicy": None,
}


class BudgetStrategy(Strategy):
    """Nobody looks at the metadata of a budget."""

    name_check = staticmethod(names.path_segment)
    standard_finalizers = False
    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for key in _COUNTERS:
            status.setdefault(key, 0)

    def prepare_create(self, obj: Object, context: Context) -> None:
        super().prepare_create(obj, context)
        obj["status"] = dict.fromkeys(_COUNTERS, 0)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        spec = obj["spec"]
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            text = "minAvailable and maxUnavailable cannot be both set"
            return [errors.invalid_text("spec", go_text(spec, _SPEC), text)]
        return []
