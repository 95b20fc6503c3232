"""Histories of one thing: all its lifetimes, every cause, the values before and after, no more."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.embedded import run_job
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.questions.history import HistoryEvent, history
from audit.questions.history_things import thing
from audit.questions.history_values import called, differing
from audit.questions.search import SearchError
from audit.reading.settling import moments, settled
from logberg.commands.audit import history as history_command
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta
from metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntityData,
    EntryRecord,
    FeatureLevelRecord,
    KeyRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveEntryRecord,
    RemoveKeyRecord,
    RemoveTopicRecord,
    SessionRecord,
    TopicRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from metadata.uuids import uuid_text
from tests.unit.audit.memory_log import history as legal_history
from tests.unit.audit.memory_log import logged, seal_all

FIRST, SECOND, ACL = b"\x07" * 16, b"\x08" * 16, b"\x09" * 16


def partition(topic_id: bytes, number: int = 0) -> PartitionRecord:
    return PartitionRecord(number, topic_id, (1, 2), (1, 2), (), (), 1, 0, 0)


def told(word: str, *groups, show_secrets: bool = False) -> list[HistoryEvent]:
    batches = logged(*groups)
    return list(history(thing(word), moments(settled(batches)), show_secrets=show_secrets))


def in_short(events: list[HistoryEvent]) -> list:
    """(offsets, [(what, kind, {field: (before, after)})])"""
    return [
        ([one.offset for one in event.records], [tuple(each) for each in event.differences])
        for event in events
    ]


ALICE, BOB = b"\x0a" * 16, b"\x0b" * 16


def entry(kind: int, name: str, id_: str, session: bytes, place: int, token: int, at: int) -> Any:
    return EntryRecord(kind, name, id_, session, b"", False, place, token, at)


COORDINATED = (
    [
        SessionRecord(ALICE, 9_000, "User:alice", "a", 0),
        SessionRecord(BOB, 9_000, "User:bob", "b", 1),
    ],
    [entry(3, "printer", "1", ALICE, 2, 2, 2), entry(3, "other", "1", ALICE, 3, 3, 3)],
    [entry(3, "printer", "2", BOB, 4, -1, 4), KeyRecord("k", b"v", 5, 5, 1)],
    [RemoveEntryRecord(3, "printer", "1", ALICE), entry(3, "printer", "2", BOB, 4, 7, 7)],
    [RemoveEntryRecord(3, "other", "1", ALICE), EndSessionRecord(ALICE, 2)],
    [RemoveKeyRecord("k")],
)
COORDINATED_THINGS = [
    (
        "lock:printer",
        [
            ([2], [("entry:lock:printer/1", "created")]),
            ([4], [("entry:lock:printer/2", "created")]),
            ([6, 7], [("entry:lock:printer/1", "removed"), ("entry:lock:printer/2", "changed")]),
        ],
    ),
    ("election:printer", []),
    (
        f"session:{uuid_text(ALICE)}",
        [
            ([0], [(f"session:{uuid_text(ALICE)}", "created")]),
            ([2, 3], [("entry:lock:other/1", "created"), ("entry:lock:printer/1", "created")]),
            ([6], [("entry:lock:printer/1", "removed")]),
            (
                [8, 9],
                [
                    (f"session:{uuid_text(ALICE)}", "removed"),
                    ("entry:lock:other/1", "removed"),
                ],
            ),
        ],
    ),
    ("key:k", [([5], [("key:k", "created")]), ([10], [("key:k", "removed")])]),
]


@pytest.mark.parametrize(("word", "expected"), COORDINATED_THINGS)
def test_a_queue_a_session_and_a_key_have_a_history(word: str, expected: list) -> None:
    found = in_short(told(word, *COORDINATED))
    assert [
        (offsets, [(what, kind) for what, kind, _ in differences]) for offsets, differences in found
    ] == expected


def test_a_topic_that_was_deleted_and_created_again_shows_both_lives() -> None:
    events = told(
        "topic:orders",
        [TopicRecord("orders", FIRST), partition(FIRST), TopicRecord("other", ACL)],
        [PartitionChangeRecord(0, FIRST, leader=2)],
        [RemoveTopicRecord(FIRST)],
        [TopicRecord("orders", SECOND), partition(SECOND)],
    )
    found = in_short(events)
    assert [offsets for offsets, _ in found] == [[0, 1], [3], [4], [5, 6]]
    assert [(what, kind) for _, differences in found for what, kind, _ in differences] == [
        ("topic:orders", "created"),
        ("partition:orders-0", "created"),
        ("partition:orders-0", "changed"),
        ("topic:orders", "removed"),
        ("partition:orders-0", "removed"),
        ("topic:orders", "created"),
        ("partition:orders-0", "created"),
    ]
    ids = [dict(found[i][1][0][2])["topicId"] for i in (0, 2, 3)]
    first, second = "BwcHBwcHBwcHBwcHBwcHBw", "CAgICAgICAgICAgICAgICA"
    assert ids == [(None, first), (first, None), (None, second)]


def test_a_partition_s_change_tells_what_was_before_and_after_and_by_whom() -> None:
    *_, last = told(
        "partition:orders-0",
        [TopicRecord("orders", FIRST), partition(FIRST), partition(FIRST, 1)],
        [PartitionChangeRecord(1, FIRST, leader=2)],
        [PartitionChangeRecord(0, FIRST, leader=2, isr=(2,))],
    )
    (difference,) = last.differences
    assert difference.fields == {
        "isr": ([1, 2], [2]),
        "leader": (1, 2),
        "leaderEpoch": (0, 1),
        "partitionEpoch": (0, 1),
    }
    recovering = PartitionChangeRecord(0, FIRST, leader_recovery_state=1)
    recovered = PartitionChangeRecord(0, FIRST, leader_recovery_state=0)
    groups = ([TopicRecord("orders", FIRST), partition(FIRST)], [recovering], [recovered])
    states = [event.differences[0].fields for event in told("partition:orders-0", *groups)]
    assert [fields["leaderRecoveryState"] for fields in states] == [
        (None, "RECOVERED"),
        ("RECOVERED", "RECOVERING"),
        ("RECOVERING", "RECOVERED"),
    ]
    (header,) = last.causes
    assert header.provenance.reason == "step 2"


def test_only_what_counts_is_told_and_a_transaction_is_one_moment_with_many_causes() -> None:
    events = told(
        "partition:orders-0",
        [TopicRecord("orders", FIRST), partition(FIRST)],
        [BeginTransactionRecord(), PartitionChangeRecord(0, FIRST, leader=-1)],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), PartitionChangeRecord(0, FIRST, leader=2)],
        [PartitionChangeRecord(0, FIRST, isr=(2,)), EndTransactionRecord()],
        [BeginTransactionRecord(), PartitionChangeRecord(0, FIRST, leader=-1)],
    )
    assert [offsets for offsets, _ in in_short(events)] == [[1], [6, 7]]
    assert events[1].differences[0].fields["leader"] == (1, 2)
    assert [header.provenance.reason for header in events[1].causes] == ["step 3", "step 4"]


def test_a_config_goes_with_its_topic_and_saying_it_again_changes_nothing() -> None:
    events = told(
        "config:topic:orders:retention.ms",
        [TopicRecord("orders", FIRST), ConfigRecord(2, "orders", "cleanup.policy", "x")],
        [ConfigRecord(2, "orders", "retention.ms", "1")],
        [ConfigRecord(2, "orders", "retention.ms", "1")],
        [ConfigRecord(4, "orders", "retention.ms", "2")],
        [RemoveTopicRecord(FIRST)],
        [TopicRecord("orders", SECOND)],
    )
    assert in_short(events) == [
        ([2], [("config:topic:orders", "changed", {"retention.ms": (None, "1")})]),
        ([3], []),
        ([5], [("config:topic:orders", "changed", {"retention.ms": ("1", None)})]),
    ]


def test_the_default_of_all_brokers_and_names_with_colons() -> None:
    events = told("config:broker::a.b", [ConfigRecord(4, "", "a.b", "1")])
    assert in_short(events) == [([0], [("config:broker:", "changed", {"a.b": (None, "1")})])]
    events = told("config:group:a:b:k", [ConfigRecord(32, "a:b", "k", "1")])
    assert len(events) == 1


def test_clearing_all_elr_is_told_only_where_there_was_some() -> None:
    with_elr = PartitionRecord(
        0, FIRST, (1, 2), (1,), (), (), 1, 0, 0, eligible_leader_replicas=(2,)
    )
    groups = (
        [ClearElrRecord("")],
        [TopicRecord("orders", FIRST), with_elr],
        [ClearElrRecord("")],
        [ClearElrRecord("")],
    )
    found = in_short(told("partition:orders-0", *groups))
    assert [offsets for offsets, _ in found] == [[2], [3]]
    assert found[1][1][0][2]["eligibleLeaderReplicas"] == ([2], None)


def test_a_user_is_credentials_acls_tokens_and_quotas() -> None:
    events = told(
        "user:eve",
        [UserScramCredentialRecord("eve", 1, b"salt", b"k1", b"k2", 4096)],
        [UserScramCredentialRecord("bob", 1, b"salt", b"k1", b"k2", 4096)],
        [AccessControlEntryRecord(ACL, 2, "orders", 3, "User:eve", "*", 3, 3)],
        [DelegationTokenRecord("User:eve", "User:eve", (), 1, 2, 3, "t")],
        [ClientQuotaRecord((EntityData("user", "eve"),), "rate", 2.0, False)],
        [ClientQuotaRecord((EntityData("user", None),), "rate", 2.0, False)],
        [RemoveAccessControlEntryRecord(ACL)],
        [UserScramCredentialRecord("eve", 1, b"pepper", b"k1", b"k2", 4096)],
    )
    found = in_short(events)
    assert [offsets for offsets, _ in found] == [[0], [2], [3], [4], [6], [7]]
    what, kind, fields = found[-1][1][0]
    assert (what, kind) == ("user:eve (SCRAM_SHA_256)", "changed")
    assert fields == {"salt": ("***", "***")}


def test_secrets_are_shown_when_they_are_asked_for() -> None:
    secret = ConfigRecord(4, "2", "ssl.key.password", "hunter2")
    (starred,) = told("broker:2", [secret])
    (shown,) = told("broker:2", [secret], show_secrets=True)
    assert starred.differences[0].fields == {"ssl.key.password": (None, "***")}
    assert shown.differences[0].fields == {"ssl.key.password": (None, "hunter2")}


def test_a_broker_s_fencing_and_shutdown_and_a_feature_s_levels() -> None:
    events = told(
        "broker:2",
        [RegisterBrokerRecord(2, FIRST, 0, (), (), None)],
        [BrokerRegistrationChangeRecord(2, 0, fenced=-1)],
        [BrokerRegistrationChangeRecord(2, 0, in_controlled_shutdown=1)],
    )
    assert events[1].differences[0].fields == {"fenced": (True, False)}
    assert events[2].differences[0].fields == {
        "inControlledShutdown": (False, True),
        "controlledShutdownOffset": (None, 3),
    }
    (event,) = told("feature:f", [FeatureLevelRecord("f", 3), FeatureLevelRecord("g", 1)])
    assert event.differences == [("feature:f", "created", {"featureLevel": (None, 3)})]


@pytest.mark.parametrize("word", ["quota:user=eve,client-id=app", "quota:client-id=app,user=eve"])
def test_a_quota_s_parts_may_come_in_any_order(word) -> None:
    app, eve = EntityData("client-id", "app"), EntityData("user", "eve")
    events = told(
        word,
        [ClientQuotaRecord((eve, app), "rate", 2.0, False)],
        [ClientQuotaRecord((eve,), "rate", 3.0, False)],
    )
    assert [event.differences[0].fields for event in events] == [{"rate": (None, 2.0)}]


def test_versions_and_migrations_are_features_too() -> None:
    records = [KRaftVersionRecord(1), ZkMigrationStateRecord(1), FeatureLevelRecord("f", 1)]
    (version,) = told("feature:kraft.version", records)
    (migration,) = told("feature:zookeeper-migration", records)
    assert version.records[0].offset == 0
    assert migration.differences[0].fields == {"zkMigrationState": (None, "MIGRATION")}


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "topic:",
        "partition:orders",
        "partition:orders-x",
        "broker:two",
        "config:topic:orders",
        "config:x",
        "acl:short",
        "nonsense:1",
    ],
)
def test_what_is_no_thing_gets_a_sentence(text) -> None:
    with pytest.raises(SearchError) as error:
        thing(text)
    assert str(error.value).endswith(".")


KINDS = {
    "topics": "topic",
    "partitions": "topic",
    "brokers": "broker",
    "controllers": "controller",
    "acls": "acl",
    "tokens": "token",
    "features": "feature",
    "client_quotas": "quota",
    "entries": "entry",
    "keys": "key",
}


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 80))
def test_every_change_between_images_is_in_its_thing_s_history(seed, length) -> None:
    """Computes the changes in another way: compares images of the whole log batch by batch."""
    batches = seal_all(legal_history(seed, length))
    image = EMPTY
    expected: dict[str, list] = {}
    for batch in batches:
        header = batch.header
        delta = MetadataDelta(image, with_state_hash=False)
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        after = delta.apply()
        for table, change in delta.changes:
            if table in KINDS:
                what = called(table, change.key, image, after)
                word = what
                if table == "partitions":
                    word = "topic:" + what.removeprefix("partition:").rpartition("-")[0]
                if table == "entries":
                    word = what.removeprefix("entry:").rpartition("/")[0]
                entry = (header.base_offset, what, differing(table, change))
                expected.setdefault(word, []).append(entry)
        image = after
    for word, entries in expected.items():
        events = list(history(thing(word), moments(settled(batches))))
        found = [
            (event.moment.base, each.what, each.fields)
            for event in events
            for each in event.differences
            if not each.what.startswith(("config:", "producer-ids:", "legacy-broker:", "head-key:"))
        ]
        assert sorted(found, key=str) == sorted(entries, key=str)


@pytest.fixture(scope="module")
def lifelike(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lifelike")
    write_history(folder, records=6_000, seed=2, checkpoint_every=1_000)
    return folder


def run(*words: str):
    return CliRunner().invoke(history_command.command, list(words), catch_exceptions=False)


def test_the_command_tells_a_partition_s_changes_as_lines_and_as_documents(lifelike) -> None:
    where = str(lifelike)
    rows: list[Any] = run_job("partition_intervals", open_replicas(where))
    busiest = max({row[:2] for row in rows}, key=lambda key: sum(row[:2] == key for row in rows))
    mine = [row for row in rows if row[:2] == busiest]
    word = f"partition:{mine[0].topic_name}-{mine[0].partition}"
    result = run(where, word, "--output", "json")
    assert result.exit_code == 0
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    moved = {
        one["settledBase"]
        for one in documents
        if {"leader", "isr", "replicas"} & set(one["differences"][0]["after"])
    }
    assert moved == {row.from_offset for row in mine}
    since = documents[1]["offsets"][0]
    later = run(where, word, "--from", str(since), "--output", "json")
    assert [json.loads(line) for line in later.stdout.splitlines()] == documents[1:]
    lines = run(where, word).stdout
    assert f"{word} created" in lines
    assert " → " in lines


def test_the_command_says_when_nothing_happened_and_what_it_can_t_read(lifelike) -> None:
    nothing = run(str(lifelike), "topic:never-there")
    assert nothing.exit_code == 0
    assert not nothing.stdout
    assert "nothing happened to topic:never-there" in nothing.stderr
    wrong = run(str(lifelike), "orders")
    assert wrong.exit_code == 1
    assert "'orders' names nothing that has a history" in wrong.stderr


def test_a_cut_log_s_history_begins_from_a_checkpoint_and_says_so(tmp_path) -> None:
    write_history(tmp_path, records=4_000, seed=3, segment_bytes=60_000, checkpoint_every=900)
    whole = run(str(tmp_path), "quorum", "--output", "json").stdout.splitlines()
    rows: list[Any] = run_job("partition_intervals", open_replicas(str(tmp_path)))
    row = max(rows, key=lambda row: (row.until_offset is not None, row.from_offset))
    word = f"partition:{row.topic_name}-{row.partition}"
    before = run(str(tmp_path), word, "--output", "json").stdout.splitlines()
    for path in sorted((tmp_path / "controller-1" / "log").glob("*.log"))[:4]:
        path.unlink()
    after = run(str(tmp_path), word, "--output", "json")
    assert "counting begins at the checkpoint at offset" in after.stderr
    kept = after.stdout.splitlines()
    assert kept
    assert before[-len(kept) :] == kept
    assert all(
        line in whole
        for line in run(str(tmp_path), "quorum", "--output", "json").stdout.splitlines()
    )
