"""Unmodified clients manage a cluster of our agents: `make kafka TESTS=tests/kafka/clients`.

It needs kcat (Debian: apt install kcat), a JDK 17 and Maven. pip installs the libraries.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from tests.kafka.clients.calls import ClientCall, UnexpectedEndError
from tests.kafka.clients.cluster import access, client_cluster, write_properties
from tests.kafka.clients.kcat_commands import run_kcat
from tests.kafka.clients.libraries import LibraryCalls, install, run_calls
from tests.kafka.clients.page import LIBRARIES, checked, java_runs
from tests.kafka.jvm.java_admin import java_admin
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.tools.commands import ToolCommand
from tests.kafka.tools.running import ToolRunner
from tests.process.running_cluster import RunningCluster

NAMES = [table.library for table in LIBRARIES]
LISTING = {
    "confluent-kafka": "len(admin.list_topics(timeout=10).brokers)",
    "kafka-python": 'len(admin.describe_cluster()["brokers"])',
    "aiokafka": 'len((await admin.describe_cluster())["brokers"])',
}
CREATING = {
    "confluent-kafka": 'done(admin.create_topics([NewTopic("{}", 1, 3)]))',
    "kafka-python": 'brief(admin.create_topics({{"{}": {{"num_partitions": 1}}}}))',
    "aiokafka": 'await admin.create_topics([NewTopic("{}", 1, 3)])',
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("clients") / "venv")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    with client_cluster(tmp_path) as cluster:
        yield cluster


def asking(table: LibraryCalls, *calls: str) -> LibraryCalls:
    """The same client with other calls."""
    return table._replace(calls=tuple(map(ClientCall, calls)))


@pytest.mark.parametrize("table", LIBRARIES, ids=NAMES)
def test_a_library_does_what_its_table_says(cluster, python, table) -> None:
    assert len(checked(run_calls(python, table, access(cluster)))) == len(table.calls)


def test_kcat_lists_brokers_and_topics(cluster) -> None:
    cluster.create("orders", partitions=2, replication_factor=2)
    checked(run_kcat(access(cluster)))


def test_kafkas_own_tools_do_what_their_table_says(cluster, tmp_path) -> None:
    java_runs(cluster, tmp_path)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in_by_password_and_acts_in_the_users_name(
    cluster, python, tmp_path, mechanism
) -> None:
    admin, number = access(cluster), mechanism.replace("-", "_")
    upsert = (
        'done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dora", '
        f'ScramCredentialInfo(ScramMechanism.{number}, 4096), b"secret")]))'
    )
    checked(run_calls(python, asking(LIBRARIES[0], upsert), admin))
    entry = ("acls", "add", "User:dora", "all", "topic:by-", "--prefixed")
    granted = cluster.command(*entry, "--data", ".")
    assert granted.code == 0, granted
    dora = access(cluster, mechanism, "dora", "secret")
    for table in LIBRARIES:
        create = CREATING[table.library].format(f"by-{table.library}")
        runs = checked(run_calls(python, asking(table, LISTING[table.library], create), dora))
        assert runs[0][1].text == "3"
    # Debian's kcat has librdkafka 2.0.2, which repeats its nonce in the last message of SCRAM. We
    # refuse that, as Kafka does since CVE-2024-56128.
    runner = ToolRunner(
        dora["SERVERS"], "", tmp_path, DEFAULT_VERSION, write_properties(tmp_path, dora)
    )
    listed = runner.run(ToolCommand("kafka-topics --list", until="by-aiokafka", tries=10))
    assert "by-aiokafka" in listed.text
    cluster.stop()
    who = cluster.command(
        "audit", "who", str(cluster.data(1)), "topic:by-aiokafka", "--output", "json"
    )
    assert "User:dora" in who.out, who


@pytest.mark.parametrize("table", LIBRARIES, ids=NAMES)
def test_a_wrong_password_is_refused(cluster, python, table) -> None:
    """Two of the libraries say only that they can't connect, after they have tried for a while."""
    wrong = access(cluster, "PLAIN", "admin", "guessed")
    with pytest.raises(UnexpectedEndError, match=r"(?i)auth|transport failure|Unable to bootstrap"):
        checked(run_calls(python, asking(table, LISTING[table.library]), wrong))


@pytest.mark.parametrize("table", LIBRARIES, ids=NAMES)
def test_a_change_succeeds_though_the_leader_was_killed(cluster, python, table) -> None:
    """The client is connected, and sends its change within the same moment."""
    for count in range(3):
        leader = cluster.leader()
        kill = f"__import__('os').kill({cluster.controller(leader).pid}, 9)"
        create = CREATING[table.library].format(f"after-{count}")
        calls = asking(table, LISTING[table.library], kill, create)
        runs = checked(run_calls(python, calls, access(cluster)))
        print(f"{table.library}: {runs[2][1].text}")
        cluster.until(lambda name=f"after-{count}": name in cluster.topics(), "the topic is there")
        cluster.controller(leader).start()
        cluster.until(cluster.settled, "the killed controller is back")


def test_a_change_of_the_java_client_succeeds_though_the_leader_was_killed(
    cluster, tmp_path
) -> None:
    names = access(cluster)
    properties = write_properties(tmp_path, names)
    with java_admin(JavaPrograms(kafka_jars()), names["SERVERS"], str(properties)) as admin:
        for count in range(3):
            leader = cluster.controller(cluster.leader())
            leader.kill()
            print(f"Java: acknowledged after {admin.create(f'after-{count}')} ms")
            cluster.until(
                lambda name=f"after-{count}": name in cluster.topics(), "the topic is there"
            )
            leader.start()
            cluster.until(cluster.settled, "the killed controller is back")
