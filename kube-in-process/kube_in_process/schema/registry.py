"""The schemas of all kinds, built-in and custom."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube_in_process.options import Features
from kube_in_process.schema.builtin import BuiltinSchemas, builtin_schemas
from kube_in_process.schema.structural import structural
from kube_in_process.schema.tree import Json, Schema


class Schemas:
    """Schemas by (group, version, kind). Definitions add and remove those of custom kinds."""

    def __init__(self, features: Callable[[], Features]) -> None:
        self._features = features
        self._custom: dict[tuple[str, str, str], Schema] = {}
        self._raw: dict[tuple[str, str, str], dict[str, Json]] = {}
        self._changes = 0

    @property
    def version(self) -> tuple[int, int]:
        """The emulated minor version."""
        return self._features().version

    def find(self, group: str, version: str, kind: str) -> Schema | None:
        """The schema of a kind; None if it has none."""
        custom = self._custom.get((group, version, kind))
        if custom is not None:
            return custom
        return self._builtin().find(group, version, kind)

    def _builtin(self) -> BuiltinSchemas:
        """Those of the feature gates, which can be switched while the server runs."""
        features = self._features()
        return builtin_schemas(features.api_reserved_for, features.added_field)

    def model(self, name: str) -> Schema:
        """The schema of a model of the official client."""
        return builtin_schemas().model(name)

    def add_custom(self, group: str, version: str, kind: str, raw: Mapping[str, Json]) -> None:
        """Set a custom kind's schema from its ``openAPIV3Schema``."""
        metadata = self.model("V1ObjectMeta")
        self._custom[(group, version, kind)] = structural(raw, metadata)
        self._raw[(group, version, kind)] = dict(raw)
        self._changes += 1

    def custom_raw(self, group: str, version: str, kind: str) -> dict[str, Json] | None:
        """The ``openAPIV3Schema`` of a custom kind."""
        return self._raw.get((group, version, kind))

    def state(self) -> tuple[int, BuiltinSchemas]:
        """A value that changes whenever a schema changes."""
        return self._changes, self._builtin()

    def remove_custom(self, group: str, version: str, kind: str) -> None:
        """Remove a custom kind's schema, if it has one."""
        self._custom.pop((group, version, kind), None)
        self._raw.pop((group, version, kind), None)
        self._changes += 1
