"""Both engines give equal answers on many generated histories, and equal states at many offsets.

`make test` takes two short histories and some of the jobs. `make same-answers` takes 20 histories,
every job, and the states at 50 offsets of each: HISTORIES=N, FIRST=seed.
"""

import os
import random
from pathlib import Path

import pytest

from audit.embedded import run_job as plain_job
from audit.generated import write_history
from audit.places.replicas import open_all
from audit.spark.jobs.audited_log import AuditedLog
from audit.spark.jobs.engine import run_job, states_at
from audit.tables import BY_NAME

HISTORIES = int(os.environ.get("LOGBERG_HISTORIES", "0"))
"""0: the small tier."""
FIRST = int(os.environ.get("LOGBERG_FIRST_HISTORY", "101"))
SEEDS = range(FIRST, FIRST + (HISTORIES or 2))
JOBS = tuple(BY_NAME) if HISTORIES else ("availability", "partition_events", "privileged")
RECORDS = 4_000 if HISTORIES else 1_000
OFFSETS = 50 if HISTORIES else 8
NOTHING = frozenset(("integrity", "divergence"))
"""Nothing is wrong with a made-up log."""


def history_of(seed: int, folder: Path) -> str:
    """Write a history and return its place. Every third one ends within a transaction."""
    write_history(folder, records=RECORDS, seed=seed, open_transaction=seed % 3 == 0)
    return str(folder / "controller-1")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_gives_the_same_rows(seed, spark, tmp_path):
    place = history_of(seed, tmp_path)
    for name in JOBS:
        wanted = plain_job(name, open_all([place]))
        assert run_job(name, [place], spark) == wanted, f"{name} of the history of seed {seed}"
        assert wanted or name in NOTHING, "a comparison of nothing proves nothing"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_states_of_random_offsets_are_the_same(seed, spark, tmp_path):
    place = history_of(seed, tmp_path)
    end = open_all([place])[0].reader().log_end
    drawn = random.Random(seed).sample(range(1, end + 1), OFFSETS)
    with AuditedLog(spark, [place]) as log:
        found = states_at(log, drawn)
    for offset in drawn:
        wanted = plain_job("state", open_all([place]), up_to=offset)
        assert found[offset] == wanted, f"at offset {offset} of the history of seed {seed}"
    assert len({tuple(rows) for rows in found.values()}) > OFFSETS // 2
