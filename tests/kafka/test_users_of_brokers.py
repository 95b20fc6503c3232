"""Clients of real brokers: SCRAM users, ACLs and delegation tokens that lie in our log."""

import re

import pytest

from logberg.kafka.kafka_error import KafkaError
from tests.kafka.broker_logins import client_by_scram
from tests.kafka.users_front import UsersFront, users_front

ALICE, BOB = "alice", "bob"


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    folder = tmp_path_factory.mktemp("users")
    with users_front(folder, {ALICE: "alice-secret", BOB: "bob-secret"}) as front:
        for user in (ALICE, BOB):
            front.set_password(user, "SCRAM-SHA-256")
        yield front


def acl(front: UsersFront, *words: str) -> str:
    return front.tool("kafka-acls", *words)


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
    front.programs.run("Basics", front.address, "orders", "2", "1", front.properties(BOB))
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


def names(front: UsersFront, user: str) -> list[str]:
    return front.programs.run("Names", front.address, front.properties(user)).splitlines()


def test_a_wrong_password_and_a_deleted_credential_are_refused(front) -> None:
    wrong = str(client_by_scram(front.cluster.folder, "mallory", "nothing"))
    with pytest.raises(KafkaError, match="SaslAuthenticationException"):
        front.programs.run("Names", front.address, wrong)
    front.tool(
        *("kafka-configs", "--entity-type", "users", "--entity-name", ALICE),
        *("--alter", "--delete-config", "SCRAM-SHA-256"),
    )

    def refused() -> bool:
        try:
            names(front, ALICE)
        except KafkaError:
            return True
        return False

    front.cluster.until(refused, "the credential is gone")


def test_a_delegation_token_logs_in_at_the_broker_until_it_is_ended(front) -> None:
    bob = front.properties(BOB)

    def tokens(*words: str) -> str:
        return front.tool("kafka-delegation-tokens", *words, properties=bob)

    printed = tokens("--create", "--max-life-time-period", "-1")
    found = re.search(r"^(\S+)\s+(\S+=*)\s+User:bob", printed, re.MULTILINE)
    assert found, printed
    token_id, hmac = found[1], found[2]
    file = str(client_by_scram(front.cluster.folder, token_id, hmac, token=True))
    front.cluster.until(lambda: logs_in(front, file), "the token logs in")
    renewed = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew operation" in renewed, renewed
    assert token_id in tokens("--describe", "--owner-principal", "User:bob")
    tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    front.cluster.until(lambda: not logs_in(front, file), "the token is gone")


def logs_in(front: UsersFront, properties: str) -> bool:
    try:
        front.programs.run("Names", front.address, properties)
    except KafkaError:
        return False
    return True
