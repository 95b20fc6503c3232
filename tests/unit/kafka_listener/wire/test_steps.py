"""Messages in steps: the same fields and the same bytes as at once, with pauses that are close."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_listener.wire import stepped_decoding, stepped_encoding
from kafka_listener.wire.body_parts import PART_BYTES
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    api_name,
    api_versions,
    decode_counted_request,
    decode_request_in_steps,
    encode_message,
    encode_request,
    encode_response_in_steps,
)
from tests.kafka_messages import random_message
from tests.unit.image.replaying import stepped

METADATA, CREATE_TOPICS, ALTER_PARTITION, ELECT_LEADERS = 3, 19, 56, 43
KEYS = [key for key in range(93) if api_versions(key).last >= 0]


def versions(key: int) -> range:
    found = api_versions(key)
    return range(found.first, found.last + 1)


def lazily(value: Any) -> Any:
    """Return the same message, whose lists of structs and strings are iterators."""
    if isinstance(value, dict):
        return {name: lazily(each) for name, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict | str | bytes):
        return iter([lazily(each) for each in value])
    return value


def in_steps(key: int, version: int, data: bytes, **more: int) -> tuple[dict[str, Any], int]:
    steps = decode_request_in_steps(key, version, data, **more)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: tuple[dict[str, Any], int] = done.value
            return found


@pytest.mark.parametrize("key", KEYS)
def test_a_response_in_steps_has_the_codecs_bytes(key: int) -> None:
    random = Random(key)
    for version in versions(key):
        name = f"{api_name(key)}Response"
        fields = random_message(random, name, version)
        for given_fields in (fields, lazily(fields)):
            parts, _ = stepped(encode_response_in_steps(key, version, given_fields))
            assert b"".join(parts) == encode_message(name, version, fields)


@pytest.mark.parametrize("key", KEYS)
def test_a_request_in_steps_has_the_decoders_fields(key: int) -> None:
    random = Random(key)
    for version in versions(key):
        fields = random_message(random, f"{api_name(key)}Request", version)
        data = encode_request(key, version, fields)
        assert in_steps(key, version, data) == decode_counted_request(key, version, data)


@given(st.sampled_from(KEYS), st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 255))
def test_damaged_requests_fail_alike(key: int, seed: int, place: int, byte: int) -> None:
    random = Random(seed)
    version = random.choice(versions(key))
    fields = random_message(random, f"{api_name(key)}Request", version)
    data = bytearray(encode_request(key, version, fields))
    if data:
        data[place % len(data)] = byte
    outcomes: list[object] = []
    for decode in (decode_counted_request, in_steps):
        try:
            outcomes.append(decode(key, version, bytes(data[: place % (len(data) + 1) or None])))
        except WireError as error:
            outcomes.append(str(error).partition(":")[0])
    assert repr(outcomes[0]) == repr(outcomes[1])


def topics(count: int, inner: int) -> list[dict[str, Any]]:
    assignment = {"PartitionIndex": 1, "BrokerIds": [1, 2, 3]}
    return [
        {
            "Name": f"topic-{number}",
            "NumPartitions": -1,
            "ReplicationFactor": -1,
            "Assignments": [assignment] * inner,
            "Configs": [],
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("shape", [(3_000, 0), (1, 3_000), (50, 60)], ids=str)
def test_a_decoder_pauses_after_a_few_elements(shape: tuple[int, int]) -> None:
    data = encode_request(CREATE_TOPICS, 7, {"Topics": topics(*shape)})
    pauses = list(decode_request_in_steps(CREATE_TOPICS, 7, data))
    count, inner = shape
    assert len(pauses) >= count * (1 + inner) // stepped_decoding.STEP - 1
    assert pauses == sorted(pauses)
    assert pauses[-1] <= count * (1 + inner)


def test_many_numbers_are_read_some_at_a_time() -> None:
    asked = {"ElectionType": 0, "TopicPartitions": [{"Topic": "a", "Partitions": [7] * 100_000}]}
    data = encode_request(ELECT_LEADERS, 2, asked)
    assert len(list(decode_request_in_steps(ELECT_LEADERS, 2, data))) >= 10
    fields, elements = in_steps(ELECT_LEADERS, 2, data)
    assert fields["TopicPartitions"][0]["Partitions"] == [7] * 100_000
    assert elements == 1 + 100_000 // 8


def test_too_many_elements_are_refused_before_they_are_made() -> None:
    data = encode_request(CREATE_TOPICS, 7, {"Topics": topics(11, 0)})
    assert in_steps(CREATE_TOPICS, 7, data, elements_max=11)[1] == 11
    with pytest.raises(WireError, match="too many elements"):
        in_steps(CREATE_TOPICS, 7, data, elements_max=10)


def test_a_struct_with_many_tagged_fields_is_refused() -> None:
    some = b"\0\0\0\0"  # no topics, a time, a flag
    tags = b"".join(bytes((40 + number, 1, 0)) for number in range(80))
    for count, refused in ((80, False), (101, True)):
        data = b"\1\0\0\0\1\0" + bytes((count,)) + (tags + some * 20)[: 3 * count + 63]
        data = data[: 7 + 3 * 80] if not refused else data
        for decode in (decode_counted_request, in_steps):
            if refused:
                with pytest.raises(WireError, match="tagged fields"):
                    decode(CREATE_TOPICS, 7, data)
            else:
                decode(CREATE_TOPICS, 7, data)


def test_an_encoder_takes_a_few_elements_at_a_time_and_closes_its_parts() -> None:
    taken = 0

    def partitions(count: int) -> Any:
        nonlocal taken
        for number in range(count):
            taken += 1
            yield {"PartitionIndex": number, "LeaderId": 1, "ReplicaNodes": [1, 2], "IsrNodes": [1]}

    answer = {"Topics": ({"Name": "large", "Partitions": partitions(20_000)} for _ in range(2))}
    steps, before, pauses = encode_response_in_steps(METADATA, 12, answer), 0, 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            parts = done.value
            break
        assert taken - before <= stepped_encoding.STEP
        before, pauses = taken, pauses + 1
    assert taken == 40_000
    assert pauses >= 40_000 // stepped_encoding.STEP
    assert len(parts) > 5
    assert max(map(len, parts)) < PART_BYTES + 10_000
