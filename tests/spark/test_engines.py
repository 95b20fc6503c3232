"""The two engines give equal rows: each job of audit.tables on generated histories."""

import shutil

import msgspec
import pytest

from audit.embedded import run_job as plain_job
from audit.generated import write_history
from audit.places.replicas import open_all
from audit.spark.jobs.engine import run_job
from audit.tables import BATCHES, BY_NAME, DIVERGENCE, INTEGRITY
from ledger.batch import seal
from tests.spark.cut_logs import cut_log
from tests.spark.log_writer import LogWriter

OF_FILES = (BATCHES.name, INTEGRITY.name, DIVERGENCE.name)
NOTHING = (("grants", "lived"), ("attempts", "lived"))
"""The made-up cluster coordinates nothing, and refuses nobody: it enforces no rights."""
OF_LOGS = tuple(name for name in BY_NAME if name not in OF_FILES)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Where each log is, and up to where it is asked."""
    folder = tmp_path_factory.mktemp("logs")
    whole = LogWriter(folder / "whole", seed=21, segment_bytes=16_384).append(220)
    cut = LogWriter(folder / "cut", seed=22, segment_bytes=16_384).append(300)
    cut_log(cut)
    write_history(folder / "lived", days=2, seed=5, open_transaction=True)
    return {
        "whole": (str(whole.folder), None),
        "whole, in the midst": (str(whole.folder), whole.end * 2 // 3),
        "cut": (str(cut.folder), None),
        "lived": (str(folder / "lived" / "controller-1"), None),
    }


def compare(name, places, spark, up_to=None):
    wanted = plain_job(name, open_all(places), up_to=up_to)
    assert run_job(name, places, spark, up_to=up_to) == wanted
    return wanted


@pytest.mark.parametrize("name", OF_LOGS)
@pytest.mark.parametrize("log", ["whole", "cut", "lived"])
def test_a_job_of_a_log(name, log, logs, spark):
    place, up_to = logs[log]
    rows = compare(name, [place], spark, up_to)
    assert rows or (name, log) in NOTHING, "a comparison of nothing proves nothing"


@pytest.mark.parametrize("name", ["partition_intervals", "state"])
def test_a_job_up_to_an_offset(name, logs, spark):
    place, up_to = logs["whole, in the midst"]
    assert compare(name, [place], spark, up_to) != plain_job(name, open_all([place]))


@pytest.mark.parametrize("name", OF_FILES)
def test_jobs_of_replicas_that_were_tampered_with(name, tmp_path, spark):
    """One has a batch that was written anew, one a flipped byte, one lacks segments."""
    first = LogWriter(tmp_path / "one", seed=20, segment_bytes=8_192).append(120)
    for copy in ("two", "three", "four", "five"):
        shutil.copytree(first.folder, tmp_path / copy)
    victim = first.batches[33]
    edit(tmp_path / "two", victim.encoded, flipped(victim.encoded))
    forged = LogWriter(tmp_path / "forged", seed=20, segment_bytes=8_192).append(40)
    forged.batches[33] = rewritten(victim)
    edit(tmp_path / "three", victim.encoded, forged.batches[33].encoded)
    shutil.rmtree(tmp_path / "forged")
    (tmp_path / "four" / "log" / first.segments[-1].name).unlink()
    (tmp_path / "four" / "log" / first.segments[2].name).unlink()
    places = [str(tmp_path / name) for name in ("one", "two", "three", "four", "five")]
    rows = compare(name, places, spark)
    if name == INTEGRITY.name:
        assert {row[3] for row in rows} == {"crc", "chain", "gap"}
    if name == DIVERGENCE.name:
        assert {row[1] for row in rows} == {"two", "three"}


def edit(folder, old, new):
    assert len(old) == len(new)
    (found,) = (p for p in (folder / "log").iterdir() if old in p.read_bytes())
    found.write_bytes(found.read_bytes().replace(old, new))


def flipped(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def rewritten(batch):
    """The same batch by somebody else, with a right checksum, as long as it was."""
    header = batch.header
    who = msgspec.structs.replace(header.provenance, principal=header.provenance.principal[::-1])
    return seal(msgspec.structs.replace(header, provenance=who), batch.records)
