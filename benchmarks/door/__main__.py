"""`python -m benchmarks.door` measures what many unauthenticated connections cost a leader.

It runs three controllers and a broker with TLS and required authentication, as real processes. For
each load it shows the leader's memory before, at its peak and after a minute, how long changes took
meanwhile, and the leader's epoch before and after. Exit 1 if the epoch changed, a change failed, or
the memory grew by more than 64 MiB or did not go down again.
"""

import argparse
import http.client
import json
import resource
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.door.loads import MIB, Load
from benchmarks.instruments.memory import forget_peak, peak_bytes, resident_bytes
from logberg.local.child import Child
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base

GROWTH_MAX = 64 * MIB
LEFT_MAX = 16 * MIB
"""What may be left a minute after a load: the process itself goes on working meanwhile."""
CHANGES = 40
START_S = 30.0


class Crowd(NamedTuple):
    """One load and where it goes."""

    name: str
    port: str
    """http or quorum."""
    descriptors: int
    """Of each process."""
    come: Callable[[Load], None]
    restarts_a_standby: bool = False


CROWDS = (
    Crowd("8: 1,100 idle, HTTP, 1,024 descriptors", "http", 1024, lambda load: load.idle(1100)),
    Crowd("8: 1,100 idle, quorum, 1,024 descriptors", "quorum", 1024, lambda load: load.idle(1100)),
    Crowd("9: 100 half bodies", "http", 8192, lambda load: load.half_bodies(100, 2_500_000)),
    Crowd("9: 3,900 to the TLS port, silent", "http", 8192, lambda load: load.idle(3900)),
    Crowd("9: 3,900 ClientHellos", "http", 8192, lambda load: load.half_hellos(3900)),
    Crowd("11: 400 idle, a standby restarts", "quorum", 8192, lambda load: load.idle(400), True),
)


class Row(NamedTuple):
    """What one load did."""

    name: str
    opened: int
    before_mib: float
    peak_mib: float
    after_mib: float
    change_p50_ms: float
    change_max_ms: float
    relink_s: float
    epochs: tuple[int, int]
    failed: int

    @property
    def is_good(self) -> bool:
        """Whether all bounds held."""
        grew = (self.peak_mib - self.before_mib) * MIB <= GROWTH_MAX
        fell = (self.after_mib - self.before_mib) * MIB <= LEFT_MAX
        return grew and fell and self.epochs[0] == self.epochs[1] and self.failed == 0


