"""Messages in both encodings, and the errors for wrong ones."""

import json
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    CreateTopicsRequest,
    ErrorReply,
    MetadataFetchReply,
    MetadataFetchRequest,
    NewTopic,
    WantedState,
    error_reply,
    with_leader,
)
from metadata.messages.wire import (
    JSON,
    MSGPACK,
    MSGPACK_BYTES_MAX,
    OBJECTS_MAX,
    VALUES_MAX,
    check_density,
    decode,
    decode_error,
    decode_fetch_reply,
    encode,
    media_type,
    reply_type,
)
from tests.strategies import message_classes, of_class

FETCH = {"clusterId": "c", "brokerId": 1, "incarnationId": "A" * 22}


@pytest.mark.parametrize("cls", message_classes(), ids=lambda cls: cls.__name__)
def test_every_message_goes_there_and_back(cls: Any) -> None:
    @settings(max_examples=20)
    @given(of_class(cls))
    def there_and_back(message: Any) -> None:
        for media in (JSON, MSGPACK):
            assert decode(cls, encode(message, media), media) == message

    there_and_back()


@pytest.mark.parametrize("cls", message_classes(), ids=lambda cls: cls.__name__)
def test_names_outside_are_camel_case(cls: type[Any]) -> None:
    for name in cls.__struct_encode_fields__:
        assert "_" not in name
        assert name[0].islower()
    assert cls.__struct_config__.forbid_unknown_fields == cls.__mro__[1].__name__.startswith(
        "Request"
    )


def test_another_implementation_reads_a_message_as_a_map() -> None:
    request = MetadataFetchRequest(cluster_id="c", broker_id=1, incarnation_id="A" * 22)
    plain = msgpack.unpackb(encode(request, MSGPACK))
    # What has its default is left out: what 0.1 does not know must be, and who reads it adds it.
    assert plain == {"clusterId": "c", "brokerId": 1, "incarnationId": "A" * 22}
    assert plain == json.loads(encode(request, JSON))


def test_the_least_that_a_person_with_curl_must_send() -> None:
    request = decode(MetadataFetchRequest, json.dumps(FETCH).encode(), "application/json")
    assert request.wanted_state is WantedState.FENCED
    assert (request.broker_epoch, request.fetched_offset, request.max_wait_ms) == (-1, 0, 0)
    assert request.registration is None


def test_batches_are_base64_in_json() -> None:
    reply = MetadataFetchReply(batches=(b"\x00\xff",))
    assert json.loads(encode(reply, JSON))["batches"] == ["AP8="]


@pytest.mark.parametrize(
    ("change", "words", "field"),
    [
        ({"brokerId": "one"}, "field brokerId: expected int, got str", "brokerId"),
        ({"brokerId": -1}, "field brokerId: expected int >= 0", "brokerId"),
        ({"brokerId": 2**31}, "field brokerId: expected int <= 2147483647", "brokerId"),
        ({"incarnationId": "short"}, "field incarnationId: expected str matching", "incarnationId"),
        ({"incarnationId": "A" * 22 + "\n"}, "field incarnationId: expected str", "incarnationId"),
        (
            {
                "registration": {
                    "endpoints": [{"name": "a", "host": "h", "port": 1}],
                    "logDirs": ["A" * 22 + "\n"],
                }
            },
            r"field registration.logDirs\[0\]: expected str",
            "registration.logDirs[0]",
        ),
        ({"brokerepoch": 5}, "object contains unknown field brokerepoch", None),
        (
            {"wantedState": "asleep"},
            "field wantedState: invalid enum value 'asleep'",
            "wantedState",
        ),
        ({"maxWaitMs": 60_001}, "field maxWaitMs: expected int <= 60000", "maxWaitMs"),
        ({"clusterId": None}, "field clusterId: expected str, got null", "clusterId"),
        (
            {"registration": {"endpoints": [{"name": "a", "host": "h", "port": 70000}]}},
            r"field registration.endpoints\[0\].port: expected int <= 65535",
            "registration.endpoints[0].port",
        ),
        (
            {"registration": {"endpoints": [{"name": "a", "host": "h"}]}},
            r"field registration.endpoints\[0\]: object missing required field port",
            "registration.endpoints[0]",
        ),
    ],
)
@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_a_wrong_field_is_named_with_what_was_expected(
    change: dict[str, Any], words: str, field: str | None, media: str
) -> None:
    body = {**FETCH, **change}
    data = json.dumps(body).encode() if media == JSON else msgpack.packb(body)
    with pytest.raises(LogbergError, match=words) as caught:
        decode(MetadataFetchRequest, data, media)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.details.get("field") == field


