"""The folds give the embedded engine's rows, and broken folds do not.

The pipeline runs in one process here, so that many logs and cuts cost little.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from audit.spark.folds.carried import DaySums
from audit.spark.folds.slices import MIN_ISR
from audit.spark.folds.transactions import Span
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from tests.mutants.patches import Patch, around, edited, instead, patched
from tests.spark.cut_logs import cut_log
from tests.spark.kept_rows import check
from tests.spark.log_writer import LogWriter
from tests.spark.one_process import take_in

PER_TRIGGER = 60
FIRST, SECOND = bytes(15) + b"\1", bytes(15) + b"\2"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A whole log with transactions, and one that was cut."""
    folder = tmp_path_factory.mktemp("logs")
    whole = LogWriter(folder / "whole", seed=44, segment_bytes=8_192).append(100)
    cut = LogWriter(folder / "cut", seed=42, segment_bytes=8_192).append(120)
    cut_log(cut)
    told = LogWriter(folder / "told")
    for time_ms, records in enumerate(rare()):
        told.append_records(records, 1, time_ms * 40_000_000)
    return whole.folder, cut.folder, told.folder


def rare() -> Iterator[list[Record]]:
    """Yield batches with what made-up histories seldom have."""
    registration = RegisterBrokerRecord(1, FIRST, 0, (), (), None)
    yield [registration]
    yield [UnfenceBrokerRecord(1, 0)]
    yield [registration]
    yield [TopicRecord("orders", FIRST), partition(FIRST)]
    yield [of_topic("orders", "1")]
    yield [of_all("2")]
    yield [BeginTransactionRecord("aborted"), of_topic("orders", "3")]
    yield [AbortTransactionRecord("because")]
    yield [RemoveTopicRecord(FIRST), TopicRecord("orders", SECOND), partition(SECOND)]
    yield [of_all(None)]


def partition(topic_id: bytes) -> PartitionRecord:
    return PartitionRecord(0, topic_id, (1, 2), (1,), (), (), 1, 0, 0)


def of_topic(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(ConfigResourceType.TOPIC, name, MIN_ISR, value)


def of_all(value: str | None) -> ConfigRecord:
    return ConfigRecord(ConfigResourceType.BROKER, "", MIN_ISR, value)


@pytest.mark.parametrize("seed", range(12))
def test_folds_of_many_logs(seed, tmp_path):
    """Each is cut into micro-batches of another size."""
    log = LogWriter(tmp_path / "log", seed=100 + seed, segment_bytes=8_192).append(60)
    take_in(log.folder, tmp_path / "out", records_per_trigger=20 + 30 * seed)
    check(log.folder, tmp_path / "out")


class BrokenFold(NamedTuple):
    """A build of the folds with one thing wrong."""

    name: str
    patch: Patch
    table: str
    """The first table that differs."""


def _never_waits(settle: Callable[..., Any], rows: Any, known: Any) -> Any:
    return settle(rows, known._replace(open_from=None))


def _aborted_counts(settle: Callable[..., Any], rows: Any, known: Any) -> Any:
    closed = tuple(
        Span(each.first, each.last, "settled", each.first, 0) if each.settled_ms is None else each
        for each in known.closed
    )
    return settle(rows, known._replace(closed=closed))


def _no_stretches(offsets: np.ndarray, _types: Any) -> np.ndarray:
    return offsets[:1]


def _twice_on_midnight(add: Callable[..., Any], self: DaySums, *told: Any) -> None:
    before = self.counted_ms
    add(self, *told)
    self.counted_ms = before


FOLD = "audit.spark.folds.partitions.PartitionFold"
BROKEN = (
    BrokenFold(
        "an open transaction counts at once",
        Patch("audit.spark.folds.partitions.settled_rows", around(_never_waits)),
        "partition_",
    ),
    BrokenFold(
        "an aborted transaction counts",
        Patch("audit.spark.folds.partitions.settled_rows", around(_aborted_counts)),
        "partition_",
    ),
    BrokenFold(
        "counts know no transactions",
        Patch("audit.spark.folds.slices._stretches", instead(_no_stretches)),
        "changes",
    ),
    BrokenFold(
        "a removed topic leaves its min ISR to the next of its name",
        Patch(f"{FOLD}._remove_topic", edited(("self._carried.min_isr.pop(name, None)", "pass"))),
        "partition_intervals",
    ),
    BrokenFold(
        "each record is a moment",
        Patch(f"{FOLD}._apply", edited(("if bases[place] != self._base:", "if True:"))),
        "partition_intervals",
    ),
    BrokenFold(
        "the default min ISR touches nothing",
        Patch(f"{FOLD}._configure", edited(("list(self._topics.values())", "[]"))),
        "partition_intervals",
    ),
    BrokenFold(
        "a change of leader is not counted",
        Patch("audit.spark.folds.carried.DaySums.change_leader", instead(lambda _self, _ms: None)),
        "availability",
    ),
    BrokenFold(
        "a removed topic's newest day is forgotten",
        Patch(f"{FOLD}._remove_topic", edited(("self._carried.removed.append", "list"))),
        "availability",
    ),
    BrokenFold(
        "what was counted up to midnight is counted again",
        Patch("audit.spark.folds.carried.DaySums.add", around(_twice_on_midnight)),
        "availability",
    ),
    BrokenFold(
        "a repeated registration sets the flags on every level",
        Patch(
            "audit.spark.folds.cluster.BrokerFold._apply",
            edited(("self._carried.literal or one.incarnation != record.incarnation_id", "True")),
        ),
        "broker_intervals",
    ),
    BrokenFold(
        "a fenced broker is not fenced",
        Patch("audit.spark.folds.cluster._places", instead(lambda _state: (0,))),
        "availability",
    ),
    BrokenFold(
        "a topic's configs outlive it in the events",
        Patch(
            "audit.spark.folds.cluster.ClusterFold._privileged_row",
            edited(("resource(logged.record, self._names)", "'?'")),
        ),
        "privileged",
    ),
)


def taken(logs: tuple[Path, ...], folder: Path) -> None:
    for number, log in enumerate(logs):
        out = folder / str(number)
        take_in(log, out, records_per_trigger=PER_TRIGGER)
        check(log, out)


def test_the_sound_folds(logs, tmp_path):
    taken(logs, tmp_path)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_fold_is_noticed(broken, logs, tmp_path):
    with patched((broken.patch,)), pytest.raises(AssertionError, match=broken.table):
        taken(logs, tmp_path)
