"""Measures how fast one core verifies and replays a log, and finds the state at an offset.

`python -m benchmarks.audit.core`. Rates are records per second of processor time, at about 20
records a batch. The floor is SHA-256 and CRC-32C of the same bytes in the same run. The time to
find a state is wall-clock time, with the log in the page cache. `run` is the short form, for
`python -m benchmarks`.

--history FOLDER   measure this log (a node's folder) instead of a generated one
--records N        length of the generated log (5,000,000)
--every-offset     measure nothing; check a realistic history of so many records (100,000): at every
                   offset, the state from snapshots has the same hash as the replay of all batches
"""

import argparse
import gc
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from audit.generated import write_history as write_realistic_history
from audit.places.folder import LocalTree
from audit.places.replicas import one_replica
from audit.places.tree_disk import TreeDisk
from audit.questions.state import state_at
from audit.reading.replay import Fold
from audit.reading.state_start import start_for
from benchmarks.audit.history import write_history
from benchmarks.instruments.bench import Bench
from benchmarks.instruments.figures import Figure, Floor
from ledger.frame import crc32c
from ledger.verify import verify_ledger
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta
from snapshots.store import list_checkpoints

RECORDS = 5_000_000
PARTITIONS = 20_000
REPLAYED = 250_000
HASH_EVERY = 4_096
STATES = 12
SEED = 3
VERIFIED_A_SECOND = 500_000.0
REPLAYED_A_SECOND = 300_000.0
HASHED_A_SECOND = 150_000.0
STATE_S = 3.0


def processor_s(work: Callable[[], object]) -> float:
    """Seconds of processor time that some work takes, Python's collector kept out as in a load."""
    gc.collect()
    gc.freeze()
    gc.disable()
    started = time.process_time()
    work()
    took = time.process_time() - started
    gc.enable()
    return took


def digest_rate(folder: Path, records: int) -> float:
    """Records a second of nothing but SHA-256 and CRC-32C, a batch's bytes at a time."""
    frames = [batch.encoded for batch in one_replica(str(folder)).reader().batches(0, records)]

    def digests() -> None:
        for frame in frames:
            sha256(frame).digest()
            crc32c(frame)

    return records / processor_s(digests)


def verify_rate(folder: Path) -> float:
    """Frames, checksums, chain, offsets, epochs, times."""
    records = 0

    def work() -> None:
        nonlocal records
        report = verify_ledger(TreeDisk(LocalTree(folder)))
        assert report.ok, report.first_bad
        records = report.records

    took = processor_s(work)
    return records / took


def replay_rate(folder: Path, start: int, count: int, hash_every: int = 0) -> float:
    """Read, check, decode and replay, from a checkpoint on.

    `hash_every`: keep the state hash, and read it after so many batches; 0: don't keep it.
    """
    replica = one_replica(str(folder))
    reader = replica.reader()
    begun = start_for(replica.disk, reader, start)
    fold = Fold(begun.image, begun.mark, with_state_hash=bool(hash_every))
    first = fold.mark.log_end

    def work() -> None:
        for batch in reader.batches(first, first + count):
            fold.take(batch)
            if hash_every and fold.batches % hash_every == 0:
                assert fold.image.state_hash is not None
        _ = fold.image

    took = processor_s(work)
    return (fold.mark.log_end - first) / took


def state_times(folder: Path, states: int, *, with_hash: bool) -> list[float]:
    """Return the seconds to open the log and find the state, at random offsets."""
    end = one_replica(str(folder)).reader().log_end
    dice = random.Random(SEED)
    took = []
    for _ in range(states):
        offset = dice.randrange(end)
        started = time.perf_counter()
        found = state_at(one_replica(str(folder)), offset, with_hash=with_hash)
        took.append(time.perf_counter() - started)
        assert found.image.offset >= offset
    return took


def command_times(folder: Path, count: int) -> list[float]:
    """Seconds of `logberg audit state`, from exec to its end."""
    end = one_replica(str(folder)).reader().log_end
    dice = random.Random(SEED)
    took = []
    for _ in range(count):
        command = [sys.executable, "-m", "logberg", "audit", "state", str(folder)]
        started = time.perf_counter()
        subprocess.run(
            [*command, "--at", str(dice.randrange(end))], check=True, capture_output=True
        )
        took.append(time.perf_counter() - started)
    return took


