"""`who` and `history` by an index: the same answers, and never those of another log."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from audit.index.opening import index_path
from audit.places.replicas import one_replica
from logberg.cli.main import cli
from tests.spark.cut_logs import cut_log
from tests.spark.log_writer import LogWriter

QUESTIONS = (
    ("who", "{log}", "topic:*"),
    ("who", "{log}", "topic:topic-0", "--limit", "2", "--output", "json"),
    ("who", "{log}", "topic-*", "--from", "100", "--to", "400"),
    ("who", "{log}", "user:nobody"),
    ("who", "{log}", "user:alice", "--output", "json"),
    ("who", "{log}", "topic:a", "--limit", "1"),
    ("who", "{log}", "a", "--no-refused"),
    ("history", "{log}", "topic:topic-0"),
    ("history", "{log}", "partition:topic-0-0", "--output", "json"),
    ("history", "{log}", "broker:1", "--from", "50", "--to", "300"),
    ("history", "{log}", "quorum"),
)


def written(folder: Path, seed: int = 7) -> LogWriter:
    return LogWriter(folder, seed=seed, segment_bytes=8_192).append(150)


def ask(question: tuple[str, ...], log: Path, *more: str) -> Result:
    words = [word.format(log=log) for word in question]
    return CliRunner().invoke(cli, ["audit", *words, *more])


def compare(log: Path, indexes: Path) -> None:
    for question in QUESTIONS:
        scanned = ask(question, log)
        indexed = ask(question, log, "--index", str(indexes))
        assert indexed.exit_code == scanned.exit_code == 0, indexed.output
        assert indexed.output == scanned.output, question


def file_of(log: Path, indexes: Path) -> Path:
    replica = one_replica(str(log))
    return index_path(indexes, replica.reader().cluster_id, replica.location)


def test_the_answers_are_those_of_a_pass_over_the_log(tmp_path):
    log = written(tmp_path / "log")
    compare(log.folder, tmp_path / "indexes")


def test_a_log_that_was_cut(tmp_path):
    log = written(tmp_path / "log")
    cut_log(log)
    for question in QUESTIONS[:1] + QUESTIONS[4:5]:
        scanned = ask(question, log.folder)
        indexed = ask(question, log.folder, "--index", str(tmp_path / "indexes"))
        assert indexed.output == scanned.output, question


def test_an_index_is_kept_up_as_the_log_grows(tmp_path):
    log = written(tmp_path / "log")
    compare(log.folder, tmp_path / "indexes")
    built = file_of(log.folder, tmp_path / "indexes").stat().st_ino
    log.append(60)
    compare(log.folder, tmp_path / "indexes")
    assert file_of(log.folder, tmp_path / "indexes").stat().st_ino == built, "it was built again"


def another_log(log: Path) -> None:
    """The folder holds another history of the same cluster now, as long as the first or longer."""
    shutil.rmtree(log)
    LogWriter(log, seed=8, segment_bytes=8_192).append(220)


def an_older_copy(log: Path) -> None:
    """The folder was put back from a copy: the log is shorter than the index."""
    shutil.rmtree(log)
    LogWriter(log, seed=7, segment_bytes=8_192).append(130)


@pytest.mark.parametrize("replace", [another_log, an_older_copy])
def test_an_index_of_another_log_is_not_believed(replace, tmp_path):
    log = written(tmp_path / "log").folder
    compare(log, tmp_path / "indexes")
    replace(log)
    compare(log, tmp_path / "indexes")


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\7" * 5_000])
def test_a_file_that_is_no_index_is_built_anew(content, tmp_path):
    log = written(tmp_path / "log").folder
    path = file_of(log, tmp_path / "indexes")
    path.parent.mkdir()
    path.write_bytes(content)
    compare(log, tmp_path / "indexes")


def test_without_the_option_nothing_is_written(tmp_path, monkeypatch):
    log = written(tmp_path / "log").folder
    before = sorted(tmp_path.rglob("*"))
    ask(QUESTIONS[0], log)
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setenv("LOGBERG_AUDIT_INDEX", str(tmp_path / "named"))
    ask(QUESTIONS[0], log)
    assert file_of(log, tmp_path / "named").exists()


@pytest.mark.parametrize("question", [QUESTIONS[0], QUESTIONS[4]], ids=["who", "history"])
def test_damage_is_told_and_what_comes_before_it_is_answered(question, tmp_path):
    log = written(tmp_path / "log")
    path = log.segments[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused = ask(question, log.folder, "--index", str(tmp_path / "indexes"))
    assert refused.exit_code == 1
    assert f"{path.name}, byte " in refused.output
    assert refused.stdout == ""
    scanned = ask(question, log.folder, "--keep-going")
    told = ask(question, log.folder, "--keep-going", "--index", str(tmp_path / "indexes"))
    assert (told.exit_code, told.output) == (1, scanned.output)


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process can grow over 20,000 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_by_name_and_leaves_no_index(tmp_path, request):
    log = written(tmp_path / "log").folder
    request.getfixturevalue("small_files")
    done = ask(QUESTIONS[0], log, "--index", str(tmp_path / "indexes"))
    assert done.exit_code == 1
    assert f"{file_of(log, tmp_path / 'indexes')}: the index can't be written: " in done.output
    assert not file_of(log, tmp_path / "indexes").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_t_be_written_is_told_by_name(tmp_path):
    log = written(tmp_path / "log").folder
    (tmp_path / "indexes").mkdir(mode=0o500)
    done = ask(QUESTIONS[0], log, "--index", str(tmp_path / "indexes"))
    assert done.exit_code == 1
    assert str(tmp_path / "indexes") in done.output
