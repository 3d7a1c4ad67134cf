"""What is odd about pods and templates that are valid."""

from __future__ import annotations

from claimctl.embedded.text import names
from claimctl.wire.base import Object

_HOSTNAME = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
    "a DNS label is recommended"
)


def pod_warnings(pod: Object) -> list[str]:
    """Of a new pod: a name that is no label, and variables that come twice."""
    wrong = names.label(pod["metadata"].get("name", ""))
    said = [f"{_HOSTNAME}: [{' '.join(wrong)}]"] if wrong else []
    return [*said, *_spec_warnings(pod["spec"], "spec")]


def template_warnings(template: Object, path: str) -> list[str]:
    return _spec_warnings(template.get("spec") or {}, f"{path}.spec")


def _spec_warnings(spec: Object, path: str) -> list[str]:
    said: list[str] = []
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            said += _hidden(container.get("env") or [], f"{path}.{kind}[{index}].env")
    return said


def _hidden(variables: list[Object], path: str) -> list[str]:
    seen: set[str] = set()
    said: list[str] = []
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen:
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            said.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return said
