"""SortedKeys: the order in which outcomes are let go."""

import random

from hypothesis import given
from hypothesis import strategies as st

from metadata.image.sorted_keys import SortedKeys


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


@given(st.lists(st.tuples(st.sets(st.integers(0, 5000), max_size=80), st.integers(0, 90))))
def test_it_is_a_sorted_list(steps: list[tuple[set[int], int]]) -> None:
    """Whatever comes and however many of the first go; older versions stay."""
    keys, model = SortedKeys(), list[bytes]()
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
    keys = SortedKeys()
    for number in order:
        keys = keys.with_keys([key(number)])
    assert list(keys) == [key(number) for number in range(20_000)]
    assert len(keys._chunks) < 20_000 / 256
    assert max(len(chunk) for chunk in keys._chunks) <= 1024


def test_many_at_once() -> None:
    """A load from a snapshot brings all keys in one go, and more may come between them."""
    even = SortedKeys().with_keys([key(number) for number in range(0, 9000, 2)])
    both = even.with_keys([key(number) for number in range(1, 9000, 2)])
    assert list(both) == [key(number) for number in range(9000)]
    assert both == SortedKeys().with_keys([key(number) for number in range(9000)])
    assert both != even
    assert max(len(chunk) for chunk in both._chunks) <= 1024
    assert list(both.without_first(8999)) == [key(8999)]
    assert list(both.without_first(20_000)) == []
