"""Warnings about valid pods, and about kinds with a pod template."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import ClassVar

from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.text import names
from kube_in_process.text.quantity import number

_IN_BYTES = ("memory", "ephemeral-storage")
_NAMES_PODS = ("cronjobs", "deployments", "jobs", "replicasets")
"""Kinds whose names are part of the names of their pods."""


class TemplateStrategy(Strategy):
    """A kind that makes pods from a template; ``pod_spec`` is the path of the template's spec."""

    pod_spec: ClassVar[tuple[str, ...]] = ("spec", "template", "spec")

    def warn(self, obj: Object, context: WriteContext) -> None:
        if context.kind.plural in _NAMES_PODS:
            context.warnings.extend(_name_warnings(obj, "Pod names and hostnames"))
        self._warn_of_template(obj, context)

    def warn_of_change(self, new: Object, old: Object, context: WriteContext) -> None:
        if new["metadata"].get("generation") != old["metadata"].get("generation"):
            self._warn_of_template(new, context)

    def _warn_of_template(self, obj: Object, context: WriteContext) -> None:
        spec = reduce(lambda value, key: value.get(key) or {}, self.pod_spec, obj)
        context.warnings.extend(spec_warnings(spec, ".".join(self.pod_spec)))


def pod_warnings(pod: Object) -> list[str]:
    """Warnings about a new pod: a name that is no DNS label, and its spec."""
    return [*_name_warnings(pod, "the Pod's hostname"), *spec_warnings(pod["spec"], "spec")]


def _name_warnings(obj: Object, used_in: str) -> list[str]:
    wrong = names.label(obj["metadata"].get("name", ""))
    text = f"metadata.name: this is used in {used_in}, which can result in surprising behavior"
    return [f"{text}; a DNS label is recommended: [{' '.join(wrong)}]"] if wrong else []


def spec_warnings(spec: Object, path: str) -> list[str]:
    warnings: list[str] = []
    containers = list(_containers(spec, path))
    for container, where in containers:
        warnings += _fractions(container.get("resources") or {}, f"{where}.resources")
        warnings += _hidden(container.get("env") or [], f"{where}.env")
    warnings += _repeated_ports(containers)
    warnings += _repeated_names(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{path}.terminationGracePeriodSeconds: {text}")
    return warnings


def _containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            yield container, f"{path}.{kind}[{index}]"


def _fractions(resources: Object, path: str) -> list[str]:
    return [
        f'{path}.{key}[{name}]: fractional byte value "{value}" is invalid, must be an integer'
        for name in _IN_BYTES
        for key in ("limits", "requests")
        if (value := (resources.get(key) or {}).get(name)) is not None and number(value) % 1
    ]


def _hidden(variables: list[Object], path: str) -> list[str]:
    """Variables that are set again without a reference to their first value."""
    seen: set[str] = set()
    warnings: list[str] = []
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        own = f"$({name})"
        if name in seen and (variable.get("valueFrom") or value == own or own not in value):
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            warnings.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return warnings


def _repeated_ports(containers: list[tuple[Object, str]]) -> list[str]:
    warnings: list[str] = []
    known: dict[tuple[int, str], list[tuple[Object, str]]] = {}
    for port, where in _ports(containers):
        key = (port.get("containerPort", 0), port.get("protocol", ""))
        for other, place in known.get(key, []):
            clash = _clash(port, other)
            if clash:
                warnings.append(f"{where}: {clash} port definition with {place}")
        known.setdefault(key, []).append((port, where))
    return warnings


def _ports(containers: list[tuple[Object, str]]) -> Iterator[tuple[Object, str]]:
    for container, where in containers:
        for index, port in enumerate(container.get("ports") or []):
            yield port, f"{where}.ports[{index}]"


def _clash(port: Object, other: Object) -> str:
    first, second = port.get("hostPort", 0), other.get("hostPort", 0)
    addresses = port.get("hostIP", ""), other.get("hostIP", "")
    if first == second and addresses[0] == addresses[1]:
        return "duplicate"
    if not first or not second:
        return "overlapping"
    return "dangerously ambiguous" if first == second and not all(addresses) else ""


def _repeated_names(containers: list[tuple[Object, str]]) -> list[str]:
    warnings: list[str] = []
    known: dict[str, str] = {}
    for port, where in _ports(containers):
        name = port.get("name")
        if name and name in known:
            warnings.append(
                f'{where}: duplicate port name "{name}" with {known[name]}, services and probes '
                f"that select ports by name will use {known[name]}"
            )
        elif name:
            known[name] = where
    return warnings
