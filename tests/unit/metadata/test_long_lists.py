"""A request with a long list is checked as a short one is, but in steps."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import AlterReassignmentsRequest, Reassignment
from metadata.messages.long_lists import PIECE, EncodedEntries, LongRequest, decode_long
from metadata.messages.reassignments import REASSIGNMENTS_PER_REQUEST
from metadata.messages.wire import JSON, MSGPACK

MANY = 3 * PIECE + 5


def entries(count: int = MANY) -> list[dict[str, Any]]:
    return [{"topic": f"t{n % 7}", "partition": n, "replicas": [1, n]} for n in range(count)]


def decoded(
    body: bytes, content_type: str = JSON, *, tolerant: bool = False
) -> tuple[LongRequest, int]:
    """Return the request, and after how many yields."""
    steps = decode_long(
        AlterReassignmentsRequest, "partitions", body, content_type, tolerant=tolerant
    )
    yields = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value, yields
        yields += 1


def test_the_list_and_the_rest_of_the_message_are_kept() -> None:
    body = {"partitions": entries(), "allowReplicationFactorChange": False, "dryRun": True}
    request, yields = decoded(json.dumps(body).encode())
    assert request.head == AlterReassignmentsRequest(
        (), allow_replication_factor_change=False, dry_run=True
    )
    assert list(request.entries) == msgspec.convert(entries(), list[Reassignment])
    assert yields == 3
    assert decoded(json.dumps({"partitions": entries(PIECE)}).encode())[1] == 0


@pytest.mark.parametrize(
    ("same", "body"),
    [
        (True, msgspec.msgpack.encode({"dryRun": False, "partitions": entries()})),
        (True, json.dumps({"partitions": [dict(reversed(e.items())) for e in entries()]}).encode()),
        (True, json.dumps({"partitions": entries()}, indent=1).encode()),
        (False, json.dumps({"partitions": entries()[::-1]}).encode()),
        (False, json.dumps({"partitions": entries(MANY - 1)}).encode()),
        (False, json.dumps({"partitions": entries(), "dryRun": True}).encode()),
        (False, json.dumps({"partitions": [*entries()[:-1], entries()[0]]}).encode()),
    ],
)  # fmt: skip
def test_its_meaning_is_that_of_what_it_says(*, same: bool, body: bytes) -> None:
    meaning = decoded(json.dumps({"partitions": entries()}).encode())[0].meaning
    content_type = JSON if body.startswith(b"{") else MSGPACK
    assert (decoded(body, content_type)[0].meaning == meaning) is same


def with_entry(number: int, **fields: Any) -> bytes:
    wanted = entries()
    wanted[number] |= fields
    return json.dumps({"partitions": wanted}).encode()


@pytest.mark.parametrize("number", [0, PIECE - 1, PIECE, MANY - 1])
def test_an_error_names_the_entry_by_its_number_in_the_whole_list(number: int) -> None:
    with pytest.raises(LogbergError) as refused:
        decoded(with_entry(number, topic=5))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.details["field"] == f"partitions[{number}].topic"
    assert f"field partitions[{number}].topic: expected str" in refused.value.message


def test_unknown_fields_are_refused_or_ignored_as_in_short_requests() -> None:
    new = with_entry(MANY - 1, newer=1)
    with pytest.raises(LogbergError, match="unknown field newer"):
        decoded(new)
    assert list(decoded(new, tolerant=True)[0].entries) == list(
        decoded(with_entry(MANY - 1))[0].entries
    )
    new = json.dumps({"partitions": entries(), "newer": 1}).encode()
    with pytest.raises(LogbergError, match="unknown field newer"):
        decoded(new)
    assert len(decoded(new, tolerant=True)[0].entries) == MANY


MOST = REASSIGNMENTS_PER_REQUEST


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("INVALID_REQUEST", b'{"partitions":[]}'),
        ("INVALID_REQUEST", b"{}"),
        ("INVALID_REQUEST", b'{"partitions":[%b0]}' % (b"0," * MOST)),
        ("INVALID_REQUEST", b'{"partitions":{}}'),
        ("MALFORMED_BODY", b""),
        ("MALFORMED_BODY", b'{"partitions":[{"topic":"t","partition":1}'),
        ("BODY_TOO_LARGE", b'{"partitions":[%b{}]}' % (b"{}," * MOST)),
        ("BODY_TOO_LARGE", b'{"partitions":[%b0]}' % (b"0," * (9 * MOST))),
        ("BODY_TOO_LARGE", b'{"partitions":[{"replicas":[%b0]}]}' % (b"0," * (2 * MOST))),
    ],
)
def test_bad_bodies(code: str, body: bytes) -> None:
    with pytest.raises(LogbergError) as refused:
        decoded(body)
    assert refused.value.code.value == code


def test_the_most_entries_pass() -> None:
    body = b'{"partitions":[%b]}' % b",".join(
        [b'{"topic":"t","partition":1,"replicas":[1,2,3]}'] * MOST
    )
    assert len(decoded(body)[0].entries) == MOST


@given(count=st.integers(0, 3 * PIECE), ends=st.tuples(*[st.integers(-9, 3 * PIECE + 9)] * 2))
def test_a_part_of_the_list_is_that_part(count: int, ends: tuple[int, int]) -> None:
    kept: EncodedEntries[int] = EncodedEntries(int)
    for start in range(0, count, PIECE):
        kept.add(list(range(start, min(start + PIECE, count))))
    plain = list(range(count))
    assert list(kept) == plain
    assert kept[ends[0] : ends[1]] == plain[ends[0] : ends[1]]
    if 0 <= ends[0] < count:
        assert kept[ends[0]] == plain[ends[0]]
        assert kept[-1 - ends[0]] == plain[-1 - ends[0]]
