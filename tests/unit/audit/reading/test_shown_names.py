"""Whoever has the keys sees the names behind pseudonyms; nothing that is kept holds one."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.console.console import Console
from audit.console.log_source import FileSource
from audit.places.replicas import one_replica
from audit.questions.people_sought import PeopleSought
from ledger.batch import Provenance
from logberg.commands.audit.opening_option import KeysInUse, opener_of
from metadata.buckets import BucketMap, mix_text
from metadata.image.erasures import EMPTY_ERASURES
from metadata.people import as_sealed, opened_name
from metadata.person_opener import PersonOpener
from metadata.pseudonyms import name_place, pseudonym_of
from metadata.records import (
    AccessTokenRecord,
    AttemptDetail,
    AttemptOutcome,
    AttemptsRecord,
    PseudonymRecord,
    Record,
    SubjectErasedRecord,
)
from metadata.sealing import ClusterKey
from runtime.http.requests import Request
from tests.histories import HistoryBatch
from tests.unit.audit.console.test_console import ask
from tests.unit.audit.nodes import write_node
from tests.unit.audit.reading.test_opening import KEY, TREE, write_tree
from tests.unit.logberg.edge import run_whole

NAME = "canary@example.com"
NUMBER = bytes(range(8))
PSEUDONYM = pseudonym_of(NUMBER)
WHO = f"User:{PSEUDONYM}"
SHOWN = f"User:{NAME} ({PSEUDONYM})"
TIE = PseudonymRecord(
    PSEUDONYM, KEY.seal_for(NUMBER, name_place(PSEUDONYM), as_sealed(NAME), bytes(16)).block
)
ERASED = SubjectErasedRecord(f"user:{PSEUDONYM}", (NUMBER,))
TOKEN = AccessTokenRecord("a-token", WHO, "a key", bytes(32), WHO, 1, 2, -1, "")
HOUR_MS = 3_600_000


_SAID: tuple[Any, ...] = (
    *(1, bytes(16), 1, AttemptOutcome.REFUSED, AttemptDetail.METADATA),
    *(WHO, "", "token", "create_token", f"user:{PSEUDONYM}", "10.0.0.7"),
    *("CLUSTER_AUTHORIZATION_FAILED", "ALTER on CLUSTER", 1_000, 2_000, 3, 3, "", "", "", ""),
)
TRIED = AttemptsRecord(*_SAID)


def written(place: Path, *more: Record) -> Path:
    """Write a controller's folder with a person who did something and was refused something."""
    batches = [
        HistoryBatch(offset, 1, 1_000 + offset * HOUR_MS, (record,))
        for offset, record in enumerate((TIE, TOKEN, TRIED, *more))
    ]
    said = Provenance(WHO, "token", "", "10.0.0.7", "cli", b"", b"", "Test", "why")
    write_node(place, written=batches, provenance=said)
    write_tree(place, TREE)
    (place.parent / "cluster.key").write_text(bytes(32).hex())
    (place.parent / "cluster.key").chmod(0o600)
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return written(tmp_path / "node")


def audit(place: Path, name: str, *others: str, key: bool = True):
    option = ("--cluster-key", str(place.parent / "cluster.key")) if key else ()
    said = run_whole("audit", name, str(place), *others, *option)
    assert said.code == 0, said
    return said


def all_files(place: Path) -> bytes:
    return b"".join(file.read_bytes() for file in place.parent.rglob("*") if file.is_file())


def opener(place: Path) -> PersonOpener:
    return opener_of(place.parent / "cluster.key", one_replica(str(place)))


def test_the_tie_opens_with_the_key() -> None:
    assert opened_name(KEY, TIE) == NAME


