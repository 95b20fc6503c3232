"""`python -m benchmarks.scale.costs` measures the costs from which `benchmarks.scale` works.

One process measures the controller's own code: no network, no syncs. It writes the values into
`costs.csv`, with the build; the costs that it can't measure keep value and source. It takes a
minute on a quiet machine.
"""

import gc
import statistics
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.costs import Stage, each_us
from benchmarks.image import checkpoints, replay
from benchmarks.scale.needs import BROKERS, costs_table, read_costs, write_costs
from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataImage, image_from_records
from metadata.records import PartitionChangeRecord
from metadata.steps import finished
from runtime.disk.real import RealDisk
from snapshots.loading import image_of
from snapshots.store import load_steps, without_progress

SAMPLE = 100_000
"""Partitions of the images that are measured, 100 for each broker."""
STAGE_BROKERS = 1_000
EACH = 100
FORMAT = 2


def requests() -> dict[str, float]:
    """Return µs of processor time, and bytes of log."""
    stage = Stage()
    stage.register(STAGE_BROKERS)
    platter = stage.cluster.platters[1]

    def log_bytes() -> int:
        return sum(len(i.content) for name, i in platter.names.items() if name.startswith("log/"))

    with _growth(log_bytes) as registered:
        registration_s = stage.register(EACH)
    with _growth(log_bytes) as created:
        for _ in range(EACH):
            stage.create()
    return {
        "heartbeat, without HTTP": each_us(stage.heartbeat),
        "registration": registration_s / EACH * 1e6,
        "registration, in the log": registered[0],
        "lone change": each_us(stage.create),
        "lone change, in the log": created[0],
    }


@contextmanager
def _growth(size: Callable[[], int]) -> Iterator[list[float]]:
    grown: list[float] = []
    before = size()
    yield grown
    grown.append((size() - before) / EACH)


def records() -> dict[str, float]:
    """Return bytes of a broker's loss for each partition, and µs of a change's replay."""
    # A broker leaves the ISRs of its 300 partitions, a third of which it leads.
    lost = [
        PartitionChangeRecord(n % 100, replay.topic_id(n // 100), (70_000 + n, 80_000 + n), leader)
        for n, leader in zip(range(300), [-2, -2, 70_000] * 100, strict=True)
    ]
    created = list(replay.creation(SAMPLE))
    image = replay.replay_in_one(EMPTY, replay.batches(created, 0), True)
    changes = list(replay.changes(image, SAMPLE // 2))
    log = replay.batches(changes, image.offset)
    took = _median_s(lambda: replay.replay_in_one(image, log, True))
    return {
        "change in bulk, in the log": len(encode_records(lost)) / len(lost),
        "replay of a change": took / len(changes) * 1e6,
    }


def images() -> dict[str, float]:
    """Return bytes a partition in memory and on disk, and µs to write and load it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # As many directories in a block of the file as with all brokers.
        checkpoints.write(_image(BROKERS), FORMAT, folder)
        size = next(folder.rglob("*.checkpoint")).stat().st_size
        image = _image(SAMPLE // 100)
        write_s = _median_s(lambda: checkpoints.write(image, FORMAT, folder))
        load_s = statistics.median(checkpoints.load(folder)["cpu_s"] for _ in range(3))
        del image
        gc.collect()
        tracemalloc.start()
        image = _loaded(folder)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    return {
        "memory": held / SAMPLE,
        "checkpoint": size / SAMPLE,
        "write": write_s / SAMPLE * 1e6,
        "load": load_s / SAMPLE * 1e6,
    }


def _image(brokers: int) -> MetadataImage:
    checkpoints.BROKERS = brokers
    return image_from_records(checkpoints.records(SAMPLE), 1 << 30, 7, 0)


def _loaded(folder: Path) -> MetadataImage:
    steps = load_steps(RealDisk(folder), "benchmark", checkpoints.ID)
    return finished(image_of(finished(without_progress(steps))))


def _median_s(work: Callable[[], Any]) -> float:
    rounds = []
    for _ in range(3):
        began = time.process_time()
        work()
        rounds.append(time.process_time() - began)
    return statistics.median(rounds)


def main() -> None:
    """Measure, write and print."""
    build = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    costs = read_costs()
    for name, value in {**requests(), **records(), **images()}.items():
        source = f"`python -m benchmarks.scale.costs`, build {build}"
        costs[name] = costs[name]._replace(value=value, source=source)
    write_costs(costs.values())
    print(costs_table())


if __name__ == "__main__":
    main()
