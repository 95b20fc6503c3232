"""What a local cluster with Kafka's brokers has besides: ids, ports, the controllers' `[kafka]`.

Rule: in Kafka, controllers and brokers share one space of ids. Local controllers begin at 1, so
Kafka's brokers begin at 101. A folder keeps its version of Kafka: brokers of another version could
fail to read what the first one wrote.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

from logberg.local.cluster_file import ClusterFile, KafkaPart, LocalClusterError
from logberg.local.ports import KAFKA_BROKER_PORT, KAFKA_PORT, KAFKA_SCRAM_PORT

FIRST_BROKER: Final = 101
REPLICAS: Final = 3
"""Of a topic whose creator doesn't say, and of Kafka's own topics, if there are as many brokers."""


class KafkaWanted(NamedTuple):
    """What the caller asks for."""

    version: str | None
    """None: that of the folder, or `new_version`."""
    brokers: int | None
    """None: as many as the folder has, or three."""
    new_version: str


def new_part(wanted: KafkaWanted | None) -> KafkaPart | None:
    """Return what a new folder gets."""
    if wanted is None:
        return None
    return KafkaPart(wanted.version or wanted.new_version, wanted.brokers or 3)


def resumed_part(
    folder: Path, found: KafkaPart | None, wanted: KafkaWanted | None
) -> KafkaPart | None:
    """Return what a folder has, if that is what the caller asks for. Raises LocalClusterError."""
    if found is None:
        if wanted is not None:
            raise LocalClusterError(
                f"{folder} holds a cluster whose brokers are Logberg's own agents, not Kafka's. "
                "Use another folder with --data."
            )
        return None
    if wanted is None:
        raise LocalClusterError(
            f"{folder} holds a cluster with Kafka's brokers. Run `logberg kafka up --data "
            f"{folder}`, or use another folder with --data."
        )
    if wanted.version not in {None, found.version}:
        raise LocalClusterError(
            f"{folder} holds a cluster of Kafka {found.version}, not {wanted.version}. Leave "
            "--kafka-version out, or use another folder with --data."
        )
    if wanted.brokers is not None and wanted.brokers < found.brokers:
        raise LocalClusterError(
            f"{folder} holds {found.brokers} brokers with their replicas, not {wanted.brokers}. "
            "Leave --brokers out, or use another folder with --data."
        )
    return KafkaPart(found.version, wanted.brokers or found.brokers)


def broker_ids(part: KafkaPart) -> range:
    """Return the ids of Kafka's brokers."""
    return range(FIRST_BROKER, FIRST_BROKER + part.brokers)


def broker_ports(file: ClusterFile, broker_id: int) -> tuple[int, int]:
    """Return the ports of a broker: for everybody, and for clients that log in."""
    above = file.port_base + broker_id - FIRST_BROKER
    return above + KAFKA_BROKER_PORT, above + KAFKA_SCRAM_PORT


def kafka_address(file: ClusterFile, controller: int) -> str:
    """Return host:port of a controller's Kafka listener."""
    return f"127.0.0.1:{file.port_base + KAFKA_PORT + controller - 1}"


def kafka_ports(file: ClusterFile) -> list[int]:
    """Return the ports that Kafka adds to those of the cluster."""
    if file.kafka is None:
        return []
    ports = [file.port_base + KAFKA_PORT + n for n in range(file.controllers)]
    return ports + [port for n in broker_ids(file.kafka) for port in broker_ports(file, n)]


def controller_settings(file: ClusterFile, controller: int) -> dict[str, Any]:
    """Return what a controller's file has besides: Kafka's listener, and what its brokers may.

    A broker asks in the name of its clients, so it may speak for every user.
    """
    if file.kafka is None:
        return {}
    return {
        "default_replication_factor": min(REPLICAS, file.kafka.brokers),
        "kafka": {"listen": kafka_address(file, controller)},
        "delegations": [{"broker": n, "users": ["User:*"]} for n in broker_ids(file.kafka)],
    }
