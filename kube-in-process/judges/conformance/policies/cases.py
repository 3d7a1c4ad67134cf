"""The policies and pods, and the recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

NAMESPACE = "ns"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
_GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{_GROUP}/mutatingadmissionpolicies"
BINDINGS = f"{_GROUP}/mutatingadmissionpolicybindings"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """A policy that concerns one pod only."""

    case: str
    given: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.case.lower().replace(" ", "-")

    @property
    def policy(self) -> Object:
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
        }
        constraints = {
            "objectSelector": {"matchLabels": {"case": self.name}},
            "resourceRules": [rule],
        }
        spec = {
            "matchConstraints": constraints,
            "mutations": [_mutation(mutation) for mutation in self.given["mutations"]],
            "reinvocationPolicy": "IfNeeded",
            **self.given.get("spec", {}),
        }
        return {"metadata": {"name": self.name}, "spec": spec}

    @property
    def binding(self) -> Object:
        return {"metadata": {"name": self.name}, "spec": {"policyName": self.name}}

    @property
    def pod(self) -> Object:
        given = self.given.get("pod", {})
        meta = {"name": "p", "labels": {"case": self.name}}
        if "annotations" in given:
            meta["annotations"] = given["annotations"]
        spec = {"containers": [{"name": "c", "image": "i"}]}
        if "resourceClaims" in given:
            spec["resourceClaims"] = given["resourceClaims"]
        return {"metadata": meta, "spec": spec}


def _mutation(given: Any) -> Object:
    if isinstance(given, str):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": given}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": given["apply"]}}


@lru_cache(maxsize=1)
def cases() -> tuple[PolicyCase, ...]:
    """All cases, in the order of the file."""
    text = files(__package__).joinpath("cases.yaml").read_text(encoding="utf-8")
    return tuple(PolicyCase(case["case"], case) for case in yaml.safe_load(text))


def recording_of(version: str) -> Path:
    """The file with the answers of a version, such as '1.36'."""
    return _HERE / f"v{version}.json"


def recorded(version: str) -> dict[str, list[str]]:
    """What is said of each policy, and, if that was taken, of its pod."""
    return dict(json.loads(recording_of(version).read_text(encoding="utf-8")))


def shown(status: int, body: Any) -> str:
    """An answer as it is compared: of a refusal the message, of a pod what policies change."""
    if body.get("kind") == "Status":
        return f"{status} {body.get('reason')} {body.get('message')}"
    if body.get("kind") != "Pod":
        return str(status)
    changed = {
        "annotations": body["metadata"].get("annotations"),
        "resourceClaims": body["spec"].get("resourceClaims"),
    }
    return f"{status} {json.dumps(changed, sort_keys=True, ensure_ascii=False)}"
