"""Three controllers of ours and Kafka's own brokers on this machine, in one folder.

Rule: nothing is special about this cluster. The brokers reach the controllers by mutual TLS, with
certificates of the local authority that name them (`broker://<cluster>/<id>`), as anywhere else.
Clients on this machine reach a broker at two listeners: one where they show a certificate, and one
where a user logs in with the password that the log knows (SCRAM-SHA-256). In a folder whose
controllers enforce no rights, the first one is for everybody.

    DIR/kafka-101 …                 a broker's server.properties and its data
    DIR/certs/broker-101.pem        its certificate with its key, in the form that Kafka reads
    DIR/config/admin.properties     what Kafka's tools need to ask the controllers
    DIR/output/kafka-101.log        what the broker logged
"""

import datetime as dt
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from audit.spark.java import Java
from logberg.kafka.broker_process import SMALL_HEAP, KafkaProcess, stop_servers
from logberg.kafka.enforced_files import enforced_properties
from logberg.kafka.node_files import broker_properties
from logberg.local.child import Child, stop_all
from logberg.local.cluster_file import ClusterFile, KafkaNode, LocalClusterError
from logberg.local.kafka_part import REPLICAS, broker_ids, broker_ports, kafka_address
from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.local_cluster import LocalCluster, Timing
from metadata.acl_rules import Enforcement

ADMIN_PROPERTIES: Final = Path("config", "admin.properties")
SCRAM: Final = "SCRAM-SHA-256"
_LISTENER: Final = "listener.name.controller."
_STOP_S: Final = 30.0