FOLLOW = ("follow", "--from", "0", "--until-offset", "3")
COMMANDS = [
    ("log",),
    ("log", "--output", "json"),
    ("who", f"user:{PSEUDONYM}"),
    ("who", f"user:{PSEUDONYM}", "--output", "json"),
    ("history", f"user:{PSEUDONYM}"),
    ("history", f"user:{PSEUDONYM}", "--output", "json"),
    FOLLOW,
    (*FOLLOW, "--output", "json"),
    ("findings",),
    ("findings", "--output", "json"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_show_a_name_with_the_key_only(place: Path, command: tuple[str, ...]) -> None:
    assert NAME not in audit(place, *command, key=False).both
    said = audit(place, *command).out
    assert (NAME if "json" in command else SHOWN) in said


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("gone", ["the tie", "the key"])
def test_after_an_erasure_no_command_shows_the_name(
    tmp_path: Path, command: tuple[str, ...], gone: str
) -> None:
    """Each of the two that an erasure ends is enough: somebody may have a copy of the other."""
    place = written(tmp_path / "node", *([ERASED] if gone == "the tie" else []))
    if gone == "the key":
        write_tree(place, TREE.without([NUMBER]))
    said = audit(place, *command)
    assert NAME not in said.both
    assert PSEUDONYM in said.out


def test_the_name_stands_beside_the_principal_in_json(place: Path) -> None:
    lines = audit(place, "log", "--output", "json").out.splitlines()
    records = [json.loads(line) for line in lines]
    assert {(one["principal"], one["principalName"]) for one in records} == {(WHO, NAME)}
    [tried] = [one["data"] for one in records if one["type"] == "ATTEMPTS_RECORD"]
    assert (tried["principal"], tried["principalName"]) == (WHO, NAME)
    touches = json.loads(audit(place, "who", f"user:{PSEUDONYM}", "--output", "json").out)
    assert {(one["principal"], one["principalName"]) for one in touches[:-1]} == {(WHO, NAME)}
    assert touches[-1]["attempts"]["principalName"] == NAME
    assert audit(place, *FOLLOW, "--output", "json").out.splitlines() == lines
    events = audit(place, "history", f"user:{PSEUDONYM}", "--output", "json").out.splitlines()
    causes = [cause for event in events for cause in json.loads(event)["causes"]]
    assert {(one["principal"], one["principalName"]) for one in causes} == {(WHO, NAME)}
    for one in json.loads(audit(place, "findings", "--output", "json").out):
        assert (one["principal"], one["principalName"]) == (WHO, NAME)
        assert NAME not in one["sentence"]


@pytest.mark.parametrize("typed", [f"user:{NAME}", NAME, f"user:{PSEUDONYM}"])
@pytest.mark.parametrize("indexed", [False, True], ids=["read", "indexed"])
def test_who_finds_a_person_by_name(place: Path, typed: str, indexed: bool) -> None:
    more = ("--index", str(place.parent / "cache")) if indexed else ()
    said = audit(place, "who", typed, *more)
    by_pseudonym = audit(place, "who", f"user:{PSEUDONYM}")
    assert said.out == by_pseudonym.out
    assert "access_token" in said.out
    assert "refused attempts:" in said.out
    assert NAME.encode() not in all_files(place)


@pytest.mark.parametrize("indexed", [False, True], ids=["read", "indexed"])
def test_a_history_is_found_by_name(place: Path, indexed: bool) -> None:
    more = ("--index", str(place.parent / "cache")) if indexed else ()
    said = audit(place, "history", f"user:{NAME}", *more)
    assert said.out == audit(place, "history", f"user:{PSEUDONYM}").out
    assert "access-token:a-token created" in said.out
    assert "nothing happened" in audit(place, "history", f"user:{NAME}", key=False).err
    assert "nothing happened" in audit(place, "history", "user:nobody@example.com").err
    assert NAME.encode() not in all_files(place)


@pytest.mark.parametrize("indexed", [False, True], ids=["read", "indexed"])
def test_a_history_has_what_stands_under_the_name_itself(tmp_path: Path, indexed: bool) -> None:
    older = msgspec.structs.replace(TOKEN, token_id="b-token", principal=f"User:{NAME}")
    place = written(tmp_path / "node", older)
    more = ("--index", str(tmp_path / "cache")) if indexed else ()
    said = audit(place, "history", f"user:{NAME}", "--output", "json", *more).out
    assert [json.loads(event)["offsets"] for event in said.splitlines()] == [[0], [1], [3]]


@pytest.mark.parametrize("command", [("log",), FOLLOW], ids=["log", "follow"])
@pytest.mark.parametrize(
    ("option", "typed", "found"),
    [
        ("--principal", f"User:{NAME}", 3),
        ("--principal", NAME, 3),
        ("--principal", "User:somebody@example.com", 0),
        ("--resource", f"user:{NAME}", 2),
        ("--resource", f"by:User:{NAME}", 1),
    ],
)
def test_a_search_finds_a_person_by_name(
    place: Path, command: tuple[str, ...], option: str, typed: str, found: int
) -> None:
    ask = (*command, option, typed, "--output", "json")
    assert len(audit(place, *ask).out.splitlines()) == found
    assert audit(place, *ask, key=False).out == ""


def test_a_person_is_found_under_name_and_pseudonym(tmp_path: Path) -> None:
    """The log may have the name in clear, from before the setting."""
    place = written(tmp_path / "node", msgspec.structs.replace(TOKEN, principal=f"User:{NAME}"))
    said = audit(place, "log", "--resource", f"user:{NAME}", "--output", "json").out
    offsets = [json.loads(line)["offset"] for line in said.splitlines()]
    assert offsets == [0, 1, 3]


@pytest.mark.parametrize(
    ("typed", "also"),
    [
        (f"user:{NAME}", f"user:{PSEUDONYM}"),
        (f"User:{NAME}", f"User:{PSEUDONYM}"),
        (f"tried:user:{NAME}", f"tried:user:{PSEUDONYM}"),
        (NAME, PSEUDONYM),
        (f"quota:user={NAME}", f"quota:user={PSEUDONYM}"),
        (f"quota:client-id=app,user={NAME}", f"quota:client-id=app,user={PSEUDONYM}"),
        (f"quota:client-id={NAME}", None),
        (f"topic:{NAME}", None),
        ("user:*@example.com", None),
        ("user:nobody@example.com", None),
        ("*", None),
    ],
)
def test_only_whole_names_become_pseudonyms(place: Path, typed: str, also: str | None) -> None:
    assert PeopleSought(opener(place)).also(typed) == also


def test_a_log_whose_end_cannot_be_read_shows_no_name(place: Path) -> None:
    segment = max((place / "log").iterdir())
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(bytes(content))
    said = run_whole(
        *("audit", "log", str(place), "--keep-going"),
        *("--cluster-key", str(place.parent / "cluster.key")),
    )
    assert "no name is shown, since the end of the log can't be read" in said.err
    assert NAME not in said.both


# -- the console --------------------------------------------------------------------------------


def console_of(place: Path, keys: PersonOpener | None) -> Console:
    source = FileSource(lambda: one_replica(str(place)))
    opener = None if keys is None else lambda: keys
    console = Console(source, place.parent / "cache", now=lambda: 0.0, opener=opener)
    console.keep_up(lambda: False)
    return console


def test_the_console_shows_names_and_keeps_none(place: Path) -> None:
    console = console_of(place, PersonOpener(KEY))
    _, found = ask(console, "search", limit="5")
    assert {(one["principal"], one["principalName"]) for one in found["items"]} == {(WHO, NAME)}
    _, one = ask(console, "record", offset="2")
    assert (one["principalName"], one["data"]["principalName"]) == (NAME, NAME)
    _, judged = ask(console, "findings")
    assert {one["principalName"] for one in judged["items"]} == {NAME}
    for query in ({"view": "search", "q": NAME}, {"view": "thing", "table": "access_tokens"}):
        query |= {"format": "json", **({"name": "a-token"} if "table" in query else {})}
        body = console.answer(Request("GET", "/api/export", query=query)).body
        assert PSEUDONYM.encode() in body
        assert NAME.encode() not in body
    kept = b"".join(f.read_bytes() for f in place.parent.rglob("*") if f.is_file())
    assert NAME.encode() not in kept


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"q": NAME}, 3),
        ({"q": f"{NAME} attempts"}, 1),
        ({"q": "nobody@example.com"}, 0),
        ({"principal": f"User:{NAME}"}, 3),
        ({"resource": f"user:{NAME}"}, 2),
    ],
    ids=str,
)
def test_a_search_of_the_console_finds_a_person_by_name(
    place: Path, query: dict[str, str], count: int
) -> None:
    assert ask(console_of(place, PersonOpener(KEY)), "search", **query)[1]["total"] == count
    assert ask(console_of(place, None), "search", **query)[1]["total"] == 0


