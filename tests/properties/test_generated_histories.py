"""Generated histories of any shape are legal, chained and plausible, and equal for equal seeds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.generated import Life, batches
from audit.generated.topics import RECORDS_PER_TOPIC
from ledger.chain import LogMark
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, hash_from_scratch, image_from_records
from metadata.image.snapshot import image_to_records


def fits(shape: dict[str, object]) -> bool:
    """Whether so many records can make so many topics."""
    topics, records = shape["topics"], shape["records"]
    assert isinstance(records, int)
    return not isinstance(topics, int) or topics * RECORDS_PER_TOPIC <= records


shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "records": st.integers(1, 4_000),
        "days": st.none() | st.floats(0.01, 20),
        "brokers": st.none() | st.integers(3, 20),
        "topics": st.none() | st.integers(1, 60),
        "open_transaction": st.booleans(),
        "cluster_id": st.text("abcXYZ019-_", min_size=1, max_size=22),
    }
).filter(fits)

few = settings(max_examples=25)


@few
@given(shapes)
def test_any_history_is_legal_and_any_state_of_it_plausible(shape) -> None:
    mark = LogMark.beginning(shape["cluster_id"])
    image = EMPTY
    delta = MetadataDelta(image)
    for number, batch in enumerate(batches(**shape), 1):
        assert mark.objection(batch) == ""
        mark = mark.after(batch)
        header = batch.header
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        if number % 40 == 0:
            image = delta.apply()
            delta = MetadataDelta(image)
            for partition in image.topics.partitions.values():
                assert partition.leader == -1 or partition.leader in partition.isr
                assert set(partition.isr) <= set(partition.replicas)
    image = delta.apply()
    assert image.state_hash == hash_from_scratch(image)
    assert (image.transaction is not None) == shape["open_transaction"]


@few
@given(shapes)
def test_it_is_the_same_when_it_is_told_again(shape) -> None:
    seed = shape.pop("seed")
    one, other = Life(seed, **shape), Life(seed, **shape)
    assert [s.batch.encoded for s in one.sealed()] == [s.batch.encoded for s in other.sealed()]
    assert one.facts == other.facts
    assert one.size == other.size


@few
@given(shapes)
def test_its_last_state_survives_a_snapshot(shape) -> None:
    delta = MetadataDelta(EMPTY)
    for batch in batches(**(shape | {"open_transaction": False})):
        header = batch.header
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    image = delta.apply()
    again = image_from_records(
        image_to_records(image), image.offset, image.epoch, image.timestamp_ms
    )
    assert again == image
