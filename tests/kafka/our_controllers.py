"""Three of our controllers with Kafka listeners, and Kafka's brokers on them, on loopback.

Rule: the controllers are `logberg controller --config`, with the files of a local cluster. They are
plain by default, as stock_kraft.py's are, so both can be compared. With `secure` they have the
cluster's certificates and demand authentication, on the Kafka listener too.

    controllers 1 to 3, brokers from 11 on: in Kafka they share one space of ids
"""

import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from logberg.kafka.broker_process import KafkaProcess, stop_servers
from logberg.kafka.java import java_for_kafka
from logberg.kafka.node_files import broker_properties
from logberg.local.child import Child
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base
from tests.conformance.ports import free_port
from tests.kafka.metadata_client import MetadataClient, leader_of
from tests.kafka.relays import Relay

T = TypeVar("T")
FIRST_BROKER: Final = 11
CONTROLLERS: Final = (1, 2, 3)
_POLL_S: Final = 0.1


class _LocalWithKafka(LocalCluster):
    """A local cluster whose controllers listen for Kafka's brokers."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.secure: bool = more.pop("secure")
        self.settings: dict[str, Any] = more.pop("settings")
        self.kafka: dict[str, Any] = more.pop("kafka")
        self.kafka_ports = {n: free_port() for n in CONTROLLERS}
        self.quorum_seen: dict[tuple[int, int], str] = {}
        """(from, to): at which address a controller finds another; empty: at its own."""
        more.setdefault("authorization", "off")
        super().__init__(folder, len(CONTROLLERS), 0, free_port_base(), Timing(), **more)

    def controller_url(self, n: int) -> str:
        url = super().controller_url(n)
        return url if self.secure else url.replace("https:", "http:")

    def _controller_config(
        self, n: int, pair: tuple[Path, Path], tokens: dict[str, str]
    ) -> dict[str, Any]:
        config = super()._controller_config(n, pair, tokens)
        if not self.secure:
            del config["tls"]
            config["require_authentication"] = False
        for peer in config["controllers"]:
            peer["quorum"] = self.quorum_seen.get((n, peer["node_id"]), peer["quorum"])
        config["kafka"] = {"listen": f"127.0.0.1:{self.kafka_ports[n]}", **self.kafka}
        return {**config, **self.settings}


class OurControllers:
    """The controllers, and the brokers that are added to them."""

    def __init__(
        self,
        folder: Path,
        *,
        level: int = 30,
        secure: bool = False,
        relays: bool = False,
        tokens: Sequence[str] = (),
        kafka: Mapping[str, Any] | None = None,
        internal_replicas: int = 2,
        authorization: str = "off",
        **settings: Any,
    ) -> None:
        """`level`: of metadata.version, at which the log begins. `settings`: of controllers.

        `relays`: controllers reach each other through relays, which can be cut (`cut_off`).
        `kafka`: keys of `[kafka]`. `tokens`: principals to issue a token for.
        `internal_replicas`: of the topics that brokers make for groups and transactions.
        """
        self.folder = folder
        self.local = _LocalWithKafka(
            folder / "cluster",
            secure=secure,
            settings=settings,
            kafka=dict(kafka or {}),
            tokens=tokens,
            authorization=authorization,
            features={"metadata.version": level},
        )
        self.secure = secure
        self.brokers: list[KafkaProcess] = []
        self._of_brokers = {
            "offsets.topic.replication.factor": str(internal_replicas),
            "transaction.state.log.replication.factor": str(internal_replicas),
            "transaction.state.log.min.isr": str((internal_replicas + 1) // 2),
        }
        self.ports: dict[int, int] = {}
        """By broker: the port of its listener; a test may choose one before it adds the broker."""
        self._relays: dict[tuple[int, int], Relay] = {}
        if relays:
            self._lay_relays()
        self.local.prepare()
        self.local.write_cluster_file()

    def _lay_relays(self) -> None:
        for one in CONTROLLERS:
            for other in CONTROLLERS:
                if one != other:
                    port = free_port()
                    self._relays[one, other] = Relay(port, self.local.quorum_address(other))
                    self.local.quorum_seen[one, other] = f"127.0.0.1:{port}"

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the controllers, and wait until one of them leads."""
        for child in self.local.controllers.values():
            child.start()
        self.until(self.leader, "a controller leads")

    def add_broker(
        self,
        jars: Sequence[Path],
        node_id: int = 0,
        more: Mapping[str, str] | None = None,
        *,
        start: bool = True,
    ) -> KafkaProcess:
        """Make a broker, and start it. A node id that is there is started with other jars."""
        node_id = node_id or FIRST_BROKER + len(self.brokers)
        known = {broker.node_id: broker for broker in self.brokers}
        port = self.ports.setdefault(node_id, 0) or free_port()
        self.ports[node_id] = port
        folder = self.folder / f"broker-{node_id}"
        broker = KafkaProcess(
            folder,
            broker_properties(
                node_id, port, folder, self.addresses, {**self._of_brokers, **(more or {})}
            ),
            jars,
            java_for_kafka(),
        )
        if node_id in known:
            self.brokers.remove(known[node_id])
        self.brokers.append(broker)
        if start:
            broker.format(self.local.cluster_id)
            broker.start()
        return broker

    def add_brokers(
        self, count: int, jars: Sequence[Path], more: Mapping[str, str] | None = None
    ) -> None:
        """Add brokers, and wait until all are RUNNING."""
        for _ in range(count):
            self.add_broker(jars, more=more)
        self.wait_running()

    def wait_running(self, limit_s: float = 120.0) -> None:
        """Wait until all brokers are RUNNING. Raises KafkaError."""
        for broker in self.brokers:
            broker.wait_running(limit_s)

    def stop(self) -> None:
        """Stop the brokers, then the controllers; nothing is left running."""
        try:
            stop_servers(self.brokers)
            self.local.stop()
        finally:
            for child in self.local.children:
                child.kill()
            for relay in self._relays.values():
                relay.close()

    # -- who leads -------------------------------------------------------------------------------

    @property
    def addresses(self) -> list[str]:
        """Of the controllers' Kafka listeners."""
        return [self.kafka_address(n) for n in CONTROLLERS]

    def kafka_address(self, n: int) -> str:
        return f"127.0.0.1:{self.local.kafka_ports[n]}"

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses, as a client is given them."""
        return ",".join(self.address_of(broker) for broker in self.brokers)

    def address_of(self, broker: KafkaProcess) -> str:
        return f"127.0.0.1:{self.ports[broker.node_id]}"

    def status(self, n: int) -> dict[str, Any] | None:
        """A controller's own word; None when it doesn't answer."""
        with suppress(OSError):
            status, body = self.http(n, "GET", "/v1/status")
            if status == 200:
                found: dict[str, Any] = body
                return found
        return None

    def leader(self) -> int:
        """Return the active controller; 0: there is none now."""
        found = [(status["leaderEpoch"], n) for n in CONTROLLERS if (status := self._active(n))]
        return max(found)[1] if found else 0

    def _active(self, n: int) -> dict[str, Any] | None:
        status = self.status(n) if self.local.controllers[n].running else None
        return status if status is not None and status["active"] else None

    def leading(self, limit_s: float = 30.0) -> Child:
        """Wait for a leader whose Kafka listener says so, and return its process."""

        def look() -> int:
            seen = leader_of(self.addresses).node_id if not self.secure else self.leader()
            return seen if seen > 0 and self.leader() == seen else 0

        return self.local.controllers[self.until(look, "a controller leads", limit_s)]

    def number_of(self, child: Child) -> int:
        """Return the node id of a controller's process."""
        return next(n for n, one in self.local.controllers.items() if one is child)

    def revive(self, child: Child) -> None:
        """Start a controller that was killed."""
        child.start()

    def cut_off(self, n: int) -> None:
        """Let a controller and the others exchange nothing. Brokers still reach it."""
        for pair, relay in self._relays.items():
            if n in pair:
                relay.cut()

    def heal(self) -> None:
        """Let all controllers exchange everything again."""
        for relay in self._relays.values():
            relay.heal()

    # -- asking ----------------------------------------------------------------------------------

    def http(self, n: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask a controller's HTTP interface as the administrator. Raises OSError."""
        where = urlsplit(self.local.controller_url(n)).netloc
        headers = {"accept": "application/json", "content-type": "application/json"}
        connection: http.client.HTTPConnection
        if self.secure:
            token = Path(self.local.file.token_file).read_text().strip()
            headers["authorization"] = f"Bearer {token}"
            connection = http.client.HTTPSConnection(where, timeout=5.0, context=self.trust())
        else:
            connection = http.client.HTTPConnection(where, timeout=2.0)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body).encode(), headers
            )
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(raw) if raw[:1] in b"{[" and raw else raw

    def trust(self) -> ssl.SSLContext:
        """Return what a client of the cluster trusts."""
        return ssl.create_default_context(cafile=self.local.file.ca)

    def ask_leader(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the leader; returns the body of a 200. Raises AssertionError for another answer."""
        self.until(self.leader, "a controller leads")
        status, found = self.http(self.leader(), method, path, body)
        assert status == 200, found
        return found

    def kafka(self, n: int) -> MetadataClient:
        """Connect to the Kafka listener of a controller."""
        return MetadataClient(self.kafka_address(n))

    def broker_states(self) -> dict[int, str]:
        """States by broker id, as the leader says."""
        return {
            each["brokerId"]: each["state"]
            for each in self.ask_leader("GET", "/v1/brokers")["brokers"]
        }

    def log_lines(self, n: int, event: str) -> list[dict[str, Any]]:
        """Return the lines of one event that a controller logged."""
        path = self.local.folder / "output" / f"controller-{n}.log"
        lines = [line for line in path.read_text(errors="replace").splitlines() if event in line]
        found = []
        for line in lines:
            with suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if line.get("event") == event]

    def command(self, *words: str, asks: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of our commands as the administrator. `asks`: it asks the controllers."""
        where = ["--data", str(self.local.folder)]
        if not self.secure:
            # A token is not sent in clear, and these controllers need none.
            where = ["--controllers", ",".join(self.local.controller_urls), "--data", "nowhere"]
        return subprocess.run(
            [sys.executable, "-m", "logberg", *words, *(where if asks else [])],
            cwd=self.local.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def until(self, look: Callable[[], T], what: str, limit_s: float = 60.0) -> T:
        """Return what `look` finds, once it is true. Raises AssertionError."""
        end = time.monotonic() + limit_s
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"never within {limit_s:.0f} s: {what}\n{self.picture()}")
            time.sleep(_POLL_S)

    def picture(self) -> str:
        """How everybody is, for a message."""
        lines = [f"controller {n}: {self.status(n)}" for n in CONTROLLERS]
        lines += [f"{c.name}: …{c.last_words(4)[-800:]}" for c in self.local.children]
        lines += [f"{b.name}: …{b.child.last_words(4)[-800:]}" for b in self.brokers]
        return "\n".join(lines)


@contextmanager
def our_controllers(
    folder: Path, disks: AbstractContextManager[None] | None = None, **options: Any
) -> Iterator[OurControllers]:
    """Run controllers for the time of a `with` block; brokers are added in it.

    `disks` is entered before the controllers start, and left after they ended.
    """
    cluster = OurControllers(folder, **options)
    with disks or nullcontext():
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
