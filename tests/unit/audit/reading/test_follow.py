"""Following a log while its node writes, rolls segments, stops, starts again, or is replaced.

Each `pause` lets the writer do its next step, so no test waits.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import structlog
from click.testing import CliRunner

from audit.places.replicas import open_replicas
from audit.reading.follow import PATIENCE, RewrittenError, follow_batches
from audit.reading.settling import settled
from ledger.batch import Batch
from ledger.errors import DamagedLedgerError, HistoryMissingError
from ledger.ledger import Ledger
from logberg.commands.audit import follow
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    TopicRecord,
)
from tests.unit.audit.memory_log import CLUSTER, history, logged, seal_all
from tests.unit.audit.reading.test_folders import InlineDisk

ALL = seal_all(history(4, 60))
END = ALL[-1].header.end_offset


class Node:
    """A controller's folder to which the test writes."""

    def __init__(self, folder: Path, segment_bytes: int = 4_096) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes
        (folder / "log").mkdir(parents=True)
        (folder / "journal").mkdir()
        self.start()

    def start(self) -> None:
        self._disk = InlineDisk(self.folder)
        self._ledger = Ledger.open(
            self._disk,
            CLUSTER,
            synced_to=None,
            segment_bytes=self._segment_bytes,
            log=structlog.get_logger(),
        )

    def write(self, *batches: Batch) -> None:
        for batch in batches:
            self._ledger.accept(batch.header.epoch, batch)

    def stop(self) -> None:
        self._ledger.close()
        self._disk.close()

    @property
    def last(self) -> Path:
        return max((self.folder / "log").glob("*.log"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "controller-1")
    node.write(*ALL[:5])
    yield node
    node.stop()


def followed(
    node: Node, steps: list[Any], *, start: int = 0, until: int | None = END
) -> list[Batch]:
    """Follow until the end, or until the steps are done."""
    (replica,) = open_replicas(str(node.folder))
    rest = iter(steps)

    def pause() -> None:
        next(rest)()

    return list(follow_batches([replica], start, pause=pause, until=until))


def test_what_is_there_comes_first_and_then_what_is_written(node: Node) -> None:
    steps = [lambda: None, lambda: node.write(*ALL[5:7]), lambda: node.write(*ALL[7:])]
    found = followed(node, steps)
    assert [batch.hash for batch in found] == [batch.hash for batch in ALL]


def test_segments_that_roll_are_followed(node: Node) -> None:
    steps = [lambda batch=batch: node.write(batch) for batch in ALL[5:]]
    assert len(followed(node, steps)) == len(ALL)
    assert len(list((node.folder / "log").glob("*.log"))) > 2


def test_a_node_that_stops_and_starts_again_is_followed(node: Node) -> None:
    """Batches after the manifest's mark are applied again, and must not be seen twice."""
    steps = [node.stop, node.start, lambda: node.write(*ALL)]
    assert [batch.hash for batch in followed(node, steps)] == [batch.hash for batch in ALL]


def test_an_unfinished_tail_is_waited_for(node: Node) -> None:
    """A frame comes in two pieces, as a reader may see it."""
    encoded = ALL[5].encoded

    def append(piece: bytes) -> None:
        with node.last.open("ab") as file:
            file.write(piece)

    steps = [
        lambda: append(encoded[:30]),
        lambda: append(encoded[30:200]),
        lambda: append(encoded[200:]),
    ]
    found = followed(node, steps, until=ALL[5].header.end_offset)
    assert found[-1].hash == ALL[5].hash


def test_a_segment_that_is_being_begun_is_waited_for(node: Node) -> None:
    begun = node.folder / "log" / f"{ALL[5].header.base_offset:020d}.log"

    def write() -> None:
        begun.unlink()
        node.write(*ALL[5:])

    assert len(followed(node, [begun.touch, lambda: None, write])) == len(ALL)


def test_a_segment_that_could_not_be_read_is_looked_at_again_though_it_has_not_grown(
    tmp_path: Path,
) -> None:
    """A copy in progress may have a file's length before it has its bytes."""
    whole = Node(tmp_path / "whole")
    whole.write(*ALL)
    whole.stop()
    first, second, *_ = sorted((whole.folder / "log").glob("*.log"))
    copy = Node(tmp_path / "copy")
    copy.stop()
    log = copy.folder / "log"
    for path in log.iterdir():
        path.unlink()
    (log / first.name).write_bytes(first.read_bytes())
    data = second.read_bytes()
    steps = [
        lambda: (log / second.name).write_bytes(b"\0" * len(data)),
        lambda: (log / second.name).write_bytes(data),
    ]
    until = int(second.stem) + 1
    assert followed(copy, steps, until=until)[-1].header.base_offset == int(second.stem)


def test_of_several_nodes_whichever_is_ahead_is_followed(node: Node, tmp_path: Path) -> None:
    """One node stops for good; the others continue."""
    other = Node(tmp_path / "controller-2")
    steps = [
        lambda: other.write(*ALL[:7]),
        lambda: node.write(*ALL[5:20]),
        lambda: shutil.rmtree(node.folder / "log"),
        lambda: other.write(*ALL[7:]),
    ]
    replicas = [open_replicas(str(each.folder))[0] for each in (node, other)]
    rest = iter(steps)

    def pause() -> None:
        next(rest)()

    found = follow_batches(replicas, 0, pause=pause, until=END)
    assert [batch.hash for batch in found] == [batch.hash for batch in ALL]
    other.stop()


def test_nodes_that_tell_different_histories_are_not_followed(node: Node, tmp_path: Path) -> None:
    changed = history(4, 6)
    changed[4] = changed[4]._replace(timestamp_ms=changed[4].timestamp_ms + 1)
    other = Node(tmp_path / "controller-2")
    other.write(*seal_all(changed))
    replicas = [open_replicas(str(each.folder))[0] for each in (node, other)]
    times = iter(range(5))

    def pause() -> None:
        next(times)

    with pytest.raises(RewrittenError, match="controller-2"):
        list(follow_batches(replicas, 0, pause=pause, until=END))
    other.stop()


def test_history_that_is_gone_is_said_at_once(node: Node) -> None:
    node.write(*ALL[5:])
    first, second, *_ = sorted((node.folder / "log").glob("*.log"))
    first.unlink()
    with pytest.raises(HistoryMissingError, match=f"offset 0 is before {int(second.stem)}"):
        followed(node, [])


def test_following_from_an_offset_begins_with_the_batch_that_holds_it(node: Node) -> None:
    inside = next(b.header for b in ALL[5:] if b.header.count > 1)
    found = followed(node, [lambda: node.write(*ALL[5:])], start=inside.base_offset + 1)
    assert found[0].header.base_offset == inside.base_offset


def test_it_ends_where_it_is_told_to(node: Node) -> None:
    until = ALL[3].header.end_offset
    assert [b.header.end_offset for b in followed(node, [], until=until)][-1] == until
    assert followed(node, [], until=0) == []


def test_a_log_that_tells_another_history_is_not_followed(node: Node) -> None:
    changed = history(4, 6)
    changed[4] = changed[4]._replace(timestamp_ms=changed[4].timestamp_ms + 1)
    others = seal_all(changed)

    def replace() -> None:
        node.stop()
        for path in (node.folder / "log").iterdir():
            path.unlink()
        node.start()
        node.write(*others[:5])

    steps = [replace, lambda: node.write(others[5])]
    with pytest.raises(RewrittenError, match=f"offset {others[5].header.base_offset} does not"):
        followed(node, steps)


def test_damage_that_stays_is_an_error_after_some_tries(node: Node) -> None:
    data = bytearray(node.last.read_bytes())
    data[-30] ^= 1
    node.last.write_bytes(data)
    waits: list[None] = []
    with pytest.raises(DamagedLedgerError, match="checksum"):
        followed(node, [lambda: waits.append(None)] * PATIENCE)
    assert len(waits) == PATIENCE - 1
    (node.folder / "journal").rmdir()
    with pytest.raises(DamagedLedgerError):
        followed(node, [])


def test_a_transaction_comes_when_it_settles(tmp_path: Path) -> None:
    node = Node(tmp_path / "controller-1")
    empty = [NoOpRecord()]
    batches = logged(empty, [BeginTransactionRecord()], empty, [EndTransactionRecord()], empty)
    node.write(*batches[:2])
    (replica,) = open_replicas(str(node.folder))
    rest = iter(batches[2:])
    grown = follow_batches([replica], 0, pause=lambda: node.write(next(rest)))
    found = settled(grown)
    assert next(found).offset == 0
    assert next(found).offset == 1
    assert [batch.header.base_offset for batch in rest] == [4]
    node.stop()


def run(*words: str):
    return CliRunner().invoke(follow.command, list(words), catch_exceptions=False)


def test_the_command_prints_settled_records_and_notes_what_does_not_count(tmp_path: Path) -> None:
    node = Node(tmp_path / "controller-1")
    topic = TopicRecord("orders", b"\x01" * 16)
    node.write(
        *logged(
            [FeatureLevelRecord("f", 1)],
            [BeginTransactionRecord(), topic],
            [AbortTransactionRecord()],
            [BeginTransactionRecord(), topic],
            [EndTransactionRecord()],
        )
    )
    node.stop()
    result = run(str(node.folder), "--from", "0", "--until-offset", "7", "--output", "json")
    assert result.exit_code == 0
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [0, 4, 5, 6]
    assert result.stderr.count("is aborted: it doesn't count") == 1
    topics = run(str(node.folder), "--from", "0", "--until-offset", "7", "--resource", "orders")
    assert [line.split()[0] for line in topics.stdout.splitlines()] == ["4-5", "5"]
    later = run(str(node.folder), "--from", "6", "--until-offset", "7", "--output", "json")
    assert not later.stderr
    assert [json.loads(line)["offset"] for line in later.stdout.splitlines()] == [4, 5, 6]


def test_ctrl_c_ends_it_well_and_what_was_written_meanwhile_was_seen(node: Node) -> None:
    words = ("audit", "follow", str(node.folder), "--from", "0", "--interval", "0.05")
    with subprocess.Popen(
        [sys.executable, "-m", "logberg", *words, "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watchdog = Timer(90, process.kill)
        watchdog.start()
        lines = iter(process.stdout)
        next(lines)
        node.write(*ALL[5:])
        wanted = max(one.offset for one in settled(ALL) if one.outcome == "settled")
        offset = -1
        while offset < wanted:
            offset = json.loads(next(lines))["offset"]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        watchdog.cancel()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert not rest


def test_ctrl_c_in_a_finalizer_ends_it_too(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops an exception in a finalizer, so the command sometimes continued for ever."""
    waits = iter(range(50))

    class Dropped:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def sleep(_seconds: float) -> None:
        if next(waits) == 0:
            Dropped()

    monkeypatch.setattr(time, "sleep", sleep)
    node.write(*ALL[:5])
    before = signal.getsignal(signal.SIGINT)
    result = run(str(node.folder), "--from", "0", "--output", "json")
    assert result.exit_code == 0
    assert next(waits) == 1
    assert signal.getsignal(signal.SIGINT) is before
