"""Draws who was in sync and who led, while the nodes of a replicated service end and come back.

    python -m benchmarks.isr_picture [--picture FILE] [--folder DIR]

It starts `logberg up` with the defaults and three nodes of `examples/replicated_kv` as processes.
While two clients write, it restarts the nodes one after another (SIGTERM), kills them (SIGKILL),
and stops two of them for longer than a session (SIGSTOP). After each step it waits until every
partition has a leader and a full ISR.

Rule: everything in the picture is from the metadata log of that run, except the times of the steps.
It prints what it found, reads back every acknowledged value, and exits with 1 if one is lost or an
ISR was not full within 30 s.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp

import logberg as lb
from audit.places.replicas import open_replicas
from audit.reading.replay import Fold
from benchmarks.isr_picture.drawing import Held, Step, drawing
from ledger.chain import LogMark
from logberg.local.ports import free_port_base
from metadata.image import EMPTY
from metadata.partition_key import PartitionKey

NODES = (1, 2, 3)
PARTITIONS = 4
WRITERS = 2
FULL_WITHIN_S = 30.0
STOPPED_S = 12.0
"""Longer than a session of 9 s."""
TOPIC = "kv"


class Result(NamedTuple):
    """What a run came to."""

    steps: list[Step]
    acknowledged: int
    lost: int
    longest_gap_s: float
    """The longest time in which no write was acknowledged."""
    ended: float
    """In seconds since 1970."""


class Processes:
    """The nodes of the service."""

    def __init__(self, folder: Path, base: int) -> None:
        self._folder = folder
        self.ports = {n: base + 290 + n for n in NODES}
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, n: int) -> None:
        """Start a node."""
        with (self._folder / f"kv-{n}.output").open("ab") as output:
            arguments = ["-m", "examples.replicated_kv", str(n), str(self.ports[n])]
            self._running[n] = subprocess.Popen(
                [sys.executable, *arguments, str(self._folder)], stdout=output, stderr=output
            )

    async def end(self, n: int, number: int) -> None:
        """End a node, and wait until it has ended."""
        self._running[n].send_signal(number)
        await asyncio.to_thread(self._running[n].wait, 60.0)

    def signal(self, n: int, number: int) -> None:
        """Send a signal to a node."""
        self._running[n].send_signal(number)

    def kill_all(self) -> None:
        """End all of them, whatever they do."""
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(30.0)


class Writers:
    """Clients that write new keys, each until it is acknowledged."""

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports
        self.keys: list[str] = []
        self.at: list[float] = []
        self._ended = False
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Let them write."""
        self._tasks = [asyncio.create_task(self._write(number)) for number in range(WRITERS)]

    async def end(self) -> None:
        """Wait for the last acknowledgements."""
        self._ended = True
        await asyncio.gather(*self._tasks)

    async def read_back(self) -> int:
        """Return how many acknowledged keys can't be read."""
        lost = 0
        async with aiohttp.ClientSession() as session:
            for key in self.keys:
                async with session.get(f"http://127.0.0.1:{self._ports[1]}/{key}") as answer:
                    lost += answer.status != 200 or await answer.text() != f"value of {key}"
        return lost

    async def _write(self, number: int) -> None:
        timeout = aiohttp.ClientTimeout(total=12.0)
        attempt = count = 0
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while not self._ended:
                count += 1
                key, done = f"{number}-{count}", False
                while not done:
                    attempt += 1
                    port = self._ports[NODES[attempt % len(NODES)]]
                    done = await _put(session, f"http://127.0.0.1:{port}/{key}", f"value of {key}")
                self.keys.append(key)
                self.at.append(time.time())
                await asyncio.sleep(0.01)


async def _put(session: aiohttp.ClientSession, url: str, value: str) -> bool:
    try:
        async with session.put(url, data=value) as answer:
            if answer.status == 200:
                return True
    except (aiohttp.ClientError, TimeoutError):
        pass
    await asyncio.sleep(0.1)
    return False


async def until_registered(client: lb.LogbergClient, n: int, old_epoch: int) -> None:
    """Wait until another process of a broker is online than that of the old epoch."""
    while True:
        broker = await client.broker(n)
        if broker.broker_epoch > old_epoch and broker.state == "online":
            return
        await asyncio.sleep(0.05)


async def until_full(client: lb.LogbergClient) -> float:
    """Wait until every partition has a leader and a full ISR; return the seconds that it took."""
    began = time.monotonic()
    while True:
        try:
            (topic,) = (await client.topic(TOPIC)).topics
        except lb.ClientError:
            pass
        else:
            if all(len(p.isr) == len(NODES) and p.leader in NODES for p in topic.partitions):
                return time.monotonic() - began
        if time.monotonic() - began > 4 * FULL_WITHIN_S:
            raise RuntimeError("the ISRs do not grow again")
        await asyncio.sleep(0.05)


