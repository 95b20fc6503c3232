"""Targets: the HTTP server's parser, the bodies of requests and replies, and the routes."""

import math
from functools import cache
from typing import Any

import msgspec

from controller.http.routes import ROUTES
from coordination.backends.consul import gateway as consul
from coordination.backends.consul import messages as consul_messages
from coordination.backends.etcd import gateway as etcd
from coordination.backends.etcd import messages as etcd_messages
from coordination.errors import Unavailable
from metadata.errors import LogbergError
from metadata.messages import CreateTopicsRequest
from metadata.messages.long_lists import decode_long, decode_long_reply
from metadata.messages.message import ReplyMessage
from metadata.messages.wire import JSON, MSGPACK, check_density, decode, decode_fetch_reply, encode
from runtime.http.parsing import Incoming, RequestParser
from tests.fuzz.target import FuzzTarget
from tests.strategies import message_classes

_CLASSES = message_classes()
_MEDIA = (JSON, MSGPACK)


def _read_stream(data: bytes) -> None:
    """At once and byte by byte: both must find the same requests."""
    assert _requests([data]) == _requests([data[at : at + 1] for at in range(len(data))])


def _requests(chunks: list[bytes]) -> list[tuple[Any, ...]]:
    parser, found = RequestParser(), []
    try:
        for chunk in chunks:
            at = 0
            while at < len(chunk) and not parser.ended:
                piece = chunk[at : at + parser.piece_bytes()]
                parser.feed(piece)
                at += len(piece)
                while parser.arrived and parser.arrived[0].complete:
                    found.append(_said(parser.arrived.popleft()))
        found += map(_said, parser.arrived)
    finally:
        parser.close()
    return found


def _said(incoming: Incoming) -> tuple[Any, ...]:
    refused = incoming.refused
    # The sentence of llhttp names the byte that it stopped at, in its own words.
    why = None if refused is None else type(refused).__name__
    if refused is not None:
        return incoming.head, why
    return incoming.head, incoming.complete, incoming.take_body()


def _stream_seeds() -> list[bytes]:
    post = b"POST /v1/topics HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    return [
        b"GET /v1/health?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n" * 2,
        post + b"Content-Length: 13\r\n\r\n" + b'{"topics":[]}' + b"GET / HTTP/1.0\r\n\r\n",
        post + b'Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n{"a":\r\n2\r\n1}\r\n0\r\nT: u\r\n\r\n',
        post + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
    ]


def _read_body(data: bytes) -> None:
    """The first byte chooses the message, the second one how it is read."""
    chosen, how = data[:2].ljust(2, b"\0")
    message_type, media, body = _CLASSES[chosen % len(_CLASSES)], _MEDIA[how & 1], data[2:]
    check_density(body, media)
    message = decode(message_type, body, media, tolerant=bool(how & 2))
    is_reply = issubclass(message_type, ReplyMessage)
    # Replies' numbers have no bounds, and MessagePack has none beyond 64 bits.
    for other in (media,) if is_reply else _MEDIA:
        if not _is_finite(msgspec.to_builtins(message)):
            break  # JSON has no such numbers. Whoever decides on a quota refuses them.
        assert decode(message_type, encode(message, other), other) == message
    if is_reply:
        assert _end(decode_long_reply(message_type, body, media)) is not None


def _is_finite(value: Any) -> bool:
    """Whether no number in it is infinite or none at all."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _end(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@cache
def _body_seeds() -> list[bytes]:
    """A message of each kind that its class can make without words of ours."""
    found: list[bytes] = []
    for number, message_type in enumerate(_CLASSES):
        try:
            message = _least(message_type)
        except msgspec.ValidationError:
            continue
        for how, media in enumerate(_MEDIA):
            found.append(bytes((number, how)) + encode(message, media))
    assert len(found) > len(_CLASSES)
    return found


def _least(message_type: type[Any]) -> Any:
    """Make a message of values that are as plain as the types allow."""
    fields = msgspec.structs.fields(message_type)
    plain = {field.encode_name: _plain(msgspec.inspect.type_info(field.type)) for field in fields}
    return msgspec.convert(plain, message_type)


def _plain(kind: Any) -> Any:
    inspect = msgspec.inspect
    match kind:
        case inspect.Metadata(type=inner):
            return _plain(inner)
        case inspect.UnionType(types=types):
            return _plain(types[0])
        case inspect.StrType(pattern=pattern):
            return "A" * 22 if pattern else "a"
        case inspect.BytesType():
            return "AAAA"
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=low):
            return low or 1
        case inspect.FloatType():
            return 0.5
        case inspect.EnumType(cls=enum):
            return next(iter(enum)).value
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [_plain(item)]
        case inspect.DictType():
            return {}
        case inspect.StructType(cls=cls):
            return msgspec.to_builtins(_least(cls))
    return None


def _read_long(data: bytes) -> None:
    """The decoder that works in steps finds what the plain one finds."""
    media, body = _MEDIA[data[:1] == b"\1"], data[1:]
    found = _end(decode_long(CreateTopicsRequest, "topics", body, media))
    whole = decode(CreateTopicsRequest, body, media)
    assert tuple(found.entries) == tuple(whole.topics)


def _long_seeds() -> list[bytes]:
    topics = [
        {"name": f"t{n}", "numPartitions": 1, "replicationFactor": 1, "configs": {}}
        for n in range(70)
    ]
    message = msgspec.convert({"topics": topics}, CreateTopicsRequest)
    return [bytes((how,)) + encode(message, media) for how, media in enumerate(_MEDIA)]


def _read_reply(data: bytes) -> None:
    """What an agent reads of a controller's answer."""
    status = 200 if data[:1] == b"\0" else 503
    decode_fetch_reply(status, data[1:], MSGPACK)


