"""Who may talk to the listener: certificates, tokens by PLAIN, passwords by SCRAM."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from types import SimpleNamespace

import pytest

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.records import ScramMechanism
from metadata.sealed_blocks import SealingError
from runtime.http.requests import Caller
from runtime.sessions.interface import PeerOnWire
from runtime.sockets.credentials import PeerCertificate
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


@pytest.mark.parametrize("name", ["carol@example.com", "p-gezdgnbvgy3tq"])
def test_the_owner_of_a_token_has_a_pseudonym_and_logs_in_by_any_name(name):
    """The log does not have the name, so nothing can be compared with it."""
    connection, callers = opened()
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    assert say(connection, f"\0{name}\0of-a-pseudonym".encode())["ErrorCode"] == 0
    connection.ask(HEARTBEAT, 1)
    assert [caller.principal for caller in callers] == ["User:p-gezdgnbvgy3tq"]


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
    assert connection.ended()


def test_the_answer_to_a_wrong_login_can_be_read_before_the_connection_ends():
    connection, callers = opened()
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    say(connection, b"\0alice\0wrong")
    connection.clock.run(0.05)
    assert not connection.closed
    # Nothing is answered on it any more, and a right token comes too late.
    connection.send(AUTHENTICATE, 2, AuthBytes=b"\0alice\0a-token")
    connection.send(HEARTBEAT, 1)
    connection.clock.run(0.04)
    assert connection.frames() == []
    assert callers == []
    connection.clock.run(0.02)
    assert connection.closed
    assert len(connection.refusals.lines) == 1


def test_plain_is_not_offered_without_tls():
    connection, _ = opened(PeerOnWire("10.0.0.7"))
    found = connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    assert found["ErrorCode"] == KafkaCode.UNSUPPORTED_SASL_MECHANISM
    assert found["Mechanisms"] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert connection.ended()


def test_old_clients_log_in_without_headers():
    """After SaslHandshake of version 0 the messages of SASL come as they are, and so do ours."""
    connection, callers = opened()
    assert connection.ask(HANDSHAKE, 0, Mechanism="PLAIN")["ErrorCode"] == 0
    connection.send_frame(b"\0alice\0a-token")
    assert connection.frames() == [b""]
    connection.ask(HEARTBEAT, 1)
    assert callers[0].principal == "User:alice"


def test_a_wrong_login_without_headers_is_not_answered():
    connection, _ = opened()
    connection.ask(HANDSHAKE, 0, Mechanism="PLAIN")
    connection.send_frame(b"\0alice\0wrong")
    assert connection.frames() == []
    assert connection.ended()


def test_scram_without_headers_takes_two_messages():
    connection, _ = opened()
    sha = ScramMechanism.SCRAM_SHA_256
    connection.credentials.keys["dora", sha] = keys_of("sha256", "secret")
    connection.ask(HANDSHAKE, 0, Mechanism="SCRAM-SHA-256")
    connection.send_frame(b"n,,n=dora,r=abc")
    (first,) = connection.frames()
    assert first.startswith(b"r=abc")
    assert not connection.is_known
    connection.send_frame(b"c=biws,r=abc,p=AAAA")
    assert connection.ended()


def test_version_0_of_the_handshake_is_named():
    """librdkafka before 2.1 takes a listener without it for one that has no SASL."""
    connection, _ = opened()
    named = connection.ask(18, 3, ClientSoftwareName="rd", ClientSoftwareVersion="1")["ApiKeys"]
    assert next(k for k in named if k["ApiKey"] == HANDSHAKE)["MinVersion"] == 0


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
    connection, callers = opened(PeerOnWire("10.0.0.7", True, PeerCertificate(uri)))
    assert connection.closed is closed
    if not closed:
        connection.ask(HEARTBEAT, 1)
        assert callers[0].method == "certificate"


def test_steps_out_of_order_are_refused():
    connection, _ = opened()
    assert say(connection, b"\0alice\0a-token")["ErrorCode"] == KafkaCode.ILLEGAL_SASL_STATE
    assert connection.ended()


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
    assert connection.ended()


def test_a_credential_that_can_not_be_opened_is_no_other_answer():
    """An own sentence would say that there is such a user."""
    connection, _ = opened()

    def scram(_user, _mechanism):
        raise SealingError("its key was destroyed")

    connection.credentials.scram = scram
    last, _ = ScramClient(connection, "SCRAM-SHA-256", "dora", "secret").log_in()
    assert last["ErrorMessage"] == "user name or password is not known here"


@pytest.mark.parametrize("user", ["dora", "nobody"])
def test_a_node_that_opens_no_credential_says_so_to_everybody(user):
    connection, _ = opened()
    connection.credentials.keys["dora", ScramMechanism.SCRAM_SHA_256] = keys_of("sha256", "secret")

    def salting(_user, _mechanism):
        raise SealingError("there is no cluster key here")

    connection.credentials.salting = salting
    connection.ask(HANDSHAKE, 1, Mechanism="SCRAM-SHA-256")
    found = say(connection, f"n,,n={user},r=abc".encode())
    assert found["ErrorMessage"] == "this node can't open the cluster's credentials"


def test_a_connection_ends_when_its_credential_is_gone():
    connection, _ = opened()
    keys = connection.credentials.keys
    keys["dora", ScramMechanism.SCRAM_SHA_256] = keys_of("sha256", "secret")
    ScramClient(connection, "SCRAM-SHA-256", "dora", "secret").log_in()
    assert not connection.session.judge_again(certificates=False)
    keys.clear()
    assert connection.session.judge_again(certificates=False)
    assert connection.closed


@pytest.mark.parametrize(
    "final",
    [
        "c=biws,r=NONCE,p=ü",
        "c=ü,r=NONCE,p=AAAA",
        "c=biws,r=NONCE,p=",
        "c=biws,p=AAAA",
        ",p=",
        "",
        "c=biws,r=NONCE,p=AA=A=",
    ],
)
def test_a_final_scram_message_that_is_none_ends_the_connection(final):
    connection, callers = opened()
    connection.ask(HANDSHAKE, 1, Mechanism="SCRAM-SHA-256")
    first = say(connection, b"n,,n=al,r=abc")["AuthBytes"].decode()
    nonce = first.split(",")[0].removeprefix("r=")
    found = say(connection, final.replace("NONCE", nonce).encode())
    assert found["ErrorCode"] == KafkaCode.SASL_AUTHENTICATION_FAILED
    assert connection.ended()
    assert callers == []


def test_plain_takes_a_delegation_token_of_the_log_until_it_expires():
    connection, callers = opened()
    token = SimpleNamespace(owner="User:carol", expiry_ms=5_000, hmac=b"h" * 64)
    connection.credentials.tokens["an-id"] = token
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    secret = b64encode(token.hmac)
    assert say(connection, b"\0an-id\0" + secret)["ErrorCode"] == 0
    connection.ask(HEARTBEAT, 1)
    assert callers == [Caller("User:carol", "delegation-token", "10.0.0.7")]
    assert not connection.session.judge_again(certificates=False)
    connection.clock.run(6)
    assert connection.session.judge_again(certificates=False)
    assert connection.closed


@pytest.mark.parametrize(
    ("name", "secret", "now_s"),
    [
        ("an-id", b"wrong", 0),
        ("another", b64encode(b"h" * 64), 0),
        ("an-id", b64encode(b"h" * 64), 6),
    ],
    ids=["wrong", "unknown", "expired"],
)
def test_a_delegation_token_that_is_wrong_is_refused_like_any_other(name, secret, now_s):
    connection, _ = opened()
    token = SimpleNamespace(owner="User:carol", expiry_ms=5_000, hmac=b"h" * 64)
    connection.credentials.tokens["an-id"] = token
    connection.clock.run(now_s)
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    found = say(connection, b"\0" + name.encode() + b"\0" + secret)
    assert found["ErrorMessage"] == "user name or token is not known here"
    assert connection.ended()


@pytest.mark.parametrize(("user", "principal"), [("kafka-7", "Broker:7"), ("dora", "User:dora")])
def test_a_user_of_the_settings_logs_in_as_a_broker(user, principal):
    connection, callers = opened(brokers={"kafka-7": 7})
    connection.credentials.keys[user, ScramMechanism.SCRAM_SHA_512] = keys_of("sha512", "secret")
    ScramClient(connection, "SCRAM-SHA-512", user, "secret").log_in()
    connection.ask(HEARTBEAT, 1)
    assert [caller.principal for caller in callers] == [principal]


def test_a_login_that_fails_is_an_attempt_of_nobody_with_the_name_it_gave():
    connection, _ = opened()
    connection.ask(HANDSHAKE, 1, Mechanism="PLAIN")
    say(connection, b"\0alice\0wrong")
    (attempt,) = connection.refusals.attempts
    assert (attempt.principal, attempt.operation, attempt.resource) == ("", "login", "user:alice")
    assert (attempt.address, attempt.code) == ("10.0.0.7", "SASL_AUTHENTICATION_FAILED")
    assert "wrong" not in repr(attempt)


def test_a_request_before_a_login_and_a_bad_certificate_are_attempts():
    connection, _ = opened()
    connection.send(HEARTBEAT, 1)
    (attempt,) = connection.refusals.attempts
    assert (attempt.operation, attempt.code) == ("BrokerHeartbeat", "UNAUTHENTICATED")
    connection, _ = opened(PeerOnWire("10.0.0.7", True, PeerCertificate("bad")))
    (attempt,) = connection.refusals.attempts
    assert (attempt.operation, attempt.code) == ("login", "UNAUTHENTICATED")
