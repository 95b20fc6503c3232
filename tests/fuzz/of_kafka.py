"""Targets: Kafka's frames, requests, logins and record batches."""

import hashlib
from collections.abc import Generator
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

from kafka_listener.brokers.envelope import FORWARDABLE
from kafka_listener.serving.frames import FrameBuffer, framed
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.logins import user_and_token
from kafka_listener.serving.request_limits import elements_max
from kafka_listener.serving.scram_exchange import ScramExchange
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    decode_counted_request,
    decode_metadata_record,
    decode_request_header,
    decode_request_in_steps,
    encode_metadata_record,
    encode_request,
)
from kafka_listener.wire.record_batches import decode_batches, encode_batch
from metadata.image import EMPTY
from metadata.records import ScramMechanism
from tests.fuzz import repairs
from tests.fuzz.target import FuzzTarget
from tests.kafka_fuzz import FuzzedListener, random_frames, served
from tests.kafka_messages import random_message

_FRAME_MAX = 1024 * 1024
_PASSWORD = b"a password"
_SALT = b"a salt for a test"
_NONCE = "the-server's-nonce"


def _read_request(data: bytes) -> None:
    """The decoder that works in steps finds what the plain one finds, and it is written again."""
    header, start = decode_request_header(data)
    key, version = header.api_key, header.version
    most = elements_max(key)
    found = _end(decode_request_in_steps(key, version, data, start, most))
    assert repr(found) == repr(decode_counted_request(key, version, data, start, most))
    # What was decoded can be written. Unknown tagged fields are counted and dropped.
    again = encode_request(key, version, found[0])
    assert repr(decode_counted_request(key, version, again, 0, most)[0]) == repr(found[0])


def _end(steps: Generator[int, None, Any]) -> Any:
    counted = -1
    while True:
        try:
            now = next(steps)
        except StopIteration as end:
            return end.value
        assert now >= counted
        counted = now


@cache
def _listener() -> FuzzedListener:
    listener = FuzzedListener()
    listener.cluster.online(101)
    listener.cluster.create_topic("orders", partitions=3, factor=1)
    return listener


@cache
def _frame_seeds() -> list[bytes]:
    """A sound request of each kind that a listener serves, in its newest version."""
    random, found = Random(5), []
    newest = dict(served(_listener().service))
    for key, version in sorted(newest.items()):
        drawn = random_frames(random, [(key, version)], EMPTY, 12)
        found.append(next(frame.data for frame in drawn if frame.sound and len(frame.data) < 4_000))
    return found


def _request_seeds() -> list[bytes]:
    return [frame[4:] for frame in _frame_seeds()]


def _read_buffer(data: bytes) -> None:
    whole, pieces = FrameBuffer(), FrameBuffer()
    whole.feed(data)
    found, why = _taken(whole)
    in_pieces: list[bytes] = []
    for at in range(len(data)):
        pieces.feed(data[at : at + 1])
        some, why_then = _taken(pieces)
        in_pieces += some
        if why_then is not None:
            assert str(why_then) == str(why)
            break
    assert in_pieces == found
    if why is not None:
        raise why


def _taken(buffer: FrameBuffer) -> tuple[list[bytes], WireError | None]:
    found = []
    try:
        while (frame := buffer.take(_FRAME_MAX)) is not None:
            found.append(frame)
    except WireError as error:
        return found, error
    return found, None


def _converse(data: bytes) -> None:
    """A whole connection: answers or an end, no defect, and nothing of it stays in memory."""
    listener = _listener()
    connection = listener.connect()
    listener.refusals.lines.clear()
    connection.send(data)
    listener.cluster.world.run_for(60.0, lambda: connection.closed or connection.at_rest)
    connection.frames()
    lines = listener.refusals.lines
    assert len(lines) == (1 if connection.closed else 0), lines
    connection.hang_up()
    assert not listener.defects, listener.defects
    assert listener.budget.used == listener.service.decoded.used == 0, "memory stays held"


class _Known:
    """The credential of one user."""

    def __init__(self) -> None:
        salted = hashlib.pbkdf2_hmac("sha256", _PASSWORD, _SALT, 4096)
        self.keys = SimpleNamespace(stored_key=hashlib.sha256(salted).digest(), server_key=salted)

    def scram(self, user: str, _mechanism: ScramMechanism) -> Any:
        return self.keys if user == "al" else None

    def salting(self, _user: str, _mechanism: ScramMechanism) -> tuple[bytes, int]:
        return _SALT, 4096

    def token(self, _token_id: str) -> Any:
        return None


_KNOWN = _Known()


def _read_login(data: bytes) -> None:
    """SCRAM's two messages, divided by a zero byte, and PLAIN's one. Nobody gets in."""
    first, _, final = data.partition(b"\0")
    exchange = ScramExchange(
        ScramMechanism.SCRAM_SHA_256, _KNOWN, _NONCE, "10.0.0.7", lambda user: user
    )
    try:
        for message in (first, final):
            exchange.step(message, lambda _answer: None)
    except LoginRefusedError:
        user_and_token(data)
    else:
        raise AssertionError("somebody logged in without the password")


def _login_seeds() -> list[bytes]:
    proof = b"c=biws,r=abc" + _NONCE.encode() + b",p=" + b"A" * 43 + b"="
    return [b"n,,n=al,r=abc\0" + proof, b"n,a=al,n=al,r=abc\0" + proof, b"\0al\0a-token"]


def _read_batches(data: bytes) -> None:
    for batch in decode_batches(data):
        for _key, value in batch.records:
            if value is not None and not batch.control:
                decode_metadata_record(value)


def _batch_seeds() -> list[bytes]:
    random = Random(3)
    records = [
        encode_metadata_record(name, 0, random_message(random, name, 0))
        for name in ("TopicRecord", "PartitionRecord", "ConfigRecord", "FeatureLevelRecord")
    ]
    values = [(None, record) for record in records]
    return [
        encode_batch(7, 3, 1_700_000_000_000, values, control=False),
        encode_batch(0, 1, 5, [(b"\0\0\0\2", b"\0\0")], control=True),
    ]


def _envelope_seeds() -> list[bytes]:
    found = []
    for inner in sorted(FORWARDABLE):
        request = next(
            (one for one in _request_seeds() if one[:2] == inner.to_bytes(2, "big")), b""
        )
        fields = {
            "RequestData": request,
            "RequestPrincipal": b"\0\0\5User\3al\0",
            "ClientHostAddress": bytes(4),
        }
        head = b"\0\x3a\0\0\0\0\0\1\0\1a\0"
        found.append(framed(head, encode_request(58, 0, fields)))
    return found


TARGETS = (
    FuzzTarget(
        "kafka-frames",
        "the frames of a connection to a Kafka listener",
        _read_buffer,
        (WireError,),
        lambda: [framed(b"one", b"two") + framed(b""), framed(b"x" * 300)],
    ),
    FuzzTarget(
        "kafka-requests",
        "the header and body of every request that the codec knows",
        _read_request,
        (WireError,),
        _request_seeds,
    ),
    FuzzTarget(
        "kafka-listener",
        "whole connections to a Kafka listener of a controller, envelopes included",
        _converse,
        (),
        lambda: [*_frame_seeds(), *_envelope_seeds()],
    ),
    FuzzTarget(
        "kafka-logins",
        "the messages of SCRAM and PLAIN",
        _read_login,
        (LoginRefusedError,),
        _login_seeds,
    ),
    FuzzTarget(
        "kafka-batches",
        "Kafka's record batches and the metadata records in them",
        _read_batches,
        (WireError,),
        _batch_seeds,
        repairs.kafka_batch,
    ),
)
