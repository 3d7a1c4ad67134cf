"""Node selectors, taints and tolerations, as kube-scheduler reads them."""

from __future__ import annotations

import pytest

from claimctl.wire.claims import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node, Taint, Toleration
from claimctl.wire.placement import admits, selects

LABELLED = Node(metadata=ObjectMeta(name="x", labels={"zone": "a", "gen": "3"}))


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(key="team", value="a"), True),
        (Toleration(key="team", operator="Equal", value="b"), False),
        (Toleration(key="team", value="a", effect="NoSchedule"), True),
        (Toleration(key="team", value="a", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(value="a"), False),
        (Toleration(key="team", operator="Unheard", value="b"), True),
    ],
)
def test_a_taint_is_tolerated(toleration: Toleration, expected: bool) -> None:
    taint = Taint(key="team", value="a", effect="NoSchedule")
    assert admits((taint,), (toleration,)) is expected


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "NotIn", ("a",), False),
        ("rack", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("rack", "Exists", (), False),
        ("rack", "DoesNotExist", (), True),
        ("gen", "Gt", ("2",), True),
        ("gen", "Lt", ("2",), False),
        ("zone", "Gt", ("2",), False),
        ("zone", "Unheard", (), True),
    ],
)
def test_a_node_selector_matches(
    key: str, operator: str, values: tuple[str, ...], expected: bool
) -> None:
    rule = NodeSelectorRequirement(key=key, operator=operator, values=values)
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(rule,)),))
    assert selects(selector, LABELLED) is expected
