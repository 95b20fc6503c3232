"""Client libraries of Python log in at a real broker by SCRAM-SHA-512, with users of our log.

pip installs the libraries, as for tests/kafka/clients.
"""

import pytest

from tests.kafka.clients.at_brokers import AT_BROKERS
from tests.kafka.clients.libraries import install, run_calls
from tests.kafka.clients.page import checked
from tests.kafka.users_front import UsersFront, users_front

DORA, PASSWORD, MECHANISM = "dora", "dora-secret", "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return install(tmp_path_factory.mktemp("clients") / "venv")


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    with users_front(tmp_path_factory.mktemp("users"), {DORA: PASSWORD}) as front:
        front.set_password(DORA, MECHANISM)
        every = ("--topic", "*", "--group", "*", "--cluster")
        front.tool(
            "kafka-acls", "--add", "--allow-principal", f"User:{DORA}", "--operation", "All", *every
        )
        yield front


def login(front: UsersFront, password: str) -> dict[str, str]:
    return {
        "SERVERS": front.address,
        "MECHANISM": MECHANISM,
        "USER": DORA,
        "PASSWORD": password,
    }


@pytest.mark.parametrize("table", AT_BROKERS, ids=[table.library for table in AT_BROKERS])
def test_a_library_logs_in_and_sends_and_reads(front, python, table) -> None:
    assert len(checked(run_calls(python, table, login(front, PASSWORD)))) == len(table.calls)


def test_a_wrong_password_is_refused_to_each_library(front, python) -> None:
    broker = front.cluster.brokers[0]
    for table in AT_BROKERS:
        before = broker.output().count(b"invalid credentials with SASL mechanism SCRAM-SHA-512")
        wrong = table._replace(calls=table.calls[:1])
        ((_, printed),) = run_calls(python, wrong, login(front, "guessed"))
        assert printed.refused, printed
        after = broker.output().count(b"invalid credentials with SASL mechanism SCRAM-SHA-512")
        assert after > before, f"{table.library} was refused for another reason: {printed.text}"
        print(f"{table.library}: {printed.text}")
    # Nobody was locked out by wrong guesses.
    producing = AT_BROKERS[0]._replace(calls=AT_BROKERS[0].calls[1:2])
    checked(run_calls(python, producing, login(front, PASSWORD)))
