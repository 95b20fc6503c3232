"""BucketMap: a map that never changes and shares what did not."""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.bucket_hash import UNKEYED, MixFor, key_buckets
from metadata.buckets import (
    STEP,
    BucketMap,
    KeyChange,
    mix_bytes,
    mix_entity,
    mix_int,
    mix_name_and_code,
    mix_partition,
    mix_row,
    mix_text,
    mix_typed_name,
)
from tests.unit.image.replaying import stepped

K = TypeVar("K")
changes = st.dictionaries(st.integers(-50, 5000), st.none() | st.integers(), max_size=60)


def test_it_behaves_like_a_dict_with_sorted_keys() -> None:
    """A reader needs nothing but what a mapping offers."""
    made = BucketMap(mix_text, {"b": 2, "a": 1})
    assert len(made) == 2
    assert made["a"] == 1
    assert made.get("c") is None
    assert made.get("c", 7) == 7
    assert "b" in made
    assert "c" not in made
    assert list(made) == list(made.keys()) == ["a", "b"]
    assert list(made.items()) == [("a", 1), ("b", 2)]
    assert list(made.values()) == [1, 2]
    assert repr(made) == "BucketMap({'a': 1, 'b': 2})"
    with pytest.raises(KeyError):
        made["c"]


@given(st.lists(changes, max_size=8))
def test_every_version_is_the_dict_it_should_be(steps: list[dict[int, int | None]]) -> None:
    """Older versions stay as they were, whatever is made from them."""
    versions: list[tuple[BucketMap[int, int], dict[int, int]]] = [(BucketMap(mix_int), {})]
    for step in steps:
        made, model = versions[-1]
        after = {key: value for key, value in {**model, **step}.items() if value is not None}
        versions.append((made.with_changes(step), after))
    for made, model in versions:
        assert list(made.items()) == sorted(model.items())
        assert len(made) == len(model)
    for made, model in versions:
        for other, other_model in versions:
            assert (made == other) == (model == other_model)
            expected = tuple(
                KeyChange(key, other_model.get(key), model.get(key))
                for key in sorted({*model, *other_model})
                if model.get(key) != other_model.get(key)
            )
            assert made.changes_since(other) == expected
            assert list(made.changed_since(other)) == [change.key for change in expected]


@pytest.mark.parametrize("count", [32, 33, 256, 257, 2048, 2049, 16385, 131073])
def test_it_grows_by_steps_without_losing_an_entry(count: int) -> None:
    """One entry more than a shape holds moves all into the next shape."""
    keys = {number * 1000: number for number in range(count - 1)}
    before = BucketMap(mix_int, keys)
    after = before.with_changes({-1: 5})
    assert len(after) == count
    assert dict(after.unordered_items()) == {**keys, -1: 5}
    assert after.changes_since(before) == (KeyChange(-1, None, 5),)
    assert len(before) == count - 1
    assert -1 not in before


def test_a_lone_change_shares_nearly_all_buckets() -> None:
    """The cost of a change grows with the change, not with the map."""
    keys = {(bytes([n % 251]) * 16, n): n for n in range(20_000)}
    before = BucketMap(mix_partition, keys)
    after = before.with_changes({(bytes(16), 0): -1})
    own = [page for page, old in zip(after._pages, before._pages, strict=True) if page is not old]
    assert len(own) == 1
    buckets = [bucket for page in before._pages for bucket in page]
    shared = {id(bucket) for page in after._pages for bucket in page} & set(map(id, buckets))
    assert len(shared) == len(buckets) - 1


def test_no_change_makes_no_new_map() -> None:
    """Unchanged families are the same object in the next image."""
    made = BucketMap(mix_int, {1: 1})
    assert made.with_changes({}) is made


@pytest.mark.parametrize("step", [1, 10, 1000, 4096])
def test_ids_in_steps_spread_over_buckets(step: int) -> None:
    """Broker ids often come in steps of a power of ten; they must not share one bucket."""
    made = BucketMap(mix_int, {number * step: 0 for number in range(2000)})
    largest = max(len(bucket) for page in made._pages for bucket in page)
    assert largest < 4 * 2000 / 64


