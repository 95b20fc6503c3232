"""An agent's listener asks again while no controller leads, and its changes take effect once."""

import random

import pytest

from kafka_listener.asking.repeated_ask import RepeatedAsk
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import error_reply
from metadata.messages.wire import JSON, MSGPACK, encode
from runtime.http.requests import Reply, Request, Unreachable
from tests.unit.kafka_listener.asking.test_asking import Route
from tests.unit.kafka_listener.serving_kit import HandClock

DONE = Reply(200, b"done")
ID = "x-logberg-request-id"


def refusal(code, content_type=MSGPACK):
    body = encode(error_reply(LogbergError(code, "why")), content_type)
    return Reply(code.status, body, {"content-type": content_type})


class Repeats:
    """Asks a route on a clock that the test moves."""

    def __init__(self, *replies, method="POST"):
        self.clock = HandClock()
        self.route = Route(*replies)
        self.answers = []
        ask = RepeatedAsk(self.route, self.clock, random.Random(3), held_s=20.0)
        ask(Request(method, "/v1/topics", headers={"accept": MSGPACK}), self.answers.append)


@pytest.mark.parametrize(
    "first",
    [
        refusal(ErrorCode.NO_QUORUM),
        refusal(ErrorCode.NOT_CONTROLLER, JSON),
        refusal(ErrorCode.SHUTTING_DOWN),
        refusal(ErrorCode.STATE_DIVERGED),
        refusal(ErrorCode.REQUEST_TIMED_OUT),
        Unreachable("reset"),
    ],
    ids=["no quorum", "not the leader", "stops", "diverged", "unknown", "unreachable"],
)
def test_the_client_gets_the_answer_of_a_later_try(first):
    repeats = Repeats(first, first, DONE)
    assert repeats.answers == []
    repeats.clock.run(1.0)
    assert repeats.answers == [DONE]
    assert len(repeats.route.asked) == 3


def test_all_tries_of_a_change_have_one_id():
    repeats = Repeats(refusal(ErrorCode.REQUEST_TIMED_OUT), DONE)
    repeats.clock.run(1.0)
    first, second = (asked.headers[ID] for asked in repeats.route.asked)
    assert first == second
    assert len(first) == 22


def test_a_read_has_no_id():
    repeats = Repeats(refusal(ErrorCode.NO_QUORUM), DONE, method="GET")
    repeats.clock.run(1.0)
    assert repeats.answers == [DONE]
    assert all(ID not in asked.headers for asked in repeats.route.asked)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.THROTTLED,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_other_answers_are_final(code):
    repeats = Repeats(refusal(code))
    assert repeats.answers == [refusal(code)]


def test_after_the_time_the_client_learns_why():
    last = refusal(ErrorCode.NO_QUORUM)
    repeats = Repeats(*[last] * 100)
    repeats.clock.run(19.0)
    assert repeats.answers == []
    repeats.clock.run(2.0)
    assert repeats.answers == [last]
    assert 15 < len(repeats.route.asked) < 35, "the pauses grow to a second"
