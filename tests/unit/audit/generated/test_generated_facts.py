"""What a generated history tells of itself is what its log says: each fact, found again."""

from pathlib import Path

import pytest

from audit.embedded import run_job
from audit.generated import Fact, Life, write_history
from audit.generated.facts import KINDS
from audit.places.replicas import open_replicas
from audit.tables import BY_NAME
from controller.rehearsal.rehearsal import SealedBatch
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FencingChange,
    LeaderRecoveryState,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text


class Told:
    """A history, its records by offset, and its facts."""

    def __init__(self, seed: int, records: int) -> None:
        life = Life(seed, records=records, open_transaction=True)
        self.sealed: list[SealedBatch] = list(life.sealed())
        self.facts = life.facts
        self.end = life.mark.log_end
        self.records = [record for sealed in self.sealed for record in sealed.records]
        self.batch_of = [sealed.batch.header for sealed in self.sealed for _ in sealed.records]

    def of(self, kind: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.kind == kind]

    def the(self, kind: str) -> Fact:
        (fact,) = self.of(kind)
        return fact

    def within(self, fact: Fact, kind: type) -> list:
        return [r for r in self.records[fact.from_offset : fact.until_offset] if type(r) is kind]

    def image_at(self, offset: int) -> MetadataImage:
        delta = MetadataDelta(EMPTY, with_state_hash=False)
        for batch, records in self.sealed:
            header = batch.header
            if header.base_offset >= offset:
                break
            delta.replay_all(records, header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        return delta.apply()


@pytest.fixture(scope="module", params=[(1, 6_000), (5, 25_000)], ids=["short", "long"])
def told(request: pytest.FixtureRequest) -> Told:
    return Told(*request.param)


def test_every_kind_of_fact_is_there_in_order(told: Told) -> None:
    assert {fact.kind for fact in told.facts} == set(KINDS)
    offsets = [fact.from_offset for fact in told.facts]
    assert offsets == sorted(offsets)
    for fact in told.facts:
        assert fact.until_offset is None or fact.from_offset <= fact.until_offset <= told.end
        assert fact.until_ms is None or fact.from_ms <= fact.until_ms


def test_times_are_those_of_batches(told: Told) -> None:
    """At an episode's first offset its first batch may be a moment later, never earlier."""
    for fact in told.facts:
        begun_ms = told.batch_of[fact.from_offset].timestamp_ms
        if fact.kind in ("acl", "scram", "feature", "leaderless", "unclean_election"):
            assert fact.from_ms == begun_ms
        assert fact.from_ms <= begun_ms + 5
        if fact.kind == "leaderless" and fact.until_offset is not None:
            assert fact.until_ms == told.batch_of[fact.until_offset].timestamp_ms


def test_acls_and_credentials_are_changed_where_it_says_so(told: Told) -> None:
    kinds = {
        "acl": (AccessControlEntryRecord, RemoveAccessControlEntryRecord),
        "scram": (UserScramCredentialRecord, RemoveUserScramCredentialRecord),
        "feature": (FeatureLevelRecord,),
    }
    for name, types in kinds.items():
        found = [at for at, record in enumerate(told.records) if isinstance(record, types)]
        assert [fact.from_offset for fact in told.of(name)] == found
        for fact in told.of(name):
            assert told.batch_of[fact.from_offset].provenance.principal == fact.principal


@pytest.mark.slow
def test_a_partition_is_leaderless_exactly_when_it_says_so(told: Told) -> None:
    """By a fold of its own: leaders as settled records leave them, batch by batch."""
    leaders: dict[tuple[bytes, int], int] = {}
    names: dict[bytes, str] = {}
    lost: dict[tuple[bytes, int], int] = {}
    found: list[tuple[str, int, int | None]] = []

    def key_text(key: tuple[bytes, int]) -> str:
        return f"{names[key[0]]}-{key[1]}@{uuid_text(key[0])}"

    delta, image = MetadataDelta(EMPTY, with_state_hash=False), EMPTY
    for batch, records in told.sealed:
        header = batch.header
        delta.replay_all(records, header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        before, image = image, delta.apply()
        delta = MetadataDelta(image, with_state_hash=False)
        names.update((topic_id, topic.name) for topic_id, topic in image.topics.by_id.items())
        if image.topics is before.topics:
            continue
        now = {key: partition.leader for key, partition in image.topics.partitions.items()}
        for key in sorted({*leaders, *now}):
            is_lost = now.get(key, 0) == -1
            if is_lost and key not in lost:
                lost[key] = header.base_offset
            elif not is_lost and key in lost:
                found.append((key_text(key), lost.pop(key), header.base_offset))
        leaders = now
    found += [(key_text(key), since, None) for key, since in lost.items()]
    said = [(f.subject, f.from_offset, f.until_offset) for f in told.of("leaderless")]
    assert sorted(said, key=str) == sorted(found, key=str)
    assert said


def test_the_unclean_election_makes_a_stale_broker_lead(told: Told) -> None:
    fact = told.the("unclean_election")
    change = told.records[fact.from_offset]
    assert isinstance(change, PartitionChangeRecord)
    assert change.leader_recovery_state == LeaderRecoveryState.RECOVERING
    assert change.isr == (change.leader,)
    before = told.image_at(fact.from_offset).topics.partitions[change.topic_id, 0]
    assert before.leader == -1
    assert change.leader not in before.isr
    assert change.leader in before.replicas
    recovering = [
        at
        for at, record in enumerate(told.records)
        if isinstance(record, PartitionChangeRecord)
        and record.leader_recovery_state == LeaderRecoveryState.RECOVERING
    ]
    assert recovering == [fact.from_offset]


def fences(told: Told, fact: Fact) -> list[int]:
    return [
        record.broker_id
        for record in told.within(fact, BrokerRegistrationChangeRecord)
        if record.fenced == FencingChange.FENCE
    ]


def test_brokers_flap_die_and_fall_with_their_rack(told: Told) -> None:
    for fact in told.of("broker_flapped"):
        broker_id = int(fact.subject.partition(":")[2])
        assert fences(told, fact).count(broker_id) >= 6
        assert fact.until_ms - fact.from_ms < 45 * 60_000
    dead = told.the("broker_died")
    assert int(dead.subject.partition(":")[2]) in fences(told, dead)
    assert dead.until_ms - dead.from_ms > 2 * 3_600_000
    outage = told.the("rack_outage")
    image = told.image_at(outage.from_offset)
    rack = outage.subject.partition(":")[2]
    ours = {b.broker_id for b in image.cluster.brokers.values() if b.rack == rack and not b.fenced}
    assert len(ours) >= 3
    assert ours <= set(fences(told, outage))
    for fact in told.of("session_lost"):
        assert int(fact.subject.partition(":")[2]) in fences(told, fact)


def test_a_deployment_restarts_every_broker_and_controller(told: Told) -> None:
    for fact in told.of("deployment"):
        again = {record.broker_id for record in told.within(fact, RegisterBrokerRecord)}
        assert len(again) >= 10
        stopping = told.within(fact, BrokerRegistrationChangeRecord)
        assert again <= {record.broker_id for record in stopping if record.in_controlled_shutdown}
    assert len(told.of("deployment")) == (1 if told.end < 20_000 else 4)


def test_a_replaced_broker_is_empty_before_it_is_forgotten(told: Told) -> None:
    fact = told.the("broker_replaced")
    old = int(fact.subject.partition(":")[2])
    (record,) = told.within(fact, UnregisterBrokerRecord)
    assert record.broker_id == old
    image = told.image_at(fact.until_offset)
    assert old not in image.cluster.brokers
    assert all(old not in p.replicas for p in image.topics.partitions.values())


def test_transactions_end_as_it_says(told: Told) -> None:
    endings = {
        "transaction_ended": EndTransactionRecord,
        "transaction_aborted": AbortTransactionRecord,
        "transaction_discarded": BeginEpochRecord,
    }
    for kind, ending in endings.items():
        fact = told.the(kind)
        assert isinstance(told.records[fact.from_offset], BeginTransactionRecord)
        assert isinstance(told.records[fact.until_offset - 1], ending)
        begin, end = told.batch_of[fact.from_offset], told.batch_of[fact.until_offset - 1]
        assert begin.base_offset < end.base_offset
        before, after = told.image_at(fact.from_offset), told.image_at(fact.until_offset)
        changed = len(before.topics.by_id) != len(after.topics.by_id)
        assert changed == (kind == "transaction_ended")
        if not changed:
            assert dict(before.topics.partitions.items()) == dict(after.topics.partitions.items())
    opened = told.the("transaction_open")
    assert opened.until_offset is None
    last = told.image_at(told.end).transaction
    assert last is not None
    assert last.offset == opened.from_offset
    assert len(last.branch.topics.by_id) > len(told.image_at(told.end).topics.by_id)


def test_the_intruder_comes_at_night_from_a_strange_address_and_is_thrown_out(told: Told) -> None:
    fact = told.the("intrusion")
    image = told.image_at(fact.from_offset + 4)
    theirs = [acl for acl in image.acls.entries.values() if acl.principal == "User:mallory"]
    assert len(theirs) == 2
    assert fact.from_ms % 86_400_000 == 3 * 3_600_000
    known = {
        header.provenance.client_address
        for header in told.batch_of[: fact.from_offset]
        if header.provenance.principal == fact.principal
    }
    assert told.batch_of[fact.from_offset].provenance.client_address not in known
    image = told.image_at(fact.until_offset)
    assert all(acl.principal != "User:mallory" for acl in image.acls.entries.values())


def test_a_new_leader_begins_an_epoch(told: Told) -> None:
    begun = [at for at, record in enumerate(told.records) if isinstance(record, BeginEpochRecord)]
    assert [fact.from_offset for fact in told.of("controller_failover")] == begun[1:]
    epochs = [told.batch_of[at].epoch for at in begun]
    assert epochs == sorted(set(epochs))


def test_a_story_names_the_times_it_tells_of(told: Told) -> None:
    sentences = [fact.sentence for fact in told.facts if fact.sentence]
    assert len(sentences) > 12
    assert sentences == sorted(sentences)


def test_the_audit_finds_what_is_told(tmp_path: Path) -> None:
    """The engine's own fold of intervals and of privileged changes, against the facts."""
    history = write_history(tmp_path, records=8_000, seed=9, open_transaction=True)
    replicas = open_replicas(str(tmp_path))
    columns = [column.name for column in BY_NAME["partition_intervals"].columns]
    offline: list[list] = []
    before: dict = {}
    for row in run_job("partition_intervals", replicas):
        now = dict(zip(columns, row, strict=True))
        key = f"{now['topic_name']}-{now['partition']}@{now['topic_id']}"
        if now["offline"] and before.get("key") == key and before["offline"]:
            offline[-1][2] = now["until_offset"]
        elif now["offline"]:
            offline.append([key, now["from_offset"], now["until_offset"]])
        before = now | {"key": key}
    said = [[f.subject, f.from_offset, f.until_offset] for f in history.of("leaderless")]
    assert sorted(offline, key=str) == sorted(said, key=str)
    found: dict[str, list[int]] = {}
    callers = callers_in("log", replicas)
    assert callers_in("privileged", replicas).items() <= callers.items()
    for row in run_job("privileged", replicas):
        found.setdefault(row[3], []).append(row[0])
    assert any(all(words) for words in callers_in("privileged", replicas).values())
    assert found["acl"] == [fact.from_offset for fact in history.of("acl")]
    assert found["user"] == [fact.from_offset for fact in history.of("scram")]
    (election,) = history.of("unclean_election")
    assert election.from_offset in found["unclean_election"]
    flapping = {int(f.subject.partition(":")[2]) for f in history.of("broker_flapped")}
    fenced = [row[0] for row in run_job("broker_intervals", replicas) if row[5] == "fenced"]
    assert all(fenced.count(broker) > 6 for broker in flapping)


def callers_in(job: str, replicas: list) -> dict[int, tuple[str, ...]]:
    """How and from where each record's request came, by offset, as a table of the audit says it."""
    columns = [column.name for column in BY_NAME[job].columns]
    places = [columns.index(name) for name in ("principal", "auth_method", "client_address")]
    return {row[0]: tuple(row[place] for place in places) for row in run_job(job, replicas)}
