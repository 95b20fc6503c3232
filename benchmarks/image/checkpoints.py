"""Measures checkpoints in both formats: `python -m benchmarks.image.checkpoints [--partitions N]`.

It makes an image of N partitions with three replicas each, on 100 brokers with a directory each,
and writes it in format 1 and in format 2, in turns. Then processes of their own load each file as
a controller does at a start: read, checksums, digest, image, state hash. It prints bytes a
partition, seconds, the longest step between two pauses in processor time, and the most memory that
a process had.

--partitions N  how many (1000000), 100 a topic
--rounds N      how often each is written and loaded (3)
--folder DIR    where the files are; they are kept
"""

import argparse
import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from metadata.features import COLUMNS_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage, image_from_records
from metadata.records import FeatureLevelRecord, PartitionRecord, Record, TopicRecord
from metadata.state_hash import StateHash
from runtime.disk.real import RealDisk
from snapshots.checkpoint import FOLDER, CheckpointHeader, CheckpointId
from snapshots.loading import image_of
from snapshots.packing import image_frames
from snapshots.store import load_steps, without_progress
from snapshots.writing import append_checkpoint

BROKERS = 100
A_TOPIC = 100
ID = CheckpointId(1 << 30, 7)


def records(partitions: int) -> Iterator[Record]:
    """Yield the records of the image, in canonical order."""
    dice = random.Random(1)
    directories = [sha256(b"directory %d" % broker).digest()[:16] for broker in range(BROKERS)]
    ids = sorted(sha256(b"topic %d" % n).digest()[:16] for n in range(-(-partitions // A_TOPIC)))
    yield FeatureLevelRecord(LOGBERG_VERSION, COLUMNS_FROM)
    for number, topic_id in enumerate(ids):
        yield TopicRecord(f"topic-{number:06}", topic_id)
        for partition in range(min(A_TOPIC, partitions - number * A_TOPIC)):
            replicas = tuple(dice.sample(range(BROKERS), 3))
            places = tuple(directories[broker] for broker in replicas)
            epoch = dice.randrange(50)
            yield PartitionRecord(
                partition,
                topic_id,
                replicas,
                replicas if dice.random() < 0.95 else replicas[:2],
                (),
                (),
                replicas[0],
                epoch,
                epoch + dice.randrange(300),
                0,
                places,
            )


def write(image: MetadataImage, version: int, folder: Path) -> tuple[float, float]:
    """Write the file; return processor seconds, and the longest step in ms."""
    state_hash = (image.state_hash or StateHash()).encode()
    header = CheckpointHeader(
        "benchmark", *ID, image.timestamp_ms, bytes(32), state_hash, format=version
    )
    path = folder / FOLDER / ID.name
    path.parent.mkdir(parents=True, exist_ok=True)
    began, longest = time.process_time(), 0.0
    with path.open("wb") as file:
        step = began
        for _ in append_checkpoint(file.write, header, image_frames(image, version)):
            now = time.process_time()
            longest, step = max(longest, now - step), now
    return time.process_time() - began, longest * 1000


def load(folder: Path) -> dict[str, float]:
    """Load the file in this process."""
    gc.disable()
    began, longest = time.process_time(), 0.0
    wall = time.perf_counter()
    steps = without_progress(load_steps(RealDisk(folder), "benchmark", ID))
    found: list[Any] = []

    def work() -> Iterator[None]:
        loaded = yield from steps
        found.append(loaded.header)
        found.append((yield from image_of(loaded)))

    step = began
    for _ in work():
        now = time.process_time()
        longest, step = max(longest, now - step), now
    header, image = found
    assert image.state_hash.encode() == header.state_hash
    return {
        "cpu_s": time.process_time() - began,
        "wall_s": time.perf_counter() - wall,
        "longest_ms": longest * 1000,
        "most_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "partitions": len(image.topics.partitions),
    }


def main() -> None:
    """Measure, or load one file."""
    parser = argparse.ArgumentParser(description="Measure checkpoints in both formats.")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.load is not None:
        print(json.dumps(load(asked.load)))
        return
    gc.disable()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="logberg-checkpoints-"))
    image = image_from_records(records(asked.partitions), ID.offset, ID.epoch, 1)
    seen: dict[int, dict[str, list[float]]] = {version: {} for version in (1, 2)}
    for _ in range(asked.rounds):
        for version, figures in seen.items():
            here = folder / f"format-{version}"
            written, longest = write(image, version, here)
            size = (here / FOLDER / ID.name).stat().st_size / asked.partitions
            found = {"bytes a partition": size, "write cpu s": written, "write step ms": longest}
            command = [sys.executable, "-m", "benchmarks.image.checkpoints", "--load", str(here)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            loaded = json.loads(done.stdout)
            assert loaded.pop("partitions") == asked.partitions
            for name, value in {**found, **loaded}.items():
                figures.setdefault(name, []).append(value)
    for name in seen[1]:
        before, after = (statistics.median(seen[version][name]) for version in (1, 2))
        print(f"{name:20} format 1 {before:9.2f}   format 2 {after:9.2f}   {before / after:5.1f}x")


if __name__ == "__main__":
    main()
