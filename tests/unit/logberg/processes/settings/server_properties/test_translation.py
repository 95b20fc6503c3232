"""Kafka's keys become our settings: one row for each key, and one for each problem."""

from pathlib import Path
from typing import Any

import pytest

from logberg.processes.settings.controller_settings import PeerSettings
from logberg.processes.settings.server_properties.translation import NEVER_MS
from logberg.processes.settings.settings_files import SettingsError
from logberg.processes.settings.shared_settings import BrokerEndpoint, Tls
from tests.unit.logberg.processes.settings.server_properties.files import BOTH, broker, controller

URL = "logberg.controllers.http"
UNCLEAN = "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("key", "value", "setting", "expected"),
    [
        ("node.id", " 2 ", "node_id", 2),
        ("logberg.cluster.id", "x", "cluster_id", "x"),
        ("broker.session.timeout.ms", "18000", "session_ms", 18_000),
        ("broker.heartbeat.interval.ms", "1500", "heartbeat_ms", 1_500),
        ("controller.quorum.fetch.timeout.ms", "700", "election_timeout_ms", 700),
        ("num.partitions", "6", "default_partitions", 6),
        ("default.replication.factor", "3", "default_replication_factor", 3),
        ("default.replication.factor", None, "default_replication_factor", 1),
        ("delete.topic.enable", "FALSE", "topic_deletion", False),
        ("auto.leader.rebalance.enable", "false", "auto_leader_rebalance", False),
        ("leader.imbalance.check.interval.seconds", "60", "leader_imbalance_check_ms", 60_000),
        ("unclean.leader.election.interval.ms", "1000", "unclean_leader_election_ms", 1_000),
        ("metadata.log.segment.bytes", "8388608", "segment_bytes", 8_388_608),
        ("metadata.log.max.record.bytes.between.snapshots", "1000000", "checkpoint_bytes", 10**6),
        ("metadata.log.max.snapshot.interval.ms", "600000", "checkpoint_ms", 600_000),
        ("metadata.log.max.snapshot.interval.ms", "0", "checkpoint_ms", NEVER_MS),
        ("broker.id", "-1", "node_id", 2),
        ("delegation.token.max.lifetime.ms", "1000", "token_max_lifetime_ms", 1_000),
        ("delegation.token.expiry.time.ms", "500", "token_period_ms", 500),
        ("create.topic.policy.class.name", "s.r:Topics", "create_topic_policy", "s.r:Topics"),
        ("alter.config.policy.class.name", "org.s.Policy", "alter_config_policy", "org.s.Policy"),
        ("super.users", "User:a; User:b", "super_users", ("User:a", "User:b")),
        ("allow.everyone.if.no.acl.found", "true", "allow_if_no_acl", True),
        ("min.insync.replicas", "2", "configs", {"min.insync.replicas": "2"}),
        ("unclean.leader.election.enable", "true", "configs", {UNCLEAN: "true"}),
        ("log.retention.hours", "24", "configs", {"log.retention.hours": "24"}),
        ("num.io.threads", "4", "configs", {}),
        ("controlled.shutdown.enable", "true", "broker", None),
        ("controlled.shutdown.enable", "false", "broker", None),
        ("config.providers", "", "broker", None),
    ],
)  # fmt: skip
def test_a_key_becomes_a_setting(
    tmp_path: Path, key: str, value: str | None, setting: str, expected: Any
) -> None:
    loaded = controller(tmp_path, {key: value})
    assert getattr(loaded.settings, setting) == expected


def test_the_voters_are_the_controllers(tmp_path: Path) -> None:
    settings = controller(tmp_path, {}).settings
    assert settings.controllers == tuple(
        PeerSettings(n, f"10.0.0.{n}:9093", f"http://10.0.0.{n}:9193") for n in (1, 2, 3)
    )
    assert settings.broker is None


def test_urls_of_our_own_key_and_addresses_of_the_sixth_version(tmp_path: Path) -> None:
    voters = {"controller.quorum.voters": "1@[fd00::1]:9093,2@h:9093", "node.id": "2"}
    settings = controller(tmp_path, {**voters, URL: "2@http://h:8000"}).settings
    assert settings.controllers == (
        PeerSettings(1, "[fd00::1]:9093", "http://[fd00::1]:9193"),
        PeerSettings(2, "h:9093", "http://h:8000"),
    )


