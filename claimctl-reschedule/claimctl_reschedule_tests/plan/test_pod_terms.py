"""Terms of pods on nodes are found for the pods that they mean."""

from __future__ import annotations

from claimctl.label_selectors import LabelSelector
from claimctl_reschedule.plan.pod_terms import PodTerms, corners, count
from claimctl_reschedule.shapes.scheduling import PodAffinityTerm

WEB = PodAffinityTerm(
    topology_key="zone", label_selector=LabelSelector(match_labels={"app": "web"})
)


def filed(means: frozenset[str] | None) -> PodTerms:
    """One pod of the namespace ``team`` on the node ``a`` has the term."""
    terms = PodTerms()
    count(terms.of("team", WEB, 10, lambda *_: means).per_node, "a", 1)
    return terms


def nowhere(*_: object) -> frozenset[str]:
    return frozenset()


def found(terms: PodTerms, namespace: str, **labels: str) -> list[tuple[int, dict[str, int]]]:
    return [(each.weight, each.per_node) for each in terms.meaning(namespace, labels)]


def test_a_term_means_pods_by_namespace_and_labels() -> None:
    terms = filed(frozenset({"team"}))
    assert found(terms, "team", app="web", more="x") == [(10, {"a": 1})]
    assert found(terms, "team", app="other") == []
    assert found(terms, "other", app="web") == []
    assert found(filed(None), "other", app="web") == [(10, {"a": 1})]


def test_a_term_is_known_by_namespace_and_weight() -> None:
    terms = filed(None)
    assert terms.of("team", WEB, 10, nowhere).per_node == {"a": 1}
    assert terms.of("team", WEB, 11, nowhere).per_node == {}
    assert terms.of("other", WEB, 10, nowhere).per_node == {}


def test_a_term_that_no_pod_has_any_more_means_nobody() -> None:
    terms = filed(None)
    count(terms.of("team", WEB, 10, nowhere).per_node, "a", -1)
    assert found(terms, "team", app="web") == []


def test_a_term_is_filed_where_only_pods_with_its_label_are_looked_up() -> None:
    assert corners(frozenset({"b", "a"}), WEB.label_selector) == [
        ("a", ("app", "web")),
        ("b", ("app", "web")),
    ]
    assert corners(None, LabelSelector()) == [(None, None)]
    assert corners(None, None) == [(None, None)]
