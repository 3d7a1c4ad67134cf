"""The rules that claimctl ships: one WorkloadKind in YAML for each kind, in ``catalog``.

To read them all takes time, so the commands that need none do not import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from claimctl.reservation.kinds.rules import Kind, Rule, rule_of
from claimctl.wire.base import from_plain
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import WorkloadRef
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


WORKLOAD_RESOURCES: Mapping[Kind, str] = {key: rule.plural for key, rule in shipped_rules().items()}
"""The kinds for which claimctl ships a rule, with their resource names."""
KINDS = {(group, plural): kind for (group, kind), plural in WORKLOAD_RESOURCES.items()}
"""The same the other way around."""


def workload_reference(ref: WorkloadRef, uid: str, resource: str = "") -> Reference:
    """The reference to one incarnation of a workload.

    Args:
        resource: the kind's resource name; '' for a kind with a shipped rule.

    Raises:
        KeyError: no rule is shipped for the kind, and the resource is not given.
    """
    resource = resource or WORKLOAD_RESOURCES[ref.api_group, ref.kind]
    return Reference(api_group=ref.api_group, resource=resource, name=ref.name, uid=uid)
