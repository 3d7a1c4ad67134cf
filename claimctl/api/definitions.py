"""The CustomResourceDefinitions of claimctl."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from claimctl import __version__
from claimctl.api import claimreservation, downgradeplan, reschedulerecord
from claimctl.api.common import GROUP, VERSION
from claimctl.api.structural import structural_schema
from claimctl.wire.resources import CLAIMRESERVATIONS, DOWNGRADEPLANS, RESCHEDULERECORDS, Resource

Json = dict[str, Any]

_COLUMNS = json.loads(files(__package__).joinpath("printer_columns.json").read_text())
"""The columns of kubectl."""
_SELECTABLE = {"claimreservations": (".spec.resourceClaimName", ".spec.workloadRef.name")}
LABELS = {
    "app.kubernetes.io/name": "claimctl",
    "app.kubernetes.io/part-of": "claimctl",
    "app.kubernetes.io/version": __version__,
}
"""The labels of the CRDs. By the version an installer knows whether its own CRDs are older."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: its resource and its model."""

    resource: Resource[Any]
    model: type[BaseModel]
    short_name: str

    @property
    def name(self) -> str:
        return f"{self.resource.plural}.{self.resource.group}"

    def names(self) -> Json:
        return {
            "kind": self.resource.kind,
            "listKind": f"{self.resource.kind}List",
            "plural": self.resource.plural,
            "singular": self.resource.kind.lower(),
            "shortNames": [self.short_name],
            "categories": ["claimctl"],
        }

    def _selectable(self) -> Json:
        """The fields of field selectors (stable since Kubernetes 1.32)."""
        paths = _SELECTABLE.get(self.resource.plural, ())
        return {"selectableFields": [{"jsonPath": path} for path in paths]} if paths else {}

    def version(self) -> Json:
        return {
            "name": VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": _COLUMNS[self.resource.plural],
            **self._selectable(),
            "schema": {"openAPIV3Schema": structural_schema(self.model)},
        }

    def document(self) -> Json:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name, "labels": LABELS},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.resource.namespaced else "Cluster",
                "names": self.names(),
                "versions": [self.version()],
            },
        }


DEFINITIONS = (
    Definition(CLAIMRESERVATIONS, claimreservation.ClaimReservation, "crsv"),
    Definition(DOWNGRADEPLANS, downgradeplan.DowngradePlan, "dgp"),
    Definition(RESCHEDULERECORDS, reschedulerecord.RescheduleRecord, "rrec"),
)


def custom_resource_definitions() -> list[Json]:
    """All CRDs as plain documents."""
    return [definition.document() for definition in DEFINITIONS]
