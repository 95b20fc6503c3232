"""The way back that docs/kafka/README.md tells of: Kafka's own controllers go on with our log.

They take over ids, directory ids and addresses of our controllers. The brokers are started with
their files as they are.
"""

import re
import shutil
from pathlib import Path

from logberg.kafka.broker_process import KafkaProcess, stop_servers
from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.local_kafka import KafkaCluster
from logberg.kafka.node_files import controller_properties
from logberg.local.kafka_part import KafkaWanted, kafka_address
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from tests.kafka.kafka_up import command, consume_100, kafka_up, produce_100

SAME = KafkaWanted(None, None, DEFAULT_VERSION)


def test_kafkas_own_controllers_go_on_with_our_log(tmp_path) -> None:
    folder = tmp_path / "cluster"
    with kafka_up(folder, "--port-base", str(free_port_base())) as up:
        up.ready()
        up.tool(
            *("kafka-topics", "--create", "--topic", "kept"),
            *("--partitions", "3", "--replication-factor", "3"),
        )
        produce_100(up, "kept")
        up.stops()
    printed = command(
        *("kafka", "metadata-log", str(folder), "--out", str(tmp_path / "back")),
        *("--cluster-key", str(folder / "config" / "cluster.key")),
    )
    directories = dict(re.findall(r"^ *([123])  (\S{22})  \S*CONTROLLER://", printed, re.MULTILINE))
    assert len(directories) == 3, printed

    segment = tmp_path / "back" / "__cluster_metadata-0" / f"{0:020d}.log"
    dumped = up.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segment))
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"kept"' in dumped

    local = LocalCluster(folder, kafka=SAME)
    jars = kafka_jars()
    cluster = KafkaCluster(local, jars, java_for_kafka())
    controllers = [stock_controller(cluster, n, jars) for n in (1, 2, 3)]
    try:
        for controller in controllers:
            controller.format(cluster.cluster_id)
            take_over(controller, directories[str(controller.node_id)], tmp_path / "back")
            controller.start()
        for broker in cluster.brokers.values():
            broker.start()
        for server in (*controllers, *cluster.brokers.values()):
            server.wait_running(120)
        assert consume_100(up, "kept") == list(range(100))
        up.tool(
            *("kafka-topics", "--create", "--topic", "after"),
            *("--partitions", "3", "--replication-factor", "3"),
        )
        produce_100(up, "after")
        assert consume_100(up, "after") == list(range(100))
    finally:
        assert stop_servers(list(cluster.brokers.values())) == []
        stop_servers(controllers)


def stock_controller(cluster: KafkaCluster, n: int, jars: list[Path]) -> KafkaProcess:
    """Return one of Kafka's own controllers at the address of ours."""
    certs = cluster.folder / "certs"
    pem = certs / f"controller-{n}.pem"
    pem.write_text(
        (certs / f"controller-{n}.key").read_text() + (certs / f"controller-{n}.crt").read_text()
    )
    addresses = [kafka_address(cluster.file, m) for m in (1, 2, 3)]
    port = int(addresses[n - 1].rpartition(":")[2])
    tls = {
        "keystore.type": "PEM",
        "keystore.location": str(pem),
        "truststore.type": "PEM",
        "truststore.location": str(certs / "ca.crt"),
        "client.auth": "required",
    }
    more = {f"listener.name.controller.ssl.{key}": value for key, value in tls.items()}
    more["listener.security.protocol.map"] = "CONTROLLER:SSL"
    own = cluster.folder.parent / f"stock-{n}"
    properties = controller_properties(n, port, own, addresses, more)
    return KafkaProcess(own, properties, jars, java_for_kafka())


def take_over(controller: KafkaProcess, directory_id: str, back: Path) -> None:
    """Give a formatted folder the directory id and the log of our controller."""
    data = controller.folder / "data"
    meta = data / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
    meta.write_text("\n".join([*lines, f"directory.id={directory_id}", ""]))
    shutil.copytree(back / "__cluster_metadata-0", data / "__cluster_metadata-0")
