"""`make large` measures the operations that are too large for one transaction.

On a cluster of three real controllers, with 300,000 partitions on nine brokers, it loses a broker
with 100,000 replicas, unregisters another one, reassigns 50,000 partitions in one request, and
deletes 10,000 topics in another. Meanwhile heartbeats, registrations and fencings go on
(`large_watch`).

For each it prints how long it took, the leader's processor time, how many records one partition
cost at most, the slices of the leader's loop, how late that loop was, and how long brokers waited.
The lateness of an idle process is shown beside: that of the machine. Exit 1 if a bound is missed.

--partitions N  how many partitions (300000); everything else shrinks with it
--json FILE     write the table to FILE
--folder DIR    folder of the cluster; it is kept
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from audit.places.replicas import one_replica
from benchmarks.http.topics import create
from benchmarks.instruments.cluster import Controllers, cpu_s
from benchmarks.instruments.figures import percentile
from benchmarks.instruments.floors import IdleProcess
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from benchmarks.instruments.slices import read
from benchmarks.large.watch import SESSION_S, Watch, fenced_in, silences
from benchmarks.lateness.stage import Stage
from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.records import PartitionChangeRecord

BROKERS = 9
LOST, UNREGISTERED = 8, 7
"""Places in the list of brokers."""
_AT_MOST_S = 600.0
"""For one operation."""
_WIDE = 1_000
_SMALL = 10
P999_MS, WORST_MS = 20.0, 50.0
"""Of a slice, in processor time."""
BEAT_P99_MS = 100.0
WAIT_MAX_S = 1.0
"""For a registration and a fencing."""


class Row(NamedTuple):
    """One operation."""

    what: str
    seconds: float
    partitions: int
    """That were changed or removed."""
    records_most: int
    """Records about one partition, at most."""
    batches: int
    leader_cpu_s: float
    slice_p999_ms: float
    slice_worst_ms: float
    late_p99_ms: float
    late_worst_ms: float
    idle_p99_ms: float
    idle_worst_ms: float
    """How late an idle process was: the machine."""
    beat_p50_ms: float
    beat_p99_ms: float
    beat_worst_ms: float
    registration_worst_s: float
    fencing_worst_s: float
    samples: tuple[int, int, int]
    """Heartbeats, registrations, fencings."""
    load_average: float
    epoch_changed: bool

    @property
    def missed(self) -> list[str]:
        """The bounds that don't hold."""
        bounds = {
            "slices": self.slice_p999_ms <= P999_MS and self.slice_worst_ms <= WORST_MS,
            "heartbeats": self.beat_p99_ms <= BEAT_P99_MS,
            "registrations": self.registration_worst_s <= WAIT_MAX_S,
            "fencings": self.fencing_worst_s <= WAIT_MAX_S,
            "records": self.records_most <= 1,
            "another epoch": not self.epoch_changed,
        }
        return [name for name, holds in bounds.items() if not holds]


