"""Clients give a wrong password and a right one to a cluster of our agents.

Whoever is refused hears it at once and in words, and gives up by itself. The agents count each
attempt and log few lines. Nobody is locked out: the right password works a moment later.
"""

import re
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from logberg.kafka.jars import DEFAULT_VERSION
from tests.kafka.clients.cluster import access, client_cluster, write_properties
from tests.kafka.clients.libraries import install, run_calls
from tests.kafka.clients.login_calls import LOGINS
from tests.kafka.tools.commands import ToolCommand
from tests.kafka.tools.running import ToolRunner
from tests.kafka_wire import RawKafkaClient
from tests.process.running_cluster import RunningCluster

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DORA, PASSWORD = "dora", "a-secret-of-dora"
PROMPT_S: Final = 10.0
"""A refusal is heard within this time. Without other work here it takes a tenth of a second."""
GIVES_UP_S: Final = 90.0
ATTEMPTS_MAX: Final = 200
"""Of one client. Each pauses between its attempts; a client that does not makes thousands."""
GUESSES: Final = 40
_HEARD: Final = re.compile(r"RuntimeError: after (-?[\d.]+) s of ([\d.]+) s: (.*)", re.DOTALL)
_COUNTER: Final = 'logberg_refused_attempts_total{event="kafka_request_refused"} '
REFUSED = "is not known here"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("clients") / "venv")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with client_cluster(tmp_path_factory.mktemp("wrong")) as cluster:
        file = cluster.folder / "password"
        file.write_text(PASSWORD + "\n")
        for mechanism in MECHANISMS[1:]:
            said = cluster.command(
                *("users", "scram", "set", DORA, "--mechanism", mechanism),
                *("--password-file", str(file), "--data", str(cluster.folder)),
            )
            assert said.code == 0, said
        yield cluster


def login(cluster: RunningCluster, mechanism: str, *, right: bool) -> dict[str, str]:
    if mechanism == "PLAIN":
        return access(cluster, password="" if right else "guessed")
    return access(cluster, mechanism, DORA, PASSWORD if right else "guessed")


def attempts(cluster: RunningCluster) -> int:
    """How many connections the agents have refused."""
    found = 0
    for n in cluster.local.brokers:
        text = cluster.ask(f"{cluster.local.agent_url(n)}", "GET", "/metrics").body.decode()
        found += sum(
            int(float(line.removeprefix(_COUNTER)))
            for line in text.splitlines()
            if line.startswith(_COUNTER)
        )
    return found


def refusals_in_log(cluster: RunningCluster) -> list[str]:
    """The lines of all agents about refused logins."""
    lines = [
        line for n in cluster.local.brokers for line in cluster.output(f"broker-{n}").split("\n")
    ]
    return [line for line in lines if "kafka_request_refused" in line and REFUSED in line]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("table", LOGINS, ids=[table.library for table in LOGINS])
def test_a_library_is_refused_at_once_and_its_next_login_works(
    cluster, python, table, mechanism
) -> None:
    before = attempts(cluster)
    ((_, wrong),) = run_calls(python, table, login(cluster, mechanism, right=False))
    made = attempts(cluster) - before
    print(f"{table.library}, {mechanism}, {made} attempts: {wrong.text}")
    heard = _HEARD.match(wrong.text)
    assert wrong.refused, wrong
    assert heard, wrong
    assert 0 <= float(heard[1]) <= PROMPT_S, wrong
    assert float(heard[2]) <= GIVES_UP_S, wrong
    assert 0 < made <= ATTEMPTS_MAX
    assert refusals_in_log(cluster), "the agents log no refused login"
    ((_, right),) = run_calls(python, table, login(cluster, mechanism, right=True))
    assert (right.text, right.refused) == ("3", False), right


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkas_java_client_is_refused_at_once_and_its_next_login_works(
    cluster, tmp_path, mechanism
) -> None:
    def run(*, right: bool) -> tuple[str, float, int]:
        names = login(cluster, mechanism, right=right)
        folder = tmp_path / ("right" if right else "wrong")
        folder.mkdir()
        runner = ToolRunner(
            names["SERVERS"], "", folder, DEFAULT_VERSION, write_properties(folder, names)
        )
        before, began = attempts(cluster), time.monotonic()
        text = runner.run(ToolCommand("kafka-topics --list")).text
        return text, time.monotonic() - began, attempts(cluster) - before

    text, seconds, made = run(right=False)
    print(f"Java, {mechanism}, {made} attempts, {seconds:.1f} s with Java's start: {text}")
    assert REFUSED in text
    assert seconds <= GIVES_UP_S
    assert 0 < made <= ATTEMPTS_MAX
    text, _, made = run(right=True)
    assert made == 0, text
    assert REFUSED not in text


def test_many_guesses_are_all_counted_and_few_are_logged(cluster) -> None:
    port = int(cluster.local.clients_address(1).rpartition(":")[2])
    tls = ssl.create_default_context(cafile=cluster.local.file.ca)
    before, lines = attempts(cluster), len(refusals_in_log(cluster))
    for number in range(GUESSES):
        client = RawKafkaClient(port, tls)
        assert client.log_in("admin", f"guess-{number}") == 58
        # A refused login ends the connection.
        with suppress(ConnectionError), pytest.raises(EOFError):
            client.log_in("admin", cluster.token)
        client.close()
    assert attempts(cluster) - before == GUESSES
    assert len(refusals_in_log(cluster)) - lines < GUESSES / 4
    client = RawKafkaClient(port, tls)
    assert client.log_in("admin", cluster.token) == 0
    client.close()
