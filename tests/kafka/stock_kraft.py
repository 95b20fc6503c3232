"""Stock KRaft controllers and brokers on loopback, to compare with and to try our own parts on."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from audit.spark.java import Java
from logberg.kafka.broker_process import KafkaProcess, stop_servers
from logberg.kafka.java import java_for_kafka
from logberg.kafka.node_files import CONTROLLER_LISTENER, broker_properties, controller_properties
from logberg.local.child import Child
from metadata.uuids import new_cluster_id
from runtime.randomness import from_system
from tests.conformance.ports import free_port
from tests.kafka.metadata_client import leader_of


def new_id() -> str:
    """Return a random id of a cluster or a folder, as Kafka writes it."""
    return new_cluster_id(lambda: from_system().getrandbits(122))


class StockCluster:
    """Three KRaft controllers, 3001 to 3003, and brokers from 1 on; all of one Kafka version."""

    def __init__(
        self,
        folder: Path,
        jars: Sequence[Path],
        brokers: int = 3,
        controllers: int = 3,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`more` are settings of the brokers."""
        self.cluster_id = new_id()
        self.java: Java = java_for_kafka()
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(controllers)]
        self.controllers = [
            self._controller(folder, 3001 + n, address, jars)
            for n, address in enumerate(self.addresses)
        ]
        ports = [free_port() for _ in range(brokers)]
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.brokers = [
            KafkaProcess(
                folder / f"broker-{n}",
                broker_properties(n, port, folder / f"broker-{n}", self.addresses, more),
                jars,
                self.java,
            )
            for n, port in enumerate(ports, start=1)
        ]
        self._voters = ",".join(
            f"{controller.node_id}@{address}:{new_id()}"
            for controller, address in zip(self.controllers, self.addresses, strict=True)
        )

    def _controller(
        self, folder: Path, node_id: int, address: str, jars: Sequence[Path]
    ) -> KafkaProcess:
        own = folder / f"controller-{node_id}"
        port = int(address.rpartition(":")[2])
        properties = controller_properties(node_id, port, own, self.addresses)
        assert properties["controller.listener.names"] == CONTROLLER_LISTENER
        return KafkaProcess(own, properties, jars, self.java)

    def start(self, limit_s: float = 120.0) -> None:
        """Format and start all; return when every broker is RUNNING. Raises KafkaError."""
        for controller in self.controllers:
            controller.format(self.cluster_id, "--initial-controllers", self._voters)
            controller.start()
        for broker in self.brokers:
            broker.format(self.cluster_id)
            broker.start()
        for server in (*self.controllers, *self.brokers):
            server.wait_running(limit_s)

    def leading(self, limit_s: float = 30.0) -> Child:
        """Wait for a leader that runs, and return its process. Raises AssertionError."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            leader = leader_of(self.addresses).node_id
            for controller in self.controllers:
                if controller.node_id == leader and controller.child.running:
                    return controller.child
            time.sleep(0.1)
        raise AssertionError(f"no stock controller leads within {limit_s:.0f} s")

    def revive(self, child: Child) -> None:
        """Start a controller that was killed."""
        child.start()

    def stop(self) -> None:
        """Stop the brokers, then the controllers."""
        stop_servers(self.brokers)
        stop_servers(self.controllers)


@contextmanager
def stock_cluster(
    folder: Path,
    jars: Sequence[Path],
    brokers: int = 3,
    controllers: int = 3,
    more: Mapping[str, str] | None = None,
) -> Iterator[StockCluster]:
    """Run a cluster for the time of a `with` block."""
    cluster = StockCluster(folder, jars, brokers, controllers, more)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
