"""Logs to compare: generated ones, and those of simulated clusters.

Rule: a log is drawn from its name alone, so that `make oracle` can run one again.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from ledger.ledger import Ledger
from metadata.codec import decode_records, encode_records
from metadata.records import FeatureLevelRecord
from tests.histories import History
from tests.oracles.replay.projection import LogBatch
from tests.simulation import fault_kinds, seeds
from tests.simulation.cluster import Cluster

KINDS: Final = ("replicas", "moves", "configs", "clients", "everything", "cuts", "drawn", "rivals")
"""The kinds of seeds whose logs are compared: those that write most kinds of records."""


class NoLogError(Exception):
    """There is no log with this name, or its run is no good. The message says why."""


class KafkaHistory(History):
    """A history at levels that Kafka 4.4 knows and that hold every field."""

    def batch(self) -> LogBatch:  # type: ignore[override]
        made = super().batch()
        return LogBatch(*made)

    def _begin_epoch(self) -> None:
        first = self._epoch == 0
        super()._begin_epoch()
        if first:
            # From here on an amended registration is as it is written (ADR 0015).
            self._write(FeatureLevelRecord("logberg.version", 1))
            self._write(FeatureLevelRecord("metadata.version", 33))
            self._write(FeatureLevelRecord("eligible.leader.replicas.version", 1))

    def _feature(self) -> None:
        name, levels = self._dice.choice(
            (
                ("metadata.version", (30, 31, 32, 33)),
                ("group.version", (0, 1)),
                ("transaction.version", (0, 1, 2)),
                ("logberg.version", (1,)),
            )
        )
        self._write(FeatureLevelRecord(name, self._dice.choice(levels)))


def generated(seed: int, batches: int = 40) -> list[LogBatch]:
    """Return the log of a generated history: every record that Kafka has, in legal order."""
    history = KafkaHistory(seed)
    return [history.batch() for _ in range(batches)]


def simulated(seed: int, kind: str, faults_s: float) -> list[LogBatch]:
    """Return the committed log of a simulated cluster under faults. Raises NoLogError."""
    kept: list[Cluster] = []
    outcome = seeds.run_seed(seed, faults_s, kind, on_cluster=kept.append)
    if outcome.failure:
        what = outcome.failure.partition("\n")[0]
        raise NoLogError(f"the seed itself fails: {what}; again: {outcome.rerun}")
    ledgers = [node.ledger for node in kept[0].running().values() if node.ledger.log_start == 0]
    if not ledgers:
        raise NoLogError("no node of this seed has the begin of its log: take another seed")
    return batches_of(max(ledgers, key=lambda ledger: ledger.log_end))


def batches_of(ledger: Ledger) -> list[LogBatch]:
    """Return all batches of a ledger, decoded."""
    return [
        LogBatch(
            batch.header.base_offset,
            batch.header.epoch,
            batch.header.timestamp_ms,
            tuple(decode_records(batch.records)),
        )
        for batch in ledger.batches(0)
    ]


def packed(log: list[LogBatch]) -> list[Any]:
    """Return a log as JSON can hold it."""
    return [[*batch[:3], b64encode(encode_records(batch.records)).decode("ascii")] for batch in log]


def unpacked(rows: list[Any]) -> list[LogBatch]:
    """Return the log that `packed` was given."""
    return [
        LogBatch(offset, epoch, timestamp_ms, tuple(decode_records(b64decode(records))))
        for offset, epoch, timestamp_ms, records in rows
    ]


def flushes(name: str, count: int) -> list[int]:
    """Return after which batches the images are compared: some at random, and the last."""
    dice = Random(name)
    return sorted({*(dice.randrange(count) for _ in range(6)), count - 1})


def names(generated_logs: int, simulated_logs: int, first: int) -> Iterator[str]:
    """Yield the names of logs, such as `generated 7` and `moves 3`."""
    for seed in range(first, first + generated_logs):
        yield f"generated {seed}"
    for number in range(simulated_logs):
        yield f"{KINDS[number % len(KINDS)]} {first + number // len(KINDS)}"


def log_of(name: str, faults_s: float = 12.0) -> list[LogBatch]:
    """Return the log with this name. Raises NoLogError."""
    kind, _, seed = name.partition(" ")
    known = ("generated", *fault_kinds.KINDS, *fault_kinds.MORE_KINDS)
    if kind not in known or not seed.isdecimal():
        raise NoLogError(f"'{name}' is no name of a log: a kind ({', '.join(known)}) and a number")
    if kind == "generated":
        return generated(int(seed))
    return simulated(int(seed), kind, faults_s)