class Sizes(NamedTuple):
    """How large everything is."""

    partitions: int

    @property
    def small(self) -> int:
        """Topics of ten partitions."""
        return self.partitions // 3 // _SMALL

    @property
    def wide(self) -> int:
        """Topics of a thousand partitions."""
        return max(1, (self.partitions - self.small * _SMALL) // _WIDE)

    @property
    def reassigned(self) -> int:
        """Partitions."""
        return self.partitions // 6


Operation = Callable[[Stage, Watch, Sizes], Awaitable[float]]
"""Carries it out, and returns when it began, in `time.time()`."""


async def lose(on: Stage, watch: Watch, _sizes: Sizes) -> float:
    """A broker is silent until it is fenced. It began when the session ended."""
    broker_id = on.brokers.brokers[LOST].broker_id
    watch.silent.add(LOST)
    silent = time.time()
    for _ in on.going_on():
        if (await on.json(f"/v1/brokers/{broker_id}"))["broker"]["fenced"]:
            break
        await asyncio.sleep(0.1)
    return silent + SESSION_S


async def unregister(on: Stage, watch: Watch, _sizes: Sizes) -> float:
    """A broker that holds replicas and is online is forgotten."""
    watch.silent.add(UNREGISTERED)
    began = time.time()
    broker_id = on.brokers.brokers[UNREGISTERED].broker_id
    status, answer = await on.change("DELETE", f"/v1/brokers/{broker_id}?force=true")
    assert status == 200, answer
    return began


async def reassign(on: Stage, _watch: Watch, sizes: Sizes) -> float:
    """Each partition gets another replica, all of them in one request."""
    there = [b.broker_id for n, b in enumerate(on.brokers.brokers) if n < UNREGISTERED]
    wanted: list[dict[str, Any]] = []
    for number in range(sizes.wide):
        topic = (await on.json(f"/v1/topics/wide-{number}"))["topics"][0]
        for partition in topic["partitions"]:
            held = [b for b in partition["replicas"] if b in there]
            other = next(b for b in there[number % 3 :] + there if b not in held)
            row = {"partition": partition["partition"], "replicas": [*held[:2], other]}
            wanted.append({"topic": topic["name"], **row})
        if len(wanted) >= sizes.reassigned:
            break
    await asyncio.sleep(1.0)  # Reading the topics is over.
    began = time.time()
    some = wanted[: sizes.reassigned]
    status, answer = await on.change("POST", "/v1/reassignments", {"partitions": some})
    assert status == 200, answer
    errors = [row["error"] for row in answer["partitions"] if row.get("error")]
    assert not errors, errors[0]
    assert len(answer["partitions"]) == len(some)
    return began


async def delete(on: Stage, _watch: Watch, sizes: Sizes) -> float:
    """Very many topics go in one request."""
    names = [f"small-{number}" for number in range(sizes.small)]
    began = time.time()
    status, answer = await on.change("DELETE", "/v1/topics", {"names": names})
    assert status == 200, answer
    assert not any(topic["error"] for topic in answer["topics"])
    return began


OPERATIONS: tuple[tuple[str, Operation, str], ...] = (
    ("a broker is lost", lose, "FenceBroker"),
    ("a broker is unregistered", unregister, "UnregisterBroker"),
    ("partitions are reassigned", reassign, "AlterPartitionReassignments"),
    ("topics are deleted", delete, "DeleteTopics"),
)
"""And the operation that the envelopes of its batches name."""


@asynccontextmanager
async def large_stage(folder: Path, sizes: Sizes) -> AsyncIterator[tuple[Stage, Watch]]:
    """A cluster with all partitions, its brokers online and heartbeating."""
    settings = {"session_ms": int(SESSION_S * 1000), "partition_mutations_per_s": 0}
    async with Controllers(folder, **settings) as controllers:
        port = controllers.ports[await controllers.active()]
        async with SimulatedBrokers(port, BROKERS) as brokers:
            on = Stage(controllers, brokers)
            on.seconds = _AT_MOST_S
            await on.find_leader()
            watch = Watch(on)
            try:
                beating = asyncio.create_task(_beat_only(brokers))
                await create(controllers, _bodies(sizes))
                beating.cancel()
                yield on, watch
            finally:
                await on.session.close()


async def _beat_only(brokers: SimulatedBrokers) -> None:
    while True:
        await asyncio.sleep(1.0)
        await brokers.beat_once()


def _bodies(sizes: Sizes) -> Iterator[bytes]:
    rows = [("wide", n, _WIDE) for n in range(sizes.wide)]
    rows += [("small", n, _SMALL) for n in range(sizes.small)]
    while rows:
        together = 2 if rows[0][2] == _WIDE else 200
        some, rows = rows[:together], rows[together:]
        yield msgspec.json.encode(
            {
                "topics": [
                    {"name": f"{kind}-{n}", "numPartitions": count, "replicationFactor": 3}
                    for kind, n, count in some
                ]
            }
        )


async def measure(
    on: Stage, watch: Watch, sizes: Sizes, what: str, operation: Operation, named: str
) -> Row:
    """Carry out one operation while everything else goes on."""
    epoch = await on.find_leader()
    child = on.controllers.children[on.leader]
    with watch.running():
        await watch.settle()
        offset = (await on.json("/v1/status"))["offset"]
        before, used = await read(on.controllers), cpu_s(child.pid)
        with IdleProcess() as idle:
            began = await operation(on, watch, sizes)
            ended = time.time()
        used = cpu_s(child.pid) - used
        cost = await read(on.controllers)
        load_average = os.getloadavg()[0]
        # The brokers whose sessions ended meanwhile are fenced by then, unless they wait too long.
        await asyncio.sleep(2 * WAIT_MAX_S)
    batches = list(_log(on, offset))
    mine = [b for b in batches if b.header.provenance.operation == named]
    if operation is lose:
        lost = on.brokers.brokers[LOST].broker_id
        mine = [b for b in mine if len(decode_records(b.records)) > 1 or lost in fenced_in(b)]
    records = Counter(
        (record.topic_id, record.partition_id)
        for batch in mine
        for record in decode_records(batch.records)
        if isinstance(record, PartitionChangeRecord)
    )
    waits = watch.waits(began, ended, silences(batches))
    number = list(on.controllers.ports).index(on.leader)
    slices = cost.slices[number].since(before.slices[number])
    late = cost.late[number].since(before.late[number])
    return Row(
        what,
        ended - began,
        len(records) or sizes.small * _SMALL,
        max(records.values(), default=0),
        len(mine),
        used,
        slices.ms(0.999),
        slices.worst_ms,
        late.ms(0.99),
        late.worst_ms,
        percentile(idle.late_ms, 0.99),
        max(idle.late_ms, default=0.0),
        waits.beat_ms(0.5),
        waits.beat_ms(0.99),
        waits.beat_ms(1.0),
        max(waits.registrations, default=0.0),
        max(waits.fencings, default=0.0),
        (len(waits.beats), len(waits.registrations), len(waits.fencings)),
        load_average,
        await on.find_leader() != epoch,
    )


def _log(on: Stage, offset: int) -> Iterator[Batch]:
    """What the leader has written since."""
    folder = on.controllers.folder / f"controller-{on.leader}"
    return one_replica(str(folder)).reader().batches(offset)


async def _run(folder: Path, sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    started = time.monotonic()
    async with large_stage(folder, sizes) as (on, watch):
        status = await on.json("/v1/status")
        print(
            f"{status['partitions']:,} partitions of {status['topics']:,} topics on {BROKERS} "
            f"brokers, made in {time.monotonic() - started:.0f} s\n",
            flush=True,
        )
        for what, operation, named in OPERATIONS:
            row = await measure(on, watch, sizes, what, operation, named)
            rows.append(row)
            print(_lines(row), flush=True)
    return rows


def _lines(row: Row) -> str:
    missed = f"\n  MISSED: {', '.join(row.missed)}" if row.missed else ""
    beats, registrations, fenced = row.samples
    return (
        f"{row.what}: {row.partitions:,} partitions in {row.seconds:.1f} s and {row.batches} "
        f"batches, at most {row.records_most} records a partition; leader {row.leader_cpu_s:.1f} s "
        f"of processor time; load average {row.load_average:.1f}\n"
        f"  slices of the leader's loop: p99.9 {row.slice_p999_ms:.0f}, worst "
        f"{row.slice_worst_ms:.0f} ms of processor time\n"
        f"  loop late: p99 {row.late_p99_ms:.1f}, worst {row.late_worst_ms:.0f} ms; an idle "
        f"process: {row.idle_p99_ms:.1f}, {row.idle_worst_ms:.0f} ms\n"
        f"  heartbeats: p50 {row.beat_p50_ms:.1f}, p99 {row.beat_p99_ms:.1f}, worst "
        f"{row.beat_worst_ms:.0f} ms of {beats}; registration: {row.registration_worst_s:.2f} s at "
        f"worst of {registrations}; fencing: {row.fencing_worst_s:.2f} s at worst of {fenced}"
        f"{missed}"
    )


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large", description="Measure operations that take many rounds."
    )
    parser.add_argument("--partitions", type=int, default=300_000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logberg-large-") as temporary:
        if arguments.folder is not None:
            arguments.folder.mkdir(parents=True, exist_ok=True)
        folder = arguments.folder or Path(temporary)
        rows = asyncio.run(_run(folder, Sizes(arguments.partitions)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([row._asdict() for row in rows], indent=1))
    return 1 if any(row.missed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
