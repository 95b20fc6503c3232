"""Whatever comes to a Kafka listener: an answer with a code, or a closed connection and one line.

Rule: no exception escapes, no request that reached a handler stays without its answer, and no
memory stays held. LOGBERG_EXAMPLES sets how many conversations are drawn (`make kafka-fuzz`).
"""

import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.lateness.coverage import not_sent
from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.serving.frames import framed
from kafka_listener.serving.service import KafkaLimits
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    RequestHeader,
    api_name,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
    encode_response,
)
from tests.kafka_fuzz import Frame, FuzzedConnection, FuzzedListener, Words, random_frames, served
from tests.kafka_messages import random_message
from tests.unit.kafka_listener.serving_kit import Connection

EXAMPLES = int(os.environ.get("LOGBERG_EXAMPLES", "25"))
METADATA, API_VERSIONS, CREATE_TOPICS, ALTER_PARTITION = 3, 18, 19, 56
WAIT_S = 60.0
"""Longer than any request waits: a Fetch 10 s, a change 30 s."""


def converse(listener: FuzzedListener, frames: list[Frame], piece: int) -> FuzzedConnection:
    """Send the frames, and wait until nothing is under way."""
    connection = listener.connect()
    for frame in frames:
        if connection.closed:
            break
        connection.send(frame.data, piece)
        listener.run(0.05)
    listener.cluster.world.run_for(WAIT_S, lambda: connection.closed or connection.at_rest)
    return connection


def check(listener: FuzzedListener, connection: FuzzedConnection, frames: list[Frame]) -> None:
    """Check what must hold after any conversation."""
    assert not listener.defects, listener.defects
    answers = connection.frames()
    assert len(answers) >= listener.begun, "a request stays without its answer"
    lines = listener.refusals.lines
    assert len(lines) == (1 if connection.closed else 0), lines
    if not connection.closed and all(frame.sound for frame in frames):
        assert len(answers) == len(frames)
        for answer, frame in zip(answers, frames, strict=True):
            correlation_id, start = decode_response_header(frame.api_key, frame.version, answer)
            assert correlation_id == frame.correlation_id
            decode_response(frame.api_key, frame.version, answer, start)
    connection.hang_up()
    assert listener.budget.used == listener.service.decoded.used == 0, "memory stays held"


@pytest.mark.parametrize("of_agent", [False, True], ids=["controller", "agent"])
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 12), piece=st.sampled_from((0, 0, 1, 7)))
def test_no_conversation_breaks_a_listener(
    of_agent: bool, seed: int, count: int, piece: int
) -> None:
    listener, random = FuzzedListener(of_agent=of_agent), Random(seed)
    listener.cluster.online(101)
    listener.cluster.create_topic("orders", partitions=3, factor=1)
    image = listener.controller.image
    frames = list(random_frames(random, served(listener.service), image, count))
    check(listener, converse(listener, frames, piece), frames)


def test_every_request_in_every_version_is_answered_and_not_only_refused() -> None:
    """A sound request whose words exist: one answer, in the version that was asked."""
    for of_agent in (False, True):
        listener, random = FuzzedListener(of_agent=of_agent), Random(7)
        listener.cluster.online(101)
        listener.cluster.create_topic("orders", partitions=3, factor=1)
        for key, version in served(listener.service):
            frames = [
                frame
                for frame in random_frames(random, [(key, version)], listener.controller.image, 8)
                if frame.sound
            ][:2]
            listener.refusals.lines.clear()
            listener.begun = 0
            connection = converse(listener, frames, 0)
            if key not in {17, 36}:
                assert not connection.closed, (api_name(key), version, listener.refusals.lines)
            check(listener, connection, frames)


def test_every_failure_can_be_written_in_every_version() -> None:
    """Whatever fails as a whole has an answer that its client can read."""
    listener, random = FuzzedListener(), Random(3)
    agent = FuzzedListener(of_agent=True)
    for key, version in {*served(listener.service), *served(agent.service)}:
        words = Words(random, listener.controller.image)
        for fields in (
            random_message(random, f"{api_name(key)}Request", version),
            words.message(f"{api_name(key)}Request", version),
        ):
            answer = failure(key, version, fields, KafkaCode.REQUEST_TIMED_OUT, "why" * 50)
            encode_response(key, version, answer)


