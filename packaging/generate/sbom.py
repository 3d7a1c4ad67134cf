"""Software bills of materials (CycloneDX 1.6), made from parts of the lock.

The wheel of a release carries that of the part ``claimctl`` (PEP 770), the image that of ``image``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from claimctl import __version__
from generate.locked import dependencies, entries, name_of, part

FILE = "claimctl.cdx.json"
IMAGE_FILE = "claimctl-image.cdx.json"
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; ([^\\]+?))? \\")
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
    for entry in entries(lock):
        pin = _PIN.match(entry.text)
        if pin is None:
            raise ValueError(f"not a pin: {entry.text.splitlines()[0]}")
        name, version, condition = pin.groups()
        found.append(Package(name, version, condition or "", entry.needed_by))
    return found


def bill(found: list[Package]) -> Json:
    """The bill of materials of claimctl with these packages. It has no time and no random id."""
    direct = {name_of(each) for each in dependencies()}
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


def text(name: str) -> str:
    """The bill of a part of the lock as a file."""
    return json.dumps(bill(packages(part(name))), indent=1) + "\n"
