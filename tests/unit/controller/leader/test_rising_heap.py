"""The least value is found as if all members were looked at."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.leader.rising_heap import RisingHeap

steps = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["rises", "falls", "goes"]), st.integers(0, 9)),
    max_size=120,
)


@given(steps, st.sets(st.integers(0, 30)))
def test_the_least_value_is_that_of_a_look_at_all(
    steps: list[tuple[int, str, int]], filled: set[int]
) -> None:
    """Members come, rise without a word, fall and leave; of equals the lowest id is the least."""
    values: dict[int, int] = dict.fromkeys(filled, 5)
    heap: RisingHeap[int, int] = RisingHeap(values.get)
    heap.fill(list(values))
    for member, what, by in steps:
        if what == "goes":
            values.pop(member, None)
        elif what == "rises" and member in values:
            values[member] += by
        else:
            values[member] = values.get(member, 20) - by
            heap.put(member)
        least = min(((value, one) for one, value in values.items()), default=None)
        assert heap.least() == least
    assert len(heap) <= len(filled) + len(steps)


class Watched:
    """Values of which each look is counted."""

    def __init__(self, members: int) -> None:
        self.values = dict.fromkeys(range(members), 0)
        self.looks = 0

    def get(self, member: int) -> int | None:
        self.looks += 1
        return self.values.get(member)


@pytest.mark.parametrize("members", [10, 10_000])
def test_a_rise_costs_the_same_however_many_members_there_are(members: int) -> None:
    """A thousand members rise, one after another, and each time the least is asked for."""
    watched = Watched(members)
    heap: Any = RisingHeap(watched.get)
    heap.fill(list(watched.values))
    watched.looks = 0
    for number in range(1_000):
        watched.values[number % members] += 1
        heap.least()
    assert watched.looks < 3 * 1_000 + 2 * 64


def test_a_member_that_leaves_and_comes_back_has_one_entry() -> None:
    """A broker that is fenced and unfenced again and again doesn't fill the heap."""
    values = {1: 5, 2: 7}
    heap: RisingHeap[int, int] = RisingHeap(values.get)
    for number in range(100):
        values[1] = 5 + number
        heap.put(1)
        heap.put(2)
        assert heap.least() == min((value, one) for one, value in values.items())
    assert len(heap._heap) == 2
