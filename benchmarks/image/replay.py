"""Measures replay: `python -m benchmarks.image.replay [--partitions N] [--changes N]`.

Prints for one core: decoding and replaying a log as a restart does (many batches in one delta) and
as a standby does (a delta for each batch), with and without state hash; the time of a single change
in a large image; bytes per partition. The floors, dict inserts and SHA-256, are measured in the
same run, so that a noisy machine can be seen. `run` is the short form, for `python -m benchmarks`.
"""

import argparse
import gc
import hashlib
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.figures import Figure, Floor
from metadata.codec import decode_records, encode_records
from metadata.image import (
    EMPTY,
    MetadataDelta,
    MetadataImage,
    hash_from_scratch,
    image_from_records,
    image_to_records,
)
from metadata.records import (
    NO_LEADER_CHANGE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)

BROKERS = 30
PARTITIONS_PER_TOPIC = 50
RECORDS_PER_BATCH = 50
SEED = 2


def topic_id(number: int) -> bytes:
    return hashlib.sha256(b"topic %d" % number).digest()[:16]


def creation(partitions: int) -> Iterator[Record]:
    """Brokers, topics, partitions with three replicas each."""
    end_point = (BrokerEndpoint("PLAINTEXT", "broker.example", 9092, 0),)
    for broker in range(BROKERS):
        yield RegisterBrokerRecord(broker, bytes(16), broker, end_point, (), f"zone-{broker % 3}")
        yield BrokerRegistrationChangeRecord(broker, broker, fenced=-1)
    for number in range(partitions):
        topic = topic_id(number // PARTITIONS_PER_TOPIC)
        partition = number % PARTITIONS_PER_TOPIC
        if partition == 0:
            yield TopicRecord(f"topic-{number // PARTITIONS_PER_TOPIC}", topic)
        replicas = tuple(
            (number + step * (1 + number // BROKERS % 7)) % BROKERS for step in range(3)
        )
        directories = tuple(bytes([replica]) * 16 for replica in replicas)
        yield PartitionRecord(
            partition, topic, replicas, replicas, (), (), replicas[0], 0, 0, directories=directories
        )


def changes(image: MetadataImage, count: int) -> Iterator[Record]:
    """What a busy cluster writes: mostly ISRs and leaders, some fencing, some configs."""
    dice = random.Random(SEED)
    keys = list(image.topics.partitions)
    for number in range(count):
        topic, partition = keys[dice.randrange(len(keys))]
        replicas = image.topics.partitions[topic, partition].replicas
        kind = dice.random()
        if kind < 0.01:
            broker = dice.randrange(BROKERS)
            yield BrokerRegistrationChangeRecord(broker, broker, fenced=dice.choice((-1, 1)))
        elif kind < 0.03:
            yield ConfigRecord(2, f"topic-{dice.randrange(100)}", "retention.ms", str(number))
        else:
            isr = tuple(dice.sample(replicas, dice.randint(1, 3)))
            leader = isr[0] if kind < 0.6 else NO_LEADER_CHANGE
            yield PartitionChangeRecord(partition, topic, isr, leader)


def batches(records: Sequence[Record], base: int) -> list[tuple[int, int, bytes]]:
    """Cut records into encoded batches: (base offset, end offset, bytes)."""
    found = []
    for start in range(0, len(records), RECORDS_PER_BATCH):
        some = records[start : start + RECORDS_PER_BATCH]
        found.append((base + start, base + start + len(some), encode_records(some)))
    return found


def replay_in_one(
    image: MetadataImage, log: list[tuple[int, int, bytes]], with_state_hash: bool
) -> MetadataImage:
    """As a restart does."""
    delta = MetadataDelta(image, with_state_hash=with_state_hash)
    for base, end, data in log:
        delta.replay_all(decode_records(data), base)
        delta.finish_batch(end, 1, end)
    return delta.apply()


def replay_each(
    image: MetadataImage, log: list[tuple[int, int, bytes]], with_state_hash: bool
) -> MetadataImage:
    """As a standby does."""
    for base, end, data in log:
        delta = MetadataDelta(image, with_state_hash=with_state_hash)
        delta.replay_all(decode_records(data), base)
        delta.finish_batch(end, 1, end)
        image = delta.apply()
    return image


def measured(work: Callable[[], object], rounds: int, *, collecting: bool = True) -> list[float]:
    """Run so many times; return the processor's time of this process for each.

    A restart loads with Python's collector off (`runtime.loop.collection`): not `collecting`.
    """
    took = []
    for _ in range(rounds):
        gc.collect()
        gc.freeze()
        if not collecting:
            gc.disable()
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
        gc.enable()
    return took


def timed(work: Callable[[], object], count: int, what: str, *, collecting: bool = True) -> None:
    """Run five times, print the median and the best."""
    took = measured(work, 5, collecting=collecting)
    best, median = min(took), statistics.median(took)
    print(
        f"{what:<58} {count / median:>12,.0f}/s {median / count * 1e6:>9.2f} µs"
        f"   best {count / best:>12,.0f}/s"
    )


def lone_changes(image: MetadataImage, with_state_hash: bool) -> None:
    """One PartitionChange, one delta, one image."""
    topic = topic_id(0)

    def work() -> None:
        now = image
        for number in range(2000):
            delta = MetadataDelta(now, with_state_hash=with_state_hash)
            record = PartitionChangeRecord(number % PARTITIONS_PER_TOPIC, topic, (0,), 0)
            delta.replay(record, now.offset)
            delta.finish_batch(now.offset + 1, 1, 1)
            now = delta.apply()

    said = "with state hash" if with_state_hash else "without state hash"
    timed(work, 2000, f"a lone change, delta to image, {said}")


def floors() -> None:
    """What the machine can do at all."""
    keys = [(b"0123456789abcdef", number) for number in range(200_000)]
    timed(lambda: dict.fromkeys(keys), len(keys), "floor: dict inserts")
    data = bytes(90)

    def hashes() -> None:
        for _ in range(200_000):
            hashlib.sha256(data).digest()

    timed(hashes, 200_000, "floor: SHA-256 of 90 bytes")
    objects = {(bytes(16), number): (number, number + 1) for number in range(100_000)}
    scattered = random.Random(SEED).sample(sorted(objects), len(objects))

    def reads() -> None:
        for key in scattered:
            objects[key][0]

    timed(reads, len(scattered), "floor: scattered reads of 100,000 objects (memory)")


def largest_batch(image: MetadataImage) -> None:
    """What a batch of 1 MiB holds up: each stage, and the longest step of the last."""
    keys = random.Random(SEED).sample(list(image.topics.partitions), 30_000)
    records = []
    for topic, partition in keys:
        replicas = image.topics.partitions[topic, partition].replicas
        records.append(PartitionChangeRecord(partition, topic, replicas[:2], replicas[1]))
    data = encode_records(records)
    timed(lambda: decode_records(data), 1, f"a batch of {len(data):,} bytes: decode")

    def replayed() -> MetadataDelta:
        delta = MetadataDelta(image)
        delta.replay_all(records, image.offset)
        delta.finish_batch(image.offset + len(records), 1, 1)
        return delta

    timed(replayed, 1, "  replay, which callers slice")
    deltas = [replayed() for _ in range(5)]
    timed(lambda: deltas.pop().apply(), 1, "  delta to image, with state hash, at once")
    longest = []
    for _ in range(5):
        steps = replayed().apply_in_steps()
        gc.collect()
        gc.freeze()
        times = [time.process_time()]
        times += [time.process_time() for _ in steps]
        times.append(time.process_time())
        longest.append(max(after - before for before, after in pairwise(times)))
    print(
        f"{'  the same in steps: the longest, median of five':<58} "
        f"{statistics.median(longest) * 1e3:>12,.1f} ms"
    )


def memory(records: list[Record]) -> None:
    """Bytes that the image holds for each partition, with all indexes."""
    log = batches(records, 0)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    image = replay_in_one(EMPTY, log, False)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"{'memory':<58} {held / len(image.topics.partitions):>12,.0f} bytes a partition")


def run(bench: Bench) -> list[Figure]:
    """Measure what the project promises, and what a controller or an agent does all day."""
    created = list(creation(bench.count(100_000, 10_000)))
    start = batches(created, 0)
    image = replay_in_one(EMPTY, start, True)
    changed = list(changes(image, bench.count(100_000, 10_000)))
    log = batches(changed, image.offset)
    inserts = measured(lambda: dict.fromkeys([(bytes(16), n) for n in range(200_000)]), 5)
    floor = Floor("dict inserts", 200_000 / statistics.median(inserts))
    figures = []
    for what, work, count, collecting, target in (
        ("created, as a restart", lambda: replay_in_one(EMPTY, start, False), created, False, True),
        ("changed, as a restart", lambda: replay_in_one(image, log, False), changed, False, True),
        (
            "  the same with state hash",
            lambda: replay_in_one(image, log, True),
            changed,
            False,
            False,
        ),
        (
            "changed, each batch an image",
            lambda: replay_each(image, log, True),
            changed,
            True,
            False,
        ),
    ):
        rates = [len(count) / took for took in measured(work, bench.rounds, collecting=collecting)]
        bench.say(f"{what}: " + ", ".join(f"{rate:,.0f}/s" for rate in rates))
        name = what if what.startswith(" ") else f"records {what}"
        wanted = 300_000.0 if target and not bench.quick else None
        figures.append(Figure("replay", name, "/s", tuple(rates), floor, wanted))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=200_000)
    arguments = parser.parse_args()
    floors()
    created = list(creation(arguments.partitions))
    start = batches(created, 0)
    image = replay_in_one(EMPTY, start, True)
    changed = list(changes(image, arguments.changes))
    log = batches(changed, image.offset)
    print(f"{len(created):,} records create, {len(changed):,} change; {RECORDS_PER_BATCH} a batch")
    timed(lambda: [decode_records(b) for _, _, b in log], len(changed), "decode changes, no replay")
    for hashed in (False, True):
        said = "with state hash" if hashed else "without state hash"
        timed(
            partial(replay_in_one, EMPTY, start, hashed),
            len(created),
            f"create, {said}",
            collecting=False,
        )
        timed(
            partial(replay_in_one, image, log, hashed),
            len(changed),
            f"change, one delta, {said}",
            collecting=False,
        )
        timed(
            partial(replay_each, image, log, hashed),
            len(changed),
            f"change, a delta for each batch, {said}",
        )
    lone_changes(image, False)
    lone_changes(image, True)
    snapshot = list(image_to_records(image))
    timed(lambda: list(image_to_records(image)), len(snapshot), "image to records")
    timed(
        lambda: image_from_records(snapshot, image.offset, 1, 1), len(snapshot), "load, with hash"
    )
    timed(lambda: hash_from_scratch(image), len(snapshot), "state hash from scratch")
    largest_batch(image)
    memory(created)


if __name__ == "__main__":
    main()
