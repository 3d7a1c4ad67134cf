"""The CustomResourceDefinitions of claimctl, from its structs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from claimctl import __version__
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    WORKLOADKINDS,
    Resource,
)
from claimctl.yaml_text import dumped
from claimctl_reschedule.shapes.records import RESCHEDULERECORDS
from generate.structural import structural_schema

Json = dict[str, Any]

HEADER = "# Generated from claimctl's structs by `make generate`; do not edit.\n"
LABELS = {
    "app.kubernetes.io/name": "claimctl",
    "app.kubernetes.io/part-of": "claimctl",
    "app.kubernetes.io/version": __version__,
}
"""The labels of the CRDs. By the version an installer knows whether its own CRDs are older."""
_COLUMNS = json.loads(Path(__file__).with_name("printer_columns.json").read_text())
"""The columns of kubectl."""
_SELECTABLE = {"claimreservations": (".spec.resourceClaimName", ".spec.workloadRef.name")}
_SHORT_NAMES: dict[Resource[Any], str] = {
    CLAIMRESERVATIONS: "crsv",
    DOWNGRADEPLANS: "dgp",
    RESCHEDULERECORDS: "rrec",
    WORKLOADKINDS: "wlk",
}
_NAMED_LIKE_ITS_CRD = {
    "message": "the name has to be that of the kind's CustomResourceDefinition: plural.group",
    "rule": "self.metadata.name.endsWith('.' + self.spec.group)",
}
_ONE_PLAN = {
    "message": f"there is one DowngradePlan at a time, and its name is {DOWNGRADE_PLAN_NAME}",
    "rule": f"self.metadata.name == '{DOWNGRADE_PLAN_NAME}'",
}


def rendered() -> dict[Path, str]:
    """The text of each file, by its path in the repository."""
    return {
        Path("crds", f"{document['metadata']['name']}.yaml"): HEADER + dumped(document)
        for document in custom_resource_definitions()
    }


def custom_resource_definitions() -> list[Json]:
    """All CRDs as plain documents."""
    return [_definition(resource) for resource in _SHORT_NAMES]


def _definition(resource: Resource[Any]) -> Json:
    names = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": [_SHORT_NAMES[resource]],
        "categories": ["claimctl"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}", "labels": LABELS},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": names,
            "versions": [_version(resource)],
        },
    }


def _version(resource: Resource[Any]) -> Json:
    # field selectors for custom resources are stable since Kubernetes 1.32
    selectable = [{"jsonPath": path} for path in _SELECTABLE.get(resource.plural, ())]
    return {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _COLUMNS[resource.plural],
        **({"selectableFields": selectable} if selectable else {}),
        "schema": {"openAPIV3Schema": _schema(resource)},
    }


def _schema(resource: Resource[Any]) -> Json:
    schema = structural_schema(resource.type)
    rule = {DOWNGRADEPLANS: _ONE_PLAN, WORKLOADKINDS: _NAMED_LIKE_ITS_CRD}.get(resource)
    if rule is not None:
        properties = schema.pop("properties")
        schema |= {"x-kubernetes-validations": [rule], "properties": properties}
    return schema
