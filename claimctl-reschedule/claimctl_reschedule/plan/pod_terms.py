"""The terms of pods on nodes about other pods: whom they mean, and where these pods are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from claimctl.label_selectors import LabelSelector, selects
from claimctl.wire.base import encode
from claimctl_reschedule.shapes.scheduling import PodAffinityTerm

Corner = tuple[str | None, tuple[str, str] | None]
"""A namespace (None: all) and a label that a selector asks for (None: no particular one)."""

Means = Callable[[PodAffinityTerm, str], frozenset[str] | None]
"""The namespaces that a term of pods in a namespace is about; None: all."""


@dataclass(slots=True, eq=False)
class PodTerm:
    """A term, and how many of the pods that have it are on each node. Each of them adds ``weight``
    to the score of the nodes in its domain; it is 0 for a term that forbids them."""

    term: PodAffinityTerm
    weight: int
    per_node: dict[str, int] = field(default_factory=dict)


class PodTerms:
    """Terms, filed so that few of them are looked at for one pod."""

    __slots__ = ("_by_corner", "_known")

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes, int], PodTerm] = {}
        self._by_corner: dict[Corner, list[PodTerm]] = {}

    def of(self, namespace: str, term: PodAffinityTerm, weight: int, means: Means) -> PodTerm:
        """The term of pods in ``namespace``, which is filed if no pod had it before."""
        key = namespace, encode(term), weight
        if key not in self._known:
            known = self._known[key] = PodTerm(term, weight)
            for corner in corners(means(term, namespace), term.label_selector):
                self._by_corner.setdefault(corner, []).append(known)
        return self._known[key]

    def meaning(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PodTerm]:
        """The terms, of pods on nodes, that mean a pod with these labels."""
        if self._by_corner:
            for corner in corners_of(namespace, labels):
                for known in self._by_corner.get(corner, ()):
                    if known.per_node and selects(known.term.label_selector, labels):
                        yield known


def corners(namespaces: frozenset[str] | None, selector: LabelSelector | None) -> list[Corner]:
    """Where to file what a selector means."""
    labels = selector.match_labels if selector else None
    label = min(labels.items()) if labels else None
    return [(name, label) for name in (sorted(namespaces) if namespaces is not None else (None,))]


def corners_of(namespace: str, labels: Mapping[str, str]) -> Iterator[Corner]:
    """Where everything is filed that may mean a pod."""
    for name in (namespace, None):
        yield name, None
        for label in labels.items():
            yield name, label


def count(per_node: dict[str, int], node: str, change: int) -> None:
    """Change a number of pods; a node without pods is absent."""
    left = per_node.get(node, 0) + change
    if left:
        per_node[node] = left
    else:
        del per_node[node]
