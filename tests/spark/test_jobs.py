"""`logberg audit run`: the same rows by both engines, in each form; failures in a sentence."""

import csv
import io
import json
import shutil
import sys

import pytest
from click.testing import CliRunner
from pyarrow import parquet

from audit.spark.session import SparkUnavailableError
from logberg.commands.audit.run import command
from tests.spark.log_writer import LogWriter


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return LogWriter(tmp_path_factory.mktemp("jobs") / "one", seed=51).append(60)


def run(*words, code=0):
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def asked(log, *words):
    return json.loads(run("changes", log.folder, "--output", "json", *words))


def test_both_engines_print_the_same(log, spark):
    rows = asked(log)
    assert rows
    assert asked(log, "--engine", "spark") == rows
    assert asked(log, "--up-to", 40) != rows
    assert asked(log, "--up-to", 40) == asked(log, "--up-to", 40, "--engine", "spark")


def test_each_form_holds_the_same_rows(log, tmp_path, spark):
    rows = json.loads(run("partition_events", log.folder, "--output", "json"))
    run("partition_events", log.folder, "--out", tmp_path / "a.json")
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    run("partition_events", log.folder, "--out", tmp_path / "a.csv")
    found = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [row["offset"] for row in found] == [str(row["offset"]) for row in rows]
    run("partition_events", log.folder, "--out", tmp_path / "plain")
    run("partition_events", log.folder, "--out", tmp_path / "spark", "--engine", "spark")
    assert parquet.read_table(tmp_path / "plain").to_pylist() == rows
    written = parquet.read_table(tmp_path / "spark").to_pylist()
    key = ("topic_id", "partition", "offset")
    assert sorted(written, key=lambda row: [row[name] for name in key]) == rows


def test_a_folder_that_is_there_is_not_written_over(log, tmp_path):
    (tmp_path / "out").mkdir()
    assert "exists already" in run("changes", log.folder, "--out", tmp_path / "out", code=1)


def test_what_a_task_finds_is_said_in_its_own_words(log, tmp_path, spark):
    damaged = tmp_path / "damaged" / "log"
    damaged.mkdir(parents=True)
    data = bytearray(log.segments[0].read_bytes())
    data[len(data) // 2] ^= 1
    (damaged / log.segments[0].name).write_bytes(data)
    said = run("changes", damaged.parent, "--engine", "spark", code=1)
    assert "checksum" in said
    assert "Traceback" not in said
    assert "PythonException" not in said


def test_no_log_and_no_such_moment(log, tmp_path):
    assert "not there" in run("changes", tmp_path / "nowhere", code=1)
    assert "log ends at" in run("changes", log.folder, "--up-to", 10**9, code=1)


def test_without_the_extra_or_java_it_says_what_to_do(log, monkeypatch):
    def no_java(**_):
        raise SparkUnavailableError("Spark needs Java 17 or later, and there is none")

    monkeypatch.setattr("audit.spark.session.audit_session", no_java)
    assert "Java 17" in run("changes", log.folder, "--engine", "spark", code=1)
    monkeypatch.setitem(sys.modules, "audit.spark.session", None)
    assert "logberg[audit]" in run("changes", log.folder, "--engine", "spark", code=1)


def test_a_pipelines_folder_that_lost_what_was_carried_is_refused(log, tmp_path, spark):
    run("pipeline", log.folder, "--out", tmp_path)
    shutil.rmtree(tmp_path / "carried")
    assert "empty folder" in run("pipeline", log.folder, "--out", tmp_path, code=1)


def test_the_pipeline_needs_a_folder(log):
    assert "--out DIR" in run("pipeline", log.folder, code=2)
    assert "--follow" in run("changes", log.folder, "--follow", code=2)
