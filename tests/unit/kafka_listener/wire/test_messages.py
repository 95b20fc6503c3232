"""Messages to bytes and back, in every version that Kafka has."""

import contextlib
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_listener.wire import messages
from kafka_listener.wire.decoding import NUMBERS
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_counted_request,
    decode_message,
    decode_metadata_record,
    decode_request,
    decode_request_header,
    decode_response_header,
    encode_message,
    encode_metadata_record,
    encode_request,
    encode_request_header,
    encode_response_header,
)
from kafka_listener.wire.schema import ELEMENTS_MAX
from tests.kafka_messages import NAMED_VERSIONS, random_message

FETCH, API_VERSIONS, TOPICS = 1, 18, 19
one_version = st.sampled_from(NAMED_VERSIONS)
randoms = st.integers(0, 2**32).map(Random)


@pytest.mark.parametrize(("name", "version"), NAMED_VERSIONS)
def test_what_is_written_is_read_again(name: str, version: int) -> None:
    random = Random(f"{name} {version}")
    for _ in range(3):
        fields = random_message(random, name, version)
        data = encode_message(name, version, fields)
        assert decode_message(name, version, data) == fields
        assert decode_message(name, version, memoryview(b"++" + data), 2) == fields


@given(one_version, randoms)
def test_no_flipped_or_cut_byte_raises_anything_else(
    name_version: tuple[str, int], random: Random
) -> None:
    name, version = name_version
    data = bytearray(encode_message(name, version, random_message(random, name, version)))
    for _ in range(10):
        damaged = data[: random.randrange(len(data) + 1)] if random.random() < 0.3 else data[:]
        for _ in range(random.randrange(4)):
            if damaged:
                damaged[random.randrange(len(damaged))] = random.choice((0, 1, 127, 128, 255))
        with contextlib.suppress(WireError):
            decode_message(name, version, bytes(damaged))