def test_metadata_without_a_name_is_refused_in_versions_that_need_one() -> None:
    listener = FuzzedListener(of_agent=True)
    for version in range(10, 14):
        connection = listener.connect()
        head = encode_request_header(RequestHeader(METADATA, version, 1, "a-client"))
        topics = [{"Name": None, "TopicId": bytes(16)}]
        connection.send(framed(head, encode_request(METADATA, version, {"Topics": topics})))
        listener.run(1.0)
        [answer] = connection.frames()
        _, start = decode_response_header(METADATA, version, answer)
        found = decode_response(METADATA, version, answer, start)
        code = found["ErrorCode"] if version >= 13 else found["Topics"][0]["ErrorCode"]
        assert code == KafkaCode.INVALID_REQUEST
    assert not listener.defects


def test_many_elements_in_a_small_frame_are_refused_before_they_are_made() -> None:
    connection = Connection({CREATE_TOPICS: lambda _request, answer: answer({})})
    head = b"\0\x13\0\7\0\0\0\1\0\1a\0"
    connection.budget.bytes_max = 1 << 30
    connection.send_frame(head + b"\xc1\x9a\x0c" + bytes(200_000))
    ((_, line),) = connection.refusals.lines
    assert connection.closed
    assert "too many elements" in line["error"]


def test_requests_that_wait_for_their_answers_use_bounded_memory() -> None:
    """Each connection may have one request under way. All of them share one limit."""
    waiting = []
    first = Connection(
        {ALTER_PARTITION: lambda _request, answer: waiting.append(answer)},
        limits=KafkaLimits(decoded_bytes=100_000),
    )
    topics = [{"TopicId": bytes(16), "Partitions": [{"PartitionIndex": n} for n in range(300)]}]
    first.send(ALTER_PARTITION, 3, BrokerId=1, BrokerEpoch=1, Topics=topics)
    assert first.service.decoded.used > 300 * 256
    first.session.lost()
    assert first.service.decoded.used > 0, "the handler still holds the request"
    waiting[0]({})
    assert first.service.decoded.used == 0
    again = Connection({ALTER_PARTITION: lambda _request, answer: waiting.append(answer)})
    again.service.decoded.bytes_max = 1_000
    again.send(ALTER_PARTITION, 3, BrokerId=1, BrokerEpoch=1, Topics=topics)
    assert again.closed
    assert "use up the memory" in again.refusals.lines[0][1]["error"]


def test_many_requests_that_come_together_take_turns_with_the_loop() -> None:
    connection = Connection({})
    asked = 500
    request = b"\0\x12\0\0\0\0\0\1\xff\xff"
    data = (len(request).to_bytes(4, "big") + request) * asked
    clock = connection.clock

    def monotonic() -> float:
        clock.now += 0.001
        return clock.now

    clock.monotonic = monotonic
    connection.session.received(data)
    in_first_turn = len(connection.frames())
    assert 0 < in_first_turn < 20
    for _ in range(asked):
        clock.run(0.001)
    assert in_first_turn + len(connection.frames()) == asked


def test_a_string_longer_than_kafka_s_is_refused() -> None:
    """An answer could not repeat it."""
    connection = Connection({CREATE_TOPICS: lambda _request, answer: answer({})})
    long = b"\x81\x80\x02" + b"a" * 32_768
    connection.send_frame(b"\0\x13\0\7\0\0\0\1\0\1a\0" + b"\x02" + long + bytes(20))
    assert connection.closed
    assert "at most 32767 bytes" in connection.refusals.lines[0][1]["error"]


def test_wire_errors_are_one_sentence() -> None:
    with pytest.raises(WireError) as refused:
        decode_response(API_VERSIONS, 0, b"\0")
    assert "\n" not in str(refused.value)


def test_every_served_request_has_a_row_among_the_loads_of_lateness() -> None:
    """`make lateness` sends each at its largest size, on both listeners."""
    listeners = {"controller": FuzzedListener(), "agent": FuzzedListener(of_agent=True)}
    served_keys = {name: set(one.service.served) for name, one in listeners.items()}
    assert not_sent(served_keys) == []
    assert not_sent({"agent": {56}}) == ["Kafka's AlterPartition to the listener of the agent"]
