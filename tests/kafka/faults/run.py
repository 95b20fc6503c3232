"""One run: a load on a cluster, and its leader struck every so many seconds.

    struck_run(cluster, KilledLeader(cluster), programs, folder, minutes=10, every_s=20)

Rule: the cluster may be ours or stock KRaft's; the program is the same. The load begins ten seconds
before the first fault, and the last fault is healed before the load ends.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from logberg.kafka.broker_process import KafkaProcess
from logberg.local.child import Child
from tests.kafka.broker_logs import elections, entries, segment_bytes
from tests.kafka.faults.load import DRAIN_S, PARTITIONS, TOPIC, LoadProcess
from tests.kafka.faults.striking import Fault
from tests.kafka.faults.verdict import FaultVerdict, judge
from tests.kafka.jvm.programs import JavaPrograms

_BEFORE_S: Final = 10.0
_AFTER_S: Final = 10.0


class LoadedCluster(Protocol):
    """What a run needs of a cluster."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def brokers(self) -> Sequence[KafkaProcess]: ...

    def leading(self, limit_s: float = 30.0) -> Child: ...


class RunFailedError(Exception):
    """A run could not be made."""


def struck_run(
    cluster: LoadedCluster,
    fault: Fault,
    programs: JavaPrograms,
    folder: Path,
    *,
    minutes: float,
    every_s: float = 20.0,
    say: Callable[[str], None] = lambda _line: None,
) -> FaultVerdict:
    """Run it and return what was found. Raises RunFailedError, AssertionError."""
    replicas = min(3, len(cluster.brokers))
    programs.run("Basics", cluster.bootstrap, TOPIC + "-basics", "2", str(replicas))
    programs.run("Topic", cluster.bootstrap, TOPIC, str(PARTITIONS), str(replicas))
    pids = [broker.child.pid for broker in cluster.brokers]
    seconds = minutes * 60
    load = LoadProcess(programs, cluster.bootstrap, folder, seconds=seconds)
    since_ms = time.time_ns() // 1_000_000
    load.start()
    try:
        strikes = _strike(cluster, fault, load, time.monotonic() + seconds, every_s, say)
        if not load.child.wait(DRAIN_S):
            raise RunFailedError("the load did not end")
    finally:
        load.child.kill()
    if load.child.exit_code != 0:
        raise RunFailedError(load.child.obituary())
    # The log's last records reach the brokers a moment later.
    time.sleep(2.0)
    if [broker.child.pid for broker in cluster.brokers if broker.child.running] != pids:
        raise RunFailedError("a broker ended: " + ", ".join(_ended(cluster)))
    log = segment_bytes(Path(cluster.brokers[0].folder / "data"))
    found = list(entries(log))
    return judge(load.told(), found, since_ms, strikes=strikes, elections=elections(log))


def _strike(
    cluster: LoadedCluster,
    fault: Fault,
    load: LoadProcess,
    end: float,
    every_s: float,
    say: Callable[[str], None],
) -> int:
    """Strike every so many seconds until the load's end is near. Returns how often."""
    strikes = 0
    following = time.monotonic() + _BEFORE_S
    while following + fault.hold_s + _AFTER_S < end:
        time.sleep(max(0.0, following - time.monotonic()))
        if not load.child.running:
            raise RunFailedError(load.child.obituary())
        leader = cluster.leading()
        say(f"{leader.name} is struck, number {strikes + 1}")
        try:
            fault.strike(leader)
            strikes += 1
            time.sleep(fault.hold_s)
        finally:
            fault.heal(leader)
        following += every_s
    return strikes


def _ended(cluster: LoadedCluster) -> list[str]:
    said = []
    for broker in cluster.brokers:
        with suppress(AssertionError):
            lines = broker.output().decode(errors="replace").splitlines()
            why = [line for line in lines if "Exception: " in line]
            said.append("\n".join([broker.child.obituary(), *why[:3]]))
    return said