@given(one_version, st.binary(max_size=60))
@example(("FetchRequest", 18), b"\xff" * 60)
def test_no_bytes_raise_anything_else(name_version: tuple[str, int], data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_message(*name_version, data)


@given(st.binary(max_size=30))
def test_no_header_raises_anything_else(data: bytes) -> None:
    for read in (decode_request_header, decode_metadata_record):
        with contextlib.suppress(WireError):
            read(data)


def test_a_missing_field_has_its_default() -> None:
    fields = decode_request(FETCH, 18, encode_request(FETCH, 18, {"MaxWaitMs": 7}))
    assert fields["MaxWaitMs"] == 7
    assert fields["MaxBytes"] == 0x7FFFFFFF
    assert fields["ClusterId"] is None
    assert fields["ReplicaState"] == {"ReplicaId": -1, "ReplicaEpoch": -1}
    assert fields["Topics"] == []


def test_a_tagged_field_that_has_its_default_is_not_written() -> None:
    assert encode_request(FETCH, 18, {"ReplicaState": {"ReplicaId": -1}}) == encode_request(
        FETCH, 18, {}
    )
    assert len(encode_request(FETCH, 18, {"ReplicaState": {"ReplicaId": 1}})) == (
        len(encode_request(FETCH, 18, {})) + 2 + 13
    )


def test_an_unknown_tag_is_passed_over() -> None:
    plain = encode_message("TopicRecord", 0, {"Name": "a", "TopicId": bytes(16)})
    assert plain.endswith(b"\x00")
    tagged = plain[:-1] + b"\x01\x63\x02ab"
    assert decode_message("TopicRecord", 0, tagged) == decode_message("TopicRecord", 0, plain)


REFUSED = [
    ("FetchRequest", 18, {"Nonsense": 1}, "FetchRequest 18: there is no field Nonsense here"),
    ("FetchRequest", 3, {}, "FetchRequest has the versions 4 to 18, not 3"),
    ("Nonsense", 0, {}, "there is no message Nonsense"),
    ("TopicRecord", 0, {"Name": None}, "TopicRecord 0: a value has the wrong type"),
    ("TopicRecord", 0, {"Name": 5}, "TopicRecord 0: a value has the wrong type"),
    ("TopicRecord", 0, {"TopicId": b"1"}, "TopicRecord 0: a uuid has 16 bytes, not 1"),
    ("TopicRecord", 0, {"Name": "a" * 40_000}, "TopicRecord 0: a string has at most 32767 bytes"),
    ("FetchSnapshotRequest", 0, {"MaxBytes": 2**40}, "FetchSnapshotRequest 0: a value has the wr"),
    (
        "CreateTopicsRequest",
        4,
        {"Topics": [{"Name": "a", "Assignments": 3}]},
        "CreateTopicsRequest",
    ),
    ("DeleteTopicsRequest", 3, {"Topics": [{}]}, "DeleteTopicsRequest 3: version 3 has no field T"),
]


@pytest.mark.parametrize(("name", "version", "fields", "sentence"), REFUSED)
def test_what_makes_no_message_is_refused(
    name: str, version: int, fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(WireError) as refused:
        encode_message(name, version, fields)
    assert str(refused.value).startswith(sentence)


BROKEN = [
    ("TopicRecord", b"\x02a", "the data ends too early"),
    ("TopicRecord", b"\x03a", "a length of 2 stands before byte 1; 1 bytes are left"),
    ("TopicRecord", b"\x00" + bytes(17), "Name can't be null in version 0"),
    ("TopicRecord", b"\x02\xff" + bytes(17), "a string is not UTF-8"),
    ("TopicRecord", b"\x01" + bytes(18), "1 bytes are left over"),
    ("TopicRecord", b"\x80" * 20, "the number at byte 0 has more than 10 bytes"),
]


@pytest.mark.parametrize(("name", "data", "sentence"), BROKEN)
def test_what_is_no_message_is_refused(name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(WireError) as refused:
        decode_message(name, 0, data)
    assert str(refused.value) == f"{name} 0: {sentence}"


def test_the_elements_of_a_request_are_counted_together() -> None:
    topic = {"Name": "", "NumPartitions": 1, "ReplicationFactor": 1}
    most = encode_request(TOPICS, 7, {"Topics": [topic] * ELEMENTS_MAX})
    assert len(decode_request(TOPICS, 7, most)["Topics"]) == ELEMENTS_MAX
    with pytest.raises(WireError, match="too many elements"):
        decode_request(
            TOPICS, 7, encode_request(TOPICS, 7, {"Topics": [topic] * (ELEMENTS_MAX + 1)})
        )


def test_bytes_after_a_request_are_passed_over() -> None:
    data = encode_request(TOPICS, 7, {})
    assert decode_request(TOPICS, 7, data + b"abc") == decode_request(TOPICS, 7, data)


def test_headers() -> None:
    old = RequestHeader(API_VERSIONS, 2, 5, "kcat")
    assert encode_request_header(old) == b"\0\x12\0\2\0\0\0\5\0\4kcat"
    assert decode_request_header(encode_request_header(old) + b"body") == (old, 14)
    flexible = RequestHeader(API_VERSIONS, 4, 5, None)
    assert encode_request_header(flexible) == b"\0\x12\0\4\0\0\0\5\xff\xff\0"
    assert decode_request_header(encode_request_header(flexible)) == (flexible, 11)
    assert encode_response_header(API_VERSIONS, 4, 5) == b"\0\0\0\5"
    assert encode_response_header(FETCH, 18, 5) == b"\0\0\0\5\0"
    assert encode_response_header(FETCH, 11, 5) == b"\0\0\0\5"
    assert decode_response_header(FETCH, 18, b"\0\0\0\5\0") == (5, 5)


def test_a_header_of_a_version_to_come_is_read() -> None:
    data = b"\0\x12\0\x63\0\0\0\5\0\1a\0"
    assert decode_request_header(data) == (RequestHeader(API_VERSIONS, 99, 5, "a"), 12)
    with pytest.raises(WireError, match="there is no request with api key 999"):
        decode_request_header(b"\3\xe7\0\1\0\0\0\5\0\1a")


def test_a_metadata_record_names_itself() -> None:
    fields = {"Name": "a", "TopicId": bytes(16)}
    value = encode_metadata_record("TopicRecord", 0, fields)
    assert value == b"\1\2\0" + encode_message("TopicRecord", 0, fields)
    assert decode_metadata_record(value) == ("TopicRecord", 0, fields)
    with pytest.raises(WireError, match="no metadata record of type 99 in frame 1"):
        decode_metadata_record(b"\1\x63\0")


def test_an_ignorable_field_is_left_out() -> None:
    named = {"ClientSoftwareName": "kcat"}
    assert encode_request(API_VERSIONS, 2, named) == encode_request(API_VERSIONS, 2, {}) == b""
    assert messages.api_name(FETCH) == "Fetch"
    assert messages.api_name(999) == "api key 999"


def test_strings_numbers_and_tags_are_counted_like_structs() -> None:
    names = encode_request(20, 5, {"TopicNames": ["a"] * (ELEMENTS_MAX + 1)})
    with pytest.raises(WireError, match="too many elements"):
        decode_request(20, 5, names)
    numbers = [{"Topic": "a", "Partitions": [1] * (NUMBERS * ELEMENTS_MAX)}]
    data = encode_request(43, 2, {"TopicPartitions": numbers})
    with pytest.raises(WireError, match="too many elements"):
        decode_request(43, 2, data)
    one = encode_request(TOPICS, 7, {})[:-1] + b"\x01\x63\x00"
    with pytest.raises(WireError, match="too many elements"):
        decode_counted_request(TOPICS, 7, one, elements_max=0)
    tags = encode_request(TOPICS, 7, {})[:-1] + b"\xa1\x8d\x06" + b"\x63\x00" * (ELEMENTS_MAX + 1)
    with pytest.raises(WireError, match="100001 tagged fields"):
        decode_request(TOPICS, 7, tags)
    header = b"\0\x13\0\7\0\0\0\1\0\1a\x03\x00\x00\x01\x00\x02\x00"
    assert decode_request_header(header)[1] == len(header)


def test_a_string_that_is_longer_than_kafka_s_is_refused() -> None:
    data = b"\x81\x80\x02" + b"a" * 32_768 + bytes(17)
    with pytest.raises(WireError, match="a string has at most 32767 bytes, not 32768"):
        decode_message("TopicRecord", 0, data)
