"""Where several logs differ: the first offset, and the batch of each side."""

import json
import random
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from audit.places.replicas import one_replica
from audit.questions.agreement import agree
from audit.questions.compare import Comparison, compare
from ledger.batch import parse
from ledger.verify import verify_ledger
from logberg.commands.audit.compare import command
from tests.histories import History, HistoryBatch
from tests.unit.audit.nodes import frames, rewritten, write_node

BATCHES = History(9).batches(120)


def compared(*folders: Path) -> Comparison:
    replicas = [
        msgspec.structs.replace(one_replica(str(folder)), name=folder.name) for folder in folders
    ]
    return compare(replicas, {each.name: verify_ledger(each.disk) for each in replicas})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_node(folder / "one", written=BATCHES, segment_bytes=4_096)
    shutil.copytree(folder / "one", folder / "two")
    write_node(folder / "short", written=BATCHES[:70], segment_bytes=4_096)
    return folder


def test_equal_logs_and_shorter_ones_agree(world: Path) -> None:
    found = compared(world / "one", world / "two", world / "short")
    assert found.divergences == ()
    assert found.agreed == ("one", "two", "short")
    assert found.common_offset == BATCHES[69].end_offset


def test_a_torn_batch_behind_the_synced_mark_does_not_stop_the_comparison(
    world: Path, tmp_path: Path
) -> None:
    """Its head is whole, so the reader counts the batch; the verification does not."""
    shutil.copytree(world / "one", tmp_path / "torn")
    newest = max((tmp_path / "torn" / "log").glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-1] + b"\x00")
    last = BATCHES[-1].base_offset
    marks = {
        mark.log_end: mark for mark in one_replica(str(world / "one")).reader().segment_marks()
    }
    synced_to = marks[max(marks)]
    replicas = [
        msgspec.structs.replace(one_replica(str(folder)), synced_to=synced_to)
        for folder in (world / "one", tmp_path / "torn")
    ]
    found = agree(replicas)
    assert found.ok, found
    assert found.comparison.common_offset == last
    assert [log.report.log_end - last > 0 for log in found.logs] == [True, False]


@pytest.mark.parametrize("seed", range(6))
def test_the_first_batch_that_differs_is_found(world: Path, tmp_path: Path, seed: int) -> None:
    changed = random.Random(seed).randrange(len(BATCHES))
    told = list(BATCHES)
    records = told[changed].records
    told[changed] = told[changed]._replace(timestamp_ms=told[changed].timestamp_ms + 1)
    for number in range(changed + 1, len(told)):
        later = max(told[number].timestamp_ms, told[changed].timestamp_ms)
        told[number] = told[number]._replace(timestamp_ms=later)
    write_node(tmp_path / "three", written=told, segment_bytes=4_096)
    found = compared(world / "one", tmp_path / "three", world / "two")
    assert found.agreed == ("one", "two")
    assert found.majority
    (divergence,) = found.divergences
    assert (divergence.replica, divergence.offset) == ("three", BATCHES[changed].base_offset)
    assert divergence.batch["time"] != divergence.other_batch["time"]
    assert len(divergence.batch["records"]) == len(records)


def test_two_without_a_third_have_no_majority(world: Path, tmp_path: Path) -> None:
    write_node(tmp_path / "four", seed=10)
    found = compared(world / "one", tmp_path / "four")
    assert not found.majority
    assert found.divergences[0].offset == 0


def test_what_was_rewritten_in_place_is_found_before_its_chain_breaks(
    world: Path, tmp_path: Path
) -> None:
    """A record is rewritten with a right CRC. The chain breaks only one batch later."""
    node = Path(shutil.copytree(world / "one", tmp_path / "bad"))
    at = rewrite(node, BATCHES[55])
    report = verify_ledger(one_replica(str(node)).disk)
    assert report.first_bad is not None
    assert report.first_bad.offset == BATCHES[55].end_offset
    found = compared(world / "one", node, world / "two")
    assert [(each.replica, each.offset) for each in found.divergences] == [("bad", at)]


def rewrite(node: Path, batch: HistoryBatch) -> int:
    for path in sorted((node / "log").glob("*.log")):
        header, batches = frames(path)
        for number, encoded in enumerate(batches):
            if parse(encoded).header.base_offset == batch.base_offset:
                batches[number] = rewritten(parse(encoded))
                path.write_bytes(header + b"".join(batches))
                return batch.base_offset
    raise AssertionError("no such batch")


def test_a_damaged_log_is_compared_as_far_as_it_is_right(world: Path, tmp_path: Path) -> None:
    node = Path(shutil.copytree(world / "one", tmp_path / "torn"))
    path = sorted((node / "log").glob("*.log"))[2]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = compared(world / "one", node)
    assert found.divergences == ()
    assert found.agreed == ("one", "torn")
    path = min((node / "log").glob("*.log"))
    path.write_bytes(b"x" + path.read_bytes()[1:])
    shutil.copy(path, node / "log" / path.name.replace("0.log", "1.log"))
    assert "torn" in compared(world / "one", node).left_out


def test_another_cluster_s_log_is_left_out(world: Path, tmp_path: Path) -> None:
    write_node(tmp_path / "foreign", written=BATCHES, cluster="another")
    found = compared(world / "one", world / "two", tmp_path / "foreign")
    assert "another cluster, 'another'" in found.left_out["foreign"]
    assert found.agreed == ("one", "two")


def test_history_that_begins_later_is_compared_from_there(world: Path, tmp_path: Path) -> None:
    node = Path(shutil.copytree(world / "one", tmp_path / "late"))
    for path in sorted((node / "log").glob("*.log"))[:2]:
        path.unlink()
    assert compared(world / "one", node).divergences == ()
    write_node(tmp_path / "five", seed=10, segment_bytes=4_096)
    assert compared(tmp_path / "five", node).divergences


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def test_the_command(world: Path, tmp_path: Path) -> None:
    said = run(world / "one", world / "two")
    assert said.exit_code == 0
    assert "2 logs agree up to offset" in said.stdout
    write_node(tmp_path / "six", seed=10)
    failed = run(world / "one", world / "two", tmp_path / "six")
    assert failed.exit_code == 1
    assert "six differs from one from offset 0 on; 2 logs agree against it" in failed.stderr
    assert failed.stdout.count("  User:alice  Test  #") == 2
    document = json.loads(run(world / "one", tmp_path / "six", "--output", "json").stdout)
    assert document["divergences"][0]["offset"] == 0
    assert run(world / "one").exit_code == 2
