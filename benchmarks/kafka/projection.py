"""Measures the projection of our log for Kafka's brokers: `python -m benchmarks.kafka.projection`.

A ledger on a real disk holds the creation of partitions with three replicas, and then changes of
ISRs, leaders, brokers and configs, 50 records a batch. Printed, for one core, in records per second
of processor time:

- *cold*: a ledger that was just opened, projected from its first record to its end, with digest;
- *again*: parts that are not kept any more, as a broker reads them that lags;
- *tail*: the newest batches, which are kept, as all brokers read them;
- *answer*: tail, and the whole answer to a Fetch of 1 MiB as bytes.

Memory is the peak of what Python allocates while a cold projection runs, for the log and for one of
a quarter of its length. It must not grow with the log. The floor is SHA-256 of the projected bytes
in the same run. The exit code is 1 if cold is below 40,000 records a second, or if memory grows.
"""

import argparse
import gc
import hashlib
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import structlog

from benchmarks.image.replay import changes, creation
from kafka_listener.projection.batch_projection import BatchProjection, ProjectedBatch
from kafka_listener.projection.clear_values import ClearValues
from kafka_listener.projection.log_facts import FIRST_LEVEL
from kafka_listener.projection.projected_log import ProjectedLog
from kafka_listener.wire.messages import encode_response
from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.ledger import Ledger
from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataDelta
from metadata.records import FeatureLevelRecord, Record
from runtime.clock import Timer
from runtime.disk.real import RealDisk

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
RECORDS_PER_BATCH = 50
ANSWER_BYTES = 1024 * 1024
COLD_MIN = 40_000
GROWTH_MAX = 1.2
_FETCH, _FETCH_VERSION = 1, 18
_LOG = structlog.wrap_logger(None, processors=[structlog.testing.LogCapture()])


class LoopOfSlices:
    """A clock whose callbacks run when `run` is called, one after another."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()

    def monotonic(self) -> float:
        """Seconds."""
        return time.perf_counter()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in `run`."""
        self._due.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Nothing here waits: a projection that waits has failed."""
        raise RuntimeError(f"the projection waits {delay_s} s: the ledger can't be read")

    def run(self) -> None:
        """Call everything that is due, until nothing is."""
        while self._due:
            self._due.popleft()()


def write_log(folder: Path, partitions: int, changed: int) -> LogMark:
    """Write the ledger; return the mark of its end."""
    first = list(creation(partitions))
    delta = MetadataDelta(EMPTY)
    delta.replay_all(first, 0)
    delta.finish_batch(len(first), 1, 1)
    image = delta.apply()
    level = FeatureLevelRecord("metadata.version", 30)
    records = chain((level,), first, changes(image, changed))
    disk = RealDisk(folder)
    disk.lock()
    mark = LogMark.beginning(CLUSTER_ID)
    ledger = Ledger.open(disk, CLUSTER_ID, synced_to=mark, log=_LOG)
    base = 0
    for some in _batches(records):
        header = BatchHeader(base, len(some), 1, 1_700_000_000_000 + base, Provenance(), mark.head)
        batch = seal(header, encode_records(some))
        ledger.accept(1, batch)
        mark = mark.after(batch)
        base += len(some)
    ledger.close()
    disk.close()
    return mark


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    some: list[Record] = []
    for record in records:
        some.append(record)
        if len(some) == RECORDS_PER_BATCH:
            yield some
            some = []
    if some:
        yield some


class Projection:
    """A projected log over a ledger that was just opened."""

    def __init__(self, folder: Path, mark: LogMark) -> None:
        self.clock = LoopOfSlices()
        self._disk = RealDisk(folder)
        self._disk.lock()
        self.ledger = Ledger.open(self._disk, CLUSTER_ID, synced_to=mark, log=_LOG)
        self.log = ProjectedLog(self.clock, BatchProjection(ClearValues(None)), lambda: None, _LOG)
        self.log.restart(self.ledger, 0, FIRST_LEVEL)

    def follow(self, end: int) -> None:
        """Project up to an offset."""
        self.log.follow(end)
        self.clock.run()
        assert self.log.end == end, f"the projection ends at {self.log.end}, not at {end}"

    def read(self, offset: int) -> tuple[ProjectedBatch, ...]:
        """Read what a Fetch of 1 MiB reads."""
        steps = self.log.read(offset, ANSWER_BYTES)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: tuple[ProjectedBatch, ...] = done.value
                return found

    def close(self) -> None:
        """Close the files."""
        self.ledger.close()
        self._disk.close()


def processor_s(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def memory_peak(folder: Path, mark: LogMark, end: int) -> int:
    """Return the most bytes that Python allocated during a cold projection."""
    projection = Projection(folder, mark)
    gc.collect()
    tracemalloc.start()
    projection.follow(end)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    projection.close()
    return peak


def answered(batches: tuple[ProjectedBatch, ...], offset: int) -> bytes:
    """Return the answer to a Fetch."""
    partition = {
        "PartitionIndex": 0,
        "HighWatermark": offset,
        "Records": b"".join(batch.data for batch in batches),
    }
    return encode_response(
        _FETCH, _FETCH_VERSION, {"Responses": [{"TopicId": bytes(16), "Partitions": [partition]}]}
    )


def measure(folder: Path, partitions: int, changed: int, rounds: int) -> int:
    """Print everything; return the exit code."""
    mark = write_log(folder, partitions, changed)
    end = mark.log_end
    colds, projection = [], Projection(folder, mark)
    for _ in range(rounds):
        projection.close()
        projection = Projection(folder, mark)
        colds.append(processor_s(partial(projection.follow, end)))
    cold = end / sorted(colds)[rounds // 2]
    print(f"{'records in the log':<44}{end:>12,}")
    print(f"{'cold, records a second':<44}{cold:>12,.0f}   best {end / min(colds):,.0f}")

    def rate(name: str, offset: int, work: Callable[[int], tuple[ProjectedBatch, ...]]) -> None:
        found = work(offset)
        records = found[-1].end_offset - max(offset, found[0].base_offset)
        took = [processor_s(lambda: work(offset)) for _ in range(max(rounds, 3))]
        best = records / sorted(took)[len(took) // 2]
        print(f"{name + ', records a second':<44}{best:>12,.0f}")

    newest = projection.log._kept[0].base_offset + 1  # noqa: SLF001 - what is kept is what is read
    rate("again, from the ledger", end // 10, projection.read)
    rate("tail", newest, projection.read)

    def whole(offset: int) -> tuple[ProjectedBatch, ...]:
        found = projection.read(offset)
        answered(found, end)
        return found

    rate("answer of 1 MiB from the tail", newest, whole)
    data = b"".join(batch.data for batch in projection.read(newest))
    floor_s = processor_s(lambda: [hashlib.sha256(data).digest() for _ in range(20)]) / 20
    print(f"{'floor: SHA-256 of the bytes, MiB a second':<44}{len(data) / floor_s / 2**20:>12,.0f}")
    projection.close()
    quarter = end // 4 // RECORDS_PER_BATCH * RECORDS_PER_BATCH
    short, long = memory_peak(folder, mark, quarter), memory_peak(folder, mark, end)
    print(f"{'memory, a quarter of the log, MiB':<44}{short / 2**20:>12,.1f}")
    print(f"{'memory, all of it, MiB':<44}{long / 2**20:>12,.1f}")
    return 1 if cold < COLD_MIN or long > GROWTH_MAX * short else 0


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka.projection")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="the disk to use; a temporary folder if none")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="projection-") as folder:
        return measure(Path(folder), asked.partitions, asked.changes, asked.rounds)


if __name__ == "__main__":
    sys.exit(main())
