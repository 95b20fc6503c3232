"""Verifying a replica: each tampering is found at its place."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from audit.places.replicas import one_replica
from audit.questions.log_replay import KnownReplays
from audit.questions.state import state_at
from audit.questions.verification import (
    CHECKPOINT,
    LOG,
    MANIFEST,
    STATE,
    VerificationResult,
    verify_replica,
)
from audit.reading.replay import Fold
from ledger.batch import Batch, parse
from ledger.errors import LedgerError
from ledger.frame import finish_frame
from logberg.commands.audit.verify import command
from metadata.image import image_to_records
from snapshots.store import list_checkpoints
from tests.histories import History
from tests.unit.audit.nodes import frames, rewritten, write_checkpoint, write_node

BATCHES = History(6).batches(150)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    write_node(folder, written=BATCHES, segment_bytes=8_192, checkpoint_every=150)
    return folder


@pytest.fixture
def node(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "node"))


def check(node: Path, **options: Any) -> VerificationResult:
    return verify_replica(one_replica(str(node)), **options)


def segments(node: Path) -> list[Path]:
    return sorted((node / "log").glob("*.log"))


def test_a_sound_node_is_proved_with_its_checkpoints(sound: Path) -> None:
    found = check(sound)
    assert found.ok
    assert found.proved == found.checkpoints > 2
    end = BATCHES[-1].end_offset
    assert found.replayed_to == end
    assert found.state_hash == state_at(one_replica(str(sound)), end).state_hash.encode()


def test_without_replay_no_state_is_vouched_for(sound: Path) -> None:
    found = check(sound, with_replay=False)
    assert found.ok
    assert (found.proved, found.replayed_to, found.state_hash) == (0, 0, b"")


def test_a_flipped_byte_ends_it_at_the_batch(node: Path) -> None:
    path = segments(node)[1]
    header, batches = frames(path)
    position = len(header) + len(batches[0])
    data = bytearray(path.read_bytes())
    data[position + 90] ^= 1
    path.write_bytes(data)
    first = check(node).problems
    assert [(p.kind, p.file, p.position) for p in first] == [(LOG, f"log/{path.name}", position)]
    assert first[0].offset == parse(batches[1]).header.base_offset


def test_keep_going_reports_each_place_and_reads_all_that_is_whole(node: Path) -> None:
    harmed = []
    for path in segments(node)[1:3]:
        header, batches = frames(path)
        position = len(header) + len(batches[0])
        data = bytearray(path.read_bytes())
        data[position + 90] ^= 1
        path.write_bytes(data)
        harmed.append((f"log/{path.name}", position, parse(batches[1]).header))
    path = segments(node)[3]
    header, batches = frames(path)
    path.write_bytes(header + b"".join([batches[0], rewritten(parse(batches[1])), *batches[2:]]))
    found = check(node, keep_going=True)
    assert [(p.file, p.position, p.offset) for p in found.problems if p.kind == LOG] == [
        *((file, position, head.base_offset) for file, position, head in harmed),
        # What was rewritten is right by itself: the batch behind it has another predecessor.
        (
            f"log/{path.name}",
            len(header) + len(batches[0]) + len(rewritten(parse(batches[1]))),
            parse(batches[2]).header.base_offset,
        ),
    ]
    assert found.report is not None
    lost = sum(head.count for _, _, head in harmed)
    assert found.report.records == BATCHES[-1].end_offset - lost
    assert found.report.log_end == BATCHES[-1].end_offset
    assert found.proved < found.checkpoints
    assert any("can't be compared with the log" in note for note in found.notes)


def test_rubbish_of_any_length_is_skipped(node: Path) -> None:
    """The search uses windows of 4 MiB, and a batch may lie across the end of one."""
    path = segments(node)[1]
    header, batches = frames(path)
    for length in (1, 4 * 2**20 - 40, 9 * 2**20):
        path.write_bytes(header + batches[0] + bytes(length) + b"".join(batches[1:]))
        found = check(node, keep_going=True, with_replay=False)
        assert [p.position for p in found.problems] == [len(header) + len(batches[0])]
        assert found.report is not None
        assert found.report.records == BATCHES[-1].end_offset


def test_a_gap_is_named_and_what_is_behind_it_still_read(node: Path) -> None:
    gone = segments(node)[2]
    _, batches = frames(gone)
    gone.unlink()
    start, end = int(gone.stem), parse(batches[-1]).header.end_offset
    sentence = f"offsets {start} to {end - 1} are missing"
    assert sentence in check(node).problems[0].sentence
    found = check(node, keep_going=True)
    assert [p.sentence[: len(sentence)] for p in found.problems if p.kind == LOG] == [sentence]
    assert found.report is not None
    assert found.report.records == BATCHES[-1].end_offset - (end - start)


def test_a_gap_behind_a_bad_place_is_a_second_finding(node: Path) -> None:
    path, gone = segments(node)[1:3]
    header, _ = frames(path)
    data = bytearray(path.read_bytes())
    data[len(header) + 90] ^= 1
    path.write_bytes(data)
    gone.unlink()
    found = check(node, keep_going=True)
    assert [p.offset for p in found.problems if p.kind == LOG] == [int(path.stem), int(gone.stem)]


def test_a_foreign_segment_is_not_read_on(node: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_node(other, written=BATCHES, segment_bytes=8_192, cluster="another")
    shutil.copy(segments(other)[2], segments(node)[2])
    found = check(node, keep_going=True)
    assert [p.file for p in found.problems if p.kind == LOG] == [f"log/{segments(node)[2].name}"]
    assert "belongs to cluster 'another'" in found.problems[0].sentence


def test_a_newer_format_is_refused_or_reported(node: Path) -> None:
    path = segments(node)[1]
    header, batches = frames(path)
    newer = finish_frame(batches[0][:4] + (9).to_bytes(2, "big") + batches[0][6:-4])
    path.write_bytes(header + newer + b"".join(batches[1:]))
    with pytest.raises(LedgerError, match=r"format 9 .*newer release"):
        check(node)
    found = check(node, keep_going=True)
    assert "format 9" in found.problems[0].sentence
    assert found.problems[0].position == len(header)


@pytest.mark.parametrize("harm", ["flipped", "cut"])
def test_a_damaged_checkpoint_is_a_problem(node: Path, harm: str) -> None:
    path = sorted((node / "checkpoints").iterdir())[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data if harm == "flipped" else path.read_bytes()[:-1])
    found = check(node, keep_going=True)
    assert [(p.kind, p.file) for p in found.problems] == [(CHECKPOINT, f"checkpoints/{path.name}")]
    assert found.proved == found.checkpoints - 1
    assert check(node, with_replay=False).problems == found.problems


def test_a_replaced_checkpoint_is_found_by_replay(node: Path) -> None:
    replica = one_replica(str(node))
    at = list_checkpoints(replica.disk)[1].offset
    state = state_at(replica, at, snapshots=False)
    other = state_at(replica, list_checkpoints(replica.disk)[0].offset).image
    records = list(image_to_records(other))
    for lie, sentence in (
        # Another state under this name, with its own right hash; a hash that isn't its content's;
        # another history's chain hash.
        ({"records": records, "state_hash": hash_of(other)}, "the log replays to"),
        ({"records": records}, "its content doesn't have the state hash in its header"),
        ({"head": bytes(32)}, "its chain hash, epoch or time differs from the log's"),
    ):
        path = write_checkpoint(node, state.image, **({"head": state.head} | lie))
        found = check(node)
        assert [(p.kind, p.file) for p in found.problems] == [(STATE, f"checkpoints/{path.name}")]
        assert sentence in found.problems[0].sentence


def hash_of(image) -> bytes:
    assert image.state_hash is not None
    return image.state_hash.encode()


def test_a_checkpoint_behind_the_log_s_end_says_that_the_end_is_gone(node: Path) -> None:
    last = list_checkpoints(one_replica(str(node)).disk)[-1]
    for path in segments(node):
        if int(path.stem) >= last.offset:
            path.unlink()
    path = segments(node)[-1]
    header, batches = frames(path)
    kept = [batch for batch in batches if parse(batch).header.end_offset < last.offset]
    path.write_bytes(header + b"".join(kept))
    found = check(node)
    assert [p.kind for p in found.problems] == [STATE]
    assert "its end is lost" in found.problems[0].sentence
    (node / "journal").mkdir()
    live = check(node)
    assert live.ok
    assert any("catching up" in note for note in live.notes)


def test_heads_that_were_written_down(node: Path) -> None:
    heads = {
        offset: one_replica(str(node)).reader().hash_at(offset)
        for offset in (BATCHES[40].end_offset, BATCHES[-1].end_offset)
    }
    assert check(node, known=heads).ok
    inside = next(b for b in BATCHES if len(b.records) > 1).base_offset + 1
    for known, sentence in (
        ({BATCHES[40].end_offset: bytes(32)}, "not the one remembered elsewhere"),
        ({BATCHES[-1].end_offset + 1: bytes(32)}, "its end is lost"),
        ({inside: bytes(32)}, "no batch ends at offset"),
        ({0: bytes(32)}, "not the one remembered elsewhere"),
    ):
        assert sentence in check(node, known=known).problems[0].sentence
    # The last batch rewritten, and the tail cut: nothing but a head tells.
    path = segments(node)[-1]
    header, batches = frames(path)
    for tail in ([rewritten(parse(batches[-1]))], []):
        shutil.rmtree(node / "checkpoints", ignore_errors=True)
        path.write_bytes(header + b"".join(batches[:-1] + tail))
        assert check(node, with_replay=False).ok
        assert not check(node, known=heads).ok


def test_a_running_node_s_unfinished_tail_is_a_note(node: Path) -> None:
    path = segments(node)[-1]
    path.write_bytes(path.read_bytes()[:-7])
    assert not check(node).ok
    (node / "journal").mkdir()
    found = check(node)
    assert found.ok
    assert any("unfinished" in note for note in found.notes)


def test_a_node_that_rolls_a_segment_while_it_is_read(node: Path, tmp_path: Path) -> None:
    """Between a listing and a read, the last segment grows and another one follows."""
    (node / "journal").mkdir()
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in segments(node)[-2:]:
        shutil.move(path, kept / path.name)
    path = segments(node)[-1]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    replica = one_replica(str(node))

    def roll() -> None:
        path.write_bytes(whole)
        for late in kept.iterdir():
            shutil.copy(late, node / "log" / late.name)

    found = verify_replica(with_event(replica, roll, at_read=3))
    assert found.ok
    assert found.report is not None
    assert 0 < found.report.log_end < BATCHES[-1].end_offset
    assert check(node).report.log_end == BATCHES[-1].end_offset


def with_event(replica, roll: Callable[[], None], at_read: int):
    """Return the replica; an event happens at a read of its disk."""
    reads = iter(range(10**6))

    class Rolling(type(replica.disk)):
        def read(self, name, position=0, length=None):
            if next(reads) == at_read:
                roll()
            return super().read(name, position, length)

    replica.disk.__class__ = Rolling
    return replica


def test_a_manifest_that_can_t_be_read_is_a_problem(node: Path) -> None:
    (node / "manifest").write_bytes(b"no manifest")
    assert [p.kind for p in check(node).problems] == [MANIFEST]
    found = check(node, keep_going=True)
    assert [p.kind for p in found.problems] == [MANIFEST]
    assert found.proved == found.checkpoints


def test_cut_history_is_proved_from_its_first_checkpoint_on(node: Path) -> None:
    for path in segments(node)[:2]:
        path.unlink()
    found = check(node)
    assert found.ok
    assert 0 < found.proved < found.checkpoints
    assert any("the replay begins at" in note for note in found.notes)
    assert found.state_hash
    whole = check(node, whole=True)
    assert "are missing" in whole.problems[0].sentence
    assert whole.problems[0].offset == 0


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def test_the_command(node: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(node, tmp_path / "other"))
    said = run(node, other)
    assert said.exit_code == 0
    assert "2 logs agree up to offset" in said.stdout
    document = json.loads(run(node, "--output", "json").stdout)
    assert document["ok"]
    head = f"{document['logs'][0]['logEnd']}:{document['logs'][0]['head']}"
    assert run(node, "--head", head).exit_code == 0
    for path in segments(other)[1:3]:
        data = bytearray(path.read_bytes())
        data[-10] ^= 1
        path.write_bytes(data)
    failed = run(node, other, "--head", head)
    assert failed.exit_code == 1
    assert f"{other}: log/{segments(other)[1].name}, byte" in failed.stderr
    everything = run(other, "--keep-going")
    assert everything.exit_code == 1
    assert everything.stdout.count(": log: log/") == 2
    assert run(node, "--head", "12:beef").exit_code == 2
    assert run(node, "--head", f"{'9' * 5}:{'0' * 64}").exit_code == 1


def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the end of each batch that is replayed from now on."""
    taken: list[int] = []
    take = Fold.take

    def noted(self: Fold, batch: Batch) -> None:
        taken.append(batch.header.end_offset)
        take(self, batch)

    monkeypatch.setattr(Fold, "take", noted)
    return taken


