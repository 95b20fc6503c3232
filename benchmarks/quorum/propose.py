"""Measures commits per second of bytes that are proposed inside the leader's process.

There are three processes, and a majority of them syncs each entry. The callers are in the leader's
process, so this measures the quorum alone: journal, links, core and guard. `topics` and
`http_requests` measure what HTTP and the managers add.
"""

import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import msgspec

from benchmarks.instruments.bench import Bench, free_ports
from benchmarks.instruments.figures import Figure
from benchmarks.instruments.floors import Floors, middle
from benchmarks.quorum.member import Order, Seen, Spec

CALLERS = (1, 64, 512)
_RATE_TARGETS = {512: 50_000.0}
_P50_TARGETS = {64: 5.0}


class Members:
    """The three processes."""

    def __init__(self, folder: Path) -> None:
        ports = dict(enumerate(free_ports(3), start=1))
        self._processes = []
        for node_id in ports:
            spec = Spec(node_id, ports, str(folder / f"member-{node_id}"))
            self._processes.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "benchmarks.quorum.member",
                        msgspec.json.encode(spec).decode(),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        self._leader = self._wait_for_leader()

    def _wait_for_leader(self) -> subprocess.Popen[bytes]:
        with selectors.DefaultSelector() as selector:
            for process in self._processes:
                selector.register(_pipe(process.stdout), selectors.EVENT_READ, process)
            for key, _ in selector.select(20):
                process = key.data
                line = _pipe(process.stdout).readline()
                if b'"leads": true' in line:
                    return process  # type: ignore[no-any-return]
        raise RuntimeError("no leader within 20 s")

    def drive(self, order: Order) -> Seen:
        """Let the leader drive; blocks."""
        pipe = _pipe(self._leader.stdin)
        pipe.write(msgspec.json.encode(order) + b"\n")
        pipe.flush()
        return msgspec.json.decode(_pipe(self._leader.stdout).readline(), type=Seen)

    def stop(self) -> None:
        """End all."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            _pipe(process.stdin).close()
            _pipe(process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    floors: list[Floors] = []
    members = Members(bench.fresh_folder("propose"))
    try:
        members.drive(Order(64, 0.5))
        seen: dict[int, list[Seen]] = {callers: [] for callers in CALLERS}
        for _ in range(bench.rounds):
            floors.append(bench.floors())
            for callers in CALLERS:
                seen[callers].append(members.drive(Order(callers, bench.seconds(2.0))))
                time.sleep(0.1)
    finally:
        members.stop()
    for callers, rounds in seen.items():
        for one in rounds:
            bench.say(
                f"{callers} callers: {one.commits / one.seconds:,.0f}/s, p50 {one.p50_ms:.2f} ms, "
                f"p99 {one.p99_ms:.2f} ms, {one.commits / max(1, one.entries):.0f} an entry, "
                f"leader's CPU {one.cpu_s / one.seconds:.0%}"
            )
    return [f for callers in CALLERS for f in _figures(callers, seen[callers], middle(floors))]


def _figures(callers: int, seen: list[Seen], floors: Floors) -> list[Figure]:
    who = f"proposals of 100 bytes, {callers} caller{'s' if callers > 1 else ''}"
    return [
        Figure(
            "propose",
            who,
            "/s",
            tuple(one.commits / one.seconds for one in seen),
            floors.syncs if callers == 1 else floors.large_syncs,
            _RATE_TARGETS.get(callers),
        ),
        Figure(
            "propose",
            "  p50",
            "ms",
            tuple(one.p50_ms for one in seen),
            floors.commit,
            _P50_TARGETS.get(callers),
        ),
        Figure("propose", "  p99", "ms", tuple(one.p99_ms for one in seen), floors.commit),
    ]