def test_a_missing_field_is_named() -> None:
    with pytest.raises(LogbergError, match="the body: object missing required field clusterId"):
        decode(MetadataFetchRequest, b"{}", JSON)
    with pytest.raises(LogbergError, match="the body: expected object, got array"):
        decode(MetadataFetchRequest, b"[]", JSON)


@pytest.mark.parametrize(
    ("body", "media", "words"),
    [
        (b"", JSON, "the body is empty"),
        (b"", MSGPACK, "the body is empty"),
        (b"{", JSON, "not JSON"),
        (b'{"clusterId": "\xff"}', JSON, "not JSON"),
        (b"[1] x", JSON, "expected object"),
        (b"\x81", MSGPACK, "not MessagePack"),
        (b"\x81\xa9clusterId\xa1\xff", MSGPACK, "not MessagePack"),
        (b"\xdf\xff\xff\xff\xff", MSGPACK, "not MessagePack"),
        (b"\xc1", MSGPACK, "invalid opcode|not MessagePack|expected object"),
    ],
)
def test_a_body_that_is_not_the_format_is_refused(body: bytes, media: str, words: str) -> None:
    with pytest.raises(LogbergError, match=words) as caught:
        decode(MetadataFetchRequest, body, media)
    assert caught.value.code in (ErrorCode.MALFORMED_BODY, ErrorCode.INVALID_REQUEST)
    assert caught.value.code.status == 400


def test_nested_without_end_is_refused() -> None:
    deep = b'{"topics":' * 1 + b"[" * 200_000
    with pytest.raises(LogbergError):
        decode(CreateTopicsRequest, deep, JSON)
    with pytest.raises(LogbergError):
        decode(dict[str, Any], b'{"a":' + b"[" * 200_000, JSON)


def test_a_request_without_topics_is_refused() -> None:
    with pytest.raises(LogbergError, match="field topics"):
        decode(CreateTopicsRequest, b'{"topics": []}', JSON)
    request = decode(CreateTopicsRequest, b'{"topics": [{"name": "a"}]}', JSON)
    assert request == CreateTopicsRequest(topics=(NewTopic(name="a"),))
    assert not request.dry_run


def test_a_reply_of_a_newer_node_is_read_as_far_as_we_know_it() -> None:
    newer = b'{"brokerEpoch": 5, "moodOfTheLeader": "calm"}'
    assert decode(MetadataFetchReply, newer, JSON).broker_epoch == 5


@pytest.mark.parametrize(
    ("header", "media"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("", JSON),
        ("application/msgpack", MSGPACK),
        ("application/x-msgpack", MSGPACK),
        (" application/vnd.msgpack ;x=y", MSGPACK),
    ],
)
def test_content_types_that_are_understood(header: str, media: str) -> None:
    assert media_type(header) == media


@pytest.mark.parametrize("header", ["text/html", "application/x-www-form-urlencoded", "json"])
def test_a_content_type_that_is_not_understood(header: str) -> None:
    with pytest.raises(LogbergError, match="application/json or application/msgpack") as caught:
        decode(ErrorReply, b"{}", header)
    assert caught.value.code is ErrorCode.UNSUPPORTED_MEDIA_TYPE
    with pytest.raises(LogbergError):
        encode({}, header)