class Bench:
    """One started cluster."""

    def __init__(self, folder: Path, descriptors: int, cluster: LocalCluster | None = None) -> None:
        self.cluster = cluster or LocalCluster(folder, 3, 1, free_port_base(), Timing(3000, 500))
        self.cluster.prepare()
        self.token = (folder / "admin.token").read_text().strip()
        self._context = ssl.create_default_context(cafile=self.cluster.file.ca)
        self._count = 0
        self._descriptors = descriptors
        for child in self.cluster.children:
            self._start(child)
        self._until(lambda: self.leader() > 0 and self.change() is not None)

    def _start(self, child: Child) -> None:
        """Start it; the limit holds before its own code has begun."""
        child.start()
        _, hard = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
        count = min(self._descriptors, hard)
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (count, count))

    def _until(self, look: Callable[[], bool]) -> None:
        until = time.monotonic() + START_S
        while not look():
            if time.monotonic() > until:
                raise TimeoutError(
                    f"the cluster is not ready; see {self.cluster.folder / 'output'}"
                )
            time.sleep(0.05)

    def ask(self, n: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask a controller; (0, None) when it does not answer."""
        host = self.cluster.controller_url(n).removeprefix("https://")
        connection = http.client.HTTPSConnection(host, timeout=20, context=self._context)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except OSError:
            return 0, None
        finally:
            connection.close()

    def text(self, n: int, path: str) -> str:
        """Read text of a controller."""
        host = self.cluster.controller_url(n).removeprefix("https://")
        connection = http.client.HTTPSConnection(host, timeout=20, context=self._context)
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {self.token}"})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def leader(self) -> int:
        """The active controller; 0 when there is none."""
        for n in self.cluster.controllers:
            status, body = self.ask(n, "GET", "/v1/status")
            if status == 200 and body["active"]:
                return n
        return 0

    def epoch(self) -> int:
        """The leader's epoch."""
        return int(self.ask(self.leader(), "GET", "/v1/status")[1]["leaderEpoch"])

    def change(self) -> float | None:
        """Make one change, on a connection of its own; seconds, or None when it failed."""
        leader = self.leader()
        began = time.monotonic()
        self._count += 1
        topic = {"name": f"t{self._count}", "numPartitions": 1, "replicationFactor": 1}
        status, _ = self.ask(leader or 1, "POST", "/v1/topics", {"topics": [topic]})
        return time.monotonic() - began if status == 200 else None

    def relink(self, leader: int) -> float:
        """Kill and start a standby; seconds until it holds what the leader holds."""
        standby = next(n for n in self.cluster.controllers if n != leader)
        child = self.cluster.controllers[standby]
        child.kill()
        self._start(child)
        self._until(lambda: self.ask(standby, "GET", "/health/live")[0] == 200)
        began = time.monotonic()
        self._until(lambda: self._end(standby) == self._end(leader) > 0)
        return time.monotonic() - began

    def _end(self, n: int) -> int:
        status, body = self.ask(n, "GET", "/v1/status")
        return int(body["logEnd"]) if status == 200 else -1

    def run(self, crowd: Crowd, rest_s: float) -> Row:
        """Bring the crowd, work beside it, send it away, and look again after `rest_s`."""
        leader, epoch = self.leader(), self.epoch()
        url = self.cluster.controller_url(leader)
        address = url if crowd.port == "http" else self.cluster.quorum_address(leader)
        pid = self.cluster.controllers[leader].pid
        forget_peak(pid)
        before = resident_bytes(pid)
        with Load(int(address.rpartition(":")[2]), Path(self.cluster.file.ca)) as load:
            crowd.come(load)
            relink_s = self.relink(leader) if crowd.restarts_a_standby else 0.0
            took = [self.change() for _ in range(CHANGES)]
            opened, peak = load.opened, peak_bytes(pid)
        time.sleep(rest_s)
        done = sorted(1000 * seconds for seconds in took if seconds is not None)
        return Row(
            crowd.name,
            opened,
            before / MIB,
            peak / MIB,
            resident_bytes(pid) / MIB,
            done[len(done) // 2] if done else 0.0,
            done[-1] if done else 0.0,
            relink_s,
            (epoch, self.epoch()),
            took.count(None),
        )

    def stop(self) -> None:
        """End all processes."""
        self.cluster.stop()


def main() -> int:
    """Run every load, each on a cluster of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.door", description=__doc__)
    parser.add_argument("--only", default="", help="loads whose name begins so")
    parser.add_argument("--rest", type=float, default=60.0, help="seconds before the last look")
    arguments = parser.parse_args()
    print("| load | opened | MiB before | peak | after | change p50, max ms | relink s | epochs |")
    print("|---|---|---|---|---|---|---|---|")
    good = True
    for crowd in CROWDS:
        if not crowd.name.startswith(arguments.only):
            continue
        with tempfile.TemporaryDirectory(prefix="logberg-door-") as folder:
            bench = Bench(Path(folder) / "data", crowd.descriptors)
            try:
                row = bench.run(crowd, arguments.rest)
            finally:
                bench.stop()
        print(
            f"| {row.name} | {row.opened} | {row.before_mib:.0f} | {row.peak_mib:.0f} | "
            f"{row.after_mib:.0f} | {row.change_p50_ms:.0f}, {row.change_max_ms:.0f} | "
            f"{row.relink_s:.2f} | {row.epochs[0]}, {row.epochs[1]} |",
            flush=True,
        )
        good = good and row.is_good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
