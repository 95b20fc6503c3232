"""One real broker whose users, ACLs and delegation tokens lie in our log.

Rule: the broker has Kafka's StandardAuthorizer, and a listener that demands SCRAM. It knows users,
entries and tokens only from the records that we project. At its other listener nobody logs in;
whoever comes that way is the cluster's administrator.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.tools import CLASSES
from tests.conformance.ports import free_port
from tests.kafka.broker_logins import client_by_scram, users_listener
from tests.kafka.jvm.programs import JavaPrograms, KafkaTools
from tests.kafka.our_controllers import OurControllers, our_controllers

_TOKEN_KEY = "the-key-of-all-tokens"


class UsersFront:
    """The cluster, the broker's listener for users, and Kafka's tools."""

    def __init__(self, cluster: OurControllers, port: int, passwords: Mapping[str, str]) -> None:
        self.cluster = cluster
        self.address = f"127.0.0.1:{port}"
        self.inside = cluster.bootstrap
        """Where nobody logs in."""
        self.tools = KafkaTools(DEFAULT_VERSION, cluster.folder)
        self.programs = JavaPrograms(kafka_jars())
        self._passwords = passwords

    def properties(self, user: str, mechanism: str = "SCRAM-SHA-256") -> str:
        """Return the file of a client that logs in as a user."""
        password = self._passwords[user]
        return str(client_by_scram(self.cluster.folder, user, password, mechanism))

    def tool(self, name: str, *words: str, properties: str = "") -> str:
        """Run one of Kafka's tools, named as Kafka's script; return what it printed.

        `properties`: of a client that logs in; empty: the administrator.
        """
        where = (
            ("--bootstrap-server", self.address, "--command-config", properties)
            if properties
            else ("--bootstrap-server", self.inside)
        )
        return self.tools.run(CLASSES[name], *where, *words)

    def set_password(self, user: str, *mechanisms: str) -> None:
        """Give a user a password, by Kafka's tool."""
        password = self._passwords[user]
        wanted = ",".join(f"{each}=[iterations=8192,password={password}]" for each in mechanisms)
        printed = self.tool(
            *("kafka-configs", "--entity-type", "users", "--entity-name", user),
            *("--alter", "--add-config", wanted),
        )
        assert "Completed updating" in printed, printed


@contextmanager
def users_front(folder: Path, passwords: Mapping[str, str]) -> Iterator[UsersFront]:
    """Run it for the time of a `with` block. `passwords`: of the users that tests name."""
    secret = folder / "token-key"
    secret.write_text(_TOKEN_KEY + "\n")
    secret.chmod(0o600)
    with our_controllers(folder, token_secret=str(secret)) as cluster:
        plain, port = free_port(), free_port()
        cluster.ports[11] = plain
        cluster.add_broker(
            kafka_jars(),
            more={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "delegation.token.secret.key": _TOKEN_KEY,
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            }
            | users_listener(plain, port),
        )
        cluster.wait_running()
        yield UsersFront(cluster, port, passwords)
