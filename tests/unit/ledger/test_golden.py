"""Bytes of old releases stay readable, by our reader and by an independent one."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger.batch import ACTED_AS, BatchHeader, Provenance, parse, seal
from ledger.chain import LogMark, first_hash
from ledger.reader import LedgerReader
from ledger.segments import parse_segment_header
from ledger.verify import verify_ledger
from metadata.steps import finished
from snapshots.checkpoint import CheckpointId
from snapshots.store import CheckpointStore, load_steps
from tests.golden import ledger_write
from tests.unit.ledger import independent_decoder
from tests.unit.ledger.ledger_world import Node, fill, make_batches

GOLDEN = Path(ledger_write.__file__).parent
VECTORS = json.loads((GOLDEN / "ledger.json").read_text())
FOLDER = GOLDEN / "ledger-format-1"
FILES = {
    str(path.relative_to(FOLDER)): path.read_bytes()
    for path in sorted(FOLDER.rglob("*"))
    if path.is_file()
}
LOG = {name[4:]: content for name, content in FILES.items() if name.startswith("log/")}


def golden_node():
    node = Node(cluster_id=VECTORS["cluster_id"])
    for name, content in FILES.items():
        node.platter.put(name, content)
    return node


def header_of(vector):
    provenance: list[Any] = [
        bytes.fromhex(field) if i in (5, 6) else field
        for i, field in enumerate(vector["provenance"])
    ]
    return BatchHeader(
        base_offset=vector["base_offset"],
        count=vector["count"],
        epoch=vector["epoch"],
        timestamp_ms=vector["timestamp_ms"],
        provenance=Provenance(*provenance),
        previous_hash=bytes.fromhex(vector["previous_hash"]),
        extensions={int(k): bytes.fromhex(v) for k, v in vector["extensions"].items()},
    )


@pytest.mark.parametrize("vector", VECTORS["batches"], ids=lambda v: f"offset-{v['base_offset']}")
def test_batches_are_sealed_and_parsed_as_ever(vector):
    encoded = bytes.fromhex(vector["encoded"])
    batch = seal(header_of(vector), bytes.fromhex(vector["records"]))
    assert batch.encoded == encoded
    assert batch.hash.hex() == vector["hash"]
    assert parse(encoded) == batch
    assert LogMark.decode(bytes.fromhex(vector["mark_before"])).objection(batch) == ""


def test_the_chain_begins_as_ever():
    assert first_hash(VECTORS["cluster_id"]).hex() == VECTORS["first_hash"]


def test_the_segment_header_is_as_ever():
    vector = VECTORS["segment_header"]
    header, length = parse_segment_header(bytes.fromhex(vector["encoded"]))
    assert length == len(vector["encoded"]) // 2
    assert header.previous.encode().hex() == vector["mark"]
    assert header.encode().hex() == vector["encoded"]


def test_the_golden_ledger_is_read_and_proved():
    node = golden_node()
    mark = LogMark.decode(bytes.fromhex(VECTORS["mark"]))
    report = verify_ledger(node.disk, synced_to=mark)
    assert report.ok
    assert (report.log_end, report.head) == (mark.log_end, mark.head)
    encoded = [vector["encoded"] for vector in VECTORS["batches"]]
    assert [b.encoded.hex() for b in LedgerReader(node.disk).batches()] == encoded
    assert [b.encoded.hex() for b in node.open(mark).batches(0)] == encoded


def test_a_batch_whose_principal_acted_as_a_broker():
    vector = json.loads((GOLDEN / "acted-as.json").read_text())
    encoded = bytes.fromhex(vector["encoded"])
    batch = parse(encoded)
    assert batch.header.acted_as == "Broker:7"
    assert batch.header.provenance.principal == "User:ANONYMOUS"
    assert batch.header.extensions == {ACTED_AS: bytes.fromhex(vector["extensions"]["2"])}
    assert seal(batch.header, batch.records).encoded == encoded
    assert batch.hash.hex() == vector["hash"]
    # A reader that ignores the extension still hashes it.
    without = seal(msgspec.structs.replace(batch.header, extensions={}), batch.records)
    assert (without.header.acted_as, without.hash == batch.hash) == ("", False)


def test_the_golden_ledger_is_written_as_ever():
    node = Node(cluster_id=VECTORS["cluster_id"], segment_bytes=ledger_write.SEGMENT_BYTES)
    fill(node.open(), [parse(bytes.fromhex(v["encoded"])) for v in VECTORS["batches"]])
    assert {name[4:]: content for name, content in node.files().items()} == LOG


def test_the_golden_checkpoint_is_read_and_written_as_ever():
    node = golden_node()
    store = CheckpointStore(node.disk, node.cluster_id, node.process.clock, node.log)
    loaded = finished(load_steps(node.disk, node.cluster_id, store.newest()))
    vector = VECTORS["checkpoint"]
    header = loaded.header
    assert header.id == CheckpointId(vector["offset"], vector["epoch"])
    assert header.mark.encode().hex() == VECTORS["mark"]
    assert header.state_hash.hex() == vector["state_hash"]
    assert header.voters.hex() == vector["voters"]
    assert sum(block.records for block in loaded.blocks) == vector["records"]
    other = Node(cluster_id=node.cluster_id)
    again = CheckpointStore(other.disk, node.cluster_id, other.process.clock, other.log)
    again.write(header, ledger_write.checkpoint_records(), lambda *_: None)
    other.settle()
    (content,) = other.files("checkpoints").values()
    assert content == next(c for name, c in FILES.items() if name.startswith("checkpoints/"))


def test_the_independent_reader_reads_the_golden_ledger():
    batches, mark = independent_decoder.decode_log(LOG)
    assert mark == independent_decoder.decode_mark(bytes.fromhex(VECTORS["mark"]))
    assert mark["head"].hex() == VECTORS["batches"][-1]["hash"]
    for batch, vector in zip(batches, VECTORS["batches"], strict=True):
        for field in ("base_offset", "count", "epoch", "timestamp_ms"):
            assert batch[field] == vector[field]
        assert batch["hash"].hex() == vector["hash"]
        assert batch["previous_hash"].hex() == vector["previous_hash"]
        texts = [f.hex() if isinstance(f, bytes) else f for f in batch["provenance"]]
        assert texts == vector["provenance"]
        assert {str(k): v.hex() for k, v in batch["extensions"].items()} == vector["extensions"]


def test_the_independent_reader_reads_the_golden_checkpoint():
    (name,) = (name for name in FILES if name.startswith("checkpoints/"))
    fields, extensions, records = independent_decoder.decode_checkpoint(
        name.rpartition("/")[2], FILES[name]
    )
    vector = VECTORS["checkpoint"]
    named = ("cluster_id", "generation", "offset", "epoch", "timestamp_ms")
    assert fields[:5] == [vector[field] for field in named]
    hashes = ("chain_hash", "state_hash", "voters")
    assert [field.hex() for field in fields[5:]] == [vector[field] for field in hashes]
    assert {str(k): v.hex() for k, v in extensions.items()} == vector["extensions"]
    assert len(records) == vector["records"]


@pytest.mark.parametrize("seed", range(5))
def test_the_independent_reader_reads_whatever_we_write(seed):
    dice = random.Random(seed)
    node = Node(seed=seed, segment_bytes=dice.choice([1_000, 5_000, 10**6]))
    batches = make_batches(30, per_batch=dice.choice([1, 20]), epochs={7: 3, 20: 2**40})
    ledger = fill(node.open(), batches)
    files = {name[4:]: content for name, content in node.files().items()}
    decoded, mark = independent_decoder.decode_log(files)
    assert [b["hash"] for b in decoded] == [b.hash for b in batches]
    assert mark["head"] == ledger.head


def test_crc_32c_is_the_one_of_the_standard():
    assert independent_decoder.crc32c(b"123456789") == 0xE3069283


def test_no_file_of_the_golden_folder_is_forgotten():
    assert len(LOG) == 2
    assert len(FILES) == 3
