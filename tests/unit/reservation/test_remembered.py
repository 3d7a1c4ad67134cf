"""Results are remembered within a number of bytes."""

from __future__ import annotations

import tracemalloc

from claimctl.reservation.facts.pods import names_in
from claimctl.reservation.remembered import Remembered
from claimctl.wire.pods import PodResourceClaim

ENTRIES = tuple[PodResourceClaim, ...]


def entries(pod: int, count: int) -> ENTRIES:
    """The claims of one pod, which no other pod names."""
    names = (f"claim-{pod}-{number}-{'x' * 80}" for number in range(count))
    return tuple(PodResourceClaim(name="c", resource_claim_name=name) for name in names)


def test_equal_arguments_share_one_result() -> None:
    shared: Remembered[str, str] = Remembered(lambda text: text, most_bytes=1_000_000)
    first, equal = "".join(["a", "bc"]), "".join(["ab", "c"])
    assert first is not equal
    assert shared(first) is shared(equal) is first


def test_the_bytes_of_all_arguments_are_bounded_whatever_their_lengths() -> None:
    names: Remembered[ENTRIES, frozenset[str]] = Remembered(
        lambda claims: frozenset(map(repr, claims)), most_bytes=4_000_000
    )
    tracemalloc.start()
    try:
        for pod in range(2_000):
            names(entries(pod, pod % 200))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8_000_000
    assert len(names) > 10


def test_what_is_asked_for_again_and_again_is_not_forgotten() -> None:
    calls: list[str] = []

    def note(text: str) -> str:
        calls.append(text)
        return text

    shared = Remembered(note, most_bytes=100_000)
    for number in range(5_000):
        shared("often")
        shared(f"once-{number}")
    assert calls.count("often") == 1


def test_an_argument_that_would_fill_the_memory_by_itself_is_not_remembered() -> None:
    before = len(names_in)
    assert len(names_in(entries(0, 5_000))) == 5_000
    assert len(names_in) == before
