"""YAML of the files that claimctl ships: read with libyaml, written for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, where it is there, takes a tenth of the time."""


def loaded(text: str) -> Any:
    """The only document of a text."""
    return yaml.load(text, _LOADER)


def all_loaded(text: str) -> Iterator[Any]:
    """The documents of a text, without those that are empty."""
    return filter(None, yaml.load_all(text, _LOADER))


def dumped(*documents: Any) -> str:
    """The documents as one stream; keys keep their order."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines, such as a policy, as a block, and uses no YAML anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
