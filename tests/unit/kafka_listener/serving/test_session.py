"""One connection: order, errors, limits, and what ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import KafkaFailure
from kafka_listener.serving.frames import framed
from kafka_listener.serving.service import KafkaLimits
from kafka_listener.wire.messages import RequestHeader, encode_request, encode_request_header
from runtime.sessions.interface import PeerOnWire
from runtime.sockets.credentials import PeerCertificate
from tests.unit.kafka_listener.serving_kit import Connection, TickingClock

VERSIONS, HEARTBEAT, CREATE_TOPICS = 18, 63, 19


class Held:
    """A handler that the test lets answer."""

    def __init__(self):
        self.requests = []

    def __call__(self, request, answer):
        self.requests.append((request, answer))


def at_once(_request, answer):
    answer({"IsCaughtUp": True})


def heartbeat(connection, correlation_id=1):
    connection.send(HEARTBEAT, 1, correlation_id, BrokerId=4)


def test_the_first_question_is_which_versions_there_are():
    connection = Connection({HEARTBEAT: at_once})
    found = connection.ask(
        VERSIONS, 4, ClientSoftwareName="apache-kafka-java", ClientSoftwareVersion="4.3.1"
    )
    keys = {
        entry["ApiKey"]: (entry["MinVersion"], entry["MaxVersion"]) for entry in found["ApiKeys"]
    }
    assert found["ErrorCode"] == 0
    assert set(keys) == {VERSIONS, HEARTBEAT, 17, 36}
    assert keys[VERSIONS] == (0, 4)
    assert [entry["Name"] for entry in found["FinalizedFeatures"]] == ["metadata.version"]
    assert found["FinalizedFeaturesEpoch"] == 7


def test_a_version_of_the_first_question_that_is_too_new_is_answered_in_version_0():
    connection = Connection({})
    connection.send_frame(b"\x00\x12\x00\x63\x00\x00\x00\x09" + b"whatever follows")
    correlation_id, found = connection.answer(VERSIONS, 0)
    assert (correlation_id, found["ErrorCode"]) == (9, KafkaCode.UNSUPPORTED_VERSION)
    assert not connection.closed


def test_answers_come_in_the_order_of_the_requests():
    held = Held()
    connection = Connection({HEARTBEAT: held})
    heartbeat(connection, 1)
    heartbeat(connection, 2)
    assert len(held.requests) == 1, "the second waits for the first one's answer"
    held.requests[0][1]({"IsCaughtUp": True})
    held.requests[1][1]({"IsFenced": True})
    assert [int.from_bytes(frame[:4], "big") for frame in connection.frames()] == [1, 2]


def test_a_handler_learns_who_asks_and_where():
    held = Held()
    connection = Connection(
        {HEARTBEAT: held}, PeerOnWire("10.0.0.9", True, PeerCertificate("User:certain"))
    )
    heartbeat(connection)
    ((request, _),) = held.requests
    assert (request.caller.principal, request.caller.address) == ("User:certain", "10.0.0.9")
    assert (request.client_id, request.listener) == ("a-client", "CONTROLLER")
    assert request.fields["BrokerId"] == 4


def _raises_failure(_request, _answer):
    raise KafkaFailure(KafkaCode.NOT_CONTROLLER)


def _raises_defect(_request, _answer):
    raise ZeroDivisionError


def _answers_nonsense(_request, answer):
    answer({"NoSuchField": 1})


@pytest.mark.parametrize(
    ("handler", "code", "defects"),
    [
        (_raises_failure, KafkaCode.NOT_CONTROLLER, 0),
        (_raises_defect, KafkaCode.UNKNOWN_SERVER_ERROR, 1),
        (_answers_nonsense, KafkaCode.UNKNOWN_SERVER_ERROR, 1),
    ],
)
def test_a_request_that_fails_is_answered(handler, code, defects):
    connection = Connection({HEARTBEAT: handler})
    assert connection.ask(HEARTBEAT, 1, BrokerId=4)["ErrorCode"] == code
    assert not connection.closed
    assert (len(connection.defects), len(connection.refusals.lines)) == (defects, defects)


def test_only_the_first_answer_is_sent_and_none_after_the_time_limit():
    held = Held()
    connection = Connection({HEARTBEAT: held}, limits=KafkaLimits(reply_s=5))
    heartbeat(connection)
    connection.clock.run(7)
    assert connection.answer(HEARTBEAT, 1)[1]["ErrorCode"] == KafkaCode.REQUEST_TIMED_OUT
    held.requests[0][1]({"IsCaughtUp": True})
    assert connection.frames() == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no header"),
        (b"\x00\x3f\x00", "no header"),
        (b"\x03\xe7\x00\x00\x00\x00\x00\x01", "api key 999 is not served"),
        (b"\x00\x3f\x00\x63\x00\x00\x00\x01", "version 99 of BrokerHeartbeat is not served"),
        (b"\x00\x3f\xff\xff\x00\x00\x00\x01", "version -1 of BrokerHeartbeat is not served"),
        (
            b"\x00\x3f\x00\x01\x00\x00\x00\x01\x7f\xff",
            "header of a request BrokerHeartbeat is broken",
        ),
        (b"\x00\x3f\x00\x01\x00\x00\x00\x01\xff\xff\x00\x01", "BrokerHeartbeat"),
    ],
)
def test_what_cannot_be_read_ends_the_connection_with_one_line(content, why):
    connection = Connection({HEARTBEAT: at_once})
    connection.send_frame(content)
    ((_, fields),) = connection.refusals.lines
    assert connection.closed
    assert why in fields["error"]
    assert connection.frames() == []


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x80\x00\x01"])
def test_a_length_beyond_the_limit_ends_the_connection_before_its_bytes_come(length):
    connection = Connection({})
    connection.session.received(length)
    assert connection.closed


def test_half_a_request_waits_so_long_and_no_longer():
    connection = Connection({HEARTBEAT: at_once}, limits=KafkaLimits(request_s=10))
    connection.session.received(b"\x00\x00\x00\x50\x00\x3f")
    connection.clock.run(9)
    assert not connection.closed
    connection.clock.run(3)
    assert connection.closed


def test_a_client_that_does_not_read_is_not_served_and_in_the_end_cut_off():
    connection = Connection({HEARTBEAT: at_once}, limits=KafkaLimits(unread_s=30))
    connection.session.blocked(True)
    heartbeat(connection)
    assert connection.frames() == []
    connection.session.blocked(False)
    assert connection.answer(HEARTBEAT, 1)[1]["IsCaughtUp"]
    connection.session.blocked(True)
    connection.clock.run(32)
    assert connection.closed


def test_requests_that_wait_hold_a_bounded_number_of_bytes():
    held = Held()
    connection = Connection({HEARTBEAT: held}, limits=KafkaLimits(ahead_bytes=100))
    for number in range(8):
        heartbeat(connection, number)
    assert not connection.reads
    while len(held.requests) < 8:
        held.requests[-1][1]({})
    assert connection.reads
    connection.session.received(b"\x00\x50\x00\x00" + bytes(70_000))
    assert connection.closed, "the budget of the whole process has 64 KiB here"


def test_a_connection_without_requests_ends():
    connection = Connection({HEARTBEAT: at_once}, limits=KafkaLimits(idle_s=60))
    connection.clock.run(50)
    heartbeat(connection)
    connection.clock.run(50)
    assert not connection.closed
    connection.clock.run(15)
    assert connection.closed


@given(st.lists(st.binary(max_size=60), max_size=5), st.integers(1, 7))
def test_whatever_comes_no_exception_escapes(contents, piece):
    connection = Connection({HEARTBEAT: at_once, CREATE_TOPICS: at_once})
    for content in contents:
        data = len(content).to_bytes(4, "big") + content
        for start in range(0, len(data), piece):
            connection.session.received(data[start : start + piece])
    assert not connection.defects


LARGE = [
    {"Name": f"topic-{n}", "NumPartitions": 1, "Assignments": [], "Configs": []}
    for n in range(3_000)
]


def make_topics(connection, correlation_id=1, topics=LARGE):
    wanted = [{"ReplicationFactor": 1, **topic} for topic in topics]
    connection.send(
        CREATE_TOPICS, 7, correlation_id, Topics=wanted, timeoutMs=1, validateOnly=False
    )


def named(request, answer):
    answer({"Topics": ({"Name": topic["Name"]} for topic in request.fields["Topics"])})


def numbers(connection):
    return [int.from_bytes(frame[:4], "big") for frame in connection.frames()]


def test_a_large_request_takes_slices_and_what_comes_behind_it_waits():
    connection = Connection({CREATE_TOPICS: named, HEARTBEAT: at_once}, clock=TickingClock())
    connection.budget.bytes_max = 1 << 20
    make_topics(connection, 1)
    heartbeat(connection, 2)
    assert connection.frames() == []
    connection.clock.run(10)
    assert numbers(connection) == [1, 2]
    assert connection.service.decoded.used == connection.budget.used == 0


def test_a_connection_that_ends_while_its_request_is_decoded_holds_nothing():
    connection = Connection({CREATE_TOPICS: named}, clock=TickingClock())
    connection.budget.bytes_max = 1 << 20
    make_topics(connection)
    assert connection.service.decoded.used > 0
    connection.session.lost()
    connection.clock.run(10)
    assert connection.written == b""
    assert connection.service.decoded.used == connection.budget.used == 0
    assert not connection.defects


def test_a_defect_in_a_later_slice_ends_the_connection_and_not_the_process(monkeypatch):
    def breaks(*_):
        yield from range(1_000)
        raise ZeroDivisionError

    monkeypatch.setattr("kafka_listener.serving.request_decoding.decode_request_in_steps", breaks)
    connection = Connection({HEARTBEAT: at_once}, clock=TickingClock())
    heartbeat(connection)
    assert not connection.closed
    connection.clock.run(30)
    assert connection.closed
    ((_, fields),) = connection.refusals.lines
    assert "ZeroDivisionError" in fields["error"]
    assert connection.service.decoded.used == 0


def test_a_large_request_that_breaks_off_ends_the_connection():
    connection = Connection({CREATE_TOPICS: named}, clock=TickingClock())
    connection.budget.bytes_max = 1 << 20
    make_topics(connection)
    other = Connection({CREATE_TOPICS: named}, clock=TickingClock())
    other.budget.bytes_max = 1 << 20
    make_topics(other)
    connection.clock.run(10)
    (frame,) = connection.frames()
    assert frame
    broken = Connection({CREATE_TOPICS: named}, clock=TickingClock())
    broken.budget.bytes_max = 1 << 20
    broken.send_frame(b"\0\x13\0\7\0\0\0\1\0\1a\0\xc0\x50" + b"\2a\0\0\0\1\0\1\1\1\0" * 3_000)
    broken.clock.run(10)
    ((_, line),) = broken.refusals.lines
    assert broken.closed
    assert "ends too early" in line["error"]
    assert broken.service.decoded.used == 0


def test_a_long_answer_goes_part_by_part_while_the_client_reads():
    body = tuple(bytes([n]) * 100_000 for n in range(10))
    connection = Connection({HEARTBEAT: lambda _request, answer: answer(body)})
    written = []

    def write(data):
        written.append(data)
        connection.session.blocked(True)

    connection.write = write
    heartbeat(connection, 1)
    heartbeat(connection, 2)
    for count in range(1, 11):
        connection.clock.run(0.1)
        assert len(written) == count
        connection.session.blocked(False)
    connection.clock.run(0.1)
    assert len(written) == 11, "the second answer begins behind the first one's last part"
    frame = b"".join(written[:10])
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame.endswith(b"".join(body))


def test_an_answer_that_cannot_be_written_to_its_end_is_an_error():
    def breaks(_request, answer):
        answer({"Topics": ({"Name": 1 // zero} for zero in (1, 0))})

    connection = Connection({CREATE_TOPICS: breaks})
    make_topics(connection, 1, LARGE[:2])
    _, found = connection.answer(CREATE_TOPICS, 7)
    codes = {topic["ErrorCode"] for topic in found["Topics"]}
    assert codes == {KafkaCode.UNKNOWN_SERVER_ERROR}
    assert len(connection.defects) == 1


def test_many_connections_with_short_requests_share_a_pass_in_turn():
    clock = TickingClock()
    first = Connection({HEARTBEAT: at_once}, clock=clock)
    second = Connection({HEARTBEAT: at_once}, clock=clock)
    second.service = first.service
    second.session = type(second.session)(first.service, second, PeerOnWire("10.0.0.8"))
    for connection in (first, second):
        connection.session.received(many_heartbeats(50))
    done = [len(first.frames()), len(second.frames())]
    assert 0 < sum(done) < 20, done
    clock.run(20)
    assert (done[0] + len(first.frames()), done[1] + len(second.frames())) == (50, 50)


def many_heartbeats(count):
    head = encode_request_header(RequestHeader(HEARTBEAT, 1, 1, "a"))
    return framed(head, encode_request(HEARTBEAT, 1, {"BrokerId": 4})) * count


def test_a_heartbeat_has_few_elements():
    connection = Connection({HEARTBEAT: at_once})
    connection.send(HEARTBEAT, 1, OfflineLogDirs=[bytes(16)] * 900)
    connection.answer(HEARTBEAT, 1)
    connection.send(HEARTBEAT, 1, OfflineLogDirs=[bytes(16)] * 1_100)
    ((_, line),) = connection.refusals.lines
    assert "too many elements" in line["error"]
