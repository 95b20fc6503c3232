"""`python -m benchmarks.attempts` measures what refused callers cost, and what the log tells.

It runs three controllers with TLS, required authentication and enforced rights, as
real processes. For each load it shows how many attempts were refused as the callers saw it, what
the metrics and the log count, the bytes that the reports take in the log, the leader's processor
time and memory, and how long changes took meanwhile. Exit 1 if the counts differ, the epoch
changed, a change failed, or the reports took more than their budget.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from audit.places.replicas import one_replica
from benchmarks.door.__main__ import Bench as DoorBench
from benchmarks.instruments.memory import forget_peak, peak_bytes, resident_bytes
from controller.trail.writing import OPERATION
from ledger.frame import CRC_BYTES
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base
from metadata.codec import decode_records
from metadata.records import AttemptsRecord

MIB = 1024 * 1024
MALLORY = "User:mallory"
BUDGET = 128 * 1024
"""Bytes a minute: the default of `attempts_bytes_per_minute`."""
_KAFKA_OFFSET = 700
_TICKS_PER_S = 100
_CHANGES = 25


class Flood(NamedTuple):
    """One load."""

    name: str
    kind: str
    attempts: int
    threads: int = 4
    port: str = "http"


FLOODS = (
    Flood("100,000 requests without a token", "no-token", 100_000),
    Flood("100,000 requests with a token that nobody knows", "wrong-token", 100_000),
    Flood("100,000 requests of a user without rights", "no-right", 100_000),
    Flood("2,000 logins with a wrong password, over Kafka's protocol", "logins", 2_000, 4, "kafka"),
    Flood("400 requests without a token, 8 MB each", "big-bodies", 400),
    Flood("300 connections that send a head byte by byte", "slow-heads", 300, 10),
    Flood("3,000 connections that send nothing", "idle", 3_000, 1),
)


class Attacked(LocalCluster):
    """A local cluster whose controllers listen for Kafka's protocol, too."""

    interval_ms = 10_000
    """How often controllers report."""

    def kafka_port(self, n: int) -> int:
        """Where a controller listens for it."""
        return self.file.port_base + _KAFKA_OFFSET + n

    def _controller_config(self, n: int, *more: Any) -> dict[str, Any]:
        config = super()._controller_config(n, *more)
        listen = f"127.0.0.1:{self.kafka_port(n)}"
        kafka = {"listen": listen, "sasl_mechanisms": ["PLAIN"]}
        return {"attempts_interval_ms": self.interval_ms, **config, "kafka": kafka}


class FloodRow(NamedTuple):
    """What one load did."""

    name: str
    refused: int
    opened: int
    seconds: float
    noted: int
    written: int
    records: int
    bytes: int
    cpu_s: float
    grew_mib: float
    quiet_ms: tuple[float, float]
    loud_ms: tuple[float, float]
    epochs: tuple[int, int]
    failed: int

    @property
    def is_good(self) -> bool:
        """Whether all bounds held."""
        minutes = 1 + (self.seconds + 60) / 60
        return (
            self.refused == self.noted == self.written
            and self.bytes <= BUDGET * minutes
            and self.epochs[0] == self.epochs[1]
            and not self.failed
        )


