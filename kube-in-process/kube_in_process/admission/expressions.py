"""Expressions of policies and match conditions, with their variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kube_in_process.admission.authorizing import FUNCTIONS, asking, root
from kube_in_process.admission.request import AdmissionRequest, AdmissionServer, namespace_of
from kube_in_process.objects import Object
from kube_in_process.text.cel import EvaluationError, Expression

_ABSENT = "no such key: "
_SHOWN_META = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "finalizers",
)


class Failed(Exception):
    """An expression failed. The text is the server's, with the expression."""


@lru_cache(maxsize=1024)
def _expression(source: str) -> Expression:
    return Expression(source, FUNCTIONS)


@dataclass(slots=True)
class Names:
    """What the expressions of a policy see. A variable is computed when it is first asked for, and
    fails only those expressions that use it."""

    values: dict[str, Any]
    variables: Mapping[str, str]
    server: AdmissionServer
    request: AdmissionRequest
    _computed: dict[str, Any] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)

    def see(self, obj: Object | None) -> None:
        """From now on, the object is another one: variables are computed anew."""
        self.values["object"] = obj
        self._computed, self._failed = {}, {}

    def value(self, source: str) -> Any:
        """The value of an expression.

        Raises:
            Failed
        """
        try:
            with asking(self.server.authorizer, self.request):
                return self._value(source)
        except (EvaluationError, ValueError) as error:
            raise Failed(f"expression '{source}' resulted in error: {error}") from error

    def _value(self, source: str) -> Any:
        names = {**self.values, "variables": self._computed}
        for name in self._used(source):
            if name in self._computed or name in self._failed:
                continue
            try:
                self._computed[name] = _expression(self.variables[name])(names)
            except (EvaluationError, ValueError) as error:
                self._failed[name] = _without_variable(str(error), self._failed)
        try:
            return _expression(source)(names)
        except EvaluationError as error:
            raise EvaluationError(_without_variable(str(error), self._failed)) from error

    def _used(self, source: str) -> Iterator[str]:
        """The variables that an expression uses, also through others, in their order."""
        wanted = {name for name in self.variables if f"variables.{name}" in source}
        for name in reversed(list(self.variables)):
            if name in wanted:
                text = self.variables[name]
                wanted |= {
                    variable for variable in self.variables if f"variables.{variable}" in text
                }
        return (name for name in self.variables if name in wanted)


def _without_variable(text: str, failed: Mapping[str, str]) -> str:
    """The error of an expression; a variable that is missing has failed itself."""
    name = text.removeprefix(_ABSENT)
    if text.startswith(_ABSENT) and name in failed:
        return f'composited variable "{name}" fails to evaluate: {failed[name]}'
    return text


def names_of(
    server: AdmissionServer,
    request: AdmissionRequest,
    params: Object | None = None,
    variables: Sequence[Object] = (),
) -> Names:
    """What the expressions about a request see."""
    namespace = namespace_of(server, request)
    values = {
        "object": request.obj,
        "oldObject": request.old,
        "request": request.document(),
        "params": params,
        "namespaceObject": None if namespace is None else _shown(namespace),
        "authorizer": root(request),
    }
    sources = {variable["name"]: variable["expression"] for variable in variables}
    return Names(values, sources, server, request)


def _shown(namespace: Object) -> Object:
    meta = namespace["metadata"]
    return {**namespace, "metadata": {key: meta[key] for key in _SHOWN_META if key in meta}}


def conditions_hold(names: Names, conditions: Sequence[Object]) -> bool:
    """Whether all match conditions are true. One that is false outweighs one that fails.

    Raises:
        Failed
    """
    failed: list[str] = []
    for condition in conditions:
        try:
            if names.value(condition["expression"]) is not True:
                return False
        except Failed as error:
            failed.append(str(error))
    if failed:
        raise Failed(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]")
    return True