def test_a_lone_controller_needs_no_voters(tmp_path: Path) -> None:
    """Kafka's own example file has only the servers for the first contact."""
    changes = {
        "controller.quorum.voters": None,
        "controller.quorum.bootstrap.servers": "localhost:9093",
    }
    assert controller(tmp_path, changes).settings.controllers == (
        PeerSettings(2, "localhost:9093", "http://localhost:9193"),
    )


def test_folders_are_below_kafkas_own(tmp_path: Path) -> None:
    settings = controller(tmp_path, {}, base=BOTH).settings
    assert settings.data == str(tmp_path / "meta" / "logberg-controller")
    assert settings.broker.data == str(tmp_path / "a" / "logberg-broker")
    settings = controller(tmp_path, {"metadata.log.dir": None}, base=BOTH).settings
    assert settings.data == str(tmp_path / "a" / "logberg-controller")


def test_the_agent_of_both_roles(tmp_path: Path) -> None:
    beside = controller(tmp_path, {"broker.rack": "r1"}, base=BOTH).settings.broker
    assert beside.rack == "r1"
    assert beside.http == "127.0.0.1:9192"
    assert beside.endpoints == (BrokerEndpoint("PLAINTEXT", "b2.example.org", 9092),)


def test_an_agent_of_its_own(tmp_path: Path) -> None:
    settings = broker(tmp_path, {"broker.rack": "r1", "broker.session.timeout.ms": "6000"}).settings
    assert settings.broker_id == 7
    assert settings.controllers == ("http://10.0.0.1:9193", "http://10.0.0.2:9193")
    assert settings.endpoints == (BrokerEndpoint("PLAINTEXT", "b7", 9092),)
    assert (settings.http, settings.rack, settings.session_ms) == ("127.0.0.1:9192", "r1", 6_000)
    assert settings.data == str(tmp_path / "logs" / "logberg-broker")


def test_endpoints_carry_their_protocol(tmp_path: Path) -> None:
    changes = {
        "listeners": "IN://h:1,OUT://h:2,SSL://h:3",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:SASL_SSL,SSL:SSL,CONTROLLER:PLAINTEXT",
    }
    found = {e.name: e.security_protocol for e in broker(tmp_path, changes).settings.endpoints}
    assert found == {"IN": "PLAINTEXT", "OUT": "SASL_SSL", "SSL": "SSL"}


PEM = {
    "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "ca.pem",
    "ssl.keystore.location": "broker.pem",
    "listener.name.controller.ssl.keystore.location": "/etc/controller.pem",
}


def test_certificates_of_each_role(tmp_path: Path) -> None:
    settings = controller(tmp_path, PEM, base=BOTH).settings
    ca, own = str(tmp_path / "ca.pem"), str(tmp_path / "broker.pem")
    assert settings.tls == Tls("/etc/controller.pem", "/etc/controller.pem", ca)
    assert settings.broker.tls == Tls(own, own, ca)
    assert settings.own().http == "https://10.0.0.2:9193"


def test_stores_of_brokers_alone_are_the_brokers_concern(tmp_path: Path) -> None:
    changes = {
        "ssl.keystore.location": "x.jks",
        "ssl.keystore.password": "p",
        "ssl.key.password": "p",
    }
    assert controller(tmp_path, changes).settings.tls is None


