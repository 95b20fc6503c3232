"""Measures a controller's restart with 100,000 records, with and without a checkpoint.

The time is from exec until `GET /health/ready` says ready and the image holds all records of the
log. The process is new, and its files are not in the page cache. The other two controllers run on.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.http.topics import create, requests
from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers, ask
from benchmarks.instruments.figures import Figure, Floor
from benchmarks.instruments.http_pipe import NoAnswerError, Pipe
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

RECORDS = 100_000
_PARTITIONS = 8
_LIMIT_S = 30.0
_TARGETS = {"without": 2.0, "with": 1.0}
# Brokers that are silent while topics are created shall not be fenced.
_WITHOUT = {"checkpoint_bytes": 1 << 40, "session_ms": 300_000}
_WITH = {"checkpoint_bytes": 1, "session_ms": 300_000}


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    folder = bench.fresh_folder("restart")
    seen: dict[str, list[float]] = {"without": [], "with": []}
    controllers = Controllers(folder, **_WITHOUT)
    async with controllers:
        end = await _fill(bench, controllers)
        n = _standby(await controllers.active(), controllers)
        for _ in range(bench.rounds):
            seen["without"].append(await _restart(bench, controllers, n))
        # From here on each batch is followed by a checkpoint: one batch is written.
        controllers.configure(**_WITH)
        await asyncio.to_thread(controllers.stop)
        for child in controllers.children.values():
            child.start()
        await _checkpoint(controllers, end)
        n = _standby(await controllers.active(), controllers)
        for _ in range(bench.rounds):
            seen["with"].append(await _restart(bench, controllers, n))
    imports = _imports(bench)
    interpreter = _interpreter(bench)
    floor = Floor("imports", sum(imports) / len(imports))
    return [
        Figure(
            "restart",
            f"{bench.count(RECORDS, RECORDS // 20):,} records, {kind} a checkpoint: exec to ready",
            "s",
            tuple(seen[kind]),
            floor,
            _TARGETS[kind] if not bench.quick else None,
        )
        for kind in seen
    ] + [
        Figure("restart", "  its imports alone", "s", tuple(imports), Floor("python", interpreter))
    ]


async def _fill(bench: Bench, controllers: Controllers) -> int:
    """Topics of 8 partitions, ten a request: batches of some 90 records. Returns the log's end."""
    active = await controllers.active()
    wanted = bench.count(RECORDS, RECORDS // 20)
    topics = -(-wanted // (_PARTITIONS + 1))
    async with SimulatedBrokers(controllers.ports[active], 6):
        await create(controllers, requests("r", topics, _PARTITIONS, 10))
    status = await controllers.status(await controllers.active())
    bench.say(f"log end {status['logEnd']:,}, {status['partitions']:,} partitions")
    end: int = status["logEnd"]
    assert end >= wanted
    return end


async def _checkpoint(controllers: Controllers, offset: int) -> None:
    """Have every controller write a checkpoint of all that was before `offset`."""
    active = await controllers.active()
    until = time.monotonic() + _LIMIT_S
    # A broker that registers is a batch, and each batch may be followed by a checkpoint.
    async with SimulatedBrokers(controllers.ports[active], 1, first_id=1000):
        for n in controllers.ports:
            while True:
                newest = (await controllers.status(n, 5.0))["newestSnapshot"]
                if newest is not None and int(newest[:20]) >= offset:
                    break
                assert time.monotonic() < until, "no checkpoint was written"
                await asyncio.sleep(0.02)


def _standby(active: int, controllers: Controllers) -> int:
    return next(n for n in controllers.ports if n != active)


async def _restart(bench: Bench, controllers: Controllers, n: int) -> float:
    child, port = controllers.children[n], controllers.ports[n]
    await controllers.caught_up(n)
    offset = (await controllers.status(n))["offset"]
    await asyncio.to_thread(controllers.stop_one, n)
    _drop_from_cache(controllers.folder / f"controller-{n}")
    started = time.perf_counter()
    child.start()
    pipe = None
    while True:
        # Not oftener: each question takes of the time that is measured.
        await asyncio.sleep(0.01)
        took = time.perf_counter() - started
        assert took < _LIMIT_S, child.last_words()
        try:
            if pipe is None or pipe.closed:
                pipe = await Pipe.open(port)
            status, answer = await pipe.call("GET", "/health/ready")
        except (OSError, NoAnswerError):
            pipe = None
            continue
        if status == 200 and msgspec.json.decode(answer)["offset"] >= offset:
            took = time.perf_counter() - started
            break
    pipe.close()
    health = await ask(port, "GET", "/v1/status")
    bench.say(
        f"ready after {took:.3f} s at offset {health['offset']:,}, {health['newestSnapshot']}"
    )
    return took


def _drop_from_cache(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def _imports(bench: Bench) -> list[float]:
    code = "from logberg.cli.main import cli; cli.get_command(None, 'controller')"
    return [_timed([sys.executable, "-c", code]) for _ in range(bench.rounds)]


def _interpreter(bench: Bench) -> float:
    return min(_timed([sys.executable, "-c", "pass"]) for _ in range(bench.rounds))


def _timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started
