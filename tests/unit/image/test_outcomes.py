"""Request outcomes: no request is executed twice, and all nodes evict in the same order."""

from collections.abc import Iterable

import pytest

from metadata.image import (
    EMPTY,
    MetadataDelta,
    MetadataImage,
    ReplayError,
    image_from_records,
    image_to_records,
    outcomes,
)
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    OutcomeFloorRecord,
    Record,
    RequestOutcomeRecord,
)
from tests.unit.image.replaying import replayed

HOUR = 60 * 60 * 1000


def outcome(number: int, time_ms: int = 0, answer: bytes = b"done") -> RequestOutcomeRecord:
    return RequestOutcomeRecord(number.to_bytes(16, "big"), bytes(32), answer, time_ms)


def numbers(image: MetadataImage) -> list[int]:
    return [int.from_bytes(key, "big") for key in image.outcomes.by_key]


def floor(image: MetadataImage) -> int:
    return int.from_bytes(image.outcomes.floor, "big")


def test_an_outcome_is_found_by_its_key() -> None:
    """Digest, answer and time are what the record says."""
    image = replayed(outcome(7, 5))
    found = image.outcomes.get((7).to_bytes(16, "big"))
    assert found is not None
    assert (found.digest, found.answer, found.time_ms) == (bytes(32), b"done", 5)
    assert image.outcomes.get(bytes(16)) is None
    assert image.outcomes.floor == b""
    assert (len(image.outcomes), image.outcomes.size) == (1, 60)


def test_outcomes_go_24_hours_of_batch_time_later() -> None:
    """Not a millisecond sooner, and by any batch."""
    image = replayed(outcome(1, HOUR), outcome(2, 2 * HOUR), timestamp_ms=2 * HOUR)
    image = replayed(NoOpRecord(), image=image, timestamp_ms=25 * HOUR - 1)
    assert numbers(image) == [1, 2]
    image = replayed(NoOpRecord(), image=image, timestamp_ms=25 * HOUR)
    assert (numbers(image), floor(image)) == ([2], 1)
    image = replayed(NoOpRecord(), image=image, timestamp_ms=26 * HOUR)
    assert (numbers(image), floor(image)) == ([], 2)
    assert (image.outcomes.size, len(image.outcomes)) == (0, 0)


def test_the_smallest_key_goes_first_and_holds_back_older_ones() -> None:
    """Order by key is what makes the floor true: all at or below it may have gone."""
    image = replayed(outcome(5, 9 * HOUR), outcome(6, 0), timestamp_ms=9 * HOUR)
    image = replayed(NoOpRecord(), image=image, timestamp_ms=24 * HOUR)
    assert numbers(image) == [5, 6]
    image = replayed(NoOpRecord(), image=image, timestamp_ms=33 * HOUR)
    assert (numbers(image), floor(image)) == ([], 6)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach."""
    monkeypatch.setattr(outcomes, "KEPT_KEYS_MAX", 3)
    monkeypatch.setattr(outcomes, "KEPT_BYTES_MAX", 400)


@pytest.mark.usefixtures("small")
def test_at_most_so_many_keys_are_kept() -> None:
    """When the batch ends: within it there may be more."""
    image = replayed(*(outcome(number) for number in (4, 2, 5, 3, 1)))
    assert (numbers(image), floor(image)) == ([3, 4, 5], 2)
    image = replayed(outcome(6), image=image)
    assert (numbers(image), floor(image)) == ([4, 5, 6], 3)


@pytest.mark.parametrize("end", [EndTransactionRecord(), AbortTransactionRecord("a test")])
def test_none_go_while_a_transaction_is_open(end: Record) -> None:
    """Its decision stands on what was remembered when it began: the clock may leap meanwhile."""
    image = replayed(outcome(5, HOUR), timestamp_ms=HOUR)
    image = replayed(BeginTransactionRecord("a large one"), image=image, timestamp_ms=30 * HOUR)
    image = replayed(NoOpRecord(), image=image, timestamp_ms=30 * HOUR)
    assert image.transaction is not None
    assert floor(image.transaction.branch) == 0
    image = replayed(outcome(4, 30 * HOUR), end, image=image, timestamp_ms=30 * HOUR)
    ended = isinstance(end, EndTransactionRecord)
    assert (numbers(image), floor(image)) == (([4, 5], 0) if ended else ([], 5))


@pytest.mark.usefixtures("small")
def test_at_most_so_many_bytes_are_kept() -> None:
    """56 bytes and the answer count for each."""
    image = replayed(outcome(1, answer=bytes(100)), outcome(2, answer=bytes(100)))
    assert (numbers(image), image.outcomes.size) == ([1, 2], 312)
    image = replayed(outcome(3, answer=bytes(33)), image=image)
    assert (numbers(image), floor(image), image.outcomes.size) == ([2, 3], 1, 245)


@pytest.mark.usefixtures("small")
def test_eviction_does_not_depend_on_how_batches_share_deltas() -> None:
    """New keys and those of the image before are let go in one order."""
    keys = (3, 9, 4, 8, 10, 5, 7, 11)
    one = MetadataDelta(EMPTY)
    image = EMPTY
    for offset, number in enumerate(keys):
        if number <= floor(image):
            continue
        one.replay(outcome(number), offset)
        one.finish_batch(offset + 1, 0, 0)
        each = MetadataDelta(image)
        each.replay(outcome(number), offset)
        each.finish_batch(offset + 1, 0, 0)
        image = each.apply()
    assert one.apply() == image
    assert one.apply().state_hash == image.state_hash
    assert numbers(image) == list(image_numbers(image.outcomes.order))


def image_numbers(keys: Iterable[bytes]) -> Iterable[int]:
    return (int.from_bytes(key, "big") for key in keys)


@pytest.mark.usefixtures("small")
def test_the_floor_survives_a_snapshot_and_is_for_controllers_only() -> None:
    """A restart must not execute again what was let go before it."""
    image = replayed(*(outcome(number) for number in range(1, 6)))
    loaded = image_from_records(image_to_records(image), image.offset, 0, 0)
    assert loaded == image
    assert floor(loaded) == 2
    assert list(image_to_records(image, for_brokers=True)) == []
    assert image.state_hash is not None
    assert image.state_hash.shared == 0
    assert image.state_hash.controllers != 0


def test_a_request_is_not_executed_twice() -> None:
    """The same key again stops replay."""
    with pytest.raises(ReplayError, match="was executed before"):
        replayed(outcome(1), outcome(1))
    with pytest.raises(ReplayError, match="was executed before"):
        replayed(outcome(1), image=replayed(outcome(1)))


@pytest.mark.usefixtures("small")
def test_a_key_at_or_below_the_floor_stops_replay() -> None:
    """The controller should have answered REQUEST_EXPIRED."""
    image = replayed(*(outcome(number) for number in range(1, 6)))
    for number in (1, 2):
        with pytest.raises(ReplayError, match="may have been executed before"):
            replayed(outcome(number), image=image)


def test_brokers_pass_over_the_floor() -> None:
    """They hold no outcomes; a controllers' snapshot brings them all the same."""
    records = [OutcomeFloorRecord(bytes(16)), outcome(1)]
    loaded = image_from_records(records, 5, 1, 1, keep_outcomes=False)
    assert loaded.same_state(EMPTY)
