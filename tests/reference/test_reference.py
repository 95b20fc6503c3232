"""The reference and the product come to one state from one log; neither knows the other."""

import ast
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.http.describe import summarize_topic
from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.segments import SegmentHeader
from metadata.codec import encode_record, encode_records
from metadata.image import EMPTY, MetadataDelta, ReplayError, image_to_records
from metadata.records import RECORD_CLASSES, SNAPSHOT_ONLY
from metadata.uuids import parse_uuid
from tests.golden import ledger_write
from tests.histories import History, HistoryBatch
from tests.reference import folder as reference_folder
from tests.reference.folding import fold_records, folded
from tests.reference.ledger import Batch, RefusedError, read_log
from tests.reference.schema import SCHEMA, decode_records
from tests.reference.schema import encode_records as listed_records
from tests.reference.state import State
from tests.reference.trace import changes
from tests.strategies import records

HERE = Path(__file__).parent
REFERENCE = (
    *("schema", "columns", "ledger", "tables", "state", "folds", "folding", "folder", "trace"),
    *("replicas", "one_partition", "placing", "clients", "access", "applied_quotas"),
)
DECODERS = {"msgpack", "google_crc32c"}

seeds = st.integers(0, 2**32)


def product_of(image, batch):
    delta = MetadataDelta(image)
    delta.replay_all(batch.records, batch.base_offset)
    delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta.apply()


def fold(state, batch):
    records = decode_records(encode_records(batch.records))
    fold_records(state, records, batch.base_offset, batch.epoch, batch.timestamp_ms)


@pytest.mark.slow
@settings(max_examples=150)
@given(seeds)
def test_the_same_log_is_the_same_state_at_every_batch(seed):
    image, state = EMPTY, State()
    for batch in History(seed).batches(30):
        image = product_of(image, batch)
        fold(state, batch)
        assert state.hash() == image.state_hash.encode(), batch
        assert state.end == image.offset
        if image.transaction is None:
            ours = [encode_record(record) for record in image_to_records(image)]
            assert listed_records(state.snapshot()) == ours
        else:
            assert state.began == image.transaction.offset


@settings(max_examples=12)
@given(seeds)
def test_so_it_is_after_days_in_which_outcomes_go(seed):
    history, image, state = History(seed), EMPTY, State()
    for batch in history.batches(300):
        image = product_of(image, batch)
        fold(state, batch)
    assert state.hash() == image.state_hash.encode()
    assert state.tables["floor"]


@settings(max_examples=40)
@given(seeds)
def test_a_snapshot_goes_on_as_the_log_does(seed):
    history, whole = History(seed), State()
    for batch in history.batches(20):
        fold(whole, batch)
    last = history.close_transaction()
    if last is not None:
        fold(whole, last)
    other = State.loaded(whole.snapshot(), whole.end, whole.epoch, whole.timestamp_ms)
    for batch in history.batches(20):
        fold(whole, batch)
        fold(other, batch)
    assert other.hash() == whole.hash()


@settings(max_examples=200)
@given(seeds, st.data())
def test_what_one_refuses_the_other_refuses(seed, data):
    """Any record behind any history: taken by both, with one state, or by neither."""
    history, image, state = History(seed, brokers=4), EMPTY, State()
    batches = history.batches(6)
    for batch in batches:
        image = product_of(image, batch)
        fold(state, batch)
    others = [*batches, *History(seed + 1, brokers=4).batches(6)]
    written = st.sampled_from([record for batch in others for record in batch.records])
    record = data.draw(written | records())
    batch = HistoryBatch(image.offset, image.epoch, image.timestamp_ms, (record,))
    try:
        image = product_of(image, batch)
    except ReplayError:
        with pytest.raises(RefusedError):
            fold(state, batch)
    else:
        fold(state, batch)
        assert state.hash() == image.state_hash.encode()


def test_the_page_has_every_record_class_with_every_field():
    assert set(SCHEMA.kinds) == {record.__name__ for record in RECORD_CLASSES}
    for record in RECORD_CLASSES:
        fields = [field for field, _ in SCHEMA._fields[record.__name__]]
        assert [name.replace("_", "").lower() for name in record.__struct_fields__] == [
            field.lower() for field in fields
        ]


