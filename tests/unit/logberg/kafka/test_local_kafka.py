"""What `kafka up` writes before anything starts, and what it refuses. Nothing of Kafka's runs."""

import json
import socket
import stat
from pathlib import Path

import pytest
from cryptography import x509

from audit.spark.java import Java
from logberg.kafka.local_kafka import KafkaCluster
from logberg.kafka.versions import first_levels_for
from logberg.local.cluster_file import LocalClusterError
from logberg.local.kafka_part import KafkaWanted
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import load

NEW = KafkaWanted(None, None, "4.3.1")
JAVA = Java(Path("/nowhere/java"), 17, "PATH")


def local(folder: Path, wanted: KafkaWanted | None = NEW, brokers: int = 0) -> LocalCluster:
    return LocalCluster(folder, None, brokers, free_port_base(), kafka=wanted)


def prepared(folder: Path, wanted: KafkaWanted = NEW) -> KafkaCluster:
    made = local(folder, wanted)
    assert made.file.kafka is not None
    made.begin_at(first_levels_for(made.file.kafka.version))
    cluster = KafkaCluster(made, [Path("a.jar")], JAVA)
    cluster.prepare()
    return cluster


def of_broker(cluster: KafkaCluster, n: int) -> dict[str, str]:
    return cluster.brokers[n]._properties


def test_brokers_and_controllers_share_no_id_and_find_each_other(tmp_path) -> None:
    cluster = prepared(tmp_path)
    assert list(cluster.brokers) == [101, 102, 103]
    settings = [
        load(tmp_path / "config" / f"controller-{n}.toml", ControllerSettings) for n in (1, 2, 3)
    ]
    listens = [one.kafka.listen for one in settings if one.kafka is not None]
    for n in cluster.brokers:
        properties = of_broker(cluster, n)
        assert properties["controller.quorum.bootstrap.servers"] == ",".join(listens)
        assert properties["node.id"] == str(n)
        assert properties["process.roles"] == "broker"
    assert {one.node_id for one in settings} == {1, 2, 3}
    for one in settings:
        assert one.require_authentication
        granted = {grant.broker: grant.users for grant in one.delegations}
        assert granted == dict.fromkeys(cluster.brokers, ("User:*",))
        assert one.initial_features == {"metadata.version": 30}


def test_each_broker_has_a_certificate_that_names_it(tmp_path) -> None:
    cluster = prepared(tmp_path)
    for n in cluster.brokers:
        path = Path(of_broker(cluster, n)["listener.name.controller.ssl.keystore.location"])
        text = path.read_text()
        # Kafka takes the key from the same file.
        assert text.startswith("-----BEGIN PRIVATE KEY-----")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        certificate = x509.load_pem_x509_certificate(text.encode())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        assert uris == [f"broker://{cluster.cluster_id}/{n}"]


def test_the_tools_settings_show_the_administrators_certificate(tmp_path) -> None:
    cluster = prepared(tmp_path)
    written = (tmp_path / "config" / "admin.properties").read_text()
    lines = dict(line.split("=", 1) for line in written.splitlines())
    assert lines["security.protocol"] == "SSL"
    certificate = x509.load_pem_x509_certificate(
        Path(lines["ssl.keystore.location"]).read_bytes().partition(b"-----BEGIN CERT")[1]
        + Path(lines["ssl.keystore.location"]).read_bytes().partition(b"-----BEGIN CERT")[2]
    )
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    assert uris == [f"user://{cluster.cluster_id}/admin"]


def test_a_new_cluster_enforces_rights_on_its_brokers_too(tmp_path) -> None:
    cluster = prepared(tmp_path)
    settings = load(tmp_path / "config" / "controller-1.toml", ControllerSettings)
    assert (settings.authorization, settings.super_users) == ("on", ("User:admin",))
    for n in cluster.brokers:
        properties = of_broker(cluster, n)
        assert properties["authorizer.class.name"].endswith(".StandardAuthorizer")
        users = properties["super.users"].split(";")
        assert users == ["User:admin", *(f"User:broker-{each}" for each in cluster.brokers)]
        assert "PLAINTEXT:PLAINTEXT" not in properties["listener.security.protocol.map"]
        assert properties["inter.broker.listener.name"] == "CERTIFICATES"
        assert properties["listener.name.certificates.ssl.client.auth"] == "required"
        own = properties["listener.name.certificates.ssl.keystore.location"]
        assert own == properties["listener.name.controller.ssl.keystore.location"]
    cluster.write_cluster_file()
    assert json.loads((tmp_path / "cluster.json").read_bytes())["kafka"]["certificates"]


