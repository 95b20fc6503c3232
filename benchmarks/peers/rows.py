"""What is measured, row by row, and the ratio or the limit that each row is judged by.

Rule: a row is measured in the same way on each service. Rows of one group share a cluster, which
was fresh at the group's start: earlier rows change what later ones cost.
"""

import itertools
import random
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from benchmarks.instruments.cluster import cpu_s
from benchmarks.instruments.slices import Slices
from benchmarks.peers.driving import Driver
from benchmarks.peers.services import Service

Measured = Mapping[str, float]
"""What one round of a row measured, by name; the unit stands in `UNITS`."""

UNITS: Final = {
    "rate": "/s",
    "p50": "ms at p50",
    "p99": "ms at p99",
    "cpu": "µs of all nodes",
    "client": "µs of the client",
    "seconds": "s",
    "registering": "s to register",
    "cores": "cores",
    "failed": "failed",
    "fenced": "fenced",
    "last": "ms",
    "gap": "ms",
    "memory": "MB",
    "p999": "ms at p99.9",
    "worst": "ms at worst",
}

_IDLE_S = 10.0
_KILLS, _STOPS = 5, 3


class Row(NamedTuple):
    """One line of the table."""

    key: str
    what: str
    shown: tuple[str, ...]
    """The names of the figures that the table shows, the first one in the picture."""
    measure: Callable[[Driver, Service], Measured]
    services: tuple[str, ...] = ("logberg", "etcd", "zookeeper", "kraft")


class Bound(NamedTuple):
    """What a figure of ours must reach."""

    row: str
    figure: str
    limit: float
    """At most this; for a rate at least this."""
    against: str | None = None
    """A service whose figure the limit multiplies; `best` is the fastest of the others."""

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.figure == "rate"


def _load(work: str, **options: float | str) -> Callable[[Driver, Service], Measured]:
    return lambda driver, service: driver.load(service, work, **options)


def _creations(outstanding: int) -> Callable[[Driver, Service], Measured]:
    def measure(driver: Driver, service: Service) -> Measured:
        prefix = f"c{outstanding}-{random.getrandbits(32):08x}-"
        return driver.load(
            service, "create", workers=outstanding, seconds=driver.seconds(4), prefix=prefix
        )

    return measure


def _joined(outstanding: int) -> Callable[[Driver, Service], Measured]:
    """Creations through our own client, which joins them; of a peer one a request, as elsewhere."""

    def measure(driver: Driver, service: Service) -> Measured:
        if service.name == "logberg":
            return driver.joined_load(service, outstanding, 4)
        return _creations(outstanding)(driver, service)

    return measure


def _idle(driver: Driver, service: Service) -> Measured:
    time.sleep(driver.seconds(2))
    before, began = sum(map(cpu_s, service.pids)), time.monotonic()
    time.sleep(driver.seconds(_IDLE_S))
    used = sum(map(cpu_s, service.pids)) - before
    return {"cores": used / (time.monotonic() - began)}


