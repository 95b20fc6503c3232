"""CEF lines, read back by a reader of its own: no text from the log changes what a line says."""

import re
import unicodedata

import pytest

from audit.export.cef import cef_line
from audit.export.events import ExportedEvent
from tests.unit.audit.export.sample_events import ATTEMPT, CHANGE, EVENTS, HOSTILE, LOGIN, hostile


def read(line: str) -> tuple[list[str], dict[str, str]]:
    """Read a line as the format says: bars end the fields of the header, unless escaped."""
    assert line.startswith("CEF:")
    header: list[str] = []
    field, place = "", len("CEF:")
    while len(header) < 7:
        sign = line[place]
        if sign == "\\":
            assert line[place + 1] in "\\|", line
            field += line[place + 1]
            place += 2
        elif sign == "|":
            header.append(field)
            field = ""
            place += 1
        else:
            field += sign
            place += 1
    rest = line[place:]
    starts = [
        (found.start(), found.end(), found[1])
        for found in re.finditer(r"(?:^| )([A-Za-z0-9]+)=", rest)
        if not is_escaped(rest, found.end() - 1)
    ]
    pairs: dict[str, str] = {}
    for number, (_, end, key) in enumerate(starts):
        until = starts[number + 1][0] if number + 1 < len(starts) else len(rest)
        assert key not in pairs, f"{key} is there twice: {line}"
        pairs[key] = unescaped(rest[end:until])
    return header, pairs


def is_escaped(text: str, place: int) -> bool:
    before = len(text[:place]) - len(text[:place].rstrip("\\"))
    return before % 2 == 1


def unescaped(text: str) -> str:
    found, place = "", 0
    while place < len(text):
        if text[place] == "\\":
            found += {"n": "\n", "r": "\r"}.get(text[place + 1], text[place + 1])
            place += 2
        else:
            assert text[place] != "=", text
            found += text[place]
            place += 1
    return found


def test_a_refused_attempt() -> None:
    header, pairs = read(cef_line(ATTEMPT, "1.2"))
    assert header == [
        *("0", "Logberg", "Logberg", "1.2", "refused:create_topics"),
        "User:mallory: create_topics topic:orders was refused 37 times: CREATE on TOPIC orders",
        "6",
    ]
    assert pairs == {
        "rt": "1700000009000",
        "start": "1700000000000",
        "end": "1700000009000",
        "cnt": "37",
        "externalId": "41",
        "act": "refused",
        "outcome": "failure",
        "src": "203.0.113.9",
        "suser": "User:mallory",
        "sproc": "a tool",
        "requestMethod": "POST",
        "request": "/v1/topics",
        "reason": "CREATE on TOPIC orders",
        "deviceExternalId": "2",
        **labelled(1, "resource", "topic:orders"),
        **labelled(2, "error", "TOPIC_AUTHORIZATION_FAILED"),
        **labelled(3, "authentication", "token"),
        **labelled(4, "cluster", "AAAAAAAAAAAAAAAAAAAAAQ"),
        **labelled(6, "answer", "403 it lacks a right"),
    }


def labelled(number: int, label: str, value: str) -> dict[str, str]:
    return {f"cs{number}Label": label, f"cs{number}": value}


def test_a_change_and_a_login() -> None:
    header, pairs = read(cef_line(CHANGE, "1.2"))
    assert header[4:] == [
        "changed:CreateTopics",
        "Broker:7 for User:ana: CreateTopics topic:orders",
        "3",
    ]
    assert (pairs["suser"], pairs["duser"], pairs["outcome"]) == ("Broker:7", "User:ana", "success")
    header, pairs = read(cef_line(LOGIN, "1.2"))
    assert "suser" not in pairs
    assert header[5].startswith("a caller without credentials: login user:alice was refused")


@pytest.mark.parametrize(
    ("address", "key", "value"),
    [
        ("10.0.0.7", "src", "10.0.0.7"),
        ("2001:db8::7", "c6a2", "2001:db8::7"),
        ("2001:db8::/64", "shost", "2001:db8::/64"),
        ("unix socket", "shost", "unix socket"),
        ("*", "shost", "*"),
    ],
)
def test_where_from(address: str, key: str, value: str) -> None:
    assert read(cef_line(ATTEMPT._replace(address=address), "1"))[1][key] == value


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))
def test_hostile_text_is_text(event: ExportedEvent, text: str) -> None:
    line = cef_line(hostile(event, text), f"1{text}")
    bad = [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not bad
    (plain_header, plain), (header, pairs) = read(cef_line(event, "1")), read(line)
    assert set(plain) - {"src"} <= set(pairs)
    for key in ("act", "outcome", "cnt", "externalId", "rt"):
        assert pairs[key] == plain[key]
    assert (header[0], header[6]) == (plain_header[0], plain_header[6])
    assert len(header) == 7
    if plain.get("suser"):
        assert pairs["suser"].startswith(plain["suser"])


def test_long_text_is_cut() -> None:
    line = cef_line(hostile(ATTEMPT, "x" * 100_000), "1")
    assert len(line) < 60_000
    read(line)