async def run(folder: Path, base: int) -> Result:
    """Run the whole scenario on a cluster that has started."""
    cluster = lb.find_local_cluster(folder)
    nodes = Processes(folder, base)
    steps: list[Step] = []
    async with lb.LogbergClient(cluster.controllers, cluster.access) as client:
        try:
            for n in NODES:
                nodes.start(n)
            while sum(b.state == "online" for b in (await client.brokers()).brokers) < len(NODES):  # noqa: ASYNC110 - what is waited for is in other processes
                await asyncio.sleep(0.1)
            await client.create_topics(lb.NewTopic(TOPIC, PARTITIONS, len(NODES)))
            writers = Writers(nodes.ports)
            writers.begin()
            await until_full(client)
            await asyncio.sleep(2.0)

            async def step(label: str, n: int, number: int) -> None:
                at, epoch = time.time(), (await client.broker(n)).broker_epoch
                if number == signal.SIGSTOP:
                    nodes.signal(n, number)
                    await asyncio.sleep(STOPPED_S)
                    nodes.signal(n, signal.SIGCONT)
                else:
                    await nodes.end(n, number)
                    nodes.start(n)
                    # The log shows the old process as it was until its session ends.
                    await until_registered(client, n, epoch)
                took_s = await until_full(client)
                steps.append(Step(f"{label} {n}", at, took_s))
                await asyncio.sleep(3.0)

            for label, number, which in (
                ("restart", signal.SIGTERM, NODES),
                ("kill", signal.SIGKILL, NODES),
                ("stop", signal.SIGSTOP, NODES[:2]),
            ):
                for n in which:
                    await step(label, n, number)
            await writers.end()
            ended = time.time()
            gaps = [b - a for a, b in zip(writers.at, writers.at[1:], strict=False)]
            return Result(steps, len(writers.keys), await writers.read_back(), max(gaps), ended)
        finally:
            nodes.kill_all()


def held(folder: Path, until: float) -> Iterator[Held]:
    """Yield from the log who was in which ISR, or led, and from when to when."""
    (replica, *_) = open_replicas(str(folder))
    fold = Fold(EMPTY, LogMark.beginning(lb.find_local_cluster(folder).cluster_id))
    now: dict[tuple[int, int], tuple[str, float]] = {}
    for batch in replica.reader().batches():
        fold.take(batch)
        at = batch.header.timestamp_ms / 1000
        image = fold.image
        topic = image.topics.named(TOPIC)
        if topic is None:
            continue
        for number in range(PARTITIONS):
            partition = image.topics.partitions[PartitionKey(topic.topic_id, number)]
            for n in (0, *NODES):
                role = _role(partition.leader, partition.isr, n)
                before, since = now.get((number, n), ("", at))
                if role != before:
                    if before:
                        yield Held(number, n, before, since, at)
                    now[number, n] = (role, at)
    for (number, n), (role, since) in now.items():
        if role:
            yield Held(number, n, role, since, until)


def _role(leader: int, isr: tuple[int, ...], n: int) -> str:
    """Return what a broker is; 0 stands for the whole partition."""
    if n == 0:
        return "no leader" if leader < 0 else ""
    if leader == n:
        return "leads"
    return "in sync" if n in isr else ""


def with_cluster(folder: Path, act: Callable[[int], Result]) -> Result:
    """Run `logberg up` around something."""
    base = free_port_base()
    options = ["--brokers", "0", "--data", str(folder), "--port-base", str(base)]
    with (folder.parent / "up.output").open("wb") as output:
        up = subprocess.Popen(
            [sys.executable, "-m", "logberg", "up", *options], stdout=output, stderr=output
        )
        try:
            deadline = time.monotonic() + 60.0
            while not (folder / "cluster.json").exists():
                if time.monotonic() > deadline or up.poll() is not None:
                    raise RuntimeError(f"the cluster does not start; see {output.name}")
                time.sleep(0.1)
            return act(base)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(60.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", type=Path, default=Path("docs/pictures/isr-over-time.svg"))
    parser.add_argument("--folder", type=Path, help="of the cluster; it is kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch, "cluster")
        result = with_cluster(folder, lambda base: asyncio.run(run(folder, base)))
        spans = sorted(held(folder, result.ended))
    given.picture.write_text(drawing(spans, result.steps), encoding="utf-8")
    for step in result.steps:
        print(f"{step.label:10} every ISR full {step.took_s:4.1f} s after the node was online")
    gaps = [span.end - span.begin for span in spans if span.role == "no leader"]
    print(f"longest time without a leader: {max(gaps, default=0.0):.2f} s ({len(gaps)} times)")
    print(f"longest time without an acknowledged write: {result.longest_gap_s:.1f} s")
    print(f"{result.acknowledged} acknowledged writes, {result.lost} lost; drew {given.picture}")
    slow = [step for step in result.steps if step.took_s > FULL_WITHIN_S]
    return 1 if result.lost or slow else 0


if __name__ == "__main__":
    sys.exit(main())
