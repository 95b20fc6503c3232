"""Clients of real brokers: SCRAM users, ACLs and delegation tokens that lie in our log.

The brokers have Kafka's StandardAuthorizer, and a listener that demands SCRAM. They know users,
entries and tokens only from the records that we project.
"""

import re

import pytest

from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.kafka_error import KafkaError
from tests.conformance.ports import free_port
from tests.kafka.broker_logins import client_by_scram, users_listener
from tests.kafka.jvm.programs import JavaPrograms, KafkaTools
from tests.kafka.our_controllers import our_controllers

ALICE, BOB = "alice", "bob"
PASSWORDS = {ALICE: "alice-secret", BOB: "bob-secret"}
TOKEN_KEY = "the-key-of-all-tokens"


class Front:
    """The cluster, the broker's listener for users, and Kafka's tools."""

    def __init__(self, cluster, port: int, tools: KafkaTools, programs: JavaPrograms) -> None:
        self.cluster = cluster
        self.address = f"127.0.0.1:{port}"
        self.tools = tools
        self.programs = programs
        self.inside = cluster.bootstrap
        """Where nobody logs in: its anonymous user is the brokers' super user."""

    def files(self, user: str) -> str:
        return str(client_by_scram(self.cluster.folder, user, PASSWORDS[user]))


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    folder = tmp_path_factory.mktemp("users")
    jars = kafka_jars()
    secret = folder / "token-key"
    secret.write_text(TOKEN_KEY + "\n")
    secret.chmod(0o600)
    with our_controllers(folder, token_secret=str(secret)) as cluster:
        plain, port = free_port(), free_port()
        cluster.ports[11] = plain
        cluster.add_broker(
            jars,
            more={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "delegation.token.secret.key": TOKEN_KEY,
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            }
            | users_listener(plain, port),
        )
        cluster.wait_running()
        front = Front(cluster, port, KafkaTools(DEFAULT_VERSION, folder), JavaPrograms(jars))
        for user, password in PASSWORDS.items():
            printed = front.tools.run(
                "kafka.admin.ConfigCommand",
                *("--bootstrap-server", front.inside, "--entity-type", "users"),
                *("--entity-name", user, "--alter"),
                *("--add-config", f"SCRAM-SHA-256=[iterations=8192,password={password}]"),
            )
            assert "Completed updating" in printed, printed
        yield front


def acl(front: Front, *words: str) -> str:
    return front.tools.run("AclCommand", "--bootstrap-server", front.inside, *words)


def test_users_log_in_at_the_broker_with_credentials_of_our_log_and_acls_decide(front) -> None:
    front.programs.run("Basics", front.inside, "orders", "2", "1")
    assert "orders" not in names(front, ALICE), "nobody allowed her to see it"
    printed = acl(
        front,
        "--add",
        "--allow-principal",
        f"User:{ALICE}",
        "--operation",
        "Describe",
        "--topic",
        "orders",
    )
    assert "ALLOW" in printed, printed
    front.cluster.until(lambda: "orders" in names(front, ALICE), "the entry holds")
    assert "orders" not in names(front, BOB)
    acl(
        front,
        "--add",
        "--allow-principal",
        f"User:{BOB}",
        "--operation",
        "All",
        "--topic",
        "*",
        "--group",
        "*",
        "--transactional-id",
        "*",
    )
    front.cluster.until(lambda: "orders" in names(front, BOB), "the entry holds")
    front.programs.run("Basics", front.address, "orders", "2", "1", front.files(BOB))
    acl(
        front,
        "--remove",
        "--force",
        "--allow-principal",
        f"User:{ALICE}",
        "--operation",
        "Describe",
        "--topic",
        "orders",
    )
    front.cluster.until(lambda: "orders" not in names(front, ALICE), "the entry is gone")


def names(front: Front, user: str) -> list[str]:
    return front.programs.run("Names", front.address, front.files(user)).splitlines()


def test_a_wrong_password_and_a_deleted_credential_are_refused(front) -> None:
    wrong = str(client_by_scram(front.cluster.folder, "mallory", "nothing"))
    with pytest.raises(KafkaError, match="SaslAuthenticationException"):
        front.programs.run("Names", front.address, wrong)
    front.tools.run(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", front.inside, "--entity-type", "users", "--entity-name", ALICE),
        *("--alter", "--delete-config", "SCRAM-SHA-256"),
    )

    def refused() -> bool:
        try:
            names(front, ALICE)
        except KafkaError:
            return True
        return False

    front.cluster.until(refused, "the credential is gone")


def test_a_delegation_token_logs_in_at_the_broker_until_it_is_expired(front) -> None:
    where = ("--bootstrap-server", front.address, "--command-config", front.files(BOB))
    printed = front.tools.run(
        "DelegationTokenCommand", *where, "--create", "--max-life-time-period", "-1"
    )
    found = re.search(r"^(\S+)\s+(\S+=*)\s+User:bob", printed, re.MULTILINE)
    assert found, printed
    token_id, hmac = found[1], found[2]
    file = str(client_by_scram(front.cluster.folder, token_id, hmac, token=True))

    def logs_in() -> bool:
        try:
            front.programs.run("Names", front.address, file)
        except KafkaError:
            return False
        return True

    front.cluster.until(logs_in, "the token logs in")
    renewed = front.tools.run(
        "DelegationTokenCommand", *where, "--renew", "--renew-time-period", "-1", "--hmac", hmac
    )
    assert "renewed" in renewed.lower() or "Completed" in renewed, renewed
    listed = front.tools.run(
        "DelegationTokenCommand", *where, "--describe", "--owner-principal", "User:bob"
    )
    assert token_id in listed, listed
    front.tools.run(
        "DelegationTokenCommand", *where, "--expire", "--expiry-time-period", "-1", "--hmac", hmac
    )
    front.cluster.until(lambda: not logs_in(), "the token is gone")
