"""SortedKeys: an immutable sorted sequence, which gives the order of eviction."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.image.sorted_keys import SortedKeys


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


@given(st.lists(st.tuples(st.sets(st.integers(0, 5000), max_size=80), st.integers(0, 90))))
def test_it_is_a_sorted_list(steps: list[tuple[set[int], int]]) -> None:
    """Whatever comes and however many of the first go; older versions stay."""
    keys, model = SortedKeys[bytes](), list[bytes]()
    versions = [(keys, model)]
    for added, dropped in steps:
        new = sorted({key(number) for number in added} - set(model))
        keys = keys.with_keys(new).without_first(dropped)
        model = sorted([*model, *new])[dropped:]
        versions.append((keys, model))
    for keys, model in versions:
        assert list(keys) == model


def test_chunks_stay_few_when_keys_come_slightly_out_of_order() -> None:
    """As they do from many clients; each insert must stay cheap."""
    dice = random.Random(3)
    order = sorted(range(20_000), key=lambda number: number + dice.randint(0, 3000))
    keys = SortedKeys[bytes]()
    for number in order:
        keys = keys.with_keys([key(number)])
    assert list(keys) == [key(number) for number in range(20_000)]
    assert len(keys._chunks) < 20_000 / 256
    assert max(len(chunk) for chunk in keys._chunks) <= 1024


def test_many_at_once() -> None:
    """A load from a snapshot brings all keys in one go, and more may come between them."""
    even = SortedKeys[bytes]().with_keys([key(number) for number in range(0, 9000, 2)])
    both = even.with_keys([key(number) for number in range(1, 9000, 2)])
    assert list(both) == [key(number) for number in range(9000)]
    assert both == SortedKeys[bytes]().with_keys([key(number) for number in range(9000)])
    assert both != even
    assert max(len(chunk) for chunk in both._chunks) <= 1024
    assert list(both.without_first(8999)) == [key(8999)]
    assert list(both.without_first(20_000)) == []


@given(
    st.lists(st.dictionaries(st.integers(0, 12_000), st.booleans(), max_size=60), max_size=6),
    st.integers(0, 12_000),
    st.booleans(),
)
def test_keys_come_and_go_anywhere(
    steps: list[dict[int, bool]], low: int, many_before: bool
) -> None:
    """Few changes touch a chunk each, many build all anew; both are a sorted set."""
    model = set(range(0, 10_000, 2)) if many_before else set[int]()
    keys = at_once(SortedKeys(), {key(number): True for number in model})
    for step in steps:
        keys = at_once(keys, {key(n): True if present else None for n, present in step.items()})
        model |= {n for n, present in step.items() if present}
        model -= {n for n, present in step.items() if not present}
        assert list(keys) == [key(number) for number in sorted(model)]
    assert len(keys) == len(model)
    assert [keys[index] for index in range(len(keys))] == list(keys)
    with pytest.raises(IndexError):
        keys[len(keys)]
    assert list(keys.after(key(low))) == [key(n) for n in sorted(model) if n > low]
    assert all(0 < len(chunk) <= 1024 for chunk in keys._chunks)


def test_a_lone_change_shares_all_chunks_but_one() -> None:
    before = at_once(SortedKeys(), {key(number): True for number in range(0, 50_000, 2)})
    after = at_once(before, {key(25_001): True})
    kept = {id(chunk) for chunk in before._chunks}
    assert sum(id(chunk) not in kept for chunk in after._chunks) <= 3


def test_a_large_change_yields() -> None:
    steps = SortedKeys[bytes]().changing({key(number): True for number in range(20_000)})
    assert sum(1 for _ in steps) >= 20


def at_once(keys: SortedKeys[bytes], changes: dict[bytes, bool | None]) -> SortedKeys[bytes]:
    steps = keys.changing(changes)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: SortedKeys[bytes] = end.value
            return found
