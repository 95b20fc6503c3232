"""Real brokers at a listener with TLS that demands a login: certificates, tokens, SCRAM."""

import pytest

from logberg.kafka.jars import kafka_jars
from logberg.kafka.kafka_error import KafkaError
from tests.kafka.broker_logins import by_certificate, by_scram, by_token
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.our_controllers import OurControllers, our_controllers
from tests.kafka.test_versions import works

PASSWORD = "a-secret-of-a-broker"
DELEGATIONS = [{"broker": n, "users": ["User:*"]} for n in (11, 12, 13, 14)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with our_controllers(
        tmp_path_factory.mktemp("logins"),
        secure=True,
        tokens=("Broker:12", "User:alice"),
        kafka={
            "sasl_mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
            "broker_users": {"kafka-13": 13, "kafka-14": 14},
        },
        delegations=DELEGATIONS,
    ) as cluster:
        yield cluster


def set_password(cluster: OurControllers, user: str, mechanism: str) -> None:
    file = cluster.folder / "password"
    file.write_text(PASSWORD + "\n")
    said = cluster.command(
        "users", "scram", "set", user, "--mechanism", mechanism, "--password-file", str(file)
    )
    assert said.returncode == 0, said.stderr


def test_brokers_log_in_by_certificate_token_and_scram_and_work_together(cluster) -> None:
    jars = kafka_jars()
    set_password(cluster, "kafka-13", "SCRAM-SHA-512")
    set_password(cluster, "kafka-14", "SCRAM-SHA-256")
    cluster.add_broker(jars, 11, by_certificate(cluster, 11))
    cluster.add_broker(jars, 12, by_token(cluster, 12))
    cluster.add_broker(jars, 13, by_scram(cluster, "kafka-13", PASSWORD))
    cluster.add_broker(jars, 14, by_scram(cluster, "kafka-14", PASSWORD, "SCRAM-SHA-256"))
    cluster.wait_running()
    works(cluster, JavaPrograms(jars), "logged-in")
    assert cluster.broker_states() == dict.fromkeys((11, 12, 13, 14), "online")


@pytest.mark.parametrize("how", ["another's certificate", "a user's token", "a wrong password"])
def test_a_broker_without_a_credential_of_its_own_is_kept_out_with_a_sentence(cluster, how) -> None:
    """It never registers; the controllers' logs say why."""
    more = {
        "another's certificate": lambda: by_certificate(cluster, 11),
        "a user's token": lambda: by_token(cluster, 12),
        "a wrong password": lambda: by_scram(cluster, "kafka-13", "wrong"),
    }[how]()
    broker = cluster.add_broker(kafka_jars(), 20, more)
    try:
        with pytest.raises(KafkaError):
            broker.wait_running(25.0)
        said = [
            line
            for n in (1, 2, 3)
            for event in ("kafka_broker_refused", "kafka_request_refused")
            for line in cluster.log_lines(n, event)
        ]
        expected = "not known here" if how == "a wrong password" else "can't speak for broker 20"
        assert any(expected in str(line) for line in said), said
        assert 20 not in cluster.broker_states()
    finally:
        broker.kill()
        cluster.brokers.remove(broker)