def test_the_cluster_is_that_of_a_formatted_folder(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "meta.properties").write_text("#\nversion=1\ncluster.id=formatted\n")
    assert controller(tmp_path, {"logberg.cluster.id": None}).settings.cluster_id == "formatted"
    with pytest.raises(SettingsError, match="belongs to cluster formatted"):
        controller(tmp_path, {})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"process.roles": None}, "process.roles is missing"),
        ({"process.roles": "leader"}, "process.roles: String must be one of: broker, controller"),
        ({"process.roles": "broker,broker"}, "process.roles is 'broker,broker'; write controller"),
        ({"process.roles": "broker"}, "start the agent by `logberg broker`"),
        ({"node.id": None}, "node.id is missing"),
        ({"node.id": "two"}, "line 2: Invalid value two for configuration node.id: Not a number"),
        ({"node.id": "-1"}, "node.id: Value must be at least 0"),
        ({"node.id": "9"}, "node_id is 9, but controllers lists [1, 2, 3]"),
        ({"broker.id": "5"}, "broker.id is 5, and node.id is 2"),
        ({"controller.quorum.voters": None}, "controller.quorum.voters is missing"),
        ({"controller.quorum.voters": "10.0.0.1:9093"}, "write number@host:port"),
        ({"controller.quorum.voters": "1@h:1,1@h:2"}, "has node 1 twice"),
        (
            {
                "controller.quorum.voters": None,
                "controller.quorum.bootstrap.servers": "a:1,b:1",
            },
            "doesn't say which controller has which number",
        ),
        ({"controller.listener.names": None}, "controller.listener.names is missing"),
        ({"listeners": "PLAINTEXT://:9092"}, "listeners has no CONTROLLER"),
        ({"listeners": "CONTROLLER://:9099"}, "has port 9099, but the other controllers"),
        ({"listeners": "CONTROLLER:9093"}, "write NAME://host:port"),
        ({"listeners": "CONTROLLER://:9093,CONTROLLER://:1"}, "has a listener twice"),
        ({"listener.security.protocol.map": "CONTROLLER:SASL_SSL"}, "controllers know no SASL"),
        ({"listener.security.protocol.map": "CONTROLLER:TLS"}, "has the protocol TLS; use one of"),
        ({"listener.security.protocol.map": "CONTROLLER"}, "write NAME:PROTOCOL"),
        ({"metadata.log.dir": None}, "metadata.log.dir or log.dirs is missing"),
        ({"logberg.cluster.id": None}, "cluster_id is missing: write logberg.cluster.id"),
        ({URL: "1@10.0.0.1:9193"}, "write number@URL"),
        ({"logberg.cluster.idd": "c"}, "there is no key logberg.cluster.idd. Logberg's own are"),
        ({"num.partitions": "0"}, "Value must be at least 1"),
        ({"num.partitions": "many"}, "Not a number of type INT"),
        ({"delete.topic.enable": "perhaps"}, "Expected value to be either true or false"),
        ({"allow.everyone.if.no.acl.found": "1"}, "write true or false"),
        ({"min.insync.replicas": "0"}, "min.insync.replicas: Value must be at least 1"),
        ({"num.io.threads": "x"}, "num.io.threads: Not a number"),
        ({"broker.heartbeat.interval.ms": "8000"}, "at most half of session_ms"),
        ({"zookeeper.connect": "z:2181"}, "zookeeper.connect is refused: Logberg has no ZooKeeper"),
        ({"config.providers": "env"}, "config.providers is refused"),
        ({"authorizer.class.name": "org.x.Y"}, "authorizer.class.name is refused"),
        ({"principal.builder.class": "org.x.Y"}, "Logberg runs no Java classes"),
        ({**PEM, "ssl.keystore.type": "JKS"}, "ssl.keystore.type must be PEM"),
        ({**PEM, "ssl.truststore.type": None}, "ssl.truststore.type must be PEM"),
        ({**PEM, "ssl.key.password": "p"}, "ssl.key.password can't be used"),
        ({**PEM, "ssl.truststore.location": None}, "ssl.truststore.location is missing"),
    ],
)  # fmt: skip
def test_every_problem_is_a_sentence(
    tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        controller(tmp_path, changes)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"process.roles": "broker,controller"}, "start the node by `logberg controller`"),
        ({"log.dirs": None}, "log.dirs is missing"),
        ({"listeners": "PLAINTEXT://:9092"}, "says no host for PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners=PLAINTEXT://HOST"),
        ({"controller.quorum.bootstrap.servers": None}, "controllers is missing"),
        ({"listeners": None}, "http is missing: write logberg.broker.http"),
        ({"controlled.shutdown.enable": "false"}, "an agent always hands its leaders over"),
    ],
)  # fmt: skip
def test_every_problem_of_an_agent_is_a_sentence(
    tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        broker(tmp_path, changes)
    assert said in str(refused.value)


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        controller(tmp_path, {"zookeeper.connect": "z:1", "num.partitions": "x", "node.id": "y"})
    for word in ("zookeeper.connect", "num.partitions", "node.id"):
        assert word in str(refused.value)


def test_a_secret_is_in_no_message(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        controller(tmp_path, {**PEM, "ssl.key.password": "hush"})
    assert "hush" not in str(refused.value)