def vectors(place):
    files = {str(path.relative_to(place)): path.read_bytes() for path in (place / "log").iterdir()}
    return reference_folder.read_folder(files)


def test_the_vectors_hold_every_record_and_every_state():
    seen = set()
    for path in (HERE / "vectors").rglob("states.json"):
        states, state = json.loads(path.read_text()), State()
        for batch in vectors(path.parent).batches:
            seen |= {name for name, _ in decode_records(batch.records)}
            state = folded([batch], state)
            assert state.hash().hex() == states.pop(str(batch.end)), batch.end
        assert not states
    assert seen == {r.__name__ for r in RECORD_CLASSES} - {r.__name__ for r in SNAPSHOT_ONLY}


def test_the_golden_ledger_is_read_and_its_made_up_records_are_refused():
    files = {
        str(path.relative_to(ledger_write.FOLDER)): path.read_bytes()
        for path in ledger_write.FOLDER.rglob("*")
        if path.is_file()
    }
    _, end = ledger_write.batches()
    begin, batches = read_log({n: d for n, d in files.items() if n.startswith("log/")})
    assert begin.end == 0
    assert (batches[-1].end, batches[-1].hash) == (end.log_end, end.head)
    assert len(batches) == 5
    with pytest.raises(RefusedError, match="NoOpRecord has 0 fields"):
        folded(batches)
    with pytest.raises(RefusedError, match="PartitionRecord has 13 fields"):
        reference_folder.loaded(reference_folder.read_folder(files).checkpoints[0])


def sealed(cluster_id="a-cluster", count=3):
    mark = LogMark.beginning(cluster_id)
    content = SegmentHeader(cluster_id, mark).encode()
    ends = [len(content)]
    for batch in History(1).batches(count):
        header = BatchHeader(
            batch.base_offset,
            len(batch.records),
            batch.epoch,
            batch.timestamp_ms,
            Provenance(),
            mark.head,
        )
        made = seal(header, encode_records(batch.records))
        content, mark = content + made.encoded, mark.after(made)
        ends.append(len(content))
    return content, ends


def test_a_flipped_bit_anywhere_in_a_ledger_is_refused():
    content, _ = sealed()
    name = f"log/{0:020d}.log"
    assert len(read_log({name: content})[1]) == 3
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(RefusedError):
            read_log({name: bytes(damaged)})


def test_a_batch_that_is_missing_or_twice_is_refused():
    content, ends = sealed()
    name = f"log/{0:020d}.log"
    missing = content[: ends[1]] + content[ends[2] :]
    twice = content[: ends[2]] + content[ends[1] :]
    for wrong in (missing, twice):
        with pytest.raises(RefusedError, match="does not continue the chain"):
            read_log({name: wrong})
    assert len(read_log({name: content[:-1]}, live=True)[1]) == 2
    with pytest.raises(RefusedError, match="no whole frame"):
        read_log({name: content[:-1]})


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_imports_nothing_of_the_product(name):
    tree = ast.parse((HERE / f"{name}.py").read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    own = {f"tests.reference.{other}" for other in REFERENCE}
    assert {each for each in imported if each.partition(".")[0] not in sys.stdlib_module_names} <= (
        own | DECODERS
    )


@settings(max_examples=40)
@given(seeds)
def test_changes_add_up_to_what_a_list_of_topics_says(seed):
    """What the trace says of each batch, added up, is what the product answers at its end."""
    image, state, told = EMPTY, State(), {}
    for made in History(seed).batches(30):
        image = product_of(image, made)
        records = encode_records(made.records)
        batch = Batch(
            made.base_offset,
            len(made.records),
            made.epoch,
            made.timestamp_ms,
            [""] * 9,
            records,
            b"",
        )
        ((_, topics),) = changes(state, [batch])
        told = {name: row for name, row in {**told, **topics}.items() if row is not None}
        summaries = [summarize_topic(image, name) for name in image.topics.names]
        assert told == {
            each.name: [
                parse_uuid(each.topic_id).hex(),
                each.partition_count,
                each.replication_factor,
                each.leaderless,
                each.under_replicated,
            ]
            for each in summaries
        }
