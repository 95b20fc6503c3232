"""`logberg audit follow --cluster-key` shows and finds people by the log as it grows."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.places.replicas import one_replica
from audit.questions.search import Filter
from audit.reading.settling import ABORTED, SETTLED, Logged
from ledger.batch import BatchHeader, Provenance
from logberg.commands.audit.followed_people import FollowedPeople, people_followed
from metadata.people import as_sealed
from metadata.pseudonyms import name_place, pseudonym_of
from metadata.records import PseudonymRecord, Record, SubjectErasedRecord
from tests.unit.audit.reading.test_opening import KEY, TREE, write_tree
from tests.unit.audit.reading.test_shown_names import (
    ERASED,
    NAME,
    PSEUDONYM,
    TIE,
    TOKEN,
    WHO,
    audit,
    written,
)

BOB = "bob@example.com"
BOBS_NUMBER = bytes(range(8, 16))
BOBS_PSEUDONYM = pseudonym_of(BOBS_NUMBER)
BOB_WHO = f"User:{BOBS_PSEUDONYM}"
BOBS_TIE = PseudonymRecord(
    BOBS_PSEUDONYM,
    KEY.seal_for(BOBS_NUMBER, name_place(BOBS_PSEUDONYM), as_sealed(BOB), bytes(16)).block,
)
BOB_ERASED = SubjectErasedRecord(f"user:{BOBS_PSEUDONYM}", (BOBS_NUMBER,))
BOBS_TOKEN = msgspec.structs.replace(TOKEN, token_id="b-token", principal=BOB_WHO)
END = 3
"""Of the log that `written` writes."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return written(tmp_path / "node")


