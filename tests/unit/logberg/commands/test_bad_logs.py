"""Each command of the audit says by name what is wrong with a log, in one sentence, with exit 1.

A running node's unfinished end is nothing wrong. The harms of `tests.damaged_logs` meet every
command that reads a log.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.generated import write_history
from audit.places.replicas import one_replica
from ledger.errors import LedgerError
from logberg.cli.main import cli
from tests.damaged_logs import HARMS, stop_in_the_last_batch
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