def _reply_seeds() -> list[bytes]:
    number = next(n for n, one in enumerate(_CLASSES) if one.__name__ == "MetadataFetchReply")
    found = [one for one in _body_seeds() if one[:2] == bytes((number, 1))]
    return [b"\0" + one[2:] for one in found] or [b"\0\x80"]


_STORES: tuple[tuple[Any, Any], ...] = (
    (etcd, etcd_messages.RangeReply),
    (etcd, etcd_messages.TxnReply),
    (etcd, etcd_messages.EtcdWatchReply),
    (consul, consul_messages.ConsulTxnReply),
    (consul, tuple[consul_messages.ConsulKey, ...]),
)


def _read_store(data: bytes) -> None:
    """The first byte chooses the store and the reply."""
    gateway, kind = _STORES[(data[:1] or b"\0")[0] % len(_STORES)]
    gateway._decoded(data[1:], kind)


def _store_seeds() -> list[bytes]:
    key = b'{"key":"YQ==","value":"Yg==","mod_revision":"3","lease":"5"}'
    read = b'{"header":{"revision":"5"},"kvs":[' + key + b'],"more":false}'
    stored = b'{"Key":"a","Value":"Yg==","ModifyIndex":3}'
    return [
        b"\0" + read,
        b'\1{"succeeded":true,"responses":[{"response_range":' + read + b"}]}",
        b'\2{"result":{"header":{"revision":"5"},"events":[{"kv":' + key + b"}]}}",
        b'\3{"Results":[{"KV":' + stored + b'}],"Errors":null}',
        b"\4[" + stored + b"]",
    ]


class _Routes:
    """One controller that answers whatever is asked."""

    def __init__(self) -> None:
        from tests.unit.controller.cluster import Cluster

        self.cluster = Cluster(nodes=1)
        self.cluster.online(1, 2)
        self.cluster.create_topic("orders", partitions=3, factor=1)

    def ask(self, data: bytes) -> int:
        number, how = data[:2].ljust(2, b"\0")
        route = ROUTES[number % len(ROUTES)]
        argument, _, rest = data[2:].partition(b"\0")
        query, _, body = rest.partition(b"\0")
        text = argument.decode("latin-1")
        path = "/".join(text if part.startswith("{") else part for part in route.path.split("/"))
        pairs = (pair.partition("=") for pair in query.decode("latin-1").split("&") if pair)
        replies = self.cluster.send(
            route.method,
            path,
            body,
            query={name: value for name, _, value in pairs},
            headers={"content-type": _MEDIA[how & 1]},
        )
        self.cluster.world.run_for(40.0, lambda: bool(replies))
        assert replies, f"no answer to {route.method} {path}"
        return int(replies[0].status)


@cache
def _routes() -> _Routes:
    return _Routes()


def _read_request(data: bytes) -> None:
    status = _routes().ask(data)
    assert status < 500 or status in (503, 507), f"a defect: HTTP status {status}"


@cache
def _request_seeds() -> list[bytes]:
    seeds = []
    for number, route in enumerate(ROUTES):
        argument = b"orders" if "topic" in route.path else b"1"
        body = b'{"topics":[{"name":"new","numPartitions":1,"replicationFactor":1}]}'
        query = b"limit=1&offset=0"
        seeds.append(b"\0".join((bytes((number, 0)) + argument, query, body)))
    return seeds


TARGETS = (
    FuzzTarget(
        "http-stream",
        "the bytes of a connection to a listener of HTTP, from anybody",
        _read_stream,
        (),
        _stream_seeds,
    ),
    FuzzTarget(
        "http-bodies",
        "bodies in JSON and MessagePack, from anybody who may send one",
        _read_body,
        (LogbergError,),
        _body_seeds,
    ),
    FuzzTarget(
        "http-long-bodies",
        "bodies with a long list, decoded in steps",
        _read_long,
        (LogbergError,),
        _long_seeds,
    ),
    FuzzTarget(
        "http-replies",
        "answers to MetadataFetch, from the server that a broker's agent asks",
        _read_reply,
        (LogbergError,),
        _reply_seeds,
    ),
    FuzzTarget(
        "store-replies",
        "answers of etcd and Consul, from the server that coordination asks",
        _read_store,
        (Unavailable,),
        _store_seeds,
    ),
    FuzzTarget(
        "http-routes",
        "whole requests to a controller: route, path, query and body",
        _read_request,
        (),
        _request_seeds,
    ),
)
