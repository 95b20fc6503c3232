"""The generated history: always the same bytes, legal, plausible, and as every reader wants it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import structlog
from click.testing import CliRunner

from audit.generated import CLUSTER_ID, GeneratedHistory, Life, batches, write_history
from audit.generated.rhythm import DAY_MS, START_MS, hour, weekday
from audit.places.folder import LocalTree
from audit.places.replicas import one_replica, open_replicas
from audit.places.tree_disk import TreeDisk
from audit.questions.agreement import agree
from audit.questions.state import state_at
from controller.storage.snapshotting import checkpoint_header
from ledger.chain import LogMark
from ledger.ledger import Ledger
from logberg.commands.audit.generate import command
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_from_records
from metadata.records import (
    EndTransactionRecord,
    RegisterBrokerRecord,
    RequestOutcomeRecord,
)
from metadata.steps import finished
from metadata.uuids import uuid7_time_ms
from runtime.disk.real import RealDisk
from snapshots.store import list_checkpoints, load_steps

RECORDS = 6_000
PINNED = "121a66b543e65d79cb1f01d09a01effd8714df33ea80bddf41efc5d637c296ac"
"""Head of the history of 2,000 records with seed 7: it covers every byte of it."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> GeneratedHistory:
    return write_history(
        tmp_path_factory.mktemp("generated"),
        records=RECORDS,
        seed=3,
        replicas=2,
        open_transaction=True,
        checkpoint_every=1_000,
        segment_bytes=6_000,
    )


def head_of(seed: int, records: int) -> str:
    life = Life(seed, records=records)
    for _ in life.sealed():
        pass
    return life.mark.head.hex()


def test_the_same_arguments_give_the_bytes_that_they_gave_at_first() -> None:
    assert head_of(7, 2_000) == PINNED


