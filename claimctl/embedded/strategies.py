"""Which strategy each built-in kind has."""

from __future__ import annotations

from claimctl.embedded.strategy import Strategies, Strategy
from claimctl.embedded.validation.claims import ClaimStrategy, TemplateStrategy
from claimctl.embedded.validation.namespaces import NamespaceStrategy

_BUILTIN: dict[tuple[str, str], Strategy] = {
    ("", "namespaces"): NamespaceStrategy(),
    ("resource.k8s.io", "resourceclaims"): ClaimStrategy(),
    ("resource.k8s.io", "resourceclaimtemplates"): TemplateStrategy(),
}


def builtin_strategies() -> Strategies:
    """A registry that holds the strategies of the built-in kinds."""
    strategies = Strategies()
    for (group, plural), strategy in _BUILTIN.items():
        strategies.register(group, plural, strategy)
    return strategies
