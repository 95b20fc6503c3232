"""Refused attempts in words."""

from typing import Any

import msgspec
import pytest

from audit.questions.attempts import (
    FoundAttempts,
    attempts_json,
    attempts_line,
    attempts_on,
    code_word,
    newest_attempts,
)
from audit.questions.names import Names
from audit.questions.search import Filter, FoundRecord, Matcher
from audit.reading.settling import SETTLED, Logged
from ledger.batch import BatchHeader, Provenance
from metadata.records import AttemptDetail, AttemptOutcome, AttemptsRecord

RECORD = AttemptsRecord(
    controller_id=2,
    life=bytes(16),
    number=1,
    outcome=AttemptOutcome.REFUSED,
    detail=AttemptDetail.METADATA,
    principal="User:mallory",
    through="",
    auth_method="token",
    operation="delete_topics",
    resource="topic:orders",
    address="203.0.113.9",
    code="TOPIC_AUTHORIZATION_FAILED",
    reason="DELETE on TOPIC orders",
    first_ms=0,
    last_ms=61_000,
    count=12,
    total=40,
    request="",
    client_id="",
    body_sha256="",
    answer="",
)


def found(offset: int = 7, **fields: Any) -> FoundAttempts:
    return FoundAttempts(offset, 62_000, msgspec.structs.replace(RECORD, **fields))


def test_a_line_says_when_who_from_where_how_often_what_and_why() -> None:
    assert attempts_line(found()) == (
        "7  1970-01-01T00:00:00.000Z to 1970-01-01T00:01:01.000Z  "
        "User:mallory (token from 203.0.113.9)  "
        "refused 12 times  delete_topics topic:orders: DELETE on TOPIC orders"
    )
    nobody = found(principal="", operation="login", resource="user:alice", last_ms=0, through="")
    assert "nobody known (from 203.0.113.9)  refused 12 times  login user:alice" in attempts_line(
        nobody
    )
    assert " through Broker:7  would be refused" in attempts_line(
        found(through="Broker:7", outcome=2)
    )
    assert " accepted " in attempts_line(found(outcome=3, code="", reason=""))
    assert " counted " in attempts_line(found(outcome=99))


def test_json_has_every_field() -> None:
    said = attempts_json(found())
    assert said["offset"] == 7
    assert said["attempts"]["outcome"] == "REFUSED"
    assert said["attempts"]["count"] == 12


@pytest.mark.parametrize(
    ("thing", "fits"),
    [
        ("topic:orders", True),
        ("topic:*", True),
        ("orders", True),
        ("order", False),
        ("topic:order", False),
        ("user:mallory", False),
        ("broker:orders", False),
    ],
)
def test_what_counts_as_an_attempt_on_a_thing(thing: str, fits: bool) -> None:
    assert bool(_matches(attempts_on(thing))) is fits


@pytest.mark.parametrize("word", ["by:User:mallory", "from:203.0.113.9", "attempt:delete_topics"])
def test_words_that_find_it(word: str) -> None:
    assert _matches(Filter(resources=(word,)))
    assert not _matches(Filter(resources=(word + "x",)))


def test_a_search_for_a_thing_s_changes_does_not_find_attempts_on_it() -> None:
    assert not _matches(Filter(resources=("topic:orders",)))


def test_the_newest_come_first_and_all_are_counted() -> None:
    some = [_found(number) for number in range(5)]
    newest = newest_attempts(some, 2)
    assert [each.offset for each in newest.newest] == [4, 3]
    assert (newest.records, newest.attempts) == (5, 60)


def test_a_code_of_a_later_release_is_its_number() -> None:
    assert code_word(AttemptOutcome, 2) == "would_be_refused"
    assert code_word(AttemptOutcome, 77) == "77"


def _found(offset: int) -> FoundRecord:
    header = BatchHeader(offset, 1, 1, 5, Provenance("Controller:2"), bytes(32))
    return FoundRecord(Logged(offset, header, RECORD, SETTLED, offset, 5), ())


def _matches(wanted: Filter) -> FoundRecord | None:

    return Matcher(wanted, Names()).find(_found(3).logged)
