"""Tables that are written as their rows come: whole or not at all, here and in a bucket."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from audit.embedded import run_job
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.tables import AVAILABILITY, BY_NAME, PARTITION_EVENTS
from ledger.errors import LedgerError
from logberg.cli.failure import Failure
from logberg.cli.main import cli
from logberg.commands.audit.table_files import write_rows
from tests.object_store import ObjectStore, object_store

KINDS = ("table.csv", "table.json", "table")
ROW = ("broker", "1", "2026-11-20", 1, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived")
    write_history(folder, records=3_000, seed=4)
    return folder / "controller-1"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def read_back(path: Path) -> list[tuple]:
    """Return the rows of a file as text, so that the kinds can be compared."""
    if path.suffix == ".csv":
        return [tuple(line.split(",")) for line in path.read_text().splitlines()[1:]]
    if path.suffix == ".json":
        rows = [json.loads(line).values() for line in path.read_text().splitlines()]
    else:
        rows = [row.values() for row in pq.read_table(path).to_pylist()]
    return [tuple(map(str, row)) for row in rows]


def run(*words: str):
    return CliRunner().invoke(cli, ["audit", "run", *words])


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_holds_the_job_s_rows(name, lived, tmp_path):
    done = run("availability", str(lived), "--out", str(tmp_path / name))
    assert done.exit_code == 0, done.output
    rows = run_job("availability", open_replicas(str(lived)))
    assert read_back(tmp_path / name) == [tuple(map(str, row)) for row in rows]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("job", sorted(BY_NAME))
def test_every_job_can_be_written_in_every_kind(job, lived, tmp_path):
    rows = run_job(job, open_replicas(str(lived)))
    for name in KINDS:
        assert write_rows(BY_NAME[job], iter(rows), str(tmp_path / name)) == len(rows)
    assert pq.read_table(tmp_path / "table").num_rows == len(rows)
    assert len((tmp_path / "table.json").read_bytes().splitlines()) == len(rows)


def test_lists_and_nulls_in_a_csv(tmp_path):
    row = ("id", 0, 5, "orders", 5, 1, "2026-11-20", "changed", None, (1, 2), (), *"abcde")
    write_rows(PARTITION_EVENTS, [row], str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == (
        "id,0,5,orders,5,1,2026-11-20,changed,,1 2,,a,b,c,d,e"
    )


@pytest.mark.parametrize("name", KINDS)
def test_rows_go_out_while_they_come(name, tmp_path):
    """When the last row is asked for, the first ones are on the disk."""
    seen = []

    def coming():
        for number in range(200_000):
            yield (*ROW[:3], number, *ROW[4:])
        part = tmp_path / f"{name}.part"
        seen.append((part / "part-00000.parquet" if part.is_dir() else part).stat().st_size)

    assert write_rows(AVAILABILITY, coming(), str(tmp_path / name)) == 200_000
    assert seen[0] > 10_000
    assert len(read_back(tmp_path / name)) == 200_000


@pytest.mark.parametrize("error", [LedgerError("the log"), OSError("the log")], ids=repr)
@pytest.mark.parametrize("name", KINDS)
def test_a_log_that_fails_in_the_middle_leaves_nothing(name, error, tmp_path):
    (tmp_path / "table.csv").write_text("the one before")

    def failing():
        yield from [ROW] * 70_000
        raise error

    with pytest.raises(type(error), match="the log"):
        write_rows(AVAILABILITY, failing(), str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "the one before"


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process can grow over 100,000 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_told_and_nothing_is_left(name, tmp_path):
    rows = ((*ROW[:3], number * 7_919 % 1_000_003, *ROW[4:]) for number in range(200_000))
    with pytest.raises(Failure, match=rf"{name} can't be written: .*File too large.* Nothing"):
        write_rows(AVAILABILITY, rows, str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_refused_before_the_log_is_read(lived, tmp_path):
    done = run("availability", str(lived), "--out", str(tmp_path))
    assert done.exit_code == 1
    assert "exists already. Name a new folder." in done.output


@pytest.mark.parametrize("name", KINDS)
def test_a_bucket_gets_whole_files(name, store, lived, tmp_path):
    done = run("availability", str(lived), "--out", f"s3://history/{name}{store.options}")
    assert done.exit_code == 0, done.output
    inside = "/part-00000.parquet" if name == "table" else ""
    assert store.names("history").count(f"history/{name}{inside}") == 1
    local = tmp_path / f"got{Path(name).suffix}"
    with store.system.open_input_stream(f"history/{name}{inside}") as source:
        local.write_bytes(source.read())
    rows = run_job("availability", open_replicas(str(lived)))
    assert read_back(local) == [tuple(map(str, row)) for row in rows]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://nothing/t.csv{options}", "s3://nothing/t.csv can't be written: "),
        ("s3://history{options}", "a bucket is named, but no name in it"),
        ("s3://history/t.csv?colour=red", "the option 'colour' is unknown"),
        (
            "s3://history/t?endpoint_override=127.0.0.1:1&scheme=http&access_key=a&secret_key=b",
            "s3://history/t can't be written: ",
        ),
    ],
)
def test_a_bucket_that_can_t_be_used_is_told_by_name(url, sentence, store, lived):
    before = store.names("history")
    done = run("availability", str(lived), "--out", url.format(options=store.options))
    assert done.exit_code == 1, done.output
    assert sentence in done.output
    assert "secret_key=" not in done.output
    assert store.names("history") == before
