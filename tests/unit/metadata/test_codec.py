"""A sequence of records has one encoding, and the decoder accepts no other."""

import contextlib
import struct

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metadata import codec
from metadata.codec import (
    RecordDecodeError,
    UnknownRecordError,
    decode_record,
    decode_records,
    encode_record,
    encode_records,
)
from metadata.records import (
    RECORD_CLASSES,
    ClientQuotaRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterControllerRecord,
)
from tests.strategies import of_class, record_lists, records

TOPIC = TopicRecord("a", bytes(range(16)))
CHANGE = PartitionChangeRecord(3, bytes(range(16)), isr=(1, 2), leader=2)


@given(record_lists())
def test_what_is_encoded_decodes_to_the_same(batch: list[Record]) -> None:
    data = encode_records(batch)
    decoded = decode_records(data)
    assert decoded == batch
    assert [type(record) for record in decoded] == [type(record) for record in batch]
    assert encode_records(decoded) == data
    assert list(codec.iterate_records(encode_records(batch))) == list(batch)


@pytest.mark.parametrize("cls", RECORD_CLASSES, ids=lambda cls: cls.__name__)
def test_each_record_goes_there_and_back(cls: type[Record]) -> None:
    @settings(max_examples=30)
    @given(of_class(cls))
    def there_and_back(record: Record) -> None:
        data = encode_record(record)
        decoded = decode_record(data)
        assert decoded == record
        assert type(decoded) is cls
        assert encode_records([record]) == b"\x91" + data

    there_and_back()


@given(record_lists(max_size=4))
def test_another_implementation_agrees_on_the_bytes(batch: list[Record]) -> None:
    data = encode_records(batch)
    plain = msgpack.unpackb(data, raw=False)
    assert plain == [[_kind(r), *_plain(msgspec.structs.astuple(r))] for r in batch]
    assert msgpack.packb(plain, use_bin_type=True) == data


@given(record_lists(max_size=3), st.data())
def test_any_changed_byte_is_refused_or_is_another_record(
    batch: list[Record], data: st.DataObject
) -> None:
    encoded = bytearray(encode_records(batch))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_records(bytes(encoded))
    except RecordDecodeError:
        return
    assert encode_records(decoded) == bytes(encoded)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_never_do_worse_than_be_refused(data: bytes) -> None:
    try:
        decoded = decode_records(data)
    except RecordDecodeError:
        return
    assert encode_records(decoded) == data
    with contextlib.suppress(RecordDecodeError):
        list(codec.iterate_records(data))


@given(record_lists(max_size=3))
def test_a_torn_or_prolonged_batch_is_refused(batch: list[Record]) -> None:
    data = encode_records(batch)
    for end in range(len(data)):
        with pytest.raises(RecordDecodeError):
            decode_records(data[:end])
    with pytest.raises(RecordDecodeError):
        decode_records(data + b"\x00")


def test_a_memoryview_is_as_good_as_bytes() -> None:
    data = memoryview(b"xx" + encode_records([TOPIC, CHANGE]))[2:]
    assert decode_records(data) == [TOPIC, CHANGE]
    assert decode_record(memoryview(encode_record(TOPIC))) == TOPIC


def test_tuples_and_lists_of_records_have_the_same_bytes() -> None:
    assert encode_records((TOPIC, CHANGE)) == encode_records([TOPIC, CHANGE])
    assert encode_records([]) == b"\x90"
    assert decode_records(b"\x90") == []


