"""Packs the manifests into the wheel, where ``claimctl`` can find them after an installation."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Manifests(BuildHookInterface[Any]):
    """Not for editable installations: there the files are read where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {
                directory: f"claimctl/_manifests/{directory}"
                for directory in ("crds", "rbac", "deploy")
            }