class KafkaCluster:
    """The cluster in a folder."""

    def __init__(
        self,
        local: LocalCluster,
        jars: Sequence[Path],
        java: Java,
        options: Sequence[str] = SMALL_HEAP,
    ) -> None:
        """`local` has a part for Kafka's brokers. `options` go to Java."""
        assert local.file.kafka is not None, "LocalCluster(…, kafka=…)"
        self.local = local
        self._part = local.file.kafka
        self.brokers = {
            n: KafkaProcess(
                local.folder / f"kafka-{n}",
                self._properties(n),
                jars,
                java,
                options,
                local.folder / "output" / f"kafka-{n}.log",
            )
            for n in broker_ids(self._part)
        }

    # What `up` and the demo need of a cluster.

    @property
    def folder(self) -> Path:
        """The folder of everything."""
        return self.local.folder

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.local.cluster_id

    @property
    def version(self) -> str:
        """Kafka's version."""
        return self._part.version

    @property
    def resumed(self) -> bool:
        """Whether the folder held this cluster before."""
        return self.local.resumed

    @property
    def file(self) -> ClusterFile:
        """What cluster.json says."""
        return self.local.file

    @property
    def timing(self) -> Timing:
        """Sessions and heartbeats."""
        return self.local.timing

    @property
    def controllers(self) -> dict[int, Child]:
        """The controllers' processes."""
        return self.local.controllers

    @property
    def controller_urls(self) -> list[str]:
        """URLs of all controllers."""
        return self.local.controller_urls

    @property
    def children(self) -> list[Child]:
        """All processes."""
        return [*self.controllers.values(), *(broker.child for broker in self.brokers.values())]

    @property
    def bootstrap(self) -> str:
        """bootstrap.servers of clients that show certificates, or don't log in."""
        return ",".join(_addresses(self.file, n)[0] for n in self.brokers)

    @property
    def scram_bootstrap(self) -> str:
        """bootstrap.servers of clients that log in."""
        return ",".join(_addresses(self.file, n)[1] for n in self.brokers)

    @property
    def enforces(self) -> bool:
        """Whether controllers and brokers enforce rights."""
        return self.file.authorization == Enforcement.ON

    def prepare(self) -> None:
        """Make all files of the controllers and of the brokers. Raises LocalClusterError."""
        self.local.prepare()
        authority = LocalCertificateAuthority(
            self.folder / "certs", self.cluster_id, dt.datetime.now(dt.UTC)
        )
        for n in self.brokers:
            authority.issue_joined(f"broker-{n}", f"broker://{self.cluster_id}/{n}")
        authority.issue_joined("admin", f"user://{self.cluster_id}/admin")
        lines = {"security.protocol": "SSL", **self._tls("admin")}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (self.folder / ADMIN_PROPERTIES).write_text(text)

    def write_cluster_file(self) -> None:
        """Write cluster.json with what runs now."""
        nodes = [
            KafkaNode(
                n,
                broker.child.pid if broker.child.running else None,
                *_addresses(self.file, n),
                str(broker.folder),
            )
            for n, broker in self.brokers.items()
        ]
        self.local.write_cluster_file(
            msgspec.structs.replace(
                self._part,
                bootstrap=self.bootstrap,
                scram_bootstrap=self.scram_bootstrap,
                controllers=",".join(self._kafka_addresses()),
                admin_properties=str(self.folder / ADMIN_PROPERTIES),
                certificates=self.enforces,
                nodes=tuple(nodes),
            )
        )

    def check_alive(self) -> None:
        """Raise LocalClusterError with what a process said that ended unexpectedly."""
        self.local.check_alive()
        for broker in self.brokers.values():
            if broker.child.exit_code not in {None, 0, -signal.SIGKILL}:
                raise LocalClusterError(broker.obituary())

    def stop(self, limit_s: float = _STOP_S) -> list[str]:
        """Stop the brokers, then the controllers, cleanly. Returns the names of the killed."""
        forced = stop_servers(list(self.brokers.values()), limit_s)
        return forced + stop_all(list(self.controllers.values()), limit_s)

    # The brokers' settings.

    def _properties(self, n: int) -> dict[str, str]:
        replicas = str(min(REPLICAS, self._part.brokers))
        min_isr = "2" if replicas == str(REPLICAS) else "1"
        more = {
            **(self._enforced(n) if self.enforces else self._open(n)),
            **{f"{_LISTENER}{key}": value for key, value in self._tls(f"broker-{n}").items()},
            "listener.name.scram.sasl.enabled.mechanisms": SCRAM,
            f"listener.name.scram.{SCRAM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "broker.heartbeat.interval.ms": str(self.timing.heartbeat_ms),
            "broker.session.timeout.ms": str(self.timing.session_ms),
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min_isr,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": min_isr,
        }
        folder = self.folder / f"kafka-{n}"
        return broker_properties(
            n, broker_ports(self.file, n)[0], folder, self._kafka_addresses(), more
        )

    def _enforced(self, n: int) -> dict[str, str]:
        addresses = _addresses(self.file, n)
        return enforced_properties(*addresses, self._tls(f"broker-{n}"), broker_ids(self._part))

    def _open(self, n: int) -> dict[str, str]:
        plain, scram = _addresses(self.file, n)
        both = f"PLAINTEXT://{plain},SCRAM://{scram}"
        return {
            "listener.security.protocol.map": (
                "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT,SCRAM:SASL_PLAINTEXT"
            ),
            "listeners": both,
            "advertised.listeners": both,
            "inter.broker.listener.name": "PLAINTEXT",
        }

    def _tls(self, name: str) -> dict[str, str]:
        """Return the keys with which one of Kafka's programs shows a certificate."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._pem(name)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.file.ca,
        }

    def _pem(self, name: str) -> Path:
        return self.folder / "certs" / f"{name}.pem"

    def _kafka_addresses(self) -> list[str]:
        return [kafka_address(self.file, n) for n in self.controllers]


def _addresses(file: ClusterFile, broker_id: int) -> tuple[str, str]:
    """Return host:port of a broker's two listeners; users log in at the second one."""
    plain, scram = broker_ports(file, broker_id)
    return f"127.0.0.1:{plain}", f"127.0.0.1:{scram}"
