"""Searching the log, and the commands `log` and `who`: filters, outcomes, names, secrets."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.questions.search import (
    Filter,
    SearchError,
    _header_test,
    first_offset,
    glob,
    last_offset,
    quiet_place,
    request_id,
    search,
    since_ms,
    type_name,
)
from audit.reading.dump import batch_in_words, caller_of
from audit.reading.moments import MomentError
from audit.reading.settling import settled
from controller.http import watch
from ledger.batch import ACTED_AS, BatchHeader, Provenance, seal
from logberg.commands.audit import availability, history, log, who
from logberg.commands.audit.record_output import cause, cause_json
from metadata.codec import encode_records
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid_text
from tests.unit.audit.memory_log import logged, replica_of

TOPIC = b"\x07" * 16
PARTITION = PartitionRecord(0, TOPIC, (1, 2), (1, 2), (), (), 1, 0, 0)
BATCHES = logged(
    [TopicRecord("orders", TOPIC), PARTITION],
    [ConfigRecord(2, "orders", "retention.ms", "1")],
    [BeginTransactionRecord()],
    [PartitionChangeRecord(0, TOPIC, leader=2)],
    [AbortTransactionRecord()],
    [BeginTransactionRecord(), PartitionChangeRecord(0, TOPIC, leader=-1)],
    [NoOpRecord(), EndTransactionRecord()],
    [UserScramCredentialRecord("eve", 1, b"salt", b"k", b"k", 4096)],
    [BeginTransactionRecord(), PartitionChangeRecord(0, TOPIC, isr=(1,))],
)
END = BATCHES[-1].header.end_offset


def found(wanted: Filter, start: int = 0, end: int = END) -> list[tuple[int, str]]:
    replica = replica_of(BATCHES)
    hits = search(replica, replica.reader(), wanted, start, end)
    return [(hit.logged.offset, hit.logged.outcome) for hit in hits]


def test_a_topic_is_found_in_its_partitions_and_configs_with_their_outcomes() -> None:
    assert found(Filter(resources=("topic:orders",))) == [
        (0, "settled"),
        (1, "settled"),
        (2, "settled"),
        (4, "aborted"),
        (7, "settled"),
        (12, "open"),
    ]


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        (Filter(resources=("orders",)), [0, 1, 2, 4, 7, 12]),
        (Filter(resources=("config:*",)), [2]),
        (Filter(resources=("partition:ord*-0", "user:*")), [1, 4, 7, 10, 12]),
        (Filter(resources=("topic:order",)), []),
        (Filter(principal="User:alice"), [0, 1, 5, 11, 12]),
        (Filter(principal="alice"), [0, 1, 5, 11, 12]),
        (Filter(principal="User:carol"), [3, 8, 9]),
        (Filter(principal="Broker:*"), [2, 3, 8, 9]),
        (Filter(operation="Create*"), [0, 1, 4, 8, 9]),
        (Filter(operation="create*"), []),
        (Filter(types=("PARTITION_CHANGE_RECORD",)), [4, 7, 12]),
        (Filter(request_id=(3).to_bytes(16, "big")), [4]),
        (Filter(outcomes=("aborted", "open")), [3, 4, 5, 11, 12]),
        (Filter(types=("TOPIC_RECORD",), principal="User:bob"), []),
    ],
)
def test_filters(wanted, offsets) -> None:
    assert [offset for offset, _ in found(wanted)] == offsets


def test_an_outcome_is_known_although_it_lies_outside_of_what_was_asked_for() -> None:
    assert found(Filter(), 7, 8) == [(7, "settled")]
    assert found(Filter(), 4, 5) == [(4, "aborted")]
    assert found(Filter(), 5, 5) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("topic", "TOPIC_RECORD"),
        ("TopicRecord", "TOPIC_RECORD"),
        ("PARTITION_CHANGE_RECORD", "PARTITION_CHANGE_RECORD"),
        ("partition-change", "PARTITION_CHANGE_RECORD"),
        ("KRaftVersionRecord", "KRAFT_VERSION_RECORD"),
    ],
)
def test_types_as_people_type_them(text, name) -> None:
    assert type_name(text) == name


def test_what_is_no_type_or_request_id_gets_a_sentence() -> None:
    with pytest.raises(SearchError, match=r"no record type 'topics'. The types are"):
        type_name("topics")
    with pytest.raises(SearchError, match="'x' is not a request id"):
        request_id("x")


def test_request_ids_as_logberg_and_as_others_write_them() -> None:
    raw = bytes(range(16))
    assert request_id(uuid_text(raw)) == raw
    assert request_id("00010203-0405-0607-0809-0a0b0c0d0e0f") == raw


def test_globs_without_a_colon_are_for_the_name() -> None:
    assert glob("orders")("topic:orders")
    assert not glob("orders")("topic:orders-2")
    assert glob("config:*")("config:topic:orders:retention.ms")
    assert not glob("topic:[ab]*")("topic:orders")
    assert glob("quorum")("quorum")


@pytest.fixture(scope="module")
def lifelike(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lifelike")
    write_history(folder, records=6_000, seed=2, checkpoint_every=1_000, open_transaction=True)
    return folder


def test_numbers_are_offsets_of_records_and_times_lie_between_batches(lifelike) -> None:
    reader = open_replicas(str(lifelike))[0].reader()
    batches = list(reader.batches())
    whole = next(batch.header for batch in batches if batch.header.count > 2)
    assert first_offset(reader, str(whole.base_offset + 1)) == whole.base_offset + 1
    assert last_offset(reader, str(whole.base_offset + 1)) == whole.base_offset + 1
    assert (first_offset(reader, None), last_offset(reader, None)) == (0, reader.log_end)
    with pytest.raises(MomentError):
        first_offset(reader, str(reader.log_end + 1))
    day = "2026-10-05T12:00:00Z"
    first = next(batch.header for batch in batches if batch.header.timestamp_ms > 1_791_201_600_000)
    assert first_offset(reader, day) == first.base_offset
    assert since_ms(reader, day) == 1_791_201_600_000
    assert since_ms(reader, None) == 0
    assert since_ms(reader, str(whole.base_offset)) == whole.timestamp_ms
    assert since_ms(reader, "end") == batches[-1].header.timestamp_ms


def test_reading_begins_at_a_checkpoint_and_finds_the_same(lifelike, monkeypatch) -> None:
    replica = open_replicas(str(lifelike))[0]
    reader = replica.reader()
    start = 5_000

    def words(from_: int) -> list:
        hits = search(replica, reader, Filter(), from_, reader.log_end)
        return [(h.logged.offset, h.logged.outcome, h.subjects) for h in hits]

    from_the_beginning = words(start)
    monkeypatch.setattr("audit.questions.search._WORTH_A_CHECKPOINT", 100)
    begin, names = quiet_place(replica, reader, start)
    assert 4_000 <= begin <= start
    assert names.topics
    assert words(start) == from_the_beginning
    assert [one for one in words(0) if one[0] >= start] == from_the_beginning


def test_where_the_log_was_cut_a_checkpoint_tells_names(tmp_path) -> None:
    write_history(tmp_path, records=3_000, seed=2, checkpoint_every=900, segment_bytes=50_000)
    segments = sorted((tmp_path / "controller-1" / "log").glob("*.log"))
    for path in segments[:3]:
        path.unlink()
    replica = open_replicas(str(tmp_path))[0]
    reader = replica.reader()
    begin, names = quiet_place(replica, reader, reader.log_start)
    assert begin == reader.log_start > 0
    assert names.topics


def run(command, *words: str):
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_log_prints_what_fits_as_lines_and_as_documents(lifelike) -> None:
    where = str(lifelike)
    result = run(log.command, where, "--type", "topic", "--output", "json")
    assert result.exit_code == 0
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    reader = open_replicas(where)[0].reader()
    expected = [
        (one.offset, one.outcome, f"topic:{one.record.name}")
        for one in settled(reader.batches())
        if isinstance(one.record, TopicRecord)
    ]
    assert [(d["offset"], d["outcome"], d["subjects"][0]) for d in documents] == expected
    assert {"open", "settled"} <= {d["outcome"] for d in documents}
    lines = run(log.command, where, "--type", "topic").stdout.splitlines()
    assert sum("TOPIC_RECORD" in line for line in lines) == len(expected)
    assert any("TOPIC_RECORD  topic:" in line and "  OPEN  " in line for line in lines)
    limited = run(log.command, where, "--limit", "3", "--output", "json").stdout
    assert len(limited.splitlines()) == 3


def test_log_stars_secrets_unless_they_are_asked_for(lifelike) -> None:
    words = (str(lifelike), "--type", "user-scram-credential", "--output", "json")
    starred = json.loads(run(log.command, *words).stdout.splitlines()[0])
    assert starred["data"]["salt"] == "***"
    assert starred["redacted"] == ["salt", "storedKey", "serverKey"]
    shown = json.loads(run(log.command, *words, "--show-secrets").stdout.splitlines()[0])
    assert shown["data"]["salt"] != "***"


def test_what_can_t_be_asked_ends_with_exit_1_and_a_sentence(lifelike, tmp_path) -> None:
    for words, sentence in (
        ((str(lifelike), "--type", "nonsense"), "there is no record type 'nonsense'"),
        ((str(lifelike), "--from", "yesterday"), "'yesterday' is not a moment"),
        ((str(lifelike), "--from", "99999999"), "is not there yet"),
        ((str(lifelike), "--request-id", "?"), "'?' is not a request id"),
        ((str(tmp_path / "nowhere"),), "nowhere"),
    ):
        result = run(log.command, *words)
        assert result.exit_code == 1
        assert sentence in result.stderr
        assert not result.stdout


def test_who_says_who_touched_a_thing_newest_first(lifelike) -> None:
    where = str(lifelike)
    reader = open_replicas(where)[0].reader()
    replica = open_replicas(where)[0]
    hits = list(search(replica, reader, Filter(resources=("broker:3",)), 0, reader.log_end))
    batches = list(dict.fromkeys(hit.logged.header.base_offset for hit in hits))
    result = run(who.command, where, "broker:3", "--limit", "4", "--output", "json")
    touches = json.loads(result.stdout)
    assert [touch["baseOffset"] for touch in touches] == batches[::-1][:4]
    subjects = {subject for touch in touches for subject in touch["subjects"]}
    of_requests = {subject for subject in subjects if subject.startswith("request:")}
    assert subjects - of_requests <= {"broker:3", "producer-ids"}
    assert (
        f"and {len(batches) - 4} older"
        in run(who.command, where, "broker:3", "--limit", "4").stderr
    )
    nobody = run(who.command, where, "topic:nobody-ever")
    assert nobody.exit_code == 0
    assert "nobody changed topic:nobody-ever" in nobody.stderr


def test_who_names_the_user_and_the_broker_that_carried_the_request(lifelike) -> None:
    where = str(lifelike)
    reader = open_replicas(where)[0].reader()
    carried = next(
        batch.header for batch in reader.batches() if batch.header.provenance.on_behalf_of
    )
    said = carried.provenance
    result = run(log.command, where, "--from", str(carried.base_offset), "--limit", "1")
    assert (
        f"{said.principal} for {said.on_behalf_of} ({said.auth_method} from {said.client_address})"
        in result.stdout
    )


@pytest.mark.parametrize("principal", ["Broker:7", "User:ANONYMOUS", "Broker:8"])
def test_who_acted_as_a_broker_without_being_it_is_shown_and_found(principal) -> None:
    """If authentication is off, the principal alone doesn't show which broker it acted as."""
    said = Provenance(principal="User:ANONYMOUS", auth_method="none", client_address="10.0.0.7")
    header = BatchHeader(0, 1, 1, 1, said, bytes(32), {ACTED_AS: b"Broker:7"})
    assert cause(header).startswith("User:ANONYMOUS as Broker:7 (none from 10.0.0.7)")
    assert cause_json(header)["actedAs"] == "Broker:7"
    batch = seal(header, encode_records([NoOpRecord()]))
    shown = batch_in_words(batch)
    assert (shown["actedAs"], caller_of(shown)) == (
        "Broker:7",
        "User:ANONYMOUS as Broker:7 (none from 10.0.0.7)",
    )
    assert watch.batch_in_words(batch).head["actedAs"] == "Broker:7"
    assert _header_test(Filter(principal=principal))(header) == (principal != "Broker:8")


@pytest.fixture
def damaged(lifelike, tmp_path) -> Path:
    """A log with a wrong byte in its middle."""
    folder = Path(shutil.copytree(lifelike, tmp_path / "damaged"))
    (path,) = (folder / "controller-1" / "log").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return folder


@pytest.mark.parametrize("command", [log, who, history, availability])
def test_damage_is_named_and_what_stands_before_it_is_told_if_asked(damaged, command) -> None:
    words = [str(damaged), *(["quorum"] if command in (who, history) else [])]
    refused = run(command.command, *words)
    told = run(command.command, *words, "--keep-going")
    for result in (refused, told):
        assert result.exit_code == 1
        assert "The rest of the cluster still has these records" in result.stderr
    assert told.stdout.startswith(refused.stdout)
    assert told.stdout
    assert "The output above covers everything before the damage." in told.stderr
    assert "The output above" not in refused.stderr
