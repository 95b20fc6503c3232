"""A test damages files of a stopped controller, and starts it while the others run.

Each test asserts what the node reports, that it repairs itself from its peers or says what to do,
and that afterwards it holds the same as the others. The unit tests of journal, ledger and
checkpoint cover every single byte; these tests cover the symptoms.
"""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from audit.places.replicas import open_all
from audit.questions.agreement import agree
from ledger.batch import parse
from ledger.chain import LogMark
from ledger.segments import parse_segment_header
from quorum.journal.frames import JournalFrameKind, find_frames
from quorum.journal.identity import read_opening
from quorum.journal.manifest import decode_manifest
from tests.process.running_cluster import RunningCluster, logberg, running

pytestmark = pytest.mark.process

SMALL = {"segment_bytes": 4096, "checkpoint_bytes": 8192, "journal_tail_bytes": 4096}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """With several closed segments, checkpoints and a manifest on every controller."""
    with running(tmp_path_factory.mktemp("damaged"), brokers=1, **SMALL) as cluster:
        grow(cluster, "grown", until=lambda: all_have(cluster, "manifest"))
        yield cluster


def grow(cluster: RunningCluster, name: str, until: Callable[[], bool]) -> None:
    """Create topics until the files are as they are needed."""
    for number in range(100):
        cluster.create(f"{name}-{number}")
        if number >= 20:
            if until():
                return
            time.sleep(0.05)  # A checkpoint rests for a second after an election.
    raise AssertionError("the files never came to be")


def all_have(cluster: RunningCluster, name: str) -> bool:
    return all((cluster.data(n) / name).exists() for n in cluster.local.controllers)


class Victim:
    """A standby that is stopped in order, damaged, and started again."""

    def __init__(self, cluster: RunningCluster, backup: Path) -> None:
        self.cluster = cluster
        cluster.until(cluster.settled, "the cluster is settled")
        self.n = cluster.standby()
        self.child = cluster.controller(self.n)
        self.folder = cluster.data(self.n)
        self.backup = backup
        self.said_before = 0

    def stop(self) -> "Victim":
        self.cluster.until(self.cluster.caught_up, "it holds what the others hold")
        self.child.signal(signal.SIGTERM)
        assert self.child.wait(20.0)
        assert self.child.exit_code == 0
        if not self.backup.exists():
            shutil.copytree(self.folder, self.backup)
        return self

    def put_right(self) -> None:
        """Give the next test a sound cluster, whatever became of this one."""
        if not self.backup.exists() or self.is_sound():
            return
        self.child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.backup, self.folder)
        self.child.start()

    def is_sound(self) -> bool:
        """Whether it votes and holds what the others hold, or soon will: it may still catch up."""
        until = time.monotonic() + 10.0
        while self.child.exit_code is None and time.monotonic() < until:
            if self.role in ("leader", "follower") and self.cluster.caught_up():
                return True
            time.sleep(0.2)
        return False

    def start(self) -> None:
        self.said_before = len(self.cluster.output(self.child.name))
        self.child.start()

    @property
    def said(self) -> str:
        """Its output since the last start."""
        return self.cluster.output(self.child.name)[self.said_before :]

    def file(self, pattern: str) -> Path:
        """The first file of its folder that is named so."""
        return min(self.folder.glob(pattern))

    def must_recover(self, *events: str) -> None:
        """It says what happened, catches up, and its log is sound again; so does the cluster."""
        cluster = self.cluster
        for event in events:
            cluster.until(lambda event=event: event in self.said, f"{event}; it said {self.said}")
        cluster.until(lambda: self.role in ("follower", "leader"), "it is a voter again")
        cluster.create(f"after-{len(cluster.acknowledged)}")
        cluster.until(cluster.caught_up, "it caught up")
        found = agree(open_all(str(cluster.data(n)) for n in cluster.local.controllers))
        assert found.ok, found

    @property
    def role(self) -> str:
        return (self.cluster.status(self.n) or {}).get("role", "")

    def must_refuse(self, *words: str) -> None:
        """It ends with exit code 1 and one sentence."""
        assert self.child.wait(20.0), self.said
        assert self.child.exit_code == 1, self.said
        assert "Traceback" not in self.said, self.said
        for word in words:
            assert word in self.said, self.said


