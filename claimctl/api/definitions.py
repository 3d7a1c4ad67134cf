"""The CustomResourceDefinitions of claimctl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from claimctl.api import claimreservation, downgradeplan
from claimctl.api.common import GROUP, VERSION
from claimctl.api.structural import structural_schema
from claimctl.wire.resources import CLAIMRESERVATIONS, DOWNGRADEPLANS, Resource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: its resource, its model, and its columns in kubectl."""

    resource: Resource[Any]
    model: type[BaseModel]
    short_names: tuple[str, ...]
    columns: list[Json]

    @property
    def name(self) -> str:
        return f"{self.resource.plural}.{self.resource.group}"

    def names(self) -> Json:
        return {
            "kind": self.resource.kind,
            "listKind": f"{self.resource.kind}List",
            "plural": self.resource.plural,
            "singular": self.resource.kind.lower(),
            "shortNames": list(self.short_names),
            "categories": ["claimctl"],
        }

    def version(self) -> Json:
        return {
            "name": VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": self.columns,
            "schema": {"openAPIV3Schema": structural_schema(self.model)},
        }

    def document(self) -> Json:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/part-of": "claimctl"}},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.resource.namespaced else "Cluster",
                "names": self.names(),
                "versions": [self.version()],
            },
        }


DEFINITIONS = (
    Definition(
        resource=CLAIMRESERVATIONS,
        model=claimreservation.ClaimReservation,
        short_names=("crsv",),
        columns=claimreservation.PRINTER_COLUMNS,
    ),
    Definition(
        resource=DOWNGRADEPLANS,
        model=downgradeplan.DowngradePlan,
        short_names=("dgp",),
        columns=downgradeplan.PRINTER_COLUMNS,
    ),
)


def custom_resource_definitions() -> list[Json]:
    """All CRDs as plain documents."""
    return [definition.document() for definition in DEFINITIONS]
