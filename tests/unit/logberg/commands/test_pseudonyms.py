"""Commands show the name that a controller sends beside a pseudonym."""

import json
from typing import Any

import pytest

from metadata.pseudonyms import person_words, pseudonym_of
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener
from tests.unit.logberg.operating.test_top_frame import change, lines, moment

ALICE, BOB = pseudonym_of(bytes(8)), pseudonym_of(bytes(range(8)))
NAME = "alice@example.com"
SHOWN = f"User:{NAME} ({ALICE})"
LIST = {
    "offset": 7,
    "epoch": 1,
    "people": [{"pseudonym": ALICE, "name": NAME}, {"pseudonym": BOB, "name": None}],
    "continuation": None,
}
CALLER = {"principal": f"User:{ALICE}", "method": "certificate", "address": "10.0.0.7"}
WATCHED = {
    "resource": "user:a",
    "nextFrom": "9",
    "logStart": 0,
    "highWatermark": 9,
    "records": [
        {
            "offset": 3,
            "epoch": 1,
            "timestampMs": 0,
            "principal": f"User:{ALICE}",
            "principalName": NAME,
            "record": {"type": "TOPIC_RECORD", "version": 0, "data": {}},
        }
    ],
}


def said(answer: dict[str, Any], *arguments: str) -> tuple[str, str]:
    """Return what a command prints, and the head of the request that it sent."""
    listener = Listener()
    listener.answer = lambda _method, _target: ("200 OK", json.dumps(answer).encode())
    try:
        done = run_whole(*arguments, "--controllers", listener.url)
    finally:
        listener.close()
    assert done.code == 0, done
    return done.out, listener.head.decode()


def test_the_list_has_a_dash_for_a_name_that_cannot_be_opened() -> None:
    out, _ = said(LIST, "pseudonyms", "list")
    assert [line.split() for line in out.splitlines()[1:]] == [[ALICE, NAME], [BOB, "-"]]
    out, _ = said(LIST, "pseudonyms", "list", "--output", "json")
    assert json.loads(out)["people"] == LIST["people"]


@pytest.mark.parametrize(
    ("option", "query"),
    [(("--name", NAME), "name=alice"), (("--pseudonym", ALICE), f"pseudonym={ALICE}")],
)
def test_one_person_is_asked_for(option: tuple[str, str], query: str) -> None:
    out, head = said({**LIST, "people": []}, "pseudonyms", "list", *option)
    assert query in head
    assert out == "no such person has a pseudonym\n"


@pytest.mark.parametrize("name", [NAME, None])
def test_whoami_shows_the_own_name(name: str | None) -> None:
    out, _ = said({**CALLER, "name": name}, "whoami")
    assert f"User:{ALICE}" in out
    assert (NAME in out) == (name is not None)


def test_a_watch_shows_the_name_beside_the_pseudonym() -> None:
    out, _ = said(WATCHED, "watch", "user:a", "--from", "0", "--once")
    assert SHOWN in out


def test_top_shows_for_whom_a_change_was_made() -> None:
    by_alice = {"principal": f"User:{ALICE}", "principal_name": NAME}
    for_alice = {"on_behalf_of": f"User:{ALICE}", "on_behalf_of_name": NAME}
    for told in (by_alice, for_alice, {**by_alice, "on_behalf_of": "User:bob"}):
        view = moment()._replace(changes=[change(1, "TOPIC_RECORD", **told)])
        printed = "\n".join(lines(view))
        assert (SHOWN in printed) == ("User:bob" not in printed)


def test_a_principal_without_a_name_is_shown_as_it_is() -> None:
    for name in (None, ""):
        assert person_words(f"User:{ALICE}", name) == f"User:{ALICE}"
    assert person_words(f"User:{ALICE}", NAME) == SHOWN
