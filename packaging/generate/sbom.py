"""Software bills of materials (CycloneDX 1.6), made from the lock files.

The wheel carries the one of ``requirements.lock`` (PEP 770), the image that of
``requirements-image.lock``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from claimctl import __version__
from generate.image import dependencies

ROOT = Path(__file__).parents[2]
FILES = {
    Path("sbom/claimctl.cdx.json"): "requirements.lock",
    Path("sbom/claimctl-image.cdx.json"): "requirements-image.lock",
}
"""Each bill with its lock file."""
_ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; ([^\\]+?))? \\")
_VIA = re.compile(r"^ +#(?: via)? +([A-Za-z0-9._-]+)$", re.MULTILINE)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package: the condition on the platform, and which packages need it."""

    name: str
    version: str
    condition: str
    needed_by: frozenset[str]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def packages(lock: str) -> list[Package]:
    """The packages of a lock file; raises ValueError for an entry that is no pin."""
    found = []
    for entry in _ENTRY.split(lock):
        if entry[:1] in ("", "#"):
            continue
        pin = _PIN.match(entry)
        if pin is None:
            raise ValueError(f"not a pin: {entry.splitlines()[0]}")
        name, version, condition = pin.groups()
        found.append(Package(name, version, condition or "", frozenset(_VIA.findall(entry))))
    return found


def bill(found: list[Package]) -> Json:
    """The bill of materials of claimctl with these packages. It has no time and no random id."""
    direct = {Requirement(each).name for each in dependencies()}
    root = f"pkg:pypi/claimctl@{__version__}"
    component = {"type": "application", "bom-ref": root, "name": "claimctl", "purl": root}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                **component,
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_component(each) for each in found],
        "dependencies": [
            {"ref": root, "dependsOn": [each.reference for each in found if each.name in direct]},
            *(
                {
                    "ref": each.reference,
                    "dependsOn": [e.reference for e in found if each.name in e.needed_by],
                }
                for each in found
            ),
        ],
    }


def _component(package: Package) -> Json:
    made: Json = {
        "type": "library",
        "bom-ref": package.reference,
        "name": package.name,
        "version": package.version,
        "purl": package.reference,
    }
    if package.condition:
        made["properties"] = [{"name": "python:marker", "value": package.condition}]
    return made


def rendered() -> dict[Path, str]:
    """The bills, by their paths in the repository."""
    return {
        path: json.dumps(bill(packages((ROOT / lock).read_text())), indent=1) + "\n"
        for path, lock in FILES.items()
    }
