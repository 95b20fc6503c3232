"""One session without a socket: the test is the client at the other end."""

import random

from kafka_listener.serving.api_versions import FeatureVersions
from kafka_listener.serving.logins import Logins
from kafka_listener.serving.service import KafkaLimits, KafkaService
from kafka_listener.serving.session import KafkaSession
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
)
from runtime.http.requests import Caller, Reply
from runtime.sessions.interface import PeerOnWire
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.refusals import Refusals

FEATURES = FeatureVersions(
    {"metadata.version": (21, 33), "old": (0, 1)}, {"metadata.version": 30}, 7
)
TOKENS = {"a-token": "User:alice", "of-a-pseudonym": "User:p-gezdgnbvgy3tq"}


class HandClock:
    """A clock that a test moves by hand."""

    def __init__(self):
        self.now = 0.0
        self.due = []

    def monotonic(self):
        return self.now

    def wall_ms(self):
        return int(self.now * 1000)

    def call_soon(self, callback):
        self.call_later(0, callback)

    def call_later(self, delay_s, callback):
        self.due.append((self.now + delay_s, callback))

    def run(self, seconds):
        """Let time pass, and call what is due."""
        end = self.now + seconds
        while self.due and min(when for when, _ in self.due) <= end:
            next_one = min(self.due, key=lambda entry: entry[0])
            self.due.remove(next_one)
            self.now = next_one[0]
            next_one[1]()
        self.now = end


class TickingClock(HandClock):
    """A clock that goes on by a millisecond with each reading, so that long work takes slices."""

    def monotonic(self):
        self.now += 0.001
        return self.now


class NotedRefusals(Refusals):
    """What the log would say of refused attempts."""

    def __init__(self):
        self.lines = []
        self.attempts = []
        self.on_attempt = self.attempts.append

    def refused(self, event, **fields):
        self.lines.append((event, fields))


class Credentials:
    """SCRAM credentials of a test."""

    def __init__(self):
        self.keys = {}
        self.tokens = {}

    def scram(self, user, mechanism):
        return self.keys.get((user, mechanism))

    def salting(self, user, mechanism):
        keys = self.keys.get((user, mechanism))
        return (user.encode(), 4096) if keys is None else (keys.salt, keys.iterations)

    def token(self, token_id):
        return self.tokens.get(token_id)


def authenticate(certificate, token, _uid, address):
    """Know certificates by their URI, and the tokens above."""
    if token is not None:
        found = TOKENS.get(token.text)
        return Reply(401) if found is None else Caller(found, "token", address)
    if certificate is not None:
        uri = certificate.uri
        return Caller(uri, "certificate", address) if uri != "bad" else Reply(401)
    return Caller(address=address)


class Connection:
    """A connection to a listener with these handlers."""

    def __init__(
        self,
        handlers,
        peer=None,
        *,
        required=False,
        mechanisms=(),
        limits=None,
        brokers=None,
        clock=None,
    ):
        self.clock = clock or HandClock()
        self.refusals = NotedRefusals()
        self.defects = []
        self.credentials = Credentials()
        self.budget = ByteBudget(64 * 1024)
        self.written = bytearray()
        self.closed = False
        self.reads = True
        self.is_known = False
        self.service = KafkaService(
            handlers,
            lambda: FEATURES,
            self._logins(mechanisms, required, brokers or {}),
            listener="CONTROLLER",
            clock=self.clock,
            refusals=self.refusals,
            budget=self.budget,
            limits=limits or KafkaLimits(),
            on_defect=lambda _request, error: self.defects.append(error),
        )
        self.session = KafkaSession(self.service, self, peer or PeerOnWire("10.0.0.7"))

    def _logins(self, mechanisms, required, brokers):
        return Logins(
            authenticate,
            self.credentials,
            random.Random(5),
            mechanisms=mechanisms,
            required=required,
            now_ms=self.clock.wall_ms,
            brokers=brokers,
        )

    # -- what a session sees of its connection

    def write(self, data):
        self.written += data

    def close(self):
        self.closed = True

    abort = close

    def read_on(self, wanted):
        self.reads = wanted

    def known(self):
        self.is_known = True

    def busy(self, is_busy):
        pass

    # -- what the client does

    def send(self, api_key, version, correlation_id=1, **fields):
        header = encode_request_header(RequestHeader(api_key, version, correlation_id, "a-client"))
        self.send_frame(header + encode_request(api_key, version, fields))

    def send_frame(self, content):
        self.session.received(len(content).to_bytes(4, "big") + content)

    def frames(self):
        """Take all answers that were written, without their lengths."""
        found = []
        while self.written:
            size = int.from_bytes(self.written[:4], "big")
            found.append(bytes(self.written[4 : 4 + size]))
            del self.written[: 4 + size]
        return found

    def answer(self, api_key, version):
        """Take the one answer that was written: (correlation id, fields)."""
        (frame,) = self.frames()
        correlation_id, start = decode_response_header(api_key, version, frame)
        return correlation_id, decode_response(api_key, version, frame, start)

    def ended(self):
        """Tell whether the listener has closed the connection, or does within a moment."""
        self.clock.run(0.2)
        return self.closed

    def ask(self, api_key, version, **fields):
        """Send a request whose answer comes at once."""
        self.send(api_key, version, **fields)
        return self.answer(api_key, version)[1]