def test_a_folder_of_before_stays_open(tmp_path) -> None:
    first = prepared(tmp_path)
    identity = tmp_path / "config" / "identity.json"
    before = json.loads(identity.read_text())
    del before["authorization"]
    identity.write_text(json.dumps(before))
    again = prepared(tmp_path)
    assert again.cluster_id == first.cluster_id
    assert not again.enforces
    for n in again.brokers:
        properties = of_broker(again, n)
        assert "authorizer.class.name" not in properties
        assert properties["inter.broker.listener.name"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("brokers", "replicas", "min_isr"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_kafkas_own_topics_fit_the_number_of_brokers(tmp_path, brokers, replicas, min_isr) -> None:
    cluster = prepared(tmp_path, KafkaWanted(None, brokers, "4.3.1"))
    for n in cluster.brokers:
        properties = of_broker(cluster, n)
        assert properties["offsets.topic.replication.factor"] == replicas
        assert properties["transaction.state.log.min.isr"] == min_isr
    settings = load(tmp_path / "config" / "controller-1.toml", ControllerSettings)
    assert settings.default_replication_factor == int(replicas)


def test_cluster_json_says_where_everything_is(tmp_path) -> None:
    cluster = prepared(tmp_path)
    cluster.write_cluster_file()
    file = json.loads((tmp_path / "cluster.json").read_bytes())
    part = file["kafka"]
    base = file["portBase"]
    assert part["version"] == "4.3.1"
    assert part["bootstrap"] == ",".join(f"127.0.0.1:{base + 491 + n}" for n in range(3))
    assert part["scramBootstrap"] == ",".join(f"127.0.0.1:{base + 591 + n}" for n in range(3))
    assert part["controllers"] == ",".join(f"127.0.0.1:{base + 391 + n}" for n in range(3))
    assert Path(part["adminProperties"]).exists()
    assert [(node["id"], node["pid"]) for node in part["nodes"]] == [
        (101, None),
        (102, None),
        (103, None),
    ]
    assert {node["role"] for node in file["nodes"]} == {"controller"}


def test_a_folder_goes_on_with_what_it_has(tmp_path) -> None:
    first = prepared(tmp_path, KafkaWanted("4.2.1", 2, "4.3.1"))
    again = local(tmp_path)
    assert again.resumed
    assert again.cluster_id == first.cluster_id
    assert again.file.kafka is not None
    assert (again.file.kafka.version, again.file.kafka.brokers) == ("4.2.1", 2)
    more = local(tmp_path, KafkaWanted("4.2.1", 4, "4.3.1"))
    assert more.file.kafka is not None
    assert more.file.kafka.brokers == 4


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (KafkaWanted("4.2.1", None, "4.3.1"), "holds a cluster of Kafka 4.3.1, not 4.2.1. Leave"),
        (KafkaWanted(None, 2, "4.3.1"), "holds 3 brokers with their replicas, not 2. Leave"),
        (None, "holds a cluster with Kafka's brokers. Run `logberg kafka up --data"),
    ],
    ids=["another version", "fewer brokers", "logberg up"],
)
def test_what_a_folder_does_not_have_is_refused(tmp_path, wanted, sentence) -> None:
    prepared(tmp_path)
    with pytest.raises(LocalClusterError, match=sentence):
        local(tmp_path, wanted)


def test_a_folder_with_agents_is_refused(tmp_path) -> None:
    local(tmp_path, None, brokers=3).prepare()
    with pytest.raises(LocalClusterError, match="whose brokers are Logberg's own agents"):
        local(tmp_path)


def test_a_folder_with_strangers_brokers_is_refused(tmp_path) -> None:
    (tmp_path / "kafka-101").mkdir()
    with pytest.raises(LocalClusterError, match=r"holds kafka-101 but no .*another cluster"):
        local(tmp_path).check()


@pytest.mark.parametrize("above", [391, 393, 491, 493, 591, 593])
def test_a_taken_port_is_refused_before_anything_is_written(tmp_path, above) -> None:
    made = local(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", made.file.port_base + above))
        taken.listen()
        with pytest.raises(LocalClusterError, match=f"Port {made.file.port_base + above} is in"):
            made.prepare()
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_ends_is_named_with_its_last_lines(tmp_path) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'FATAL: node 1 is a controller'; exit 1\n")
    program.chmod(0o755)
    made = local(tmp_path / "cluster")
    cluster = KafkaCluster(made, [], Java(program, 17, "PATH"))
    cluster.prepare()
    broker = cluster.brokers[102]
    broker.start()
    assert broker.child.wait(20)
    with pytest.raises(LocalClusterError, match=r"kafka-broker-102 .* ended with exit code 1"):
        cluster.check_alive()
    output = cluster.folder / "output" / "kafka-102.log"
    assert "node 1 is a controller" in output.read_text()
