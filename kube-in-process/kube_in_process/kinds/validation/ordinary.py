"""Kinds whose defaults and rules are functions of the object alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names


def nothing(obj: Object) -> None:
    """No defaults."""


def no_errors(obj: Object) -> list[FieldError]:
    return []


def no_changes(new: Object, old: Object) -> list[FieldError]:
    return []


@dataclass(frozen=True)
class OrdinaryStrategy(Strategy):
    """``rules`` returns the errors of an object, ``changes`` those of a change. ``ruled_again``: a
    change is checked by ``rules``, too, before ``changes``. ``status_rules`` returns the errors of
    a write through /status. ``begins`` is the status of a new object."""

    revalidates = False
    status_keeps: ClassVar[tuple[str, ...]] = ()
    rules: Callable[[Object], list[FieldError]]
    defaults: Callable[[Object], None] = nothing
    changes: Callable[[Object, Object], list[FieldError]] = no_changes
    ruled_again: bool = True
    status_rules: Callable[[Object], list[FieldError]] = no_errors
    begins: Mapping[str, Any] | None = None
    name_check: Callable[[str], list[str]] = field(default=names.subdomain)

    def default(self, obj: Object, features: Features) -> None:
        self.defaults(obj)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        if self.begins is not None:
            obj["status"] = {key: _copied(value) for key, value in self.begins.items()}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self.rules(obj)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return self.status_rules(new)
        again = self.rules(new) if self.ruled_again else []
        return [*again, *self.changes(new, old)]


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def immutable(new: Object, old: Object, keys: tuple[str, ...], path: str = "") -> list[FieldError]:
    """The errors of fields that may not change, in the order of the keys."""
    return [
        errors.invalid_value(f"{path}{key}", new.get(key), "field is immutable")
        for key in keys
        if (new.get(key) or None) != (old.get(key) or None)
    ]
