"""Who may talk to the listener: certificates, tokens by PLAIN, passwords by SCRAM."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from types import SimpleNamespace

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.records import ScramMechanism
from runtime.sessions.interface import PeerOnWire
from tests.unit.kafka_listener.serving_kit import Connection

HANDSHAKE, AUTHENTICATE, HEARTBEAT = 17, 36, 63
OVER_TLS = PeerOnWire("10.0.0.7", True)
ALL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def opened(peer=OVER_TLS, **more):
    """A connection whose handler notes the callers."""
    callers = []

    def note(request, answer):
        callers.append(request.caller)
        answer({})

    connection = Connection({HEARTBEAT: note}, peer, required=True, mechanisms=ALL, **more)
    return connection, callers


def say(connection, message):
    return connection.ask(AUTHENTICATE, 2, AuthBytes=message)


def test_plain_takes_a_bearer_token_of_the_process():
    connection, callers = opened()
    assert connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")["ErrorCode"] == 0
    assert not connection.is_known
    assert say(connection, b"\0alice\0a-token")["ErrorCode"] == 0
    assert connection.is_known
    connection.ask(HEARTBEAT, 1)
    assert [(caller.principal, caller.method) for caller in callers] == [("User:alice", "token")]


@pytest.mark.parametrize(
    "message",
    [
        b"\0alice\0wrong",
        b"\0bob\0a-token",
        b"bob\0alice\0a-token",
        b"",
        b"\0\0\0",
        b"\0\xff\0a-token",
    ],
)
def test_a_wrong_plain_message_ends_the_connection(message):
    connection, _ = opened()
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    found = say(connection, message)
    assert found["ErrorCode"] == KafkaCode.SASL_AUTHENTICATION_FAILED
    assert "a-token" not in found["ErrorMessage"]
    assert connection.closed


def test_plain_is_not_offered_without_tls():
    connection, _ = opened(PeerOnWire("10.0.0.7"))
    found = connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    assert found["ErrorCode"] == KafkaCode.UNSUPPORTED_SASL_MECHANISM
    assert found["Mechanisms"] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert connection.closed


def test_nothing_else_is_answered_before_a_login():
    connection, callers = opened()
    connection.send(HEARTBEAT, 1)
    assert connection.closed
    assert callers == []


def test_a_login_does_not_take_for_ever():
    connection, _ = opened()
    connection.clock.run(12)
    assert connection.closed


@pytest.mark.parametrize(
    ("uri", "closed"), [("User:carol", False), ("bad", True)], ids=["known", "refused"]
)
def test_a_certificate_is_a_login(uri, closed):
    connection, callers = opened(PeerOnWire("10.0.0.7", True, uri))
    assert connection.closed is closed
    if not closed:
        connection.ask(HEARTBEAT, 1)
        assert callers[0].method == "certificate"


def test_steps_out_of_order_are_refused():
    connection, _ = opened()
    assert say(connection, b"\0alice\0a-token")["ErrorCode"] == KafkaCode.ILLEGAL_SASL_STATE
    assert connection.closed


class ScramClient:
    """The client's side of RFC 5802."""

    def __init__(self, connection, mechanism, user, password):
        self.connection = connection
        self.mechanism = mechanism
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.user, self.password = user, password

    def log_in(self):
        """Return the last answer, and whether the server proved that it knows the password."""
        self.connection.ask(HANDSHAKE, 1, Mechanism=self.mechanism)
        bare = f"n={self.user},r=abc"
        first = say(self.connection, f"n,,{bare}".encode())["AuthBytes"].decode()
        told = dict(part.split("=", 1) for part in first.split(","))
        salted = hashlib.pbkdf2_hmac(
            self.hash, self.password.encode(), b64decode(told["s"]), int(told["i"])
        )
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored = hashlib.new(self.hash, client_key).digest()
        without_proof = f"c=biws,r={told['r']}"
        signed = f"{bare},{first},{without_proof}".encode()
        signature = hmac.digest(stored, signed, self.hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        last = say(self.connection, f"{without_proof},p={b64encode(proof).decode()}".encode())
        server_key = hmac.digest(salted, b"Server Key", self.hash)
        expected = b64encode(hmac.digest(server_key, signed, self.hash))
        return last, last["AuthBytes"] == b"v=" + expected


def keys_of(hash_name, password, salt=b"some salt", iterations=4096):
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return SimpleNamespace(
        salt=salt,
        iterations=iterations,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", hash_name),
    )


@pytest.mark.parametrize(
    ("mechanism", "hash_name", "code"),
    [
        ("SCRAM-SHA-256", "sha256", ScramMechanism.SCRAM_SHA_256),
        ("SCRAM-SHA-512", "sha512", ScramMechanism.SCRAM_SHA_512),
    ],
)
def test_scram_takes_a_password_and_proves_itself(mechanism, hash_name, code):
    connection, callers = opened()
    connection.credentials.keys["dora", code] = keys_of(hash_name, "secret")
    last, proved = ScramClient(connection, mechanism, "dora", "secret").log_in()
    assert (last["ErrorCode"], proved) == (0, True)
    connection.ask(HEARTBEAT, 1)
    assert (callers[0].principal, callers[0].method) == ("User:dora", "scram")


@pytest.mark.parametrize("user", ["dora", "nobody"], ids=["wrong password", "no such user"])
def test_scram_tells_a_wrong_password_and_an_unknown_user_alike(user):
    connection, _ = opened()
    connection.credentials.keys["dora", ScramMechanism.SCRAM_SHA_256] = keys_of("sha256", "secret")
    last, _ = ScramClient(connection, "SCRAM-SHA-256", user, "guessed").log_in()
    assert last["ErrorCode"] == KafkaCode.SASL_AUTHENTICATION_FAILED
    assert last["ErrorMessage"] == "user name or password is not known here"
    assert connection.closed


def test_a_connection_ends_when_its_credential_is_gone():
    connection, _ = opened()
    keys = connection.credentials.keys
    keys["dora", ScramMechanism.SCRAM_SHA_256] = keys_of("sha256", "secret")
    ScramClient(connection, "SCRAM-SHA-256", "dora", "secret").log_in()
    assert not connection.session.judge_again(certificates=False)
    keys.clear()
    assert connection.session.judge_again(certificates=False)
    assert connection.closed
