"""Packs the manifests into the wheel, and makes the README one that can be read on an index."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)]+)\)")


class Manifests(BuildHookInterface[Any]):
    """``claimctl`` finds the manifests in the package after an installation.

    Not for editable installations: there the files are read where they are.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {
                directory: f"claimctl/_manifests/{directory}"
                for directory in ("crds", "rbac", "deploy")
            }
            # what `make release` has written for its wheel
            if extras := os.environ.get("CLAIMCTL_WHEEL_EXTRAS"):
                build_data["shared_data"][f"{extras}/man"] = "share/man/man1"
                build_data["sbom_files"].append(f"{extras}/claimctl.cdx.json")


class Readme(MetadataHookInterface):
    """The README as the long description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        repository = settings["tool"]["claimctl"]["repository"]
        text = for_index((root / "README.md").read_text(encoding="utf-8"), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def for_index(text: str, repository: str) -> str:
    """A page with links that work outside of the repository.

    Args:
        repository: the URL of the repository; '' if the package does not know it: then a link into
            the repository becomes its text, and a picture is left out.
    """

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if repository:
            return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/HEAD/{path})"
        return "" if picture else words

    return _LINK.sub(link, text)
