"""The sizing table of docs/scale.md and `audit size`, held to weeks of simulated life."""

import os
import re
from functools import cache
from typing import Any

import pytest

from audit.generated import batches
from audit.questions.growth import DAY_MS, Growth, growth_of
from ledger.batch import Batch
from tests.docs.source import ROOT

WEEK = 7.0
NEAR = 0.2
"""So much a prediction may be wrong."""
MORE = "LOGBERG_WEEKS" in os.environ
"""`make growth` lives through more weeks; each takes seconds."""
SMALL_SEEDS = (2, 3, 4) if MORE else (2,)
SEEDS: dict[int, dict[str, Any]] = {
    **{seed: {} for seed in SMALL_SEEDS},
    5: {"brokers": 12, "topics": 200},
}


def table() -> list[int]:
    """The bytes in the table: batch, answer, partition change, partition, other record."""
    text = (ROOT / "docs" / "scale.md").read_text()
    rows = text.partition("<!-- sizes of the log -->")[2].partition("\n\n")[0]
    found = [int(size) for size in re.findall(r"^\| .* \| (\d+) \|$", rows, re.MULTILINE)]
    assert len(found) == 5
    return found


@cache
def week(seed: int) -> tuple[list[Batch], Growth]:
    lived = list(batches(seed, days=WEEK, **SEEDS[seed]))
    return lived, growth_of(lived)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_predicts_a_week(seed: int) -> None:
    _, measured = week(seed)
    records = {share.name: share.records for share in measured.types}
    answers = records.get("RequestOutcomeRecord", 0)
    changes = records.get("PartitionChangeRecord", 0)
    created = records.get("PartitionRecord", 0)
    other = measured.records - answers - changes - created
    counts = (measured.batches, answers, changes, created, other)
    predicted = sum(size * count for size, count in zip(table(), counts, strict=True))
    assert predicted == pytest.approx(measured.bytes, rel=NEAR)


@pytest.mark.parametrize("days", [1, 2, 3])
@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_the_rate_of_the_first_days_predicts_the_week(seed: int, days: int) -> None:
    lived, measured = week(seed)
    until = lived[0].header.timestamp_ms + days * DAY_MS
    first = growth_of((b for b in lived if b.header.timestamp_ms < until), float(days))
    assert first.bytes_a_day * WEEK == pytest.approx(measured.bytes, rel=NEAR)