def figures(bench: Bench, folder: Path) -> list[Figure]:
    """Measure one log."""
    replica = one_replica(str(folder))
    end = replica.reader().log_end
    count = min(REPLAYED, end // 2)
    middle = end // 2
    rounds = range(bench.rounds)
    floor = Floor("SHA-256 + CRC-32C", digest_rate(folder, min(end, 1_000_000)))
    replayed = "records replayed from the log"
    rates = (
        ("records verified", [verify_rate(folder) for _ in rounds], VERIFIED_A_SECOND),
        (replayed, [replay_rate(folder, middle, count) for _ in rounds], REPLAYED_A_SECOND),
        (
            f"  with the state hash each {HASH_EVERY:,} batches",
            [replay_rate(folder, middle, count, HASH_EVERY) for _ in rounds],
            HASHED_A_SECOND,
        ),
        (
            "  with the state hash of each batch",
            [replay_rate(folder, middle, count // 10, 1) for _ in rounds],
            None,
        ),
    )
    found = [
        Figure("audit_core", what, "/s", tuple(rounds), floor, None if bench.quick else target)
        for what, rounds, target in rates
    ]
    states = bench.count(STATES, 2)
    for what, times in (
        (
            f"state at one of {end:,} offsets, with hash",
            state_times(folder, states, with_hash=True),
        ),
        ("  without hash", state_times(folder, states, with_hash=False)),
        ("  `logberg audit state`, exec to end", command_times(folder, bench.rounds)),
    ):
        note = f"{len(times)} random offsets, the slowest {max(times):.2f} s"
        bench.say(f"{what}: {note}")
        target = None if bench.quick else STATE_S
        found.append(Figure("audit_core", what, "s", tuple(times), None, target, note))
    return found


def run(bench: Bench) -> list[Figure]:
    """Make a log, and measure what the project promises."""
    folder = bench.fresh_folder("audit_core") / "node"
    records = bench.count(RECORDS, 60_000)
    bench.say(f"writing {records:,} records")
    gc.disable()
    write_history(folder, records, partitions=bench.count(PARTITIONS, 1_000))
    gc.enable()
    return figures(bench, folder)


def every_offset(folder: Path, records: int) -> Iterator[int]:
    """Compare the state at each offset with the replay of all batches before it.

    Yields the end of each batch. Raises AssertionError at the first difference.
    """
    write_realistic_history(folder, records=records, seed=SEED, checkpoint_every=500)
    replica = one_replica(str(folder))
    reader = replica.reader()
    image = EMPTY
    for batch in reader.batches():
        header = batch.header
        delta = MetadataDelta(image)
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        image = delta.apply()
        # An offset inside a batch stands for the batch's end, whose state is compared once.
        for offset in range(header.base_offset + 1, header.end_offset):
            assert reader.end_of_batch(offset) == header.end_offset, offset
        found = state_at(replica, header.end_offset, reader=reader)
        assert found.image.state_hash == image.state_hash, f"offset {header.end_offset}"
        assert found.head == batch.hash, f"offset {header.end_offset}"
        yield header.end_offset


def prove(records: int) -> None:
    """Run `every_offset`, saying how far it is."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="logberg-every-offset-") as folder:
        offset = compared = 0
        for compared, offset in enumerate(every_offset(Path(folder), records), 1):
            if compared % 1_000 == 0:
                print(f"{offset:,} offsets", file=sys.stderr, flush=True)
        snapshots = len(list_checkpoints(one_replica(folder).disk))
    print(
        f"at each of {offset:,} offsets ({compared:,} batch ends) the state from {snapshots} "
        f"snapshots has the hash of the fold; {time.monotonic() - started:,.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=Path, metavar="FOLDER")
    parser.add_argument("--records", type=int)
    parser.add_argument("--every-offset", action="store_true")
    arguments = parser.parse_args()
    if arguments.every_offset:
        prove(arguments.records or 100_000)
        return
    with tempfile.TemporaryDirectory(prefix="logberg-audit-core-") as scratch:
        bench = Bench(Path(scratch), quick=False, verbose=True)
        folder = arguments.history
        if folder is None:
            folder = Path(scratch) / "node"
            write_history(folder, arguments.records or RECORDS, partitions=PARTITIONS)
        for figure in figures(bench, folder):
            spread = f"{min(figure.rounds):,.2f} to {max(figure.rounds):,.2f}"
            line = f"{figure.what:<58} {statistics.median(figure.rounds):>12,.2f}{figure.unit}"
            floor = f"  {figure.floor.what}: {figure.floor.value:,.0f}/s" if figure.floor else ""
            print(f"{line}   {spread}{floor}  {figure.note}")


if __name__ == "__main__":
    main()