def test_partitions_spread_over_buckets() -> None:
    """Few topics with many partitions, and many with few, both spread."""
    dice = random.Random(1)
    topics = [dice.randbytes(16) for _ in range(2000)]
    for topic_count in (2, 2000):
        keys = [(topic, p) for topic in topics[:topic_count] for p in range(16_000 // topic_count)]
        made = BucketMap(mix_partition, dict.fromkeys(keys, 0))
        assert max(len(bucket) for page in made._pages for bucket in page) < 6 * 16_000 / 512


def searched(keys: Iterable[K], bucket_of: Callable[[K], int], count: int) -> list[K]:
    """Keys that somebody who knows `bucket_of` finds: all lie in bucket 0 of 64."""
    return list(islice((key for key in keys if bucket_of(key) % 64 == 0), count))


HELD = 2000
DICE = random.Random(5)
NAMES = [f"topic-{number}" for number in range(HELD * 80)]
COLLIDING: list[tuple[str, MixFor, list[Any]]] = [
    # By the hashes that were here once, which needed no secret.
    ("names", mix_text, searched(NAMES, lambda name: crc32(name.encode()), HELD)),
    (
        "request ids",
        mix_bytes,
        searched((DICE.randbytes(16) for _ in NAMES), crc32, HELD),
    ),
    ("broker ids", mix_int, searched(range(2**20), lambda key: key * 2654435761 >> 12, HELD)),
    ("broker ids in steps", mix_int, [number << 20 for number in range(HELD)]),
    ("topics", mix_partition, [(DICE.randbytes(14) + b"ab", 0) for _ in range(HELD)]),
    (
        "configs",
        mix_typed_name,
        [(2, name) for name in searched(NAMES, lambda name: crc32(name.encode()), HELD)],
    ),
    (
        "users",
        mix_name_and_code,
        [(name, 1) for name in searched(NAMES, lambda name: crc32(name.encode()), HELD)],
    ),
    (
        "quotas",
        mix_entity,
        [
            (("user", (name,)),)
            for name in searched(NAMES, lambda name: crc32(b"user\0" + name.encode()), HELD)
        ],
    ),
    (
        "rows",
        mix_row,
        [
            (2, name, 3)
            for name in searched(NAMES, lambda name: crc32(f"2\0{name}\x003".encode()), HELD)
        ],
    ),
    # By the present ones, for another secret.
    ("names for another secret", mix_text, searched(NAMES, mix_text(UNKEYED), HELD)),
    ("ids for another secret", mix_int, searched(range(2**20), mix_int(UNKEYED), HELD)),
]


@pytest.mark.parametrize(("kind", "keys"), [case[1:] for case in COLLIDING])
def test_keys_that_were_searched_for_spread_all_the_same(
    kind: MixFor, keys: list[Any], secret: None
) -> None:
    """A change copies a bucket, so what it costs is the size of the largest."""
    made = BucketMap(kind, dict.fromkeys(keys, 0))
    assert len(made) == HELD
    sizes = [len(bucket) for page in made._pages for bucket in page]
    # What an entry meets on average; 31 besides itself if they were spread by chance.
    assert sum(size * size for size in sizes) / HELD < 1.5 * HELD / 64
    assert max(sizes) < 4 * HELD / 64


@pytest.fixture
def secret() -> Iterator[None]:
    key_buckets(b"a known secret..")
    yield
    key_buckets(UNKEYED)


def test_a_map_keeps_the_secret_of_its_first_entry(secret: None) -> None:
    """A process sets its secret at its start; older maps keep theirs."""
    before = BucketMap(mix_text, dict.fromkeys(NAMES[:500], 1))
    key_buckets(b"another secret..")
    after = before.with_changes({"more": 1, NAMES[0]: None})
    assert after.get(NAMES[1]) == 1
    assert len(after) == 500
    anew = BucketMap(mix_text, dict(after.items()))
    assert [*anew] == [*after]
    assert anew == after
    assert anew.changes_since(before) == after.changes_since(before)


def test_it_is_compared_with_maps_only_and_not_hashed() -> None:
    """Equality is by content; a hash would have to read it all."""
    assert BucketMap(mix_int) != {}
    with pytest.raises(TypeError):
        hash(BucketMap(mix_int))


@pytest.mark.parametrize("held", [0, 100, 3 * STEP, 16_000])
@pytest.mark.parametrize("count", [0, 1, STEP, STEP + 1, 5 * STEP])
def test_a_change_in_steps_gives_the_same_map(held: int, count: int) -> None:
    """It yields often when there is much to do, and not at all for a lone change."""
    made = BucketMap(mix_int, {key: key for key in range(held)})
    written = {key: None if key % 3 == 0 else -key for key in range(0, 7 * count, 7)}
    whole = made.with_changes(written)
    after, yields = stepped(made.changing(written))
    assert after == whole
    assert len(after) == len(whole)
    assert list(after.items()) == list(whole.items())
    assert yields >= count // STEP - 1
    if count <= 1:
        assert yields == 0
    assert list(made.items()) == [(key, key) for key in range(held)]


def test_changes_of_what_is_there_do_not_make_the_map_larger() -> None:
    """Else a batch of changes would copy all that it doesn't touch."""
    made = BucketMap(mix_int, dict.fromkeys(range(2000), 0))
    changed = made.with_changes(dict.fromkeys(range(0, 2000, 2), 1))
    assert changed._mask == made._mask
    assert made.with_changes(dict.fromkeys(range(2000, 2100), 1))._mask > made._mask


def test_what_is_new_among_many_changes_is_counted_in_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where old and new keys together may need more buckets."""
    plain, looked_up = BucketMap.__contains__, 0

    def contains(self: BucketMap[int, int], key: object) -> bool:
        nonlocal looked_up
        looked_up += 1
        return plain(self, key)

    made = BucketMap(mix_int, dict.fromkeys(range(9000), 0))
    changed = dict.fromkeys(range(1000, 9500), 1)
    monkeypatch.setattr(BucketMap, "__contains__", contains)
    steps, most = made.changing(changed), 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            after = stop.value
            break
        most, looked_up = max(most, looked_up), 0
    assert 0 < most <= 1_024
    monkeypatch.undo()
    assert after == made.with_changes(changed)
    assert (len(after), after._mask) == (9_500, made._mask)
