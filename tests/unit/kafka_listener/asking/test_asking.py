"""What goes to our routes for a Kafka request, and what comes back, whatever happens."""

import msgspec
import pytest

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.request import KafkaRequest
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import CreateTopicsReply, CreateTopicsRequest, NewTopic, error_reply
from metadata.messages.wire import JSON, MSGPACK, decode, encode
from runtime.http.requests import Caller, Reply, Unreachable
from tests.unit.kafka_listener.serving_kit import HandClock

ALICE = Caller("User:alice", "token", "10.0.0.7")
MESSAGE = CreateTopicsRequest((NewTopic("t"),))
DONE = CreateTopicsReply(())


class Route:
    """Stands for the controllers: remembers what came, and answers what it is told to."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []

    def __call__(self, request, on_reply):
        self.asked.append(request)
        on_reply(self.replies.pop(0))


def ok(message, content_type=MSGPACK):
    return Reply(200, encode(message, content_type), {"content-type": content_type})


def change(route, then, message=MESSAGE, **more):
    request = KafkaRequest(19, 7, "a-client", {}, ALICE)._replace(**more)
    defects = []
    clock = HandClock()
    asking = Asking(route, clock, lambda _request, error: defects.append(error))
    asking.change(request, "POST", "/v1/topics", message, CreateTopicsReply, then)
    clock.run(1)
    return defects


def outcome(reply):
    got = []
    change(Route(reply), got.append)
    (found,) = got
    return found


def test_the_caller_and_who_is_behind_it():
    route = Route(ok(DONE))
    change(route, lambda _: None, on_behalf_of="User:bob")
    (asked,) = route.asked
    assert asked.caller == ALICE
    assert asked.headers == {
        "accept": MSGPACK,
        "content-type": MSGPACK,
        "x-logberg-client-id": "a-client",
        "x-logberg-on-behalf-of": "User:bob",
    }
    assert decode(CreateTopicsRequest, asked.body, MSGPACK) == MESSAGE


@pytest.mark.parametrize(
    ("given", "sent"), [(None, None), ("", None), ("a\r\nb: c", "a??b: c"), ("x" * 500, "x" * 200)]
)
def test_a_client_id_is_printable_and_short(given, sent):
    route = Route(ok(DONE))
    change(route, lambda _: None, client_id=given)
    assert route.asked[0].headers.get("x-logberg-client-id") == sent


def test_a_large_message_goes_as_json():
    """A request in MessagePack has at most 96 KiB, since its values can't be counted."""
    many = CreateTopicsRequest(tuple(NewTopic(f"t{i}") for i in range(2000)))
    route = Route(ok(DONE))
    change(route, lambda _: None, many)
    assert route.asked[0].headers["content-type"] == JSON
    assert decode(CreateTopicsRequest, route.asked[0].body, JSON) == many


def test_a_reply_in_either_format_and_in_parts():
    assert outcome(ok(DONE)) == DONE
    assert outcome(ok(DONE, JSON)) == DONE
    body = encode(DONE, MSGPACK)
    parts = (body[i : i + 3] for i in range(0, len(body), 3))
    assert outcome(Reply(200, b"", {"content-type": MSGPACK}, parts)) == DONE


def test_a_refusal_is_an_error_with_its_sentence():
    error = LogbergError(ErrorCode.THROTTLED, "too fast", {"a": "b"}, 70)
    found = outcome(Reply(429, encode(error_reply(error), MSGPACK), {"content-type": MSGPACK}))
    assert (found.code, found.message, found.retry_after_ms) == (error.code, "too fast", 70)
    assert found.details == {"a": "b"}


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Unreachable("no route", refused=True), ErrorCode.NO_QUORUM),
        (Unreachable("timed out"), ErrorCode.REQUEST_TIMED_OUT),
        (Reply(502, b"<html>", {"content-type": "text/html"}), ErrorCode.UNKNOWN_SERVER_ERROR),
        (Reply(200, b"\xc1", {"content-type": MSGPACK}), ErrorCode.UNKNOWN_SERVER_ERROR),
        (Reply(200, b"", {"content-type": MSGPACK}), ErrorCode.UNKNOWN_SERVER_ERROR),
        (Reply(200, b"{}", {"content-type": JSON}), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_no_reply_is_an_error(reply, code):
    assert outcome(reply).code is code


def broken():
    yield b"\x80"
    raise OSError("the disk is gone")


def test_parts_that_break_off_are_an_error():
    found = outcome(Reply(200, b"", {"content-type": MSGPACK}, broken()))
    assert found.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "may have been carried out" in found.message


def test_a_failure_while_the_reply_is_translated_is_a_second_outcome():
    """So that a change that was made gets its answer."""
    got = []

    def then(found):
        got.append(found)
        if len(got) == 1:
            raise KeyError("Name")

    (defect,) = change(Route(ok(DONE)), then)
    assert isinstance(defect, KeyError)
    assert got[0] == DONE
    assert got[1].code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_expected_offset_goes_with_the_change():
    route = Route(ok(DONE))
    request = KafkaRequest(33, 2, None, {}, ALICE)
    Asking(route, HandClock()).change(
        request, "PATCH", "/v1/configs", MESSAGE, CreateTopicsReply, lambda _: None, expect_offset=7
    )
    assert route.asked[0].headers["x-logberg-expect-offset"] == "7"


def test_a_read_has_its_query_and_no_body():
    route = Route(ok(DONE))
    request = KafkaRequest(29, 3, None, {}, ALICE)
    Asking(route, HandClock()).read(
        request, "/v1/acls", msgspec.Struct, lambda _: None, {"host": "*"}
    )
    (asked,) = route.asked
    assert (asked.method, asked.query, asked.body) == ("GET", {"host": "*"}, b"")
