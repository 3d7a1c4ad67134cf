"""The bill of materials of the image: claimctl, its wheels, and the packages of Debian."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from generate.sbom import Package, bill
from image.debian_lock import DebianPackage

Json = dict[str, Any]


def make_image_bill(wheels: list[Package], debian: list[DebianPackage], manifest: str) -> Json:
    """The bill (CycloneDX 1.6) of the image with the digest ``manifest``."""
    made = bill(wheels)
    made["components"] += [_component(each) for each in debian]
    made["dependencies"] += [{"ref": _reference(each), "dependsOn": []} for each in debian]
    properties = [{"name": "oci:manifest:digest", "value": manifest}]
    made["metadata"]["properties"] = properties
    return made


def _reference(package: DebianPackage) -> str:
    name, version = quote(package.name), quote(package.version)
    return f"pkg:deb/debian/{name}@{version}?arch={package.architecture}&distro=debian-12"


def _component(package: DebianPackage) -> Json:
    return {
        "type": "library",
        "bom-ref": _reference(package),
        "name": package.name,
        "version": package.version,
        "purl": _reference(package),
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }
