"""Validation of Leases."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object


class LeaseStrategy(Strategy):
    standard_finalizers = False
    revalidates = False

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj.setdefault("spec", {})
        field_errors: list[FieldError] = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            path = "spec.leaseDurationSeconds"
            field_errors.append(errors.invalid_value(path, duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            text = "must be greater than or equal to 0"
            field_errors.append(errors.invalid_value("spec.leaseTransitions", transitions, text))
        return field_errors
