"""PartitionMap and PartitionSet: they never change, and share what did not."""

import gc
import random
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.buckets import BucketMap, KeyChange, mix_int
from metadata.image.partition import Partition
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PACKED_BYTES, PartitionSet, pack
from metadata.partition_key import PlainPartitionKey
from tests.unit.image.replaying import stepped

TOPICS = [bytes([number]) * 16 for number in (0, 1, 255)]
# Around the ends of chunks, and where a packed number has another first byte.
NUMBERS = st.integers(0, 70) | st.sampled_from([255, 256, 65_535, 2**31 - 1])
keys = st.tuples(st.sampled_from(TOPICS), NUMBERS)


def state(leader: int) -> Partition:
    return Partition((1, 2), (), (1, 2), (), (), (), (), leader, 0, 0, 0)


STATES = [state(leader) for leader in range(3)]
writes = st.dictionaries(keys, st.none() | st.sampled_from(STATES), max_size=40)
moves = st.dictionaries(keys, st.none() | st.just(True), max_size=40)


def after(model: Mapping[Any, Any], step: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in {**model, **step}.items() if value is not None}


@given(st.lists(writes, max_size=6))
def test_every_version_of_a_map_is_the_dict_it_should_be(
    steps: list[dict[PlainPartitionKey, Partition | None]],
) -> None:
    versions: list[tuple[PartitionMap, dict[PlainPartitionKey, Partition]]] = [(PartitionMap(), {})]
    for step in steps:
        made, model = versions[-1]
        versions.append((made.with_changes(step), after(model, step)))
    asked = {key for step in steps for key in step} | {(TOPICS[0], -1)}
    for made, model in versions:
        assert list(made.items()) == sorted(model.items(), key=lambda entry: entry[0])
        assert list(made) == sorted(model)
        assert list(made.values()) == [model[key] for key in sorted(model)]
        assert dict(made.unordered_items()) == model
        assert len(made) == len(model)
        assert {key: made.get(key) for key in asked} == {key: model.get(key) for key in asked}
        assert {key for key in asked if key in made} == model.keys()
        assert PartitionMap(model) == made
    for made, model in versions:
        for other, other_model in versions:
            assert (made == other) == (model == other_model)
            expected = tuple(
                KeyChange(key, other_model.get(key), model.get(key))
                for key in sorted({*model, *other_model})
                if model.get(key) != other_model.get(key)
            )
            assert made.changes_since(other) == expected
            found = [change for change in made.differences(other) if change is not None]
            assert sorted(found, key=lambda change: change.key) == list(expected)


@given(st.lists(moves, max_size=6))
def test_every_version_of_a_set_is_the_set_it_should_be(
    steps: list[dict[PlainPartitionKey, bool | None]],
) -> None:
    versions: list[tuple[PartitionSet, set[PlainPartitionKey]]] = [(PartitionSet(), set())]
    for step in steps:
        made, model = versions[-1]
        changed = made.with_changes({pack(key): there for key, there in step.items()})
        versions.append((changed, set(after(dict.fromkeys(model, True), step))))
    asked = {key for step in steps for key in step} | {(TOPICS[0], -1)}
    for made, model in versions:
        assert list(made) == sorted(model)
        assert len(made) == len(model)
        assert {key for key in asked if key in made} == model
        assert PartitionSet(b"".join(map(pack, sorted(model)))) == made
    for made, model in versions:
        assert [made == other for other, _ in versions] == [model == other for _, other in versions]


@pytest.mark.parametrize("seed", range(4))
def test_a_large_set_is_the_set_it_should_be(seed: int) -> None:
    """It has many pages, and changes of all sizes fall within them."""
    dice = random.Random(seed)
    topics = [dice.randbytes(16) for _ in range(60)]
    made, model = PartitionSet(), set[PlainPartitionKey]()
    for count in (5_000, 1, 2, 300, 5_000, 40, 9_000, 3):
        before, known = made, list(model)
        step: dict[PlainPartitionKey, bool | None] = {}
        for _ in range(count):
            key = (dice.choice(topics), dice.randrange(300))
            step[key] = dice.choice((True, True, True, None))
        if count == 9_000:
            step = dict.fromkeys(dice.sample(sorted(model), min(count, len(model) - 5)))
        made, yields = stepped(before.changing({pack(key): step[key] for key in step}))
        model = {*model, *(k for k, there in step.items() if there)}
        model -= {key for key, there in step.items() if there is None}
        assert list(made) == sorted(model)
        assert len(made) == len(model)
        assert list(before) == sorted(known)
        assert (yields > 0) == (len(step) > 1_024)
        assert all(key in made for key in model)
        assert max((len(page) for page in made._pages), default=0) <= 32
        assert all(0 < len(run) <= 64 * PACKED_BYTES for page in made._pages for run in page)


