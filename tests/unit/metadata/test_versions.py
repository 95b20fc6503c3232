"""Versions of requests: what a controller reads, and how a client finds the highest one."""

import json
from typing import Any

import msgpack
import pytest

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import MetadataFetchRequest
from metadata.messages.versions import (
    NEWEST,
    RANGE_HEADER,
    UNVERSIONED,
    VERSION_HEADER,
    Agreed,
    highest_common,
    range_text,
    version_of,
)
from metadata.messages.wire import JSON, MSGPACK, decode, encode

FETCH = {"clusterId": "c", "brokerId": 1, "incarnationId": "A" * 22}
NEWER = {
    **FETCH,
    "color": "blue",
    "registration": {
        "endpoints": [{"name": "a", "host": "h", "port": 1, "speed": {"of": ["light"]}}],
        "rack": None,
        "mood": [1, None, {}],
    },
}


def body_of(fields: object, media: str) -> bytes:
    return json.dumps(fields).encode() if media == JSON else msgpack.packb(fields)


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_unknown_fields_are_ignored_at_any_depth_where_the_version_allows_it(media: str) -> None:
    body = body_of(NEWER, media)
    message = decode(MetadataFetchRequest, body, media, tolerant=True)
    assert message.broker_id == 1
    assert message.registration is not None
    assert message.registration.endpoints[0].port == 1
    with pytest.raises(LogbergError, match="unknown field"):
        decode(MetadataFetchRequest, body, media)


@pytest.mark.parametrize("media", [JSON, MSGPACK])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokerId": "one"}, "field brokerId: expected int, got str"),
        ({"clusterId": None}, "field clusterId: expected str, got null"),
        ({"registration": {"endpoints": [{"name": "a"}]}}, "missing required field host"),
        ({"registration": 5}, "field registration: expected object | null, got int"),
        ({"registration": {"endpoints": {"a": 1}}}, "registration.endpoints: expected array"),
    ],
)
def test_a_known_field_that_is_wrong_is_refused_in_every_version(
    change: dict[str, object], words: str, media: str
) -> None:
    body = body_of({**NEWER, **change}, media)
    with pytest.raises(LogbergError) as caught:
        decode(MetadataFetchRequest, body, media, tolerant=True)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert words in caught.value.message


@pytest.mark.parametrize("body", [b"", b"{", b"[[[", b"[" * 100_000, b"\xff", b'"x"', b"[1]"])
def test_what_is_no_message_is_refused_in_every_version(body: bytes) -> None:
    for media in (JSON, MSGPACK):
        with pytest.raises(LogbergError):
            decode(MetadataFetchRequest, body, media, tolerant=True)


def test_a_request_without_a_version_is_one_of_release_0_1() -> None:
    assert version_of({}) == UNVERSIONED == 1
    assert [version_of({VERSION_HEADER: str(n)}) for n in (1, 2)] == [1, 2]


@pytest.mark.parametrize("said", ["0", "3", "-1", "", "two", "2, 2", "²", "9" * 5000, "1e0"])
def test_a_version_that_is_not_read_is_refused_with_the_range(said: str) -> None:
    with pytest.raises(LogbergError, match="versions 1 to 2") as caught:
        version_of({VERSION_HEADER: said})
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert caught.value.details == {"minVersion": "1", "maxVersion": str(NEWEST)}


@pytest.mark.parametrize(
    ("said", "common"),
    [
        (None, 1),
        ("1-1", 1),
        ("1-2", 2),
        ("2-7", 2),
        ("1-9", 2),
        ("3-9", UNVERSIONED),
        ("2", UNVERSIONED),
        ("", UNVERSIONED),
        ("-", UNVERSIONED),
        ("a-b", UNVERSIONED),
    ],
)
def test_the_highest_version_that_both_know(said: str | None, common: int) -> None:
    assert highest_common(said) == common


def test_a_client_begins_unversioned_and_goes_up_and_down_with_what_answers() -> None:
    agreed = Agreed()
    assert agreed.headers("one") == {}
    assert not agreed.heard("one", {RANGE_HEADER: range_text()})
    assert agreed.headers("one") == {VERSION_HEADER: "2"}
    assert agreed.headers("two") == {}
    assert agreed.heard("one", {})
    assert agreed.headers("one") == {}
    agreed.heard("one", {RANGE_HEADER: range_text()})
    agreed.forget("one")
    assert agreed.version("one") == UNVERSIONED


def test_what_version_2_brought_is_left_out_where_it_is_not_said() -> None:
    """Release 0.1 refuses a field that it doesn't know, be it null."""
    fields = msgpack.unpackb(encode(MetadataFetchRequest(**_required()), MSGPACK))
    assert fields == FETCH


def _required() -> dict[str, Any]:
    return {"cluster_id": "c", "broker_id": 1, "incarnation_id": "A" * 22}
