"""Kafka's tools make users and tokens at a real broker, and print what the table expects.

Some lines are held word for word: they show that the broker has from our log what was changed.
"""

import re

import pytest

from tests.kafka.tools.user_commands import ALICE, BOB, CAROL, PASSWORDS, TOKEN, UserCommand
from tests.kafka.tools.users_page import run_user_commands
from tests.kafka.users_front import users_front


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[tuple[UserCommand, str]]:
    """What each command of the table printed; it raises if one ended otherwise than it says."""
    with users_front(tmp_path_factory.mktemp("users"), PASSWORDS) as front:
        return list(run_user_commands(front))


def find(runs: list[tuple[UserCommand, str]], user: str, *words: str) -> list[str]:
    """Return what the user's commands with all these words printed, in order."""
    return [
        text
        for command, text in runs
        if command.user == user and all(word in command.words for word in words)
    ]


def test_kafka_configs_describes_scram_credentials(runs) -> None:
    (described,) = find(runs, "", "--entity-name bob --describe")
    (everybody,) = find(runs, "", "users --describe")
    of_bob = ("bob", {"SCRAM-SHA-256=iterations=8192", "SCRAM-SHA-512=iterations=4096"})
    assert list(map(scram, described.splitlines())) == [of_bob]
    assert sorted(map(scram, everybody.splitlines())) == [
        ("alice", {"SCRAM-SHA-256=iterations=8192"}),
        of_bob,
        ("carol", {"SCRAM-SHA-256=iterations=8192"}),
    ]


def scram(line: str) -> tuple[str, set[str]]:
    """Return the user of a line and its credentials.

    A set: a broker keeps the mechanisms in a Java HashMap whose order differs from run to run.
    """
    found = re.fullmatch(r"SCRAM credential configs for user-principal '(\w+)' are (.+)", line)
    assert found is not None, line
    return found[1], set(found[2].split(", "))


def test_kafka_delegation_tokens_creates_describes_renews_and_expires(runs) -> None:
    (created,) = find(runs, BOB, "--create")
    described, afterwards = find(runs, BOB, "--describe")
    assert "Created delegation token with tokenId : …id…" in created
    for shown in (created, described):
        line = shown.splitlines()[-1].split()
        assert line[:5] == ["…id…", "…hmac…", "User:bob", "User:bob", "[User:alice]"], shown
    renewed, too_late = find(runs, ALICE, "--renew")
    assert "New expiry date : …date…" in renewed
    assert "New expiry date : …date…" in find(runs, BOB, "--expire")[0]
    assert "…id…" not in afterwards
    assert "DelegationTokenNotFoundException" in too_late


def test_who_may_not_change_a_token_is_refused(runs) -> None:
    assert "DelegationTokenOwnerMismatchException" in find(runs, CAROL, "--renew")[0]
    # A stolen token can't make others, which would live longer than it.
    assert "not allowed" in find(runs, TOKEN, "--create")[0]


def test_an_expired_token_is_refused_at_the_broker(runs) -> None:
    before, after = find(runs, TOKEN, "kafka-topics --list")
    assert before == "orders"
    assert "Authentication failed" in after
