"""Counts of attempts: exact, by kind, and in bounded memory whatever comes."""

from collections import Counter
from typing import Any

import pytest

from controller.trail.counting import (
    KINDS_MAX,
    KINDS_OF_A_SOURCE,
    NAME_CHARS,
    AttemptCounts,
    where_class,
)
from metadata.records import SEVERAL, AttemptDetail, AttemptOutcome
from runtime.sockets.attempts import Attempt

REFUSED, METADATA = AttemptOutcome.REFUSED, AttemptDetail.METADATA
BASE = Attempt(
    "User:mallory",
    "token",
    "create_topics",
    "topic:orders",
    "10.0.0.7",
    "TOPIC_AUTHORIZATION_FAILED",
    "CREATE on TOPIC orders",
    request="POST /v1/topics",
    client_id="client",
    body=b"{}",
    answer="403 no",
)


def changed(field: str, value: Any) -> Attempt:
    return Attempt(**{**BASE._asdict(), field: value})


def taken(counts: AttemptCounts) -> list:
    return [counts.take_first() for _ in range(len(counts))]


def test_attempts_of_one_kind_are_one_entry_with_the_first_and_the_last_time() -> None:
    counts = AttemptCounts()
    for now in (500, 700, 600):
        counts.note(REFUSED, METADATA, BASE, now)
    counts.note(REFUSED, METADATA, BASE._replace(operation="delete_topics"), 800)
    (kind, counted), (other, once) = taken(counts)
    assert (kind.operation, counted.count, counted.first_ms, counted.last_ms) == (
        "create_topics",
        3,
        500,
        700,
    )
    assert (other.operation, once.count, once.first_ms) == ("delete_topics", 1, 800)
    assert not len(counts)


@pytest.mark.parametrize(
    "field", ["principal", "through", "auth_method", "operation", "resource", "code", "reason"]
)
def test_what_tells_kinds_apart(field: str) -> None:
    counts = AttemptCounts()
    counts.note(REFUSED, METADATA, BASE, 1)
    counts.note(REFUSED, METADATA, changed(field, "another"), 1)
    counts.note(AttemptOutcome.WOULD_BE_REFUSED, METADATA, BASE, 1)
    assert len(counts) == 3


@pytest.mark.parametrize("field", ["request", "client_id", "body", "answer"])
def test_what_does_not(field: str) -> None:
    counts = AttemptCounts()
    counts.note(REFUSED, AttemptDetail.RESPONSE, BASE, 1)
    other: Any = b"x" if field == "body" else "another"
    counts.note(REFUSED, AttemptDetail.RESPONSE, changed(field, other), 1)
    ((_, counted),) = taken(counts)
    assert counted.count == 2
    assert (counted.request, counted.answer) == ("POST /v1/topics", "403 no")
    assert counted.body_sha256.startswith("44136fa3")


def test_a_detail_keeps_what_it_says_and_no_more() -> None:
    counts = AttemptCounts()
    for detail in (METADATA, AttemptDetail.REQUEST):
        counts.note(REFUSED, detail, BASE, 1)
    (_, metadata), (_, request) = taken(counts)
    assert (metadata.request, metadata.client_id, metadata.body_sha256) == ("", "", "")
    assert (request.request, request.client_id, request.answer) == ("POST /v1/topics", "client", "")


def test_one_source_that_draws_names_does_not_hide_the_others() -> None:
    counts = AttemptCounts()
    for number in range(10_000):
        counts.note(REFUSED, METADATA, BASE._replace(resource=f"topic:{number}"), number)
    quiet = BASE._replace(principal="User:quiet", resource="topic:payroll")
    counts.note(REFUSED, METADATA, quiet, 7)
    found = taken(counts)
    assert sum(counted.count for _, counted in found) == 10_001
    assert len(found) == KINDS_OF_A_SOURCE + 2
    (several,) = [each for each in found if each[0].operation == SEVERAL]
    assert several[0].principal == "User:mallory"
    assert several[0].address == "10.0.0.7"
    assert several[0].code == BASE.code
    assert several[1].count == 10_000 - KINDS_OF_A_SOURCE
    assert counts.not_told_apart == several[1].count
    assert [kind.resource for kind, _ in found if kind.principal == "User:quiet"] == [
        "topic:payroll"
    ]


def test_many_sources_end_in_one_entry_for_each_code() -> None:
    counts, codes = AttemptCounts(), ("UNAUTHENTICATED", "TLS_HANDSHAKE_FAILED")
    for number in range(20_000):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        counts.note(REFUSED, METADATA, BASE._replace(address=address, code=codes[number % 2]), 1)
    assert len(counts) == KINDS_MAX + len(codes)
    found, by_code = taken(counts), Counter()
    for kind, counted in found:
        by_code[kind.code] += counted.count
    assert by_code == dict.fromkeys(codes, 10_000)
    assert {kind.principal for kind, _ in found if kind.address == SEVERAL} == {SEVERAL}
    # What was taken out gives its place to others.
    counts.note(REFUSED, METADATA, BASE, 1)
    assert taken(counts)[0][0].address == "10.0.0.7"


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("", "unix socket"),
        ("::1", "::1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("what\nis this", "what?is this"),
    ],
)
def test_where(address: str, where: str) -> None:
    assert where_class(address) == where


@pytest.mark.parametrize("text", ["a\x1b[31mred\nand more", "\u202ereversed", "lone \ud800"])
def test_what_strangers_write_can_stand_in_the_log(text: str) -> None:
    counts = AttemptCounts()
    counts.note(REFUSED, METADATA, BASE._replace(resource=text), 1)
    ((kind, _),) = taken(counts)
    assert kind.resource.isprintable()
    assert kind.resource.encode()


def test_long_names_are_cut() -> None:
    counts = AttemptCounts()
    for tail in "ab":
        counts.note(REFUSED, METADATA, BASE._replace(resource="x" * 5_000 + tail), 1)
    ((kind, counted),) = taken(counts)
    assert len(kind.resource) == NAME_CHARS
    assert counted.count == 2
