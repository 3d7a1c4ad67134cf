"""The manifests of ``crds/``, ``rbac/`` and ``deploy/``, from the package's own copy.

A wheel has them in ``claimctl/_manifests``. An editable installation reads them in the repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from claimctl import __version__
from claimctl.cli.errors import CommandFailed
from claimctl.commands.install.rescheduling import Rescheduling, containers, filled_in
from claimctl.wire.base import Object
from claimctl.yaml_text import all_loaded

NAMESPACE = "claimctl-system"
"""The namespace in the files."""
IMAGE = "claimctl"
"""The image in the files, a name that ``Choice.image`` replaces."""
DEFAULT_IMAGE = f"{IMAGE}:{__version__}"
ALERTS = "PrometheusRule"
ALERT = "{alert}"
"""Stands for the name of an alert in the URL of its page."""
BASE = ("crds", "rbac", "controller")
"""The components of an ordinary installation, in the order in which they are applied."""
FOLDERS = {
    "crds": "crds",
    "rbac": "rbac",
    "controller": "deploy",
    "monitoring": "deploy/components/monitoring",
    "network-policy": "deploy/components/network-policy",
    "admission-policy": "deploy/components/admission-policy",
    "pod-deletion": "deploy/components/pod-deletion",
    "sticky-claims": "deploy/components/sticky-claims",
    "limits": "deploy/components/limits",
    "workloads": "deploy/components/workloads",
    "avoidance": "deploy/rescheduler/avoidance",
}
"""The folder of each component."""
RESCHEDULER_FOLDERS = {
    "rescheduler-rights": "rbac/rescheduler",
    "rescheduler": "deploy/rescheduler/base",
    "rescheduler-cronjob": "deploy/rescheduler/cronjob",
    "rescheduler-loop": "deploy/rescheduler/loop",
}
"""The folders of the parts of ``claimctl reschedule``, which ``Choice.rescheduling`` chooses."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which components are wanted, and what is changed in them."""

    components: tuple[str, ...] = BASE
    namespace: str = NAMESPACE
    image: str = DEFAULT_IMAGE
    runbook_url: str = ""
    """Where the pages of the alerts are: a URL in which ``{alert}`` stands for the name of an
    alert; '' for alerts without a link."""
    rescheduling: Rescheduling | None = None
    """How ``claimctl reschedule`` runs in the cluster; None: it does not."""

    @property
    def needs_image(self) -> bool:
        return "controller" in self.components or self.rescheduling is not None


def chosen(choice: Choice) -> list[Object]:
    """The documents of the components, in the order in which they can be applied."""
    wanted = [component for component in FOLDERS if component in choice.components]
    made = [document for component in wanted for document in documents(component)]
    if (rescheduling := choice.rescheduling) is not None:
        for component in rescheduling.components:
            made += (filled_in(document, rescheduling) for document in documents(component))
    for document in made:
        for container in containers(document):
            if container["image"] == IMAGE:
                container["image"] = choice.image
        if choice.runbook_url and document["kind"] == ALERTS:
            for rule in (rule for group in document["spec"]["groups"] for rule in group["rules"]):
                link = choice.runbook_url.replace(ALERT, rule["alert"])
                rule["annotations"]["runbook_url"] = link
    return [_move(document, choice.namespace) for document in made]


def documents(component: str) -> list[Object]:
    """The documents of one component, or of one part of the rescheduler, as they are in files."""
    folder = _root()
    for part in (FOLDERS | RESCHEDULER_FOLDERS)[component].split("/"):
        folder = folder / part
    # what the folder's kustomization lists, without other folders
    (listed,) = _read(folder / "kustomization.yaml")
    names = [name for name in listed["resources"] if name.endswith(".yaml") and "/" not in name]
    return [document for name in names for document in _read(folder / name)]


def _read(file: Traversable) -> list[Object]:
    return list(all_loaded(file.read_text(encoding="utf-8")))


def every_document(namespace: str) -> list[Object]:
    """The documents of all components and of all parts of the rescheduler, in their order."""
    return [
        _move(document, namespace)
        for component in FOLDERS | RESCHEDULER_FOLDERS
        for document in documents(component)
    ]


def _root() -> Traversable:
    packed = files("claimctl") / "_manifests"
    if packed.is_dir():
        return packed
    repository = Path(__file__).parents[3]
    if (repository / "crds").is_dir() and (repository / "deploy").is_dir():
        return repository
    raise CommandFailed("this installation of claimctl has no manifests: install its wheel")


def _move(value: Any, namespace: str) -> Any:
    """A document in another namespace: every field whose value is the namespace of the files."""
    if isinstance(value, dict):
        return {key: _move(part, namespace) for key, part in value.items()}
    if isinstance(value, list):
        return [_move(part, namespace) for part in value]
    return namespace if value == NAMESPACE else value
