"""The state hash: its definition, and that it changes with the state."""

from hashlib import sha256

import pytest

from metadata.codec import encode_record
from metadata.image import EMPTY, hash_from_scratch, image_to_records
from metadata.records import ConfigRecord, FeatureLevelRecord, RequestOutcomeRecord
from metadata.state_hash import StateHash, state_hash_of
from tests.histories import History
from tests.unit.image.replaying import partition, registration, replayed, with_topic

FEATURES = (FeatureLevelRecord("a", 1), FeatureLevelRecord("b", 2))
OUTCOME = RequestOutcomeRecord(bytes(15) + b"\x01", bytes(32), b"x", 0)


def number(record: FeatureLevelRecord | RequestOutcomeRecord) -> int:
    return int.from_bytes(sha256(encode_record(record)).digest(), "big")


def test_it_is_the_sum_of_sha_256_over_snapshot_records() -> None:
    """The definition, written out; what only controllers hold has a sum of its own."""
    image = replayed(*FEATURES, OUTCOME)
    shared = (number(FEATURES[0]) + number(FEATURES[1])) % 2**256
    assert image.state_hash == StateHash(shared, number(OUTCOME))
    assert state_hash_of(FEATURES, [OUTCOME]) == image.state_hash


def test_the_empty_state_is_zero_and_so_is_what_was_undone() -> None:
    """A sum forgets what went."""
    assert EMPTY.state_hash == StateHash(0, 0)
    undone = replayed(*(FeatureLevelRecord(f.name, 0) for f in FEATURES), image=replayed(*FEATURES))
    assert undone.state_hash == StateHash(0, 0)


def test_the_order_of_history_does_not_show() -> None:
    """The same state by another way has the same hash."""
    one = replayed(*FEATURES, ConfigRecord(4, "", "a", "1"))
    two = replayed(ConfigRecord(4, "", "a", "2"), FEATURES[1], ConfigRecord(4, "", "a", "1"))
    assert replayed(FEATURES[0], image=two).state_hash == one.state_hash


def test_every_record_of_a_snapshot_counts() -> None:
    """Leaving out or changing any one of them shows."""
    history = History(5)
    image = EMPTY
    for batch in history.batches(40):
        image = replayed(
            *batch.records, image=image, epoch=batch.epoch, timestamp_ms=batch.timestamp_ms
        )
    image = image if image.transaction is None else image.transaction.branch
    records = list(image_to_records(image))
    hashes = {state_hash_of(records[:n] + records[n + 1 :], ()) for n in range(len(records))}
    assert len(hashes) == len(records) > 20


def test_it_is_64_bytes_on_the_wire() -> None:
    """Brokers compare the first 32."""
    made = StateHash(5, 6)
    assert made.encode() == bytes(31) + b"\x05" + bytes(31) + b"\x06"
    assert made.shared_bytes() == bytes(31) + b"\x05"
    assert StateHash.decode(made.encode()) == made
    with pytest.raises(ValueError, match="has 64 bytes, not 63"):
        StateHash.decode(bytes(63))


def test_sums_wrap_around() -> None:
    """They are modulo 2^256, in both directions."""
    assert StateHash(2**256 - 1, 0).plus(2, -1) == StateHash(1, 2**256 - 1)


def test_an_image_of_everything_is_hashed_the_same_from_scratch() -> None:
    """Incremental and from scratch are one number; the property tests say it of histories."""
    image = replayed(
        registration(), *FEATURES, OUTCOME, image=with_topic(partition(), partition(1))
    )
    assert image.state_hash == hash_from_scratch(image)