def test_equal_logs_are_replayed_once(
    sound: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays, taken = KnownReplays(), folds(monkeypatch)
    first = check(sound, replays=replays)
    once = len(taken)
    second = check(node, replays=replays)
    assert len(taken) == once == len(BATCHES)
    assert (second.proved, second.state_hash) == (first.proved, first.state_hash)
    assert second.ok


def test_a_replaced_checkpoint_of_an_equal_log_is_found(sound: Path, node: Path) -> None:
    replays = KnownReplays()
    assert check(sound, replays=replays).ok
    checkpoint = list_checkpoints(one_replica(str(node)).disk)[0]
    state = state_at(one_replica(str(node)), checkpoint.offset)
    write_checkpoint(node, state.image, state.head, state_hash=bytes(64))
    found = check(node, replays=replays, keep_going=True)
    assert [problem.kind for problem in found.problems] == [STATE]
    assert "its state hash is 0000000000000000…" in found.problems[0].sentence


def test_a_log_with_another_end_is_replayed(
    sound: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = KnownReplays()
    assert check(sound, replays=replays).ok
    last = segments(node)[-1]
    last.write_bytes(last.read_bytes()[: -len(frames(last)[1][-1])])
    taken = folds(monkeypatch)
    found = check(node, replays=replays, keep_going=True)
    assert len(taken) == len(BATCHES) - 1
    assert found.replayed_to == BATCHES[-2].end_offset