def wide(count: int) -> list[PlainPartitionKey]:
    return [(topic, number) for topic in TOPICS for number in range(count)]


def shared(before: list[Any], after: list[Any]) -> int:
    """How many objects of one list are in the other, too."""
    return len({*map(id, before)} & {*map(id, after)})


def test_a_lone_change_of_a_map_copies_one_chunk() -> None:
    before = PartitionMap(dict.fromkeys(wide(1_000), STATES[0]))
    made = before.with_changes({(TOPICS[1], 500): STATES[1]})
    chunks = [chunk for _, chunk in before._chunks.unordered_items()]
    assert shared(chunks, [chunk for _, chunk in made._chunks.unordered_items()]) == len(chunks) - 1
    assert max(map(len, chunks)) == 16


def test_a_lone_change_of_a_set_copies_one_run() -> None:
    before = PartitionSet(b"".join(map(pack, wide(5_000))))
    made = before.with_changes({pack((TOPICS[1], 2_500)): None})
    assert shared(before._pages, made._pages) == len(before._pages) - 1
    runs = [run for page in before._pages for run in page]
    assert shared(runs, [run for page in made._pages for run in page]) == len(runs) - 1


def test_the_first_of_a_large_set_cost_no_walk() -> None:
    held = PartitionSet(b"".join(map(pack, wide(5_000))))
    steps = iter(held)
    tracemalloc.start()
    assert next(steps) == (TOPICS[0], 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000


@pytest.mark.parametrize(
    ("made", "key", "entry"),
    [(PartitionMap(), lambda key: key, state(1)), (PartitionSet(), pack, True)],
    ids=["map", "set"],
)
@pytest.mark.parametrize(("count", "yields"), [(0, False), (1, False), (64, False), (1_900, True)])
def test_only_many_changes_take_steps(
    made: Any, key: Callable[[PlainPartitionKey], Any], entry: Any, count: int, yields: bool
) -> None:
    steps: Callable[[Any], Any] = made.changing
    changed, took = stepped(steps({key((TOPICS[0], number)): entry for number in range(count)}))
    assert len(changed) == count
    assert (took > 0) == yields
    assert (changed is made) == (count == 0)


def test_a_map_holds_few_bytes_and_nothing_for_the_collector() -> None:
    """Besides the partitions themselves. A set holds `bytes` only."""
    partitions = dict.fromkeys(wide(2_000), STATES[0])
    packed = b"".join(map(pack, wide(2_000)))
    gc.collect()
    tracemalloc.start()
    made = PartitionMap(partitions)
    for_map = tracemalloc.get_traced_memory()[0]
    held = PartitionSet(packed)
    for_set = tracemalloc.get_traced_memory()[0] - for_map
    tracemalloc.stop()
    gc.collect()
    assert for_map / len(made) < 24
    assert for_set / len(held) < 22
    assert not any(gc.is_tracked(chunk) for _, chunk in made._chunks.unordered_items())
    assert not any(gc.is_tracked(run) for page in held._pages for run in page)


def test_a_key_that_is_missing_is_told() -> None:
    made = PartitionMap({(TOPICS[0], 3): STATES[0]})
    with pytest.raises(KeyError):
        made[TOPICS[0], 2]
    assert made.get((TOPICS[0], 2), 5) == 5
    assert repr(PartitionSet(pack((TOPICS[0], 1)))) == f"PartitionSet([({TOPICS[0]!r}, 1)])"
    assert repr(made).startswith(f"PartitionMap({{({TOPICS[0]!r}, 3): Partition(")


@pytest.mark.parametrize("made", [PartitionMap(), PartitionSet()])
def test_they_are_compared_with_their_kind_only_and_not_hashed(made: Any) -> None:
    assert made != BucketMap(mix_int)
    with pytest.raises(TypeError):
        hash(made)
