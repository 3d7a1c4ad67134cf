"""Validation of DeviceTaintRules: taints of devices that an administrator sets."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.conditions import condition_errors
from kube_in_process.kinds.validation.device_health import taint_errors
from kube_in_process.kinds.validation.device_names import driver_name, pool_name
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.raw_json import same
from kube_in_process.text import names
from kube_in_process.text.times import timestamp


class TaintRuleStrategy(Strategy):
    """The taint is dated by the server when it is new or changes."""

    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}
        _date(obj["spec"]["taint"], context)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        taint, before = new["spec"]["taint"], old["spec"]["taint"]
        if not context.subresource and not same(taint, before):
            if taint.get("timeAdded") == before.get("timeAdded"):
                taint.pop("timeAdded", None)
            _date(taint, context)
        super().prepare_update(new, old, context)

    def spec_changed(self, new: Object, old: Object) -> bool:
        return not same(new["spec"], old["spec"])

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = _selector(spec.get("deviceSelector") or {}, context.features)
        return [*field_errors, *taint_errors(spec["taint"], "spec.taint")]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return condition_errors(new["status"].get("conditions") or [], "status.conditions")
        return self.validate(new, context)


def _date(taint: Object, context: WriteContext) -> None:
    taint.setdefault("timeAdded", timestamp(context.clock.now()))


def _selector(selector: Object, features: Features) -> list[FieldError]:
    path = "spec.deviceSelector"
    field_errors: list[FieldError] = []
    if selector.get("driver") is not None:
        field_errors += driver_name(selector["driver"], f"{path}.driver", features)
    if selector.get("pool") is not None:
        field_errors += pool_name(selector["pool"], f"{path}.pool")
    if selector.get("device") is not None:
        field_errors += errors.invalid_name(f"{path}.device", selector["device"], names.label)
    return field_errors
