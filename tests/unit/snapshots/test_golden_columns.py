"""The golden checkpoint of format 2 is read and written as ever, by our reader and by others."""

import json
from pathlib import Path

import msgspec
import pytest

from metadata.codec import decode_record, encode_record
from metadata.image import image_to_records
from snapshots.columns import ColumnReader
from snapshots.topic_block import decode_topics
from tests.golden import checkpoint_write
from tests.golden.checkpoint_write import FOLDER, FORMAT_1, ID
from tests.reference.columns import Columns
from tests.reference.columns import decode_topics as plain_topics
from tests.unit.ledger import independent_decoder
from tests.unit.snapshots.column_cases import column, loaded
from verifier.logberg_verify import read_checkpoint

VECTORS = json.loads((FOLDER / "vectors.json").read_text())
FILE = (FOLDER / ID.name).read_bytes()
IN_FORMAT_1 = (FOLDER / FORMAT_1).read_bytes()


def test_it_is_read_as_ever() -> None:
    whole, twin = loaded(FILE), loaded(IN_FORMAT_1)
    assert (whole.header.format, twin.header.format) == (2, 1)
    assert msgspec.structs.replace(whole.header, format=1) == twin.header
    assert [[block.of_topics, block.records] for block in whole.blocks] == VECTORS["blocks"]
    assert whole.header.state_hash.hex() == VECTORS["state_hash"]
    assert list(whole.records()) == list(twin.records()) == checkpoint_write.records()


def test_it_is_written_as_ever() -> None:
    assert checkpoint_write.file(2) == FILE
    assert checkpoint_write.file(1) == IN_FORMAT_1
    assert list(image_to_records(checkpoint_write.image())) == checkpoint_write.records()


@pytest.mark.parametrize(("values", "data"), VECTORS["columns"], ids=str)
def test_columns(values: list[int], data: str) -> None:
    assert column(*values).hex() == data
    assert ColumnReader(bytes.fromhex(data), 0).ints(len(values)) == values
    assert Columns(bytes.fromhex(data)).column(len(values)) == values


def test_a_block_part_by_part() -> None:
    content = b"".join(map(bytes.fromhex, VECTORS["block"].values()))
    records = list(decode_topics(content, 2, {}.setdefault).records())
    assert [encode_record(record).hex() for record in records] == VECTORS["block_records"]
    plain = plain_topics(bytes(16) + content + bytes(4), b"")
    assert [decode_record(msgspec.msgpack.encode(one)) for one in plain] == records


def test_other_readers_find_the_same() -> None:
    found = independent_decoder.decode_checkpoint(ID.name, FILE)
    assert found == independent_decoder.decode_checkpoint(ID.name, IN_FORMAT_1)
    fields, extensions, records = found
    assert (fields[0], fields[1], extensions) == (VECTORS["cluster_id"], VECTORS["generation"], {})
    assert [decode_record(msgspec.msgpack.encode(one)) for one in records] == (
        checkpoint_write.records()
    )


def test_the_verifier_finds_it_right(tmp_path: Path) -> None:
    for content in (FILE, IN_FORMAT_1):
        (tmp_path / ID.name).write_bytes(content)
        assert read_checkpoint(tmp_path / ID.name, skip_crc=False).cluster == VECTORS["cluster_id"]
