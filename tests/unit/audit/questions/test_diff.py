"""What changed: created, removed and changed things, with their names and fields."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.places.replicas import one_replica
from audit.questions.diff import (
    CHANGED,
    CREATED,
    REMOVED,
    Different,
    StateDifference,
    between_checkpoints,
)
from audit.questions.diff import between_offsets as between
from audit.questions.state import state_at
from logberg.cli.main import cli
from logberg.commands.audit.diff import command
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    ScramMechanism,
    TopicRecord,
    UserScramCredentialRecord,
)
from snapshots.errors import CheckpointError
from tests.histories import History, HistoryBatch
from tests.unit.audit.nodes import write_node

ORDERS, OTHER = bytes([7]) * 16, bytes([8]) * 16
TOPIC = ConfigResourceType.TOPIC


def scram(key: bytes) -> UserScramCredentialRecord:
    return UserScramCredentialRecord("alice", ScramMechanism.SCRAM_SHA_256, b"s", key, b"k", 4096)


def partition(topic: bytes) -> PartitionRecord:
    return PartitionRecord(0, topic, (1, 2, 3), (1, 2, 3), (), (), 1, 0, 0)


SCENARIO: tuple[tuple[Record, ...], ...] = (
    (TopicRecord("orders", ORDERS), partition(ORDERS), ConfigRecord(TOPIC, "orders", "a.b", "1")),
    (PartitionChangeRecord(0, ORDERS, (2, 3), 2), ConfigRecord(TOPIC, "orders", "a.b", "2")),
    (scram(b"old"), ConfigRecord(TOPIC, "orders", "ssl.keystore.password", "hidden")),
    (scram(b"new"), TopicRecord("other", OTHER), partition(OTHER)),
    (RemoveTopicRecord(ORDERS),),
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    write_node(folder, written=numbered(SCENARIO))
    return folder


def numbered(scenario: tuple[tuple[Record, ...], ...]) -> list[HistoryBatch]:
    batches, offset = [], 0
    for number, records in enumerate(scenario):
        batches.append(HistoryBatch(offset, 1, 1_700_000_000_000 + number * 60_000, records))
        offset += len(records)
    return batches


def ends() -> list[int]:
    return [0, *(batch.end_offset for batch in numbered(SCENARIO))]


def changes(found: StateDifference, **options: bool) -> list[Different]:
    return list(found.changes(**options))


def test_created_changed_and_removed_with_names_and_fields(node: Path) -> None:
    replica = one_replica(str(node))
    end = ends()
    created = changes(between(replica, end[0], end[1]))
    assert [(each.kind, each.table, each.name) for each in created] == [
        (CREATED, "topics", "orders"),
        (CREATED, "partitions", "orders-0"),
        (CREATED, "configs", "topic:orders"),
    ]
    assert created[2].fields == {"a.b": (None, "1")}
    changed = changes(between(replica, end[1], end[2]))
    assert [(each.kind, each.name) for each in changed] == [
        (CHANGED, "orders-0"),
        (CHANGED, "topic:orders"),
    ]
    assert changed[0].fields == {
        "isr": ([1, 2, 3], [2, 3]),
        "leader": (1, 2),
        "leaderEpoch": (0, 1),
        "partitionEpoch": (0, 1),
    }
    removed = changes(between(replica, end[4], end[5]))
    assert {(each.kind, each.name) for each in removed} == {
        (REMOVED, "orders"),
        (REMOVED, "orders-0"),
        (REMOVED, "topic:orders"),
    }
    assert changes(between(replica, end[3], end[3])) == []


def test_backwards_is_the_other_way_round(node: Path) -> None:
    replica = one_replica(str(node))
    there = changes(between(replica, ends()[1], ends()[4]))
    back = changes(between(replica, ends()[4], ends()[1]))
    other_way = {CREATED: REMOVED, REMOVED: CREATED, CHANGED: CHANGED}
    assert [(other_way[each.kind], each.name) for each in there] == [
        (each.kind, each.name) for each in back
    ]
    assert all(
        {name: values[::-1] for name, values in a.fields.items()} == b.fields
        for a, b in zip(there, back, strict=True)
    )


def test_a_secret_that_changed_is_a_change_and_stays_secret(node: Path) -> None:
    replica = one_replica(str(node))
    found = between(replica, ends()[3], ends()[4])
    user = next(each for each in changes(found) if each.table == "scram")
    assert (user.name, user.kind) == ("alice SCRAM-SHA-256", CHANGED)
    assert user.fields == {"storedKey": ("***", "***")}
    shown = next(each for each in changes(found, show_secrets=True) if each.table == "scram")
    assert shown.fields["storedKey"][0] != shown.fields["storedKey"][1]
    config = changes(between(replica, ends()[2], ends()[3]))[0]
    assert config.fields["ssl.keystore.password"] == (None, "***")


def test_the_changes_of_a_long_history_lead_from_one_state_to_the_other(tmp_path: Path) -> None:
    write_node(tmp_path / "node", written=History(4).batches(300), checkpoint_every=200)
    replica = one_replica(str(tmp_path / "node"))
    end = replica.reader().log_end
    for first, second in ((0, end), (end // 3, end), (end // 2, end // 2 + 40)):
        before, after = (state_at(replica, offset).image for offset in (first, second))
        found = changes(between(replica, first, second))
        for kind, here, gone in ((CREATED, after, before), (REMOVED, before, after)):
            expected = set(here.topics.by_id) - set(gone.topics.by_id)
            names = {here.topics.by_id[topic_id].name for topic_id in expected}
            said = {each.name for each in found if each.table == "topics" and each.kind == kind}
            assert said == names


def test_checkpoint_files_wherever_they_lie(tmp_path: Path) -> None:
    write_node(tmp_path / "node", written=History(4).batches(200), checkpoint_every=150)
    files = sorted((tmp_path / "node" / "checkpoints").iterdir())
    moved = shutil.copy(files[-1], tmp_path / files[-1].name)
    found = between_checkpoints(files[0], Path(moved))
    assert found.before.image.offset < found.after.image.offset
    assert changes(found)
    assert changes(between_checkpoints(files[-1], Path(moved))) == []
    data = bytearray(files[0].read_bytes())
    data[-70] ^= 1
    files[0].write_bytes(data)
    with pytest.raises(CheckpointError, match="can't be used"):
        between_checkpoints(files[0], Path(moved))


def run(*arguments: object) -> str:
    result = CliRunner().invoke(command, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command(node: Path, tmp_path: Path) -> None:
    said = run(node, ends()[1], ends()[2])
    assert "changed  partitions  orders-0\n    isr: [1,2,3] → [2,3]\n    leader: 1 → 2" in said
    assert "2 different" in said
    document = json.loads(run(node, "-2m", "end", "--output", "json"))
    assert document["before"]["offset"] == ends()[3]
    assert {"table": "topics", "name": "orders", "kind": "removed"}.items() <= document["changes"][
        0
    ].items()
    result = CliRunner().invoke(cli, ["audit", "diff", str(node), "-1h", str(ends()[1])])
    assert "3 different" in result.stdout
    shorter = tmp_path / "shorter"
    write_node(shorter, written=numbered(SCENARIO[:4]))
    assert "no difference" in run(node, shorter)
    other = tmp_path / "different"
    write_node(other, written=numbered((*SCENARIO[:4], (ConfigRecord(TOPIC, "other", "x", "y"),))))
    assert "removed  topics  orders" not in run(other, node, "--at", ends()[4])
    assert "removed  topics  orders" in run(other, node)


def test_the_command_says_how_it_is_meant(node: Path) -> None:
    for arguments in ([str(node)], [str(node)] * 4, ["--snapshots", str(node)]):
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 2
        assert "write WHERE A B" in result.stderr
    result = CliRunner().invoke(command, ["--snapshots", str(node), str(node)])
    assert result.exit_code == 1
    assert "Name a checkpoint file" in result.stderr