@pytest.fixture
def victim(cluster: RunningCluster, tmp_path: Path) -> Iterator[Victim]:
    victim = Victim(cluster, tmp_path / "backup")
    try:
        yield victim
    finally:
        victim.put_right()


def flip(path: Path, position: int) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


# -- the journal ---------------------------------------------------------------------------------


def frame_of(path: Path, kind: JournalFrameKind) -> int:
    """Offset in the file of the body of the last frame of that kind."""
    data = path.read_bytes()
    opening = read_opening("", data)
    assert opening is not None
    seed = opening.identity.seed(opening.sequence)
    found = [frame for frame in find_frames(data, 0, seed) if frame.kind == kind]
    assert found, f"no {kind.name} in {path}"
    return found[-1].offset + 36


@pytest.mark.parametrize(
    "kind", [JournalFrameKind.VOTE, JournalFrameKind.STATE, JournalFrameKind.ENTRY]
)
def test_a_flipped_byte_in_the_journal(victim: Victim, kind: JournalFrameKind) -> None:
    wal = victim.stop().file("journal/*.wal")
    position = frame_of(wal, kind)
    flip(wal, position)
    victim.start()
    victim.must_recover("journal_damaged", wal.name, "journal_repaired")
    assert list(victim.folder.glob("journal/*.damaged")), "the damaged file is kept for a look"


@pytest.mark.parametrize("left", [0.5, 0.97])
def test_a_journal_that_was_cut(victim: Victim, left: float) -> None:
    wal = victim.stop().file("journal/*.wal")
    cut(wal, int(wal.stat().st_size * left))
    victim.start()
    victim.must_recover("journal_damaged", wal.name, "journal_repaired")


def test_a_torn_tail_behind_what_was_durable_is_cut_and_told(victim: Victim) -> None:
    wal = victim.stop().file("journal/*.wal")
    with wal.open("ab") as file:
        file.write(bytes(range(200)))
    victim.start()
    victim.must_recover("journal_torn_tail_cut", wal.name)
    assert "journal_damaged" not in victim.said


def test_a_journal_without_its_first_frame_or_its_segment_is_refused(
    victim: Victim,
) -> None:
    victim.stop()
    wals = {path: path.read_bytes() for path in victim.folder.glob("journal/*.wal")}
    for wal in wals:
        flip(wal, 40)
    victim.start()
    victim.must_refuse("damaged at byte 0", "restore", "move the folder away")
    for wal in wals:
        wal.unlink()
    victim.start()
    victim.must_refuse("holds no segment", "restore", "move the node's whole folder away")
    for wal, good in wals.items():
        wal.write_bytes(good)
    victim.start()
    victim.must_recover()


def test_a_damaged_node_never_votes(cluster: RunningCluster) -> None:
    """One of three is damaged, one is down: nobody leads until the third is back."""
    cluster.until(cluster.settled, "the cluster is settled")
    cluster.until(cluster.caught_up, "all are level")
    damaged, sound, down = sorted(cluster.local.controllers)
    for n in cluster.local.controllers:
        cluster.controller(n).signal(signal.SIGTERM)
    assert all(cluster.controller(n).wait(20.0) for n in cluster.local.controllers)
    wal = min(cluster.data(damaged).glob("journal/*.wal"))
    flip(wal, frame_of(wal, JournalFrameKind.VOTE))
    said_before = len(cluster.output(f"controller-{damaged}"))
    for n in (damaged, sound):
        cluster.controller(n).start()
    said = cluster.until(
        lambda: (cluster.status(damaged) or {}).get("note"), "the damaged one answers"
    )
    assert "does not vote until it has caught up" in said
    # Long enough for several elections.
    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        states = [cluster.status(n) for n in (damaged, sound)]
        # Not even a leader that commits nothing: that one was voted for.
        assert not any(state and state["role"] == "leader" for state in states), states
        assert (states[0] or {}).get("role") == "damaged", states
    answer = cluster.ask(cluster.url(sound), "GET", "/v1/topics")
    assert answer.status == 503
    assert answer.body["code"] == "NO_QUORUM"
    assert "start the other controllers" in answer.body["message"]
    cluster.controller(down).start()
    assert cluster.leader() != damaged
    cluster.until(
        lambda: "journal_repaired" in cluster.output(f"controller-{damaged}")[said_before:],
        "the journal is repaired",
    )
    cluster.create("after-the-damage")