@pytest.mark.parametrize(
    ("kind", "type_id", "version"),
    [
        (600, 6, 0),
        (201, 2, 1),
        (300, 3, 0),
        (1300, 13, 0),
        (99999999, 999999, 99),
        (2**64 - 1, (2**64 - 1) // 100, (2**64 - 1) % 100),
    ],
)
def test_an_unknown_record_is_refused_and_says_what_to_do(
    kind: int, type_id: int, version: int
) -> None:
    data = msgpack.packb([list(_fields(TOPIC)), [kind, "a", b"x"]])
    with pytest.raises(
        UnknownRecordError, match=f"record type {type_id} version {version}.*upgrade"
    ):
        decode_records(data)
    with pytest.raises(UnknownRecordError) as caught:
        decode_record(msgpack.packb([kind]))
    assert (caught.value.type_id, caught.value.version) == (type_id, version)


def test_damage_in_front_of_an_unknown_record_is_not_called_newer_software() -> None:
    with pytest.raises(RecordDecodeError) as caught:
        decode_records(msgpack.packb([[200, "a", b"short"], [201]])[:-1])
    assert not isinstance(caught.value, UnknownRecordError)


def _fields(record: Record) -> tuple[object, ...]:
    return (_kind(record), *_plain(msgspec.structs.astuple(record)))


UUID = bytes(range(16))
WHOLE_QUOTA = [1400, [["user", None]], "k", 1.5, False]
NOT_CANONICAL = {
    "an integer that is longer than need be": b"\x91\x92\xcd\x0b\x54\xcc\x01",
    "a kind that is longer than need be": b"\x91\x92\xce\x00\x00\x0b\x54\x01",
    "a signed form of a positive integer": b"\x91\x92\xcd\x0b\x54\xd0\x01",
    "text that is longer than need be": b"\x91\x93\xcc\xc8\xd9\x01a\xc4\x10" + UUID,
    "bytes that are longer than need be": b"\x91\x92\xcd\x03\x84\xc5\x00\x10" + UUID,
    "an array that is longer than need be": b"\xdc\x00\x01\x92\xcd\x0b\x54\x01",
    "a record's array that is longer than need be": b"\x91\xdc\x00\x02\xcd\x0b\x54\x01",
    "float 32": b"\x91"
    + msgpack.packb(WHOLE_QUOTA).replace(
        b"\xcb" + struct.pack(">d", 1.5), b"\xca" + struct.pack(">f", 1.5)
    ),
    "an integer where a float belongs": msgpack.packb([[1400, [], "k", 1, False]]),
    "a default left out": msgpack.packb([[502, 1, UUID]]),
    "the last default left out": msgpack.packb([[502, 1, UUID, *[None] * 8]]),
    "a field too many": msgpack.packb([[2000, None]]),
    "a part's field too many": msgpack.packb([[1400, [["user", None, 1]], "k", 1.5, False]]),
    "a map for a record": msgpack.packb([{"name": "a"}]),
    "a map for a part": msgpack.packb([[1400, [{"entityType": "user"}], "k", 1.5, False]]),
    "bytes for text": msgpack.packb([[200, b"a", UUID]]),
    "text for bytes": msgpack.packb([[900, "0123456789abcdef"]]),
    "text that is not UTF-8": b"\x91\x93\xcc\xc8\xa1\xff\xc4\x10" + UUID,
    "half a surrogate pair as text": b"\x91\x93\xcc\xc8\xa3\xed\xa0\x80\xc4\x10" + UUID,
    "a float where an integer belongs": msgpack.packb([[2900, 1.0]]),
    "a truth value where an integer belongs": msgpack.packb([[2900, True]]),
    "null where it means nothing": msgpack.packb([[2900, None]]),
    "a kind that is text": msgpack.packb([["200", "a", UUID]]),
    "a negative kind": msgpack.packb([[-1]]),
    "a record without a kind": msgpack.packb([[]]),
    "no array": msgpack.packb(7),
    "nothing": b"",
    "a uuid of 15 bytes": msgpack.packb([[900, UUID[1:]]]),
    "a uuid of 17 bytes": msgpack.packb([[900, UUID + b"x"]]),
    "more than an int32": msgpack.packb([[2900, 2**31]]),
    "less than an int32": msgpack.packb([[2900, -(2**31) - 1]]),
    "more than an int64": msgpack.packb([[1500, 1, 1, 2**63]]),
    "an array that claims to be huge": b"\xdd\xff\xff\xff\xff\x91\xcd\x07\xd0",
    "arrays without end": b"\x91" * 100_000,
    "an extension type": b"\x91\x92\xcd\x0b\x54\xd4\x01\x01",
    "the reserved byte": b"\x91\x92\xcd\x0b\x54\xc1",
}


@pytest.mark.parametrize("data", NOT_CANONICAL.values(), ids=NOT_CANONICAL.keys())
def test_any_other_encoding_is_refused(data: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        decode_records(data)
    if data.startswith((b"\x91\x92", b"\x91\x93")):
        with pytest.raises(RecordDecodeError):
            decode_record(data[1:])


def test_the_cases_above_differ_from_something_good_in_one_thing_only() -> None:
    good = [UnregisterControllerRecord(1), NoOpRecord(), RemoveTopicRecord(UUID)]
    quota = decode_record(msgpack.packb(WHOLE_QUOTA))
    assert encode_records(good[:1]) == b"\x91\x92\xcd\x0b\x54\x01"
    assert encode_records(good[2:]) == b"\x91\x92\xcd\x03\x84\xc4\x10" + UUID
    assert encode_records([TopicRecord("a", UUID)]) == b"\x91\x93\xcc\xc8\xa1a\xc4\x10" + UUID
    assert isinstance(quota, ClientQuotaRecord)
    assert quota.value == 1.5
    assert decode_records(encode_records(good)) == good


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, float("inf"), float("-inf"), 5e-324])
def test_floats_keep_every_bit(value: float) -> None:
    data = encode_record(ClientQuotaRecord((), "k", value, False))
    decoded = decode_record(data)
    assert isinstance(decoded, ClientQuotaRecord)
    assert struct.pack(">d", decoded.value) == struct.pack(">d", value)


def test_the_ends_of_the_ranges_go_through() -> None:
    for record in (
        ProducerIdsRecord(-(2**31), -(2**63), 2**63 - 1),
        PartitionRecord(2**31 - 1, UUID, (), (), (), (), -(2**31), 0, 0, -128),
    ):
        assert decode_record(encode_record(record)) == record


def test_more_bytes_than_a_batch_can_have_are_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "RECORDS_BYTES_MAX", 10)
    with pytest.raises(RecordDecodeError, match="at most 10"):
        decode_records(encode_records([TOPIC]))
    with pytest.raises(RecordDecodeError, match="at most 10"):
        decode_record(encode_record(TOPIC))


@given(records())
def test_a_record_alone_is_refused_as_a_batch(record: Record) -> None:
    with pytest.raises(RecordDecodeError):
        decode_records(encode_record(record))


def _kind(record: Record) -> int:
    return record.TYPE_ID * 100 + record.VERSION


def _plain(value: tuple[object, ...]) -> list[object]:
    return [_plain_value(v) for v in value]


def _plain_value(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.astuple(value))
    return _plain(value) if isinstance(value, tuple) else value