def _failover(kind: str, trials: int) -> Callable[[Driver, Service], Measured]:
    def measure(driver: Driver, service: Service) -> Measured:
        gaps = []
        for _ in range(driver.count(trials)):
            service.settle(driver.find_leader)
            prefix = f"f{random.getrandbits(32):08x}-"
            gaps.append(driver.load(service, "failover", signal=kind, prefix=prefix)["gap"])
            service.revive()
            time.sleep(2)
        return {"gap": sorted(gaps)[len(gaps) // 2], "worst": max(gaps)}

    return measure


def _restart(driver: Driver, service: Service) -> Measured:
    driver.load(service, "bulk", count=driver.entries, prefix="r")
    service.stop()
    return {"seconds": service.start(driver.find_leader), "memory": service.memory_mb()}


def _takeover(driver: Driver, service: Service) -> Measured:
    measured = driver.load(service, "takeover", workers=10_000, seconds=20, warm=5)
    service.revive()
    return measured


def _slices(driver: Driver, service: Service) -> Measured:
    """All kinds of load one after another on one cluster; the worst of its nodes."""
    for outstanding in (1, 64, 512):
        _creations(outstanding)(driver, service)
    loads: tuple[tuple[str, Mapping[str, float | str]], ...] = (
        ("read", {"workers": 64, "prefix": "l"}),
        ("read", {"workers": 64, "prefix": "s", "stale": "true"}),
        ("beats", {"workers": 64}),
        ("watch", {"workers": 1000, "count": 10}),
        ("bulk", {"count": 100_000}),
        ("brokers", {"workers": 2_000, "seconds": 5, "warm": 2}),
    )
    for work, options in loads:
        driver.load(service, work, **options)
    nodes = [Slices.read(_metrics(endpoint)) for endpoint in service.endpoints]
    return {
        "p999": max(node.ms(0.999) for node in nodes),
        "worst": max(node.worst_ms for node in nodes),
    }


def _metrics(endpoint: str) -> str:
    with urllib.request.urlopen(f"{endpoint}/metrics", timeout=30) as answer:
        return str(answer.read(), "utf-8")


_NOT_KRAFT: Final = ("logberg", "etcd", "zookeeper")

GROUPS: Final[Mapping[str, tuple[Row, ...]]] = {
    "requests": (
        Row("idle", "idle", ("cores",), _idle),
        Row("create1", "creations, 1 outstanding", ("p50", "rate", "cpu"), _creations(1)),
        Row("create64", "creations, 64 outstanding", ("rate", "cpu", "p99"), _creations(64)),
        Row("create512", "creations, 512 outstanding", ("rate", "cpu", "p99"), _creations(512)),
    ),
    "our client": (
        Row(
            "joined64",
            "creations, 64 outstanding, through our client",
            ("rate", "cpu", "client", "p99"),
            _joined(64),
            ("logberg", "etcd"),
        ),
    ),
    "reads": (
        Row(
            "read",
            "linearizable reads, 64 outstanding",
            ("rate", "cpu"),
            _load("read", workers=64, prefix="l"),
            _NOT_KRAFT,
        ),
        Row(
            "stale",
            "stale reads of one node, 64 outstanding",
            ("rate", "cpu"),
            _load("read", workers=64, prefix="s", stale="true"),
            _NOT_KRAFT,
        ),
    ),
    "brokers that wait": (
        Row("beats", "heartbeats, 64 outstanding", ("cpu", "rate"), _load("beats", workers=64)),
        *(
            Row(
                f"watch{count}",
                f"a change to the last of {count:,} watchers",
                ("last",),
                _load("watch", workers=count, count=10),
            )
            for count in (1, 100, 1000)
        ),
    ),
    "bulk": (
        Row("bulk", "100,000 partitions in bulk", ("seconds",), _load("bulk", count=100_000)),
    ),
    "brokers": (
        Row(
            "brokers",
            "10,000 brokers, a heartbeat every 2 s",
            ("cores", "registering", "p99", "failed"),
            _load("brokers", workers=10_000, seconds=20, warm=5),
        ),
    ),
    "brokers whose leader is killed": (
        Row(
            "takeover",
            "10,000 brokers, SIGKILL of the leader: heartbeats in the 20 s behind it",
            ("fenced", "failed", "p99", "worst"),
            _takeover,
            ("logberg",),
        ),
    ),
    "loop": (
        Row(
            "slices",
            "work between two looks at the sockets, under all of these loads",
            ("p999", "worst"),
            _slices,
            ("logberg",),
        ),
    ),
    "failover": (
        Row(
            "kill",
            "SIGKILL of the leader to the next creation",
            ("gap",),
            _failover("KILL", _KILLS),
        ),
        Row(
            "stop",
            "SIGSTOP of the leader to the next creation",
            ("gap",),
            _failover("STOP", _STOPS),
        ),
    ),
    "restart": (
        Row(
            "restart",
            "restart with 1,000,000 entries",
            ("seconds", "memory"),
            _restart,
            _NOT_KRAFT,
        ),
    ),
}

ROWS: Final = tuple(itertools.chain.from_iterable(GROUPS.values()))

BOUNDS: Final = (
    Bound("create64", "rate", 0.5, "etcd"),
    Bound("create64", "cpu", 500),
    Bound("create512", "rate", 0.5, "kraft"),
    Bound("joined64", "rate", 1.5, "etcd"),
    Bound("create1", "p50", 1.8, "etcd"),
    Bound("create1", "cpu", 2500),
    Bound("bulk", "seconds", 1.0, "best"),
    Bound("beats", "cpu", 80),
    Bound("stale", "cpu", 80),
    Bound("read", "cpu", 110),
    Bound("brokers", "registering", 15),
    Bound("brokers", "cores", 1.0),
    Bound("brokers", "p99", 100),
    Bound("brokers", "failed", 0),
    Bound("takeover", "fenced", 0),
    Bound("takeover", "failed", 0),
    Bound("watch1000", "last", 65),
    Bound("restart", "seconds", 5),
    Bound("restart", "memory", 600),
    Bound("kill", "gap", 100),
    Bound("stop", "gap", 700),
    Bound("idle", "cores", 0.04),
    Bound("slices", "p999", 20),
    Bound("slices", "worst", 50),
)