# -- the manifest --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
@pytest.mark.parametrize("name", ["manifest", "manifest.copy"])
def test_a_damaged_manifest_is_put_right_from_its_copy(victim: Victim, name: str, how: str) -> None:
    """The node stays a voter, since its journal is sound."""
    manifest = victim.stop().file(name)
    good = manifest.read_bytes()
    if how == "flipped":
        flip(manifest, len(good) // 2)
    elif how == "cut":
        cut(manifest, 5)
    else:
        manifest.unlink()
    victim.start()
    told = ["manifest_restored"] if (name, how) != ("manifest.copy", "missing") else []
    victim.must_recover(*told)
    # The test before may have put the folder back, which the others remember.
    damaged = [line for line in victim.said.splitlines() if "journal_damaged" in line]
    assert all("an older copy of the folder was put back" in line for line in damaged), damaged
    copies = {(victim.folder / name).read_bytes() for name in ("manifest", "manifest.copy")}
    assert len(copies) == 1


def test_with_both_copies_damaged_it_is_refused_and_a_restored_one_taken(victim: Victim) -> None:
    manifest, copy = victim.stop().file("manifest"), victim.file("manifest.copy")
    good = manifest.read_bytes()
    flip(manifest, len(good) // 2)
    cut(copy, 5)
    victim.start()
    victim.must_refuse("manifest is damaged", "checksum", "Restore it", "whole folder away")
    manifest.unlink()
    victim.start()
    victim.must_refuse("manifest.copy is damaged", "5 bytes")
    copy.unlink()
    victim.start()
    victim.must_refuse("manifest is missing", "restore")
    manifest.write_bytes(good)
    victim.start()
    victim.must_recover()


# -- the ledger ----------------------------------------------------------------------------------


def test_a_flipped_byte_in_an_old_segment_is_found_by_verify_and_mended_when_read(
    victim: Victim, tmp_path: Path
) -> None:
    segment = victim.stop().file("log/*.log")
    flip(segment, segment.stat().st_size // 2)
    said = logberg("log", "verify", str(victim.folder))
    assert said.code == 1
    assert f"{victim.folder}/log/{segment.name}, byte " in said.err
    assert ", offset " in said.err
    assert "DAMAGED" in said.out
    found = json.loads(logberg("log", "verify", str(victim.folder), "--output", "json").out)
    assert not found["ok"]
    bad = found["nodes"][0]["firstBad"]
    assert bad["file"] == f"log/{segment.name}"
    # The frame that the byte stands in.
    assert 0 < bad["position"] <= segment.stat().st_size // 2
    assert bad["offset"] > 0

    victim.start()
    cluster = victim.cluster
    cluster.until(lambda: victim.role == "follower", "it is back")
    url = cluster.url(victim.n)
    answer = cluster.ask(url, "GET", "/v1/log?offset=0")
    assert answer.status == 503, answer
    assert answer.body["code"] == "STORAGE_ERROR"
    assert segment.name in answer.body["message"]
    cluster.until(lambda: "ledger_mended" in victim.said, "the segment is mended")
    assert cluster.ask(url, "GET", "/v1/log?offset=0").status == 200
    victim.must_recover("ledger_damaged", "ledger_mended")
    assert logberg("log", "verify", str(victim.folder)).code == 0


def the_newest_vouched_for(victim: Victim) -> tuple[Path, int]:
    """The segment that the manifest's mark stands in, and the byte where it stands.

    Up to there the bytes were synced for certain; this segment is walked at every start.
    """
    manifest = decode_manifest((victim.folder / "manifest").read_bytes())
    end = LogMark.decode(manifest.mark_data).log_end
    segment = max(path for path in victim.folder.glob("log/*.log") if int(path.stem) < end)
    data = segment.read_bytes()
    _, position = parse_segment_header(data)
    while True:
        batch = parse(data, position)
        position += len(batch.encoded)
        if batch.header.end_offset == end:
            return segment, position


@pytest.mark.parametrize("how", ["flipped", "cut", "missing", "all missing"])
def test_a_damaged_segment_below_the_mark_is_fetched_again(victim: Victim, how: str) -> None:
    victim.stop()
    segment, position = the_newest_vouched_for(victim)
    if how == "flipped":
        # At its end: the batch at the mark is held against the mark's hash.
        flip(segment, position - 20)
    elif how == "cut":
        cut(segment, 300)
    elif how == "missing":
        segment.unlink()
    else:
        for path in victim.folder.glob("log/*.log"):
            path.unlink()
    victim.start()
    victim.must_recover("ledger_damaged", "ledger_mended")


def test_a_flipped_byte_behind_the_mark_is_cut_and_written_again(victim: Victim) -> None:
    victim.stop()
    newest = max(victim.folder.glob("log/*.log"))
    assert newest > the_newest_vouched_for(victim)[0]
    flip(newest, newest.stat().st_size - 20)
    victim.start()
    victim.must_recover("ledger_tail_cut", newest.name)


def test_another_nodes_bytes_under_a_segments_name(victim: Victim) -> None:
    """Yesterday's file, or a neighbour's: every byte is good and in the wrong place."""
    victim.stop()
    first, second, *_ = sorted(victim.folder.glob("log/*.log"))
    shutil.copy(first, second)
    said = logberg("log", "verify", str(victim.folder))
    assert said.code == 1
    assert second.name in said.err
    victim.start()
    cluster = victim.cluster
    cluster.until(lambda: victim.role == "follower", "it is back")
    if "ledger_mended" not in victim.said:
        cluster.ask(cluster.url(victim.n), "GET", f"/v1/log?offset={int(second.stem)}")
    victim.must_recover("ledger_mended")


# -- checkpoints ---------------------------------------------------------------------------------


def test_a_damaged_checkpoint_is_put_aside(victim: Victim) -> None:
    victim.stop()
    newest = max(victim.folder.glob("checkpoints/*.checkpoint"))
    flip(newest, newest.stat().st_size // 3)
    victim.start()
    victim.must_recover("checkpoint_damaged", newest.name, "image_loaded")
    assert newest.with_name(newest.name + ".damaged").exists()


def test_no_checkpoint_is_left(victim: Victim) -> None:
    victim.stop()
    for path in victim.folder.glob("checkpoints/*.checkpoint"):
        cut(path, 100)
    victim.start()
    victim.must_recover("checkpoint_damaged", "image_loaded")


# -- the whole folder ----------------------------------------------------------------------------


def test_the_advice_holds_a_node_with_an_empty_folder_fetches_everything(
    victim: Victim, tmp_path: Path
) -> None:
    """And with its own folder back it votes again."""
    victim.stop()
    victim.folder.rename(tmp_path / "kept")
    victim.start()
    cluster = victim.cluster
    cluster.until(lambda: victim.role == "observer", "it observes")
    cluster.create("while-it-observed")
    cluster.until(cluster.caught_up, "it fetched everything")
    cluster.until(
        lambda: logberg("log", "verify", str(victim.folder)).code == 0, "its history is whole"
    )
    victim.stop()
    shutil.rmtree(victim.folder)
    (tmp_path / "kept").rename(victim.folder)
    victim.start()
    victim.must_recover()


def test_an_older_copy_of_its_own_folder_is_found_by_what_the_others_remember(
    victim: Victim, tmp_path: Path
) -> None:
    """Every byte of it is good. It has only forgotten what it acknowledged since."""
    shutil.copytree(victim.stop().folder, tmp_path / "yesterday")
    victim.start()
    cluster = victim.cluster
    cluster.until(lambda: victim.role in ("follower", "leader"), "it is back")
    for number in range(5):
        cluster.create(f"since-yesterday-{number}")
    cluster.until(cluster.caught_up, "it holds what the others hold")
    victim.stop()
    shutil.rmtree(victim.folder)
    (tmp_path / "yesterday").rename(victim.folder)
    victim.start()
    victim.must_recover("journal_damaged", "remembers this folder", "journal_repaired")
    [said] = (cluster.status(victim.n) or {})["repairs"]
    assert "journal repaired" in said
    # And nothing of it is held against it at the next start.
    victim.stop()
    victim.start()
    victim.must_recover()
    assert "journal_damaged" not in victim.said


def test_a_neighbours_folder_is_refused(victim: Victim, tmp_path: Path) -> None:
    victim.stop()
    other = next(n for n in victim.cluster.local.controllers if n != victim.n)
    victim.folder.rename(tmp_path / "kept")
    shutil.copytree(victim.cluster.data(other), victim.folder)
    victim.start()
    victim.must_refuse(f"node {other}", f"node {victim.n}", "swapped or copied")
    shutil.rmtree(victim.folder)
    (tmp_path / "kept").rename(victim.folder)
    victim.start()
    victim.must_recover()


@pytest.mark.parametrize("names", [("journal",), ("manifest", "manifest.copy")], ids=str)
def test_a_part_of_a_neighbours_folder_is_refused(
    victim: Victim, tmp_path: Path, names: tuple[str, ...]
) -> None:
    victim.stop()
    other = next(n for n in victim.cluster.local.controllers if n != victim.n)
    for name in names:
        (victim.folder / name).rename(tmp_path / name)
        theirs = victim.cluster.data(other) / name
        if theirs.is_dir():
            shutil.copytree(theirs, victim.folder / name)
        else:
            shutil.copy(theirs, victim.folder / name)
    victim.start()
    victim.must_refuse(f"node {other}", f"node {victim.n}", "folders were")
    for name in names:
        if (victim.folder / name).is_dir():
            shutil.rmtree(victim.folder / name)
        (tmp_path / name).replace(victim.folder / name)
    victim.start()
    victim.must_recover()


def test_the_log_of_a_neighbour_beside_our_journal_is_as_good_as_ours(
    victim: Victim, tmp_path: Path
) -> None:
    """The ledger has the same bytes on every controller; what ran ahead is compared or cut."""
    victim.stop()
    other = next(n for n in victim.cluster.local.controllers if n != victim.n)
    (victim.folder / "log").rename(tmp_path / "log")
    shutil.copytree(victim.cluster.data(other) / "log", victim.folder / "log")
    victim.start()
    victim.must_recover()


@pytest.mark.parametrize("name", ["", "log"], ids=["the folder", "log"])
def test_what_belongs_to_another_cluster_is_refused_with_both_names(
    victim: Victim, tmp_path: Path, name: str
) -> None:
    victim.stop()
    with running(tmp_path / "other", controllers=1) as other:
        other_id, n = other.local.cluster_id, min(other.local.controllers)
    (victim.folder / name).rename(tmp_path / "kept")
    shutil.copytree(other.data(n) / name, victim.folder / name)
    victim.start()
    victim.must_refuse("belongs to cluster", other_id, victim.cluster.local.cluster_id)
    shutil.rmtree(victim.folder / name)
    (tmp_path / "kept").rename(victim.folder / name)
    victim.start()
    victim.must_recover()


def test_nothing_of_it_was_lost(cluster: RunningCluster) -> None:
    for child in cluster.local.children:
        assert "Traceback" not in cluster.output(child.name)
    cluster.check_nothing_lost()
