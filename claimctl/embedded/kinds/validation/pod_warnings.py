"""Warnings about valid pods and templates."""

from __future__ import annotations

from claimctl.embedded.text import names
from claimctl.wire.base import Object

_HOSTNAME = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
    "a DNS label is recommended"
)


def pod_warnings(pod: Object) -> list[str]:
    """Warnings about a new pod: a name that is no DNS label, repeated variables."""
    wrong = names.label(pod["metadata"].get("name", ""))
    warnings = [f"{_HOSTNAME}: [{' '.join(wrong)}]"] if wrong else []
    return [*warnings, *spec_warnings(pod["spec"], "spec")]


def spec_warnings(spec: Object, path: str) -> list[str]:
    warnings: list[str] = []
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            warnings += _hidden(container.get("env") or [], f"{path}.{kind}[{index}].env")
    return warnings


def _hidden(variables: list[Object], path: str) -> list[str]:
    seen: set[str] = set()
    warnings: list[str] = []
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen:
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            warnings.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return warnings
