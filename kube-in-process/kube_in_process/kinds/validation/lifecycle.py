"""Evictions and EvictionRequests of lifecycle.k8s.io (KEP-4563, alpha in 1.37).

They are served as objects: no emulated controller answers them. The rules are those of the
descriptions in the API module.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.conditions import condition_errors
from kube_in_process.kinds.validation.groups import unchanged
from kube_in_process.objects import Object

_INTENTS = ("Eviction", "Withdrawn")


@dataclass(frozen=True)
class EvictionStrategy(Strategy):
    """``immutable`` are the fields of the spec that an update may not change."""

    immutable: tuple[str, ...] = ("target",)

    def default(self, obj: Object, features: object) -> None:
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = {}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = [] if spec["target"].get("pod") else [errors.required("spec.target.pod")]
        if context.kind.kind == "EvictionRequest" and spec["intent"] not in _INTENTS:
            field_errors.append(errors.not_supported("spec.intent", spec["intent"], _INTENTS))
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return condition_errors(new["status"].get("conditions") or [], "status.conditions")
        fixed = unchanged(new["spec"], old["spec"], self.immutable)
        return [*fixed, *self.validate(new, context)]
