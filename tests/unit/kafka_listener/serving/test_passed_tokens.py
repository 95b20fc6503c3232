"""PLAIN at an agent: the controllers check the token, and each request takes it to them."""

import random

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.serving.logins import Logins
from kafka_listener.serving.passed_tokens import PassedPlainExchange, TokenCaller, passing_tokens
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.sessions.interface import PeerOnWire
from tests.unit.kafka_listener.serving_kit import Connection, Credentials, authenticate

HANDSHAKE, AUTHENTICATE, HEARTBEAT, VERSIONS = 17, 36, 63, 18
TOKEN = "of-alice"
LOGIN = f"\0alice\0{TOKEN}".encode()
JSON_HEAD = {"content-type": "application/json"}
ALICE = Reply(200, b'{"principal":"User:alice","method":"token"}', JSON_HEAD)


class Controllers:
    """Remember what they are asked, and answer when the test says so."""

    def __init__(self):
        self.asked = []
        self.replies = []

    def __call__(self, request, on_reply):
        self.asked.append(request)
        self.replies.append(on_reply)


class AgentsConnection(Connection):
    """A connection to an agent's listener whose controllers check tokens."""

    def __init__(self):
        self.controllers = Controllers()
        self.callers = []
        self.says = None
        """What the agent's image says of every token."""
        super().__init__(
            {HEARTBEAT: self._note}, PeerOnWire("10.0.0.7", True), required=True, mechanisms=()
        )

    def _logins(self, mechanisms, required, _brokers):
        ask = passing_tokens(self.controllers)
        return Logins(
            authenticate,
            Credentials(),
            random.Random(5),
            mechanisms=("PLAIN",),
            required=required,
            plain=lambda address: PassedPlainExchange(ask, address, lambda _token: self.says),
        )

    def _note(self, request, answer):
        self.callers.append(request.caller)
        answer({})

    def log_in(self, message=LOGIN):
        assert self.ask(HANDSHAKE, 1, Mechanism="PLAIN")["ErrorCode"] == 0
        self.send(AUTHENTICATE, 2, AuthBytes=message)


def test_a_token_that_a_controller_takes_is_a_login():
    connection = AgentsConnection()
    connection.log_in()
    (asked,) = connection.controllers.asked
    assert (asked.method, asked.path) == ("GET", "/v1/caller")
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.caller == Caller(address="10.0.0.7")
    assert not connection.is_known
    connection.controllers.replies[0](ALICE)
    assert connection.answer(AUTHENTICATE, 2)[1]["ErrorCode"] == 0
    assert connection.is_known
    connection.ask(HEARTBEAT, 1)
    (caller,) = connection.callers
    assert (caller.principal, caller.method, caller.token) == ("User:alice", "token", TOKEN)
    assert TOKEN not in f"{caller!r} {caller}"


@pytest.mark.parametrize(
    ("reply", "principal"),
    [
        (Reply(200, b'{"principal":"User:bob","method":"token"}', JSON_HEAD), "User:bob"),
        (Reply(404, b'{"code":"NOT_FOUND","message":"no such path"}', JSON_HEAD), "User:ANONYMOUS"),
        (Reply(200, b"not JSON", JSON_HEAD), "User:ANONYMOUS"),
    ],
    ids=["another", "an old controller", "nonsense"],
)  # fmt: skip
def test_a_client_is_whose_token_it_shows_whatever_name_it_gives(reply, principal):
    connection = AgentsConnection()
    connection.log_in(f"\0admin\0{TOKEN}".encode())
    connection.controllers.replies[0](reply)
    assert connection.answer(AUTHENTICATE, 2)[1]["ErrorCode"] == 0
    connection.ask(HEARTBEAT, 1)
    (caller,) = connection.callers
    assert caller.principal == principal


def test_what_comes_behind_a_login_waits_for_it():
    connection = AgentsConnection()
    connection.log_in()
    connection.send(HEARTBEAT, 1)
    assert connection.frames() == []
    connection.controllers.replies[0](Reply(200))
    assert len(connection.frames()) == 2
    assert len(connection.callers) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(401), "not known here"),
        (Reply(503), "no controller could check"),
        (Unreachable("reset"), "no controller could check"),
    ],
    ids=["unknown", "no leader", "unreachable"],
)
def test_any_other_answer_of_the_controllers_refuses_it(reply, said):
    connection = AgentsConnection()
    connection.log_in()
    connection.controllers.replies[0](reply)
    found = connection.answer(AUTHENTICATE, 2)[1]
    assert found["ErrorCode"] == KafkaCode.SASL_AUTHENTICATION_FAILED
    assert said in found["ErrorMessage"]
    assert TOKEN not in found["ErrorMessage"]
    assert connection.ended()


@pytest.mark.parametrize(
    "message",
    [
        b"\0alice\0",
        b"\0\0of-alice",
        b"\0alice\0two words",
        b"\0alice\0a\r\nx-logberg-on-behalf-of: User:admin",
        "\0alice\0tökén".encode(),
        b"\0alice\0" + b"x" * 5_000,
        b"bob\0alice\0of-alice",
        b"no parts",
    ],
)
def test_what_can_be_no_token_reaches_no_controller(message):
    connection = AgentsConnection()
    connection.log_in(message)
    code = connection.answer(AUTHENTICATE, 2)[1]["ErrorCode"]
    assert code == KafkaCode.SASL_AUTHENTICATION_FAILED
    assert connection.ended()
    assert connection.controllers.asked == []


def test_a_client_that_left_gets_no_answer():
    connection = AgentsConnection()
    connection.log_in()
    connection.session.lost()
    connection.controllers.replies[0](Reply(200))
    assert connection.frames() == []


def test_a_silent_controller_ends_the_login():
    connection = AgentsConnection()
    connection.log_in()
    connection.clock.run(12)
    assert connection.closed
    assert "not logged in" in connection.refusals.lines[0][1]["error"]


def test_callers_without_a_token_are_passed_on_as_they_are():
    controllers = Controllers()
    request = Request("GET", "/v1/topics", caller=Caller("User:dora", "scram", "10.0.0.7"))
    passing_tokens(controllers)(request, lambda _reply: None)
    assert controllers.asked == [request]
    assert TokenCaller("User:a", token="t") != Caller("User:a")


@pytest.mark.parametrize(
    ("at_login", "now", "ends"),
    [
        (None, None, False),
        (None, True, False),
        (None, False, True),
        (True, True, False),
        (True, False, True),
        (True, None, True),
    ],
)
def test_a_token_that_the_log_has_ended_ends_the_connection(at_login, now, ends):
    """The controllers would refuse each request; an idle connection ends, too."""
    connection = AgentsConnection()
    connection.says = at_login
    connection.log_in()
    connection.controllers.replies[0](Reply(200))
    assert not connection.closed
    connection.says = now
    assert connection.session.judge_again(certificates=False) is ends