class Bench(DoorBench):
    """One started cluster."""

    def __init__(self, folder: Path, interval_ms: int = Attacked.interval_ms) -> None:
        cluster = Attacked(
            folder,
            3,
            0,
            free_port_base(),
            Timing(9000, 2000),
            tokens=(MALLORY,),
            authorization="on",
        )
        cluster.interval_ms = interval_ms
        super().__init__(folder, 65_536, cluster)
        self.mallory = cluster.token_file(MALLORY).read_text().strip()
        self.attacked = cluster

    def metric(self, n: int, name: str) -> int:
        """The sum of a metric over its labels, on one controller."""
        text = self.text(n, "/metrics")
        found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return round(sum(map(float, found)))

    def logged(self, n: int) -> tuple[int, int, int]:
        """Attempts, records and bytes of reports in a controller's log."""
        replica = one_replica(str(self.cluster.folder / f"controller-{n}"))
        attempts = records = size = 0
        for batch in replica.reader().batches():
            if batch.header.provenance.operation != OPERATION:
                continue
            size += len(batch.encoded) + CRC_BYTES
            for record in decode_records(batch.records):
                if isinstance(record, AttemptsRecord):
                    attempts += record.count
                    records += 1
        return attempts, records, size

    def change(self) -> float | None:
        """Make one change, for which no broker is needed; seconds, or None when it failed."""
        leader = self.leader()
        began = time.monotonic()
        self._count += 1
        entity = [{"entityType": "user", "entityName": f"u{self._count}"}]
        operations = [{"key": "producer_byte_rate", "value": 1024.0}]
        body = {"entries": [{"entity": entity, "operations": operations}]}
        status, _ = self.ask(leader or 1, "POST", "/v1/quotas", body)
        return time.monotonic() - began if status == 200 else None

    def changes(self) -> tuple[tuple[float, float], int]:
        """Median and maximum of some changes, in ms, and how many failed."""
        took = [self.change() for _ in range(_CHANGES)]
        done = sorted(1000 * seconds for seconds in took if seconds is not None)
        return (done[len(done) // 2], done[-1]) if done else (0.0, 0.0), took.count(None)

    def settle(self, noted: int, patience_s: float) -> int:
        """Wait until the log has all attempts; return how many it has."""
        until = time.monotonic() + patience_s
        while True:
            found = self.logged(self.leader())[0]
            if found >= noted or time.monotonic() > until:
                return found
            time.sleep(1)

    def noted(self) -> int:
        """Attempts that all controllers recorded, by their metrics."""
        return sum(self.metric(n, "logberg_attempts_total") for n in self.cluster.controllers)

    def run_flood(self, flood: Flood) -> FloodRow:
        """Let the load come, and count what is left of it."""
        leader, epoch = self.leader(), self.epoch()
        self.settle(self.noted(), 60)
        pid = self.cluster.controllers[leader].pid
        noted, (written, records, size) = self.noted(), self.logged(leader)
        quiet, _ = self.changes()
        forget_peak(pid)
        before, cpu = resident_bytes(pid), _cpu_s(pid)
        url = self.cluster.controller_url(leader)
        http = int(url.rpartition(":")[2])
        port = self.attacked.kafka_port(leader) if flood.port == "kafka" else http
        command = [sys.executable, "-m", "benchmarks.attempts.strangers", flood.kind]
        command += ["--port", str(port), "--ca", self.cluster.file.ca, "--token", self.mallory]
        command += ["--count", str(flood.attempts), "--threads", str(flood.threads)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as strangers:
            time.sleep(0.5)
            loud, failed = self.changes()
            said = json.loads(strangers.communicate()[0])
        cpu, peak = _cpu_s(pid) - cpu, peak_bytes(pid)
        self.settle(self.noted(), 240)
        after, records_after, size_after = self.logged(self.leader())
        return FloodRow(
            flood.name,
            said["refused"],
            said["opened"],
            said["seconds"],
            self.noted() - noted,
            after - written,
            records_after - records,
            size_after - size,
            cpu,
            (peak - before) / MIB,
            quiet,
            loud,
            (epoch, self.epoch()),
            failed,
        )


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def main() -> int:
    """Run the loads, one after the other, on one cluster."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attempts", description=__doc__)
    parser.add_argument("--only", default="", help="loads of this kind")
    parser.add_argument("--share", type=float, default=1.0, help="of each load's attempts")
    asked = parser.parse_args()
    print(
        "| load | refused, seen by the callers | in the metrics, in the log | connections | s | "
        "records | bytes in the log | leader's processor s | MiB more | change p50, max ms: before "
        "| meanwhile |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    good = True
    with tempfile.TemporaryDirectory(prefix="logberg-attempts-") as folder:
        bench = Bench(Path(folder) / "data")
        try:
            for flood in FLOODS:
                if asked.only and flood.kind != asked.only:
                    continue
                count = max(flood.threads, int(flood.attempts * asked.share))
                row = bench.run_flood(flood._replace(attempts=count))
                print(
                    f"| {row.name} | {row.refused:,} | {row.noted:,}, {row.written:,} | "
                    f"{row.opened:,} | {row.seconds:.1f} | {row.records} | {row.bytes:,} | "
                    f"{row.cpu_s:.1f} | {row.grew_mib:.0f} | {row.quiet_ms[0]:.0f}, "
                    f"{row.quiet_ms[1]:.0f} | {row.loud_ms[0]:.0f}, {row.loud_ms[1]:.0f} |"
                    + (
                        ""
                        if row.is_good
                        else f" NOT GOOD: epochs {row.epochs}, {row.failed} failed"
                    ),
                    flush=True,
                )
                good = good and row.is_good
        finally:
            bench.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
