"""Each command of the audit says by name what is wrong with a log, in one sentence, with exit 1.

A running node's unfinished end is nothing wrong. The table of harms below meets every command that
reads a log.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from audit.generated import write_history
from audit.places.replicas import one_replica
from ledger.batch import seal
from ledger.errors import LedgerError
from ledger.frame import finish_frame
from logberg.cli.main import cli
from metadata.records import VERSIONS_PER_TYPE
from tests.object_store import object_store

COMMANDS = {
    "log": ("log", "{log}"),
    "who": ("who", "{log}", "topic:*"),
    "history": ("history", "{log}", "feature:metadata.version"),
    "findings": ("findings", "{log}"),
    "holders": ("holders", "{log}"),
    "availability": ("availability", "{log}"),
    "state": ("state", "{log}", "--no-snapshots"),
    "diff": ("diff", "{log}", "0", "end"),
    "follow": ("follow", "{log}", "--from", "0", "--until-offset", "{end}"),
    "verify": ("verify", "{log}"),
    "run log": ("run", "log", "{log}"),
    "run availability": ("run", "availability", "{log}", "--out", "{out}/rows.csv"),
    "run changes": ("run", "changes", "{log}"),
    "run state": ("run", "state", "{log}"),
    "run partition_intervals": ("run", "partition_intervals", "{log}", "--out", "{out}/rows"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write_history(folder / "one", records=2_000, seed=4, segment_bytes=40_000)
    return folder


@pytest.fixture
def log(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written / "one" / "controller-1", tmp_path / "log-of-one"))


def ask(command: str, log: Path, out: Path):
    try:
        end = one_replica(str(log)).reader().log_end
    except LedgerError:
        end = 1_000
    words = [word.format(log=log, out=out, end=end) for word in COMMANDS[command]]
    return CliRunner().invoke(cli, ["audit", *words])


def segments(log: Path) -> list[Path]:
    return sorted((log / "log").glob("*.log"))


def flip_a_byte(log: Path) -> None:
    path = segments(log)[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_off_the_middle(log: Path) -> None:
    path = segments(log)[1]
    path.write_bytes(path.read_bytes()[:-50])


def take_a_segment_away(log: Path) -> None:
    segments(log)[1].unlink()


def put_another_cluster_s_segment_in(log: Path) -> None:
    other = log.parent / "other"
    write_history(other, records=300, seed=5, cluster_id="T3RoZXJDbHVzdGVy")
    shutil.copy(segments(other / "controller-1")[0], segments(log)[1])
    shutil.rmtree(other)


def use_a_newer_format(log: Path) -> None:
    path = segments(log)[1]
    data = path.read_bytes()
    header = int.from_bytes(data[8:12], "big")
    length = int.from_bytes(data[header + 8 : header + 12], "big")
    frame = data[header : header + length]
    newer = finish_frame(frame[:4] + (9).to_bytes(2, "big") + frame[6:-4])
    path.write_bytes(data[:header] + newer + data[header + length :])


def append_a_newer_record(log: Path) -> None:
    """A batch that is right, with a record that this release doesn't know."""
    reader = one_replica(str(log)).reader()
    (last,) = reader.batches(reader.log_end - 1)
    header = msgspec.structs.replace(
        last.header,
        base_offset=reader.log_end,
        count=1,
        previous_hash=last.hash,
        extensions={},
    )
    records = msgspec.msgpack.encode([[9_999 * VERSIONS_PER_TYPE, "new"]])
    with segments(log)[-1].open("ab") as file:
        file.write(seal(header, records).encoded)


def stop_in_the_last_batch(log: Path) -> None:
    path = segments(log)[-1]
    path.write_bytes(path.read_bytes()[:-20])


HARMS: dict[Callable[[Path], None], str] = {
    flip_a_byte: r"log/\d{20}\.log, byte \d+, offset \d+: the checksum \(CRC-32C\) does not fit",
    cut_off_the_middle: r"log/\d{20}\.log, byte \d+, offset \d+: ",
    take_a_segment_away: r"log/\d{20}\.log.*offset|offsets \d+ to \d+ are missing",
    put_another_cluster_s_segment_in: r"log/\d{20}\.log.* belongs to cluster 'T3RoZX",
    use_a_newer_format: r"log/\d{20}\.log.*: format 9 .*newer release",
    append_a_newer_record: r"offset \d+.*: record type 9999 version 0: .*upgrade",
}
"""What is done to a log, and the sentence that tells of it."""


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_wrong_is_told_by_name(command, harm, log, tmp_path):
    harm(log)
    before = sorted(tmp_path.rglob("*"))
    done = ask(command, log, tmp_path)
    assert done.exit_code == 1, done.output
    assert re.search(HARMS[harm], done.stderr), done.stderr
    assert "Traceback" not in done.output
    assert sorted(tmp_path.rglob("*")) == before, "a file was left"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_batch(command, log, tmp_path):
    end = one_replica(str(log)).reader().log_end
    stop_in_the_last_batch(log)
    (log / "journal").mkdir()
    (log / "manifest").unlink(missing_ok=True)
    done = ask(command, log, tmp_path)
    assert done.exit_code == 0, done.output
    assert one_replica(str(log)).reader().log_end < end


@pytest.fixture(scope="module")
def guarded(written: Path) -> Iterator[str]:
    """A server with the log in a bucket that one needs rights for; yields a URL's options."""
    with object_store() as store:
        one = written / "one"
        for path in one.rglob("*"):
            if path.is_file():
                with store.system.open_output_stream(f"history/{path.relative_to(one)}") as out:
                    out.write(path.read_bytes())
        with store.no_rights():
            yield store.options


NO_RIGHTS = "does not exist in our records"
"""What the server says of the key."""


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"diff", "follow", "verify"}))
def test_a_bucket_without_rights_is_told_by_name(command, guarded, tmp_path):
    url = f"s3://history/controller-1{guarded}"
    words = [word.format(log=url, out=tmp_path, end=0) for word in COMMANDS[command]]
    done = CliRunner().invoke(cli, ["audit", *words])
    assert done.exit_code == 1, done.output
    assert "s3://history/controller-1" in done.stderr
    assert NO_RIGHTS in done.stderr
    assert "secret_key=" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_that_one_may_not_write_to_is_told_by_name(guarded, written):
    log = str(written / "one" / "controller-1")
    for name in ("rows.csv", "rows"):
        out = f"s3://history/{name}{guarded}"
        done = CliRunner().invoke(cli, ["audit", "run", "changes", log, "--out", out])
        assert done.exit_code == 1
        assert f"s3://history/{name} can't be written: " in done.stderr
