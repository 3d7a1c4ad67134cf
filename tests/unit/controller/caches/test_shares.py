"""A memory that namespaces share."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from claimctl.controller.caches.shares import SharedMemory
from claimctl.controller.keys import ClaimKey

WRITES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(1, 5)), max_size=200
)


@given(writes=WRITES, most=st.integers(5, 40))
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_only_the_namespace_that_uses_most_forgets(
    writes: list[tuple[str, int, int]], most: int
) -> None:
    memory: SharedMemory[ClaimKey, tuple[int, ...]] = SharedMemory(most, len)
    known: dict[ClaimKey, int] = {}
    for namespace, name, size in writes:
        key = ClaimKey(namespace, str(name))
        memory[key] = (0,) * size
        known[key] = size
        kept = {each: size for each, size in known.items() if each in memory}
        assert kept == {each: len(memory.get(each, ())) for each in kept}
        assert sum(kept.values()) <= most
        sizes = {each: sum(s for k, s in kept.items() if k.namespace == each) for each in "abc"}
        for lost in known.keys() - kept.keys():
            # it had the most before, by one value at the most
            assert sizes[lost.namespace] + known[lost] >= max(sizes.values()) - 5
        known = kept


def test_a_crowd_of_one_namespace_costs_the_others_nothing() -> None:
    memory: SharedMemory[ClaimKey, int] = SharedMemory(100)
    memory[ClaimKey("victim", "old")] = 1
    for number in range(1000):
        memory[ClaimKey("evil", str(number))] = number
    assert memory.get(ClaimKey("victim", "old"), 0) == 1
    assert ClaimKey("evil", "900") not in memory
    assert memory.get(ClaimKey("evil", "901"), 0) == 901
    assert memory.get(ClaimKey("nowhere", "x"), 7) == 7


def test_what_is_used_stays_longest() -> None:
    memory: SharedMemory[ClaimKey, int] = SharedMemory(2)
    first, second, third = (ClaimKey("n", name) for name in "abc")
    memory[first], memory[second] = 1, 2
    assert memory.get(first, 0) == 1
    memory[third] = 3
    assert [key in memory for key in (first, second, third)] == [True, False, True]
