"""`python -m benchmarks.costs` measures what requests cost with 9, 1,000 and 10,000 brokers.

One controller runs in this process, on the simulated clock and disk: nothing is sent, synced or
waited for, so what is measured is the processor time of the controller's own code. The brokers are
registered one after another, each with a directory, and come online. The first column of a row is
its floor: the same work with 9 brokers, in the same run. Exit 1 if a ratio is above 2.

`tests/unit/controller/test_cost_of_requests.py` counts operations, for all kinds of requests.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from metadata.messages import CreateTopicsRequest, NewTopic
from metadata.steps import finished
from tests.unit.controller.cluster import DECLARED, Broker, Cluster

SIZES = (9, 1_000, 10_000)
ROUNDS = 5
REPEATS = 100
NEWCOMERS = 200
"""How many registrations are measured at each size."""
LIMIT = 2.0
_FIRST_ID = 100
_CLUSTER: Any = Cluster
_BROKER: Any = Broker


class Stage:
    """A leader, and brokers that are online."""

    def __init__(self) -> None:
        self.cluster = _CLUSTER(
            nodes=1,
            session_s=1e6,
            checkpoint_bytes=1 << 40,
            partition_mutations_per_s=0,
            compare_records=False,
        )
        self.brokers: list[Any] = []
        self._topics = 0

    def register(self, count: int) -> float:
        """Let so many more brokers register and come online; return the processor time in s."""
        started = time.process_time()
        for _ in range(count):
            broker_id = _FIRST_ID + len(self.brokers)
            broker = _BROKER(
                self.cluster,
                broker_id,
                rack=f"rack-{broker_id % 3}",
                features=DECLARED,
                log_dirs=(broker_id.to_bytes(16, "little"),),
            )
            self._to_end(broker)
            broker.register()
            self._to_end(broker).fetch()
            self.cluster.run_until(lambda known=broker_id: not self.cluster.broker(known).fenced)
            self.brokers.append(broker)
        return time.process_time() - started

    def _to_end(self, broker: Any) -> Any:
        """Let a broker have all there is, without fetching it."""
        broker.offset = broker.applied = self.cluster.leader.ledger.log_end
        broker.fetched_epoch = self.cluster.image.epoch
        return broker

    def decide(self) -> None:
        """Decide about one topic, and write nothing."""
        request = CreateTopicsRequest(topics=(NewTopic("decided", 1, 3),))
        topics = self.cluster.leader._leader.topics  # noqa: SLF001 - the manager alone
        finished(topics.create(self.cluster.image, request))

    def create(self) -> None:
        """Create a topic, from the request to the answer."""
        self._topics += 1
        self.cluster.create_topic(f"created-{self._topics}")

    def status(self) -> None:
        """Ask for the status, which counts the brokers."""
        self.cluster.ask("GET", "/v1/status")

    def heartbeat(self) -> None:
        """Send the heartbeat of one broker, which has all there is."""
        self._to_end(self.brokers[len(self.brokers) // 2]).fetch(max_wait_ms=0)


ROWS: Sequence[tuple[str, Callable[[Stage], None]]] = (
    ("deciding about one topic", Stage.decide),
    ("creating one topic", Stage.create),
    ("a heartbeat", Stage.heartbeat),
    ("the status", Stage.status),
)


def each_us(work: Callable[[], None]) -> float:
    """Return the processor time of a call in µs, the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(REPEATS):
            work()
        rounds.append((time.process_time() - started) / REPEATS * 1e6)
    return statistics.median(rounds)


def main() -> int:
    """Measure; exit 1 when a cost grows with the number of brokers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="leave out larger sizes")
    sizes = [size for size in SIZES if size <= parser.parse_args().most]
    rows: dict[str, list[float]] = {name: [] for name, _ in ROWS}
    registering = [Stage().register(NEWCOMERS) / NEWCOMERS * 1e6]
    stage, total = Stage(), 0.0
    for size in sizes:
        total += stage.register(max(size - len(stage.brokers) - NEWCOMERS, 0))
        newcomers = size - len(stage.brokers)
        took = stage.register(newcomers)
        total += took
        if size > NEWCOMERS:
            registering.append(took / newcomers * 1e6)
        gc.collect()
        for name, work in ROWS:
            rows[name].append(each_us(lambda do=work: do(stage)))  # type: ignore[misc]
    rows["registering one broker, until it is online"] = registering[: len(sizes)]
    print(f"{'µs, brokers:':<44}" + "".join(f"{size:>10,}" for size in sizes) + "     ratio")
    for name, costs in rows.items():
        shown = "".join(f"{cost:>10,.0f}" for cost in costs)
        print(f"{name:<44}{shown}{costs[-1] / costs[0]:>10.2f}")
    print(f"registering {sizes[-1]:,} brokers took {total:.1f} s of processor time")
    return 1 if any(costs[-1] > LIMIT * costs[0] for costs in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
