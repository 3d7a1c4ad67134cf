"""The bill of materials of the image names every package that is in it."""

from __future__ import annotations

from generate.sbom import Package
from image.debian_lock import DebianPackage
from image.sbom import make_image_bill

WHEEL = Package("aiohttp", "3.14", "", frozenset({"claimctl"}))
DEBIAN = DebianPackage("libstdc++6", "1:12.2+b1", "amd64", "ab")


def test_wheels_and_debian_packages_are_components() -> None:
    bill = make_image_bill([WHEEL], [DEBIAN], "sha256:abc")
    assert bill["metadata"]["component"]["name"] == "claimctl"
    assert bill["metadata"]["properties"] == [
        {"name": "oci:manifest:digest", "value": "sha256:abc"}
    ]
    assert [each["purl"] for each in bill["components"]] == [
        "pkg:pypi/aiohttp@3.14",
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2%2Bb1?arch=amd64&distro=debian-12",
    ]
    assert bill["components"][1]["hashes"] == [{"alg": "SHA-256", "content": "ab"}]


def test_every_reference_is_one_of_a_component() -> None:
    bill = make_image_bill([WHEEL], [DEBIAN], "sha256:abc")
    references = [each["bom-ref"] for each in bill["components"]]
    root = bill["metadata"]["component"]["bom-ref"]
    assert [each["ref"] for each in bill["dependencies"]] == [root, *references]
