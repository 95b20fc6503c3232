"""An index is used only for its own log; a stale, foreign or half-written one is built anew."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from audit.index.log_index import LogIndex, TooSlowError
from audit.index.opening import IndexKeeper, index_path
from audit.index.state_steps import NAMED
from audit.places.replicas import one_replica
from audit.questions.search import Filter
from ledger.reader import LedgerReader
from metadata.image.delta import OPEN_KINDS
from metadata.records import NoOpRecord, RequestOutcomeRecord, UserScramCredentialRecord
from tests.histories import HistoryBatch
from tests.unit.audit.nodes import write_node

ROWS = {
    "record": "SELECT * FROM record",
    "batch": "SELECT * FROM batch",
    "cause": "SELECT * FROM cause",
    "word": "SELECT * FROM word",
    "bracket": "SELECT * FROM bracket",
    "thing": "SELECT * FROM thing",
    "version": "SELECT id, thing, at_, value IS NULL FROM version",
    "tally": "SELECT * FROM tally",
}


class Shorter:
    """A log, as it was before its end."""

    def __init__(self, reader: LedgerReader, end: int) -> None:
        self._reader = reader
        self.log_end = end

    def __getattr__(self, name: str):
        return getattr(self._reader, name)

    def batches(self, start=None, end=None):
        return self._reader.batches(start, min(self.log_end, end or self.log_end))


def rows(path: Path) -> dict[str, list]:
    with sqlite3.connect(path) as database:
        found = {name: database.execute(sql).fetchall() for name, sql in ROWS.items()}
    database.close()
    return found


def built(folder: Path, cache: Path, reader=None) -> IndexKeeper:
    replica = one_replica(str(folder))
    reader = replica.reader() if reader is None else reader
    keeper = IndexKeeper(cache, replica, reader)
    keeper.bring_up(reader)
    keeper.close()
    return keeper


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_node(tmp_path / "node", 150, 11, checkpoint_every=100)
    return tmp_path / "node"


def test_an_index_that_grew_in_steps_is_the_one_that_was_built_at_once(node, tmp_path) -> None:
    whole = rows(built(node, tmp_path / "whole").path)
    replica = one_replica(str(node))
    reader = replica.reader()
    ends = [batch.header.end_offset for batch in reader.batches()]
    for end in (*ends[::7], ends[-1]):
        # Each step is a new process: what the writer knows is read from the file.
        keeper = built(node, tmp_path / "steps", Shorter(reader, end))
        assert keeper.generation == (1 if end == ends[0] else 0)
    assert rows(keeper.path) == whole
    one_process = IndexKeeper(tmp_path / "kept", replica, reader)
    for end in (*ends[::5], ends[-1]):
        one_process.bring_up(Shorter(reader, end))
    one_process.close()
    assert rows(one_process.path) == whole


def foreign(path: Path, tmp_path: Path) -> None:
    write_node(tmp_path / "other", 20, 3)
    shutil.copy(built(tmp_path / "other", tmp_path / "elsewhere").path, path)


def of_another_release(path: Path, _tmp_path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE position SET value = 'old' WHERE name = 'fingerprint'")
    database.close()


WRONG = {
    "foreign": foreign,
    "of another release": of_another_release,
    "no database": lambda path, _: path.write_bytes(b"nonsense" * 1000),
    "empty": lambda path, _: path.write_bytes(b""),
    "cut off": lambda path, _: path.write_bytes(path.read_bytes()[:5000]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_index_is_built_anew(node, tmp_path, wrong: str) -> None:
    keeper = built(node, tmp_path / "cache")
    expected = rows(keeper.path)
    WRONG[wrong](keeper.path, tmp_path)
    (keeper.path.parent / f"{keeper.path.name}.building-4194399").write_bytes(b"half")
    again = built(node, tmp_path / "cache")
    assert again.generation == 1
    assert rows(again.path) == expected
    assert [file.name for file in keeper.path.parent.iterdir()] == [keeper.path.name]


def test_a_longer_index_than_the_log_is_built_anew(node, tmp_path) -> None:
    built(node, tmp_path / "cache")
    reader = one_replica(str(node)).reader()
    end = reader.end_of_batch(reader.log_end // 2)
    keeper = built(node, tmp_path / "cache", Shorter(reader, end))
    assert keeper.generation == 1
    assert LogIndex(keeper.path).mark.log_end == end


def test_damage_ends_the_index_and_is_named(node, tmp_path) -> None:
    segments = sorted((node / "log").iterdir())
    damaged = segments[len(segments) // 2]
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    keeper = built(node, tmp_path / "cache")
    assert damaged.name in keeper.damage
    index = LogIndex(keeper.path)
    assert 0 < index.mark.log_end < one_replica(str(node)).reader().log_end
    assert len(index.offsets(Filter(), 0, 2**62)) == index.mark.log_end
    index.close()


def test_a_cut_log_has_states_from_its_first_checkpoint_on(node, tmp_path) -> None:
    segments = sorted((node / "log").iterdir())
    for segment in segments[: len(segments) // 3]:
        segment.unlink()
    keeper = built(node, tmp_path / "cache")
    reader = one_replica(str(node)).reader()
    index = LogIndex(keeper.path)
    assert index.log_start == reader.log_start > 0
    with pytest.raises(LookupError, match="is known from offset"):
        index.counts(reader.log_start)
    assert index.counts(reader.log_end)["topics"] > 0
    index.close()


def test_the_file_holds_no_secret_and_is_its_users_alone(tmp_path) -> None:
    secret = UserScramCredentialRecord(
        "ana", 1, b"salt-salt-salt", b"stored-key!!", b"server-key!!", 8192
    )
    batch = HistoryBatch(0, 1, 1_000, (secret,))
    write_node(tmp_path / "node", written=[batch])
    path = built(tmp_path / "node", tmp_path / "cache").path
    assert path.stat().st_mode & 0o077 == 0
    for word in (b"salt-salt-salt", b"stored-key!!", b"server-key!!"):
        assert word not in path.read_bytes()


def test_a_slow_answer_ends_at_its_deadline(node, tmp_path) -> None:
    times = iter(range(10**9))
    keeper = built(node, tmp_path / "cache")
    index = LogIndex(keeper.path, now=lambda: float(next(times)), deadline_s=0.5)
    sql = "SELECT count(*) FROM record a, record b, record c"
    with pytest.raises(TooSlowError), index._asking() as database:
        database.execute(sql).fetchall()
    assert index.outcome(0) == "settled"  # the connection is of use afterwards
    index.close()


def test_every_open_kind_is_followed() -> None:
    assert set(NAMED) == OPEN_KINDS - {NoOpRecord, RequestOutcomeRecord}


def test_the_path_is_that_of_the_cluster_and_the_place() -> None:
    folder = Path("x")
    assert index_path(folder, "c", "/a") != index_path(folder, "c", "/b")
    assert index_path(folder, "../c", "/a").parent == folder
