"""Who held a lock and when, by the records alone."""

import json

from click.testing import CliRunner

from audit.questions.holders import held_grants
from audit.reading.feed import Beginning
from audit.reading.settling import moments, settled
from logberg.commands.audit import holders as holders_command
from metadata.records import (
    EndSessionRecord,
    EntryRecord,
    KeyRecord,
    RemoveEntryRecord,
    SessionRecord,
)
from tests.unit.audit.memory_log import logged

A, B = b"a" * 16, b"b" * 16


def entry(session: bytes, entry_id: str, place: int, token: int, kind: int = 3) -> EntryRecord:
    return EntryRecord(kind, "printer", entry_id, session, b"", False, place, token, place)


LOG = (
    [SessionRecord(A, 1000, "User:alice", "worker", 0)],
    [SessionRecord(B, 1000, "User:bob", "", 1)],
    [entry(A, "1", 2, 2)],
    [entry(B, "2", 3, -1), KeyRecord("k", b"", 4, 4, 1)],
    [entry(A, "1", 2, 2)],
    [RemoveEntryRecord(3, "printer", "1", A), entry(B, "2", 3, 7)],
    [entry(B, "x", 8, 8, kind=1)],
    [
        RemoveEntryRecord(3, "printer", "2", B),
        RemoveEntryRecord(1, "printer", "x", B),
        EndSessionRecord(B, 2),
    ],
    [entry(A, "1", 12, 12)],
)


def told(resource: str, *groups, beginning: Beginning | None = None) -> list[tuple]:
    found = held_grants(resource, moments(settled(logged(*groups))), beginning)
    return [(g.resource, g.id, g.owner, g.token, g.until_offset, g.ended_by) for g in found]


def test_each_grant_has_its_holder_its_token_and_its_end() -> None:
    first, second, last = told("lock:printer", *LOG)
    assert first[:5] == ("lock:printer", "1", "User:alice", 2, 6)
    assert second == ("lock:printer", "2", "User:bob", 7, 9, "its session expired")
    assert last == ("lock:printer", "1", "User:alice", 12, None, "")
    assert first[5] in ("CreateTopics", "AlterPartition", "Heartbeat")


def test_without_a_name_all_are_told_and_what_was_held_at_the_beginning() -> None:
    assert [each[0] for each in told("", *LOG)].count("group:printer") == 1
    known = tuple(record for group in LOG[:3] for record in group)
    beginning = Beginning(3, 1, 0, known)
    assert [each[1] for each in told("lock:printer", *LOG[3:], beginning=beginning)] == [
        "1",
        "2",
        "1",
    ]
    assert told("lock:other", *LOG) == []


def test_a_grant_is_one_document(monkeypatch, tmp_path) -> None:
    shown = CliRunner().invoke(holders_command.command, [str(tmp_path), "lock:printer"])
    assert shown.exit_code == 1
    grant = next(iter(held_grants("lock:printer", moments(settled(logged(*LOG))))))
    document = json.loads(json.dumps(holders_command._as_json(grant)))
    assert (document["token"], document["owner"]) == (2, "User:alice")
