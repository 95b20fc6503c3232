"""The state at a moment: the same from every checkpoint, from offset 0, and as a live image."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from audit.places.replicas import NoLogError, one_replica
from audit.questions.state import state_at, states_at
from audit.reading.moments import MomentError
from logberg.commands.audit.state import command
from metadata.image import EMPTY, image_to_records
from snapshots.store import list_checkpoints
from tests.histories import History, HistoryBatch
from tests.unit.audit.nodes import write_checkpoint, write_node

BATCHES = History(3).batches(600)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    write_node(folder, written=BATCHES, segment_bytes=16_384, checkpoint_every=150)
    return folder


def batch_at(offset: int) -> HistoryBatch:
    return next(batch for batch in BATCHES if batch.base_offset <= offset < batch.end_offset)


def copied(node: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(node, tmp_path / "copy"))


@pytest.mark.slow
def test_at_every_offset_it_is_what_a_fold_without_snapshots_gives(
    node: Path, tmp_path: Path
) -> None:
    images = write_node(tmp_path / "again", written=BATCHES)
    replica = one_replica(str(node))
    reader = replica.reader()
    assert reader.log_end > 2_000
    assert len(list_checkpoints(replica.disk)) > 4
    begun = set()
    for batch, image in zip(BATCHES, images, strict=True):
        found = state_at(replica, batch.end_offset, reader=reader)
        assert found.image.offset == batch.end_offset
        assert found.image.state_hash == image.state_hash
        assert found.head == reader.hash_at(batch.end_offset)
        begun.add(found.checkpoint)
        # Every offset in between stands for the batch's end.
        for offset in range(batch.base_offset + 1, batch.end_offset):
            assert reader.end_of_batch(offset) == batch.end_offset
    assert len(begun) == len(list_checkpoints(replica.disk)) + 1
    assert state_at(replica, 0).image.state_hash == EMPTY.state_hash


def test_an_offset_inside_a_batch_stands_for_its_end(node: Path) -> None:
    replica = one_replica(str(node))
    batch = next(batch for batch in BATCHES if len(batch.records) > 3)
    inside = state_at(replica, batch.base_offset + 1)
    assert inside.offset == batch.end_offset
    assert inside.image.same_state(state_at(replica, batch.end_offset).image)


def test_it_begins_from_the_nearest_checkpoint_and_says_so(node: Path) -> None:
    replica = one_replica(str(node))
    checkpoints = list_checkpoints(replica.disk)
    found = state_at(replica, checkpoints[2].offset + 1)
    assert found.checkpoint == checkpoints[2].name
    assert found.from_offset == checkpoints[2].offset
    assert found.batches == 1
    assert not state_at(replica, checkpoints[0].offset - 1).checkpoint
    assert not state_at(replica, checkpoints[2].offset, snapshots=False).checkpoint


@pytest.mark.parametrize("harm", ["flipped", "cut", "emptied", "newer"])
def test_a_damaged_checkpoint_is_said_and_the_one_before_is_taken(
    node: Path, tmp_path: Path, harm: str
) -> None:
    copy = copied(node, tmp_path)
    checkpoints = list_checkpoints(one_replica(str(copy)).disk)
    path = copy / "checkpoints" / checkpoints[-1].name
    data = bytearray(path.read_bytes())
    if harm == "flipped":
        data[len(data) // 2] ^= 1
    elif harm == "newer":
        data[5] = 2
    path.write_bytes(data[: {"cut": len(data) - 1, "emptied": 0}.get(harm, len(data))])
    found = state_at(one_replica(str(copy)), checkpoints[-1].offset)
    assert found.checkpoint == checkpoints[-2].name
    assert found.image.state_hash == state_at(one_replica(str(node)), found.offset).state_hash
    assert any(path.name in note and "is not used" in note for note in found.notes)


def test_a_checkpoint_that_was_replaced_is_said(node: Path, tmp_path: Path) -> None:
    copy = copied(node, tmp_path)
    replica = one_replica(str(copy))
    last, before = list_checkpoints(replica.disk)[-1], list_checkpoints(replica.disk)[-2]
    image = state_at(replica, last.offset).image
    head = state_at(replica, last.offset).head
    for part, changed in (
        ("the chain hash at offset", {"head": bytes(32)}),
        ("its content doesn't have", {"head": head, "records": list(image_to_records(image))[1:]}),
        ("its content doesn't have", {"head": head, "state_hash": bytes(64)}),
    ):
        write_checkpoint(copy, image, **changed)
        found = state_at(replica, last.offset)
        assert found.checkpoint == before.name
        assert part in found.notes[0]
        assert found.image.same_state(image)


def test_a_checkpoint_in_the_midst_of_a_batch_is_said(node: Path, tmp_path: Path) -> None:
    copy = copied(node, tmp_path)
    replica = one_replica(str(copy))
    batch = next(batch for batch in reversed(BATCHES) if len(batch.records) > 1)
    state = state_at(replica, batch.end_offset)
    image = msgspec.structs.replace(state.image, offset=batch.base_offset + 1, transaction=None)
    path = write_checkpoint(copy, image, state.head)
    found = state_at(replica, batch.end_offset)
    assert found.checkpoint != path.name
    assert any("no batch of the log ends at" in note for note in found.notes)


def test_an_open_transaction_is_said_and_doesn_t_count(node: Path) -> None:
    replica = one_replica(str(node))
    seen = 0
    for batch in BATCHES:
        found = state_at(replica, batch.end_offset)
        transaction = found.image.transaction
        if transaction is None:
            assert not found.notes
            continue
        assert f"open since offset {transaction.offset}" in found.notes[-1]
        if batch_at(transaction.offset).base_offset == transaction.offset:
            before = state_at(replica, transaction.offset)
            assert before.state_hash == found.state_hash
            seen += not transaction.branch.same_state(before.image)
        if seen == 3:
            return
    raise AssertionError("no transaction that changes anything stands open at a batch's end")


def test_history_that_was_cut_begins_from_a_checkpoint(node: Path, tmp_path: Path) -> None:
    copy = copied(node, tmp_path)
    for path in sorted((copy / "log").glob("*.log"))[:2]:
        path.unlink()
    replica = one_replica(str(copy))
    end = replica.reader().log_end
    found = state_at(replica, end, snapshots=False)
    assert found.checkpoint
    assert found.state_hash == state_at(one_replica(str(node)), end).state_hash
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(NoLogError, match="no snapshot between"):
        state_at(replica, end)


def test_states_go_on_from_each_other(node: Path) -> None:
    replica = one_replica(str(node))
    offsets = (300, 301, 900)
    for found in states_at(replica, offsets):
        alone = state_at(replica, found.offset)
        assert found.image.state_hash == alone.image.state_hash
        assert found.head == alone.head


def test_an_offset_behind_the_end_is_refused(node: Path) -> None:
    with pytest.raises(MomentError, match="the log ends at offset"):
        state_at(one_replica(str(node)), 10**9)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_shows_any_part_of_a_state(node: Path) -> None:
    replica = one_replica(str(node))
    end = replica.reader().log_end
    said = json.loads(run(str(node), "--output", "json", "--show", "all", "--at", "end"))
    state = state_at(replica, end)
    assert said["offset"] == end
    assert said["stateHash"] == state.state_hash.shared_bytes().hex()
    assert said["head"] == state.head.hex()
    assert said["entries"]["topics"] == len(state.image.topics.by_id)
    names = {topic.name for topic in state.image.topics.by_id.values()}
    assert {entry["name"] for entry in said["tables"]["topics"]} == names
    assert len(said["tables"]["partitions"]) == len(state.image.topics.partitions)
    for part in ("brokers", "configs", "acls", "quotas", "users", "features", "tokens", "quorum"):
        assert run(str(node), "--show", part)


def test_the_command_picks_by_name_and_stars_secrets(node: Path) -> None:
    at = next(
        batch.end_offset
        for batch in BATCHES
        if state_at(one_replica(str(node)), batch.end_offset).image.scram.credentials
    )
    ask = (str(node), "--output", "json", "--show", "users", "--at", str(at))
    users = json.loads(run(*ask))["tables"]["scram"]
    assert users
    assert all(user["storedKey"] == "***" for user in users)
    name = users[0]["name"]
    assert json.loads(run(*ask, "--name", f"{name[:-1]}?"))["tables"]["scram"][0] == users[0]
    assert json.loads(run(*ask, "--name", "nobody*"))["tables"]["scram"] == []
    assert "***" not in run(*ask, "--show-secrets")


def test_the_command_fails_with_a_sentence(node: Path, tmp_path: Path) -> None:
    for arguments, sentence in (
        ((str(tmp_path / "no"),), "is not there"),
        ((str(node), "--at", "noon"), "is not a moment"),
    ):
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 1
        assert sentence in result.stderr
