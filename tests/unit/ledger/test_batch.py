import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.batch import (
    BATCH_BYTES_MAX,
    BatchHeader,
    Provenance,
    array_head,
    hash_of,
    parse,
    seal,
)
from ledger.chain import LogMark
from ledger.errors import BatchTooLargeError, DamagedBatchError, LedgerError, UnknownFormatError
from ledger.frame import finish_frame
from tests.unit.ledger.ledger_world import CLUSTER, make_batch, records

texts = st.text(max_size=40)
provenances = st.builds(
    Provenance,
    principal=texts,
    auth_method=texts,
    on_behalf_of=texts,
    client_address=texts,
    client_id=texts,
    request_id=st.binary(min_size=16, max_size=16) | st.just(b""),
    request_digest=st.binary(min_size=32, max_size=32) | st.just(b""),
    operation=texts,
    reason=texts,
)
counts = st.integers(1, 20) | st.sampled_from([255, 256, 65_535, 65_536])


@st.composite
def headers(draw):
    count = draw(counts)
    return BatchHeader(
        base_offset=draw(st.integers(0, 2**63 - 1 - count)),
        count=count,
        epoch=draw(st.integers(0, 2**63 - 1)),
        timestamp_ms=draw(st.integers(0, 2**63 - 1)),
        provenance=draw(provenances),
        previous_hash=draw(st.binary(min_size=32, max_size=32)),
        extensions=draw(
            st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=50), max_size=5)
        ),
    )


@given(headers(), st.integers(0, 100), st.booleans())
def test_what_was_sealed_is_parsed(header, position, view):
    batch = seal(header, msgspec.msgpack.encode([0] * header.count))
    data = b"?" * position + batch.encoded + b"more"
    found = parse(memoryview(data) if view else data, position)
    assert found == batch
    assert seal(found.header, found.records).encoded == batch.encoded
    assert found.hash == hash_of(found.encoded)


def test_sealing_does_not_depend_on_the_order_of_extensions():
    mark = LogMark.beginning(CLUSTER)
    one = make_batch(mark, extensions={5: b"a", 70_000: b"b", 0: b"c"})
    two = make_batch(mark, extensions={70_000: b"b", 0: b"c", 5: b"a"})
    assert one.encoded == two.encoded
    assert list(parse(one.encoded).header.extensions) == [0, 5, 70_000]


def test_every_flipped_bit_is_found():
    encoded = make_batch(LogMark.beginning(CLUSTER), 2, extensions={1: b"x"}).encoded
    for position in range(len(encoded)):
        for bit in range(8):
            harmed = bytearray(encoded)
            harmed[position] ^= 1 << bit
            with pytest.raises(DamagedBatchError):
                parse(bytes(harmed))


def test_every_early_end_is_torn():
    encoded = make_batch(LogMark.beginning(CLUSTER), 2).encoded
    for size in range(len(encoded)):
        with pytest.raises(DamagedBatchError) as caught:
            parse(b"12345" + encoded[:size], 5)
        assert caught.value.torn
        assert caught.value.position == 5


def rewritten(encoded, position, data):
    """Bytes replaced, checksum right again."""
    return finish_frame(encoded[:position] + data + encoded[position + len(data) : -4])


def test_another_format_is_told_from_damage():
    encoded = make_batch(LogMark.beginning(CLUSTER)).encoded
    for position, data in ((4, b"\x00\x02"), (6, b"\x80\x00")):
        with pytest.raises(UnknownFormatError, match="newer release"):
            parse(rewritten(encoded, position, data))
        with pytest.raises(DamagedBatchError):
            parse(encoded[:position] + data + encoded[position + 2 :])


@pytest.mark.parametrize(
    ("position", "data", "sentence"),
    [
        (12, bytes(4), "out of its range"),
        (12, b"\x00\x00\x00\x02", "not an array of 2"),
        (16, b"\xff" * 8, "out of its range"),
        (16, b"\x7f" + b"\xff" * 7, "out of its range"),
        (24, b"\xff" * 8, "out of its range"),
        (32, b"\xff" * 8, "out of its range"),
        (72, b"\x00\xff\x00\x00", "longer than the batch"),
        (76, b"\xff\x00\x00\x00", "longer than the batch"),
        (72, bytes(4), "not an array"),
        (80, b"\x98", "provenance"),
        (80, b"\x9a", "provenance"),
    ],
)
def test_a_head_that_contradicts_itself_is_refused(position, data, sentence):
    encoded = make_batch(LogMark.beginning(CLUSTER)).encoded
    with pytest.raises(DamagedBatchError, match=sentence):
        parse(rewritten(encoded, position, data))


@pytest.mark.parametrize(
    "extensions",
    [
        b"\x82\x05\xc4\x00\x01\xc4\x00",  # keys that fall
        b"\x82\x05\xc4\x00\x05\xc4\x00",  # the same key twice
        b"\x81\xcc\x05\xc4\x00",  # a key longer than it need be
        b"\x81\xff\xc4\x00",  # a key below zero
        b"\x81\x05\xa0",  # a value that is text
        b"\x81",
        b"",
        b"\x90",
    ],
)
def test_extensions_that_are_not_canonical_are_refused(extensions):
    encoded = make_batch(LogMark.beginning(CLUSTER)).encoded
    body = encoded[:-5] + extensions
    length = len(body) + 4
    body = body[:8] + length.to_bytes(4, "big") + body[12:76]
    body += len(extensions).to_bytes(4, "big") + encoded[80:-5] + extensions
    with pytest.raises(DamagedBatchError, match="extensions"):
        parse(finish_frame(body))


@given(st.binary(max_size=300))
def test_anything_may_be_parsed(data):
    for body in (data, b"QRTB\x00\x01\x00\x00" + (len(data) + 16).to_bytes(4, "big") + data):
        with pytest.raises(LedgerError):
            parse(finish_frame(body))


def test_a_batch_holds_at_most_a_mebibyte():
    mark = LogMark.beginning(CLUSTER)
    room = BATCH_BYTES_MAX - len(make_batch(mark, size=40_000).encoded)
    assert len(make_batch(mark, size=40_000 + room - 2).encoded) == BATCH_BYTES_MAX
    with pytest.raises(BatchTooLargeError, match="Split it into several"):
        make_batch(mark, size=40_000 + room - 1)


@pytest.mark.parametrize(
    "change",
    [
        {"count": 0},
        {"count": 2},
        {"base_offset": -1},
        {"base_offset": 2**63 - 1},
        {"epoch": -1},
        {"timestamp_ms": -1},
        {"previous_hash": b"short"},
        {"extensions": {-1: b""}},
        {"extensions": {2**32: b""}},
        {"provenance": Provenance(request_id=b"short")},
        {"provenance": Provenance(request_digest=b"short")},
    ],
)
def test_what_can_not_be_is_not_sealed(change):
    good = make_batch(LogMark.beginning(CLUSTER)).header
    with pytest.raises(ValueError, match=r"."):
        seal(msgspec.structs.replace(good, **change), records(1))


def test_array_heads_are_those_of_messagepack():
    for count in (1, 15, 16, 65_535, 65_536):
        assert msgspec.msgpack.encode([0] * count).startswith(array_head(count))


def test_marks_come_back_as_they_were_written():
    mark = LogMark(2**40, bytes(range(32)), 7, 1_700_000_000_000)
    assert LogMark.decode(mark.encode()) == mark
    for wrong in (b"", mark.encode()[:-1], b"\x02" + mark.encode()[1:]):
        with pytest.raises(LedgerError):
            LogMark.decode(wrong)
