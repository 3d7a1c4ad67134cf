"""The rules that claimctl ships: one WorkloadKind in YAML for each kind, in ``catalog``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from claimctl.reservation.kinds.rules import Kind, Rule, rule_of
from claimctl.wire.base import from_plain
from claimctl.wire.workload_kinds import WorkloadKind
from claimctl.yaml_text import loaded


@lru_cache(maxsize=1)
def catalog() -> tuple[WorkloadKind, ...]:
    """The shipped WorkloadKinds, by name."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in files(__package__).joinpath("catalog").iterdir()
        if file.name.endswith(".yaml")
    ]
    kinds = (from_plain(loaded(text), WorkloadKind) for text in texts)
    return tuple(sorted(kinds, key=lambda kind: kind.metadata.name))


@lru_cache(maxsize=1)
def shipped_rules() -> Mapping[Kind, Rule]:
    """The shipped rules by API group and kind."""
    rules = (rule_of(kind, "shipped") for kind in catalog())
    return {rule.key: rule for rule in rules}