class Following:
    """A log that somebody follows, and a clock."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.seconds = 0.0
        replica = one_replica(str(place))
        key = place.parent / "cluster.key"
        self.people = self._followed(key, replica)
        self._end = END

    def _followed(self, key: Path, replica: Any) -> FollowedPeople:
        return people_followed(key, replica, replica.reader(), lambda: self.seconds)

    def comes(self, record: Record, outcome: str = SETTLED, at: int | None = None) -> None:
        """Let a record come that the log did not have."""
        offset = self._end if at is None else at
        base = offset if outcome == SETTLED else None
        header = BatchHeader(offset, 1, 1, 1_000 + offset, Provenance(WHO), bytes(32))
        self.people.learn(Logged(offset, header, record, outcome, base, base))
        self._end = max(self._end, offset + 1)

    def name(self, principal: str) -> str | None:
        return self.people.opener().name_of(principal)

    def found(self, name: str) -> tuple[str | None, tuple[str, ...]]:
        """Return what else is searched for, by the principal and by the resource."""
        asked = Filter(principal=name, resources=(f"user:{name}",))
        also = self.people.with_pseudonyms(asked)
        return also.also_principal, also.resources[1:]


@pytest.fixture
def following(place: Path) -> Following:
    return Following(place)


def test_the_state_at_the_end_is_known_at_once(following: Following) -> None:
    assert (following.name(WHO), following.name(BOB_WHO)) == (NAME, None)
    assert following.found(NAME) == (PSEUDONYM, (f"user:{PSEUDONYM}",))
    assert following.found(BOB) == (None, ())


def test_who_gets_a_pseudonym_later_is_shown_and_found(following: Following) -> None:
    assert following.found(BOB) == (None, ())
    following.comes(BOBS_TIE)
    assert (following.name(WHO), following.name(BOB_WHO)) == (NAME, BOB)
    assert following.found(BOB) == (BOBS_PSEUDONYM, (f"user:{BOBS_PSEUDONYM}",))


def test_whoever_is_erased_is_neither_shown_nor_found(following: Following) -> None:
    """With a copy of the keys from before it, too: the log ties nobody to the pseudonym."""
    following.comes(BOBS_TIE)
    assert following.found(NAME)[0] == PSEUDONYM
    following.comes(ERASED)
    assert (following.name(WHO), following.name(BOB_WHO)) == (None, BOB)
    assert following.found(NAME) == (None, ())
    following.comes(BOB_ERASED)
    assert following.name(BOB_WHO) is None


def test_only_what_settles_behind_the_known_state_counts(tmp_path: Path) -> None:
    following = Following(written(tmp_path / "node", ERASED))
    following.comes(TIE, at=0)
    assert following.name(WHO) is None, "the state at the end has the erasure"
    following.comes(BOBS_TIE, ABORTED, at=4)
    assert following.name(BOB_WHO) is None


def test_keys_that_are_destroyed_in_the_folder_open_nothing_after_a_second(
    following: Following,
) -> None:
    assert following.name(WHO) == NAME
    write_tree(following.place, TREE.without([BOBS_NUMBER]))
    following.seconds = 1.5
    assert following.name(WHO) == NAME
    write_tree(following.place, TREE.without([BOBS_NUMBER]).without([_number()]))
    following.seconds = 3.0
    assert following.name(WHO) is None


def _number() -> bytes:
    return ERASED.numbers[0]


def test_while_the_keys_can_not_be_read_nobody_is_shown_and_nobody_is_lost(
    following: Following,
) -> None:
    """Else a search by name would leave out what the person does meanwhile."""
    assert following.found(NAME)[0] == PSEUDONYM
    keys = following.place / "keys"
    keys.rename(following.place / "away")
    following.seconds = 1.5
    assert following.name(WHO) is None
    assert following.found(NAME)[0] == PSEUDONYM
    following.comes(ERASED)
    assert following.found(NAME) == (None, ())
    (following.place / "away").rename(keys)
    following.comes(BOBS_TIE)
    following.seconds = 3.0
    assert following.name(BOB_WHO) == BOB
    assert following.found(BOB)[0] == BOBS_PSEUDONYM


def test_without_the_key_nothing_is_learned(place: Path) -> None:
    replica = one_replica(str(place))
    people = people_followed(None, replica, replica.reader(), lambda: 0.0)
    first = people.opener()
    header = BatchHeader(END, 1, 1, 1_000, Provenance(WHO), bytes(32))
    people.learn(Logged(END, header, BOBS_TIE, SETTLED, END, END))
    assert people.opener() is first
    assert first.name_of(BOB_WHO) is None
    wanted = Filter(principal=NAME)
    assert people.with_pseudonyms(wanted) == wanted


def documents(out: str) -> list[dict[str, Any]]:
    """Return what the command printed, without what the ledger of this test printed meanwhile."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def grown(place: Path, monkeypatch: pytest.MonkeyPatch, *steps: Record) -> None:
    """Let the log grow by one record in each pause of the command."""
    lengths = iter(range(1, len(steps) + 1))
    (place / "journal").mkdir()

    def pause(_seconds: float) -> None:
        written(place, *steps[: next(lengths)])

    monkeypatch.setattr(time, "sleep", pause)


def test_the_command_shows_names_as_they_come_and_go(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_bob = msgspec.structs.replace(BOBS_TOKEN, made_by=BOB_WHO)
    grown(place, monkeypatch, BOBS_TIE, by_bob, ERASED, TOKEN)
    said = audit(place, "follow", "--until-offset", "7", "--output", "json")
    lines = documents(said.out)
    assert [line["offset"] for line in lines] == [3, 4, 5, 6]
    assert [line.get("principalName") for line in lines] == [NAME, NAME, None, None]


def test_the_command_finds_who_gets_a_pseudonym_while_it_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(place, monkeypatch, TOKEN, BOBS_TIE, BOBS_TOKEN, BOB_ERASED, BOBS_TOKEN)
    said = audit(
        place, "follow", "--until-offset", "8", "--resource", f"user:{BOB}", "--output", "json"
    )
    assert [line["offset"] for line in documents(said.out)] == [4, 5]