@pytest.mark.parametrize(
    ("accept", "content_type", "media"),
    [
        ("", "", JSON),
        ("*/*", MSGPACK, MSGPACK),
        ("application/json", MSGPACK, JSON),
        ("text/html, application/msgpack;q=0.9, */*", JSON, MSGPACK),
        ("text/html", "text/html", JSON),
    ],
)
def test_the_format_of_an_answer(accept: str, content_type: str, media: str) -> None:
    assert reply_type(accept, content_type) == media


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_arrives_as_it_was_sent(code: ErrorCode) -> None:
    error = LogbergError(code, "because", {"topic": "a"})
    body = encode(error_reply(error, leader_id=2, leader_epoch=7, leader_url="u"), JSON)
    told = decode_error(code.status, body, JSON)
    assert told.known_code() is code
    assert (told.message, told.details) == ("because", {"topic": "a"})
    assert (told.whose_fault, told.retriable) == (code.fault.value, code.retriable)
    assert (told.leader_id, told.leader_epoch, told.leader_url) == (2, 7, "u")


def test_an_error_of_a_newer_node_keeps_its_name() -> None:
    body = b'{"code": "BROKER_ON_STRIKE", "message": "no", "whoseFault": "client"}'
    reply = decode_error(409, body, JSON)
    assert reply.known_code() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (reply.code, reply.message) == ("BROKER_ON_STRIKE", "no")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, ErrorCode.NO_QUORUM),
        (502, ErrorCode.UNKNOWN_SERVER_ERROR),
        (413, ErrorCode.BODY_TOO_LARGE),
        (401, ErrorCode.UNAUTHENTICATED),
    ],
)
def test_an_answer_that_is_not_ours_is_told_by_its_status(status: int, code: ErrorCode) -> None:
    for body, content_type in ((b"<html>", "text/html"), (b"{}", JSON), (b"", MSGPACK)):
        reply = decode_error(status, body, content_type)
        assert reply.code == code
        assert str(status) in reply.message
        assert code.status == status or code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_a_fetch_is_answered_with_one_kind_of_reply_whoever_answers(media: str) -> None:
    stale = error_reply(LogbergError(ErrorCode.STALE_BROKER_EPOCH))
    whole = MetadataFetchReply(error=stale, broker_epoch=9, leader_epoch=3)
    assert decode_fetch_reply(409, encode(whole, media), media) == whole
    bare = with_leader(error_reply(LogbergError(ErrorCode.NOT_CONTROLLER)), 2, 4, "url")
    reply = decode_fetch_reply(421, encode(bare, media), media)
    assert reply.error == bare
    assert (reply.leader_id, reply.leader_epoch, reply.leader_url) == (2, 4, "url")
    assert decode_fetch_reply(502, b"Bad Gateway", "text/plain").error is not None
    fine = MetadataFetchReply(broker_epoch=9)
    assert decode_fetch_reply(200, encode(fine, media), media) == fine
    with pytest.raises(LogbergError):
        decode_fetch_reply(200, b"Bad", media)


def test_a_request_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    """A decoder can't be interrupted, and what it takes is the number of values."""
    for body in (
        b'{"topics":[' + b'{"name":"x"},' * OBJECTS_MAX + b'{"name":"x"}]}',
        b'{"names":[' + b'"x",' * (VALUES_MAX + 1) + b'"x"]}',
    ):
        with pytest.raises(LogbergError) as refused:
            check_density(body, JSON)
        assert refused.value.code is ErrorCode.BODY_TOO_LARGE
    with pytest.raises(LogbergError) as refused:
        check_density(bytes(MSGPACK_BYTES_MAX + 1), MSGPACK)
    assert refused.value.code is ErrorCode.BODY_TOO_LARGE
    topics = [{"name": f"{number:0250}", "numPartitions": 1} for number in range(4_500)]
    check_density(json.dumps({"topics": topics}).encode(), JSON)
    check_density(b'{"reason":"' + b"," * (VALUES_MAX // 2) + b'"}', JSON)