@pytest.mark.slow
def test_another_process_with_other_hashes_writes_the_same() -> None:
    """Nothing may depend on the order of a set, which PYTHONHASHSEED decides."""
    script = (
        "import sys; from tests.unit.audit.generated.test_generated import head_of; "
        "print(head_of(7, 2000))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == PINNED


def test_another_seed_is_another_history() -> None:
    assert head_of(8, 2_000) != PINNED


def test_batches_are_those_that_are_written(history: GeneratedHistory) -> None:
    ours = b"".join(b.encoded for b in batches(3, records=RECORDS, open_transaction=True))
    for node in history.nodes:
        files = [path.read_bytes() for path in sorted((node / "log").iterdir())]
        header = 72 + len(CLUSTER_ID)
        assert len(files) == history.segments > 40
        assert b"".join(file[header:] for file in files) == ours


def images(life: Life, every: int = 25) -> Iterator[MetadataImage]:
    """Replay with the state hash; an image every so many batches."""
    delta = MetadataDelta(EMPTY)
    mark = LogMark.beginning(CLUSTER_ID)
    for number, (batch, records) in enumerate(life.sealed(), 1):
        header = batch.header
        assert mark.objection(batch) == ""
        mark = mark.after(batch)
        assert decode_records(batch.records) == list(records)
        delta.replay_all(records, header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        if number % every == 0:
            image = delta.apply()
            yield image
            delta = MetadataDelta(image)
    assert mark == life.mark
    yield delta.apply()


def assert_plausible(image: MetadataImage) -> None:
    brokers = image.cluster.brokers
    for partition in image.topics.partitions.values():
        assert len(set(partition.replicas)) == len(partition.replicas)
        assert partition.isr
        assert set(partition.isr) <= set(partition.replicas)
        assert len(partition.directories) == len(partition.replicas)
        assert {*partition.adding, *partition.removing} <= set(partition.replicas)
        if partition.leader >= 0:
            assert partition.leader in partition.isr
            assert brokers[partition.leader].active
            assert all(brokers[replica].active for replica in partition.isr)
        else:
            assert not any(brokers[replica].active for replica in partition.isr)
        assert all(replica in brokers for replica in partition.replicas)


@pytest.mark.parametrize(
    "life",
    [
        Life(1, records=8_000, open_transaction=True),
        Life(2, days=2.5),
        Life(3, records=3_000, brokers=3, topics=10),
        Life(4, records=10_000, days=3, brokers=24),
    ],
    ids=["usual", "by days", "three brokers", "both"],
)
def test_every_record_is_legal_and_every_state_plausible(life: Life) -> None:
    for image in images(life):
        assert_plausible(image)
    assert image.offset == life.mark.log_end
    assert len(image.topics.partitions) == life.size[2]


def test_whoever_left_an_isr_comes_back() -> None:
    *_, image = images(Life(6, records=30_000), every=500)
    brokers = image.cluster.brokers
    kept_out = [
        partition
        for partition in image.topics.partitions.values()
        if any(brokers[r].active and r not in partition.isr for r in partition.replicas)
    ]
    assert len(kept_out) < len(image.topics.partitions) / 20


def test_it_ends_where_it_was_told_to() -> None:
    for wanted in (1, 500, 5_000):
        life = Life(1, records=wanted)
        *_, last = life.sealed()
        assert wanted <= life.mark.log_end
        assert wanted == 1 or last.batch.header.base_offset < wanted + 100
    life = Life(1, days=1)
    *_, last = life.sealed()
    assert 0.9 * DAY_MS < last.batch.header.timestamp_ms - START_MS < 1.2 * DAY_MS


def test_a_history_of_nothing_is_refused(tmp_path: Path) -> None:
    for wrong in ({}, {"records": 0}, {"days": 0.0}, {"days": 1, "brokers": 2}):
        with pytest.raises(ValueError, match=r"histor|days"):
            Life(1, **wrong)
    with pytest.raises(ValueError, match="replica"):
        write_history(tmp_path, records=10, replicas=0)


def test_verify_and_replay_are_happy_with_its_folders(history: GeneratedHistory) -> None:
    replicas = open_replicas(str(history.folder))
    assert {each.synced_to.log_end for each in replicas} == {history.log_end}
    found = agree(replicas)
    assert found.ok, found.problem
    assert found.comparison.common_offset == history.log_end
    states = [state_at(each, history.log_end, snapshots=False) for each in replicas]
    assert {state.head for state in states} == {history.head}
    assert len({state.state_hash for state in states}) == 1
    assert [state.batches for state in states] == [history.batches] * 2


def test_its_segments_are_cut_where_the_ledger_cuts(
    history: GeneratedHistory, tmp_path: Path
) -> None:
    class InlineDisk(RealDisk):
        def in_background(self, work, on_done):
            on_done(work(), None)

    disk = InlineDisk(tmp_path)
    disk.make_folder("log")
    ledger = Ledger.open(
        disk, CLUSTER_ID, synced_to=None, segment_bytes=6_000, log=structlog.get_logger()
    )
    for batch in batches(3, records=RECORDS, open_transaction=True):
        ledger.accept(batch.header.epoch, batch)
    ledger.close()
    theirs = {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    ours = {path.name: path.read_bytes() for path in (history.nodes[1] / "log").iterdir()}
    assert ours == theirs


def test_its_checkpoints_are_those_of_the_replayed_image(history: GeneratedHistory) -> None:
    disk = TreeDisk(LocalTree(history.nodes[0]))
    found = list_checkpoints(disk)
    assert tuple(one.offset for one in found) == history.checkpoints
    assert len(found) >= RECORDS // 1_000 - 1
    for one in found:
        loaded = finished(load_steps(disk, CLUSTER_ID, one))
        replayed = state_at(one_replica(str(history.nodes[0])), one.offset, snapshots=False)
        assert loaded.header == checkpoint_header(CLUSTER_ID, replayed.image, replayed.head)
        records = list(loaded.records())
        header = loaded.header
        assert (
            image_from_records(records, header.offset, header.epoch, header.timestamp_ms)
            == replayed.image
        )
        twin = Path(history.nodes[1], "checkpoints", one.name).read_bytes()
        assert twin == Path(history.nodes[0], "checkpoints", one.name).read_bytes()


def test_no_checkpoint_lies_within_a_transaction(tmp_path: Path) -> None:
    written = write_history(tmp_path, records=3_000, checkpoint_every=20, open_transaction=True)
    kinds = ("ended", "aborted", "discarded", "open")
    facts = [written.of(f"transaction_{kind}")[0] for kind in kinds]
    for fact in facts:
        end = fact.until_offset or written.log_end + 1
        assert end - fact.from_offset > 10
        assert not [at for at in written.checkpoints if fact.from_offset < at < end]
    assert len(written.checkpoints) > 40


def test_checkpoints_can_be_left_out(tmp_path: Path) -> None:
    written = write_history(tmp_path, records=1_500, checkpoint_every=0)
    assert written.checkpoints == ()
    assert list((tmp_path / "controller-1" / "checkpoints").iterdir()) == []


def test_a_week_has_nights_and_a_weekend() -> None:
    """What people and services ask for; failures and their echo come at any time."""
    asked = [
        batch.header.timestamp_ms
        for batch in batches(1, records=30_000, days=14)
        if batch.header.provenance.request_id and batch.header.timestamp_ms > START_MS + DAY_MS
    ]
    by_day = sum(8 <= hour(ms) < 18 for ms in asked)
    assert by_day > 2 * (len(asked) - by_day)
    weekend = sum(weekday(ms) >= 5 for ms in asked)
    assert weekend / 4 < (len(asked) - weekend) / 10 / 1.5


def test_who_asks_is_said_as_the_controller_says_it() -> None:
    seen: set[tuple[str, str]] = set()
    forwarded = 0
    for batch in batches(5, records=20_000):
        header = batch.header
        said = header.provenance
        role = said.principal.partition(":")[0]
        seen.add((role, said.auth_method))
        assert said.operation
        assert bool(said.request_id) == bool(said.request_digest)
        if said.request_id:
            assert header.timestamp_ms - 60_000 < uuid7_time_ms(said.request_id)
            assert uuid7_time_ms(said.request_id) <= header.timestamp_ms
        if said.on_behalf_of:
            assert role == "Broker"
            forwarded += 1
    assert seen == {
        ("User", "certificate"),
        ("User", "token"),
        ("User", "unix-socket"),
        ("Broker", "certificate"),
        ("Controller", "internal"),
    }
    assert forwarded > 5


def test_a_request_leaves_its_outcome_at_its_end() -> None:
    """Once, as the last record before the end of its transaction; what is not ended has none."""
    asked: list[bytes] = []
    answered: list[bytes] = []
    life = Life(1, records=6_000)
    for batch, records in life.sealed():
        said = batch.header.provenance
        if said.request_id and said.request_id not in asked[-1:]:
            asked.append(said.request_id)
        for place, record in enumerate(records):
            if not isinstance(record, RequestOutcomeRecord):
                continue
            answered.append(record.key)
            assert (record.key, record.digest) == (said.request_id, said.request_digest)
            assert record.time_ms == batch.header.timestamp_ms
            end = msgspec.msgpack.decode(record.answer)[2]
            assert end == batch.header.end_offset
            rest = records[place + 1 :]
            assert not rest or [type(one) for one in rest] == [EndTransactionRecord]
    assert len(set(asked)) == len(asked)
    unanswered = sum(fact.kind.startswith("transaction") for fact in life.facts) - 1
    assert unanswered == 2
    assert len(asked) - len(answered) == unanswered
    assert set(answered) < set(asked)


def test_a_broker_s_epoch_is_the_offset_of_its_registration() -> None:
    incarnations: set[bytes] = set()
    for batch, records in Life(2, records=6_000).sealed():
        for offset, record in enumerate(records, batch.header.base_offset):
            if isinstance(record, RegisterBrokerRecord):
                assert record.broker_epoch == offset
                assert record.incarnation_id not in incarnations
                incarnations.add(record.incarnation_id)
    assert len(incarnations) > 20


def run(*arguments: str):
    return CliRunner().invoke(command, list(arguments))


def test_the_command_writes_tells_and_says_what_to_try(tmp_path: Path) -> None:
    out = tmp_path / "made-up"
    shown = run("--out", str(out), "--records", "2500", "--seed", "2", "--open-transaction")
    assert shown.exit_code == 0, shown.output
    assert sorted(path.name for path in out.iterdir()) == [
        "controller-1",
        "controller-2",
        "controller-3",
        "story.json",
    ]
    told = json.loads((out / "story.json").read_text())
    for sentence in told["story"]:
        assert sentence in shown.output
    assert told["head"] in shown.output
    assert shown.output.count("logberg audit ") == 3


@pytest.mark.slow
def test_the_command_speaks_json_and_lives_thirty_days_unless_told(tmp_path: Path) -> None:
    shown = run("--out", str(tmp_path / "a"), "--replicas", "1", "--output", "json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["nodes"] == [str(tmp_path / "a" / "controller-1")]
    assert 29.9 < (found["toMs"] - found["fromMs"]) / DAY_MS < 30.5


def test_the_command_refuses_more_topics_than_its_records_can_make(tmp_path: Path) -> None:
    shown = run("--out", str(tmp_path / "a"), "--records", "5000", "--topics", "10000")
    assert shown.exit_code == 1
    assert "10000 topics has at least 120000 records, not 5000" in shown.output
    assert not (tmp_path / "a").exists()


def test_it_has_the_topics_that_it_was_told_to_have() -> None:
    life = Life(2, records=15_000, topics=1_000)
    for _ in life.sealed():
        pass
    assert 1_000 <= life.size[1] < 1_050


def test_topics_without_a_number_of_records_get_as_many_as_they_need() -> None:
    life = Life(2, days=3, topics=1_000)
    for _ in life.sealed():
        pass
    assert 1_000 <= life.size[1] < 1_050
    assert life.mark.log_end > 10_000


def test_the_command_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    shown = run("--out", str(tmp_path), "--records", "10")
    assert shown.exit_code == 1
    assert "not empty" in shown.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