def test_an_erasure_reaches_a_console_that_runs(tmp_path: Path) -> None:
    """With a copy of the keys from before it, too: the log ties nobody to the pseudonym."""
    place, keys = written(tmp_path / "node"), PersonOpener(KEY)
    console = console_of(place, keys)
    assert ask(console, "search", q=NAME)[1]["total"] == 3
    for name in ("log", "checkpoints"):
        shutil.rmtree(place / name)
    written(place, ERASED)
    console.keep_up(lambda: False)
    _, found = ask(console, "search", q=NAME)
    assert found["total"] == 0
    _, all_of_it = ask(console, "search")
    assert all_of_it["total"] == 4
    assert NAME not in json.dumps(all_of_it)


def test_an_opener_of_another_state_opens_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[PseudonymRecord] = []

    def counted(key: ClusterKey, record: PseudonymRecord) -> str | None:
        opened.append(record)
        return opened_name(key, record)

    monkeypatch.setattr("metadata.person_opener.opened_name", counted)
    keys = PersonOpener(KEY)
    known = BucketMap(mix_text, {PSEUDONYM: TIE})
    tied = msgspec.structs.replace(EMPTY_ERASURES, pseudonyms=known)
    assert [keys.of_state(tied).name_of(WHO) for _ in range(3)] == [NAME] * 3
    assert keys.of_state(EMPTY_ERASURES).name_of(WHO) is None
    assert opened == [TIE]


def test_keys_that_stay_the_same_stay_open() -> None:
    """Else the console would open each name again in each second."""
    now, tree = [0.0], [TREE]

    def load() -> ClusterKey:
        key = KEY.copy()
        key.subjects.keys = tree[0]
        return key

    keys = KeysInUse(load, lambda: now[0])
    first = keys.opener()
    now[0] = 2.0
    assert keys.opener() is first
    tree[0], now[0] = TREE.without([NUMBER]), 4.0
    assert keys.opener() is not first
    assert keys.opener().name_in(TIE) is None
