"""A process that can't start says in one sentence what to do, and exits with code 1, no traceback.

Wrong usage exits with 2. A refused start changes nothing in a folder.
"""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from logberg.local.ports import free_port_base, port_is_free
from tests.process.running_cluster import PATIENCE_S, RunningCluster, Said, logberg, running

pytestmark = pytest.mark.process


def refused(said: Said, *words: str) -> None:
    """Check that a start was refused in one readable piece."""
    assert said.code == 1, said
    assert "Traceback" not in said.err, said.err
    for word in words:
        assert word in said.err, said.err


CONTROLLER = """
cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
node_id = 1
data = "data"
authorization = "off"
{more}

[[controllers]]
node_id = 1
quorum = "{host}:{quorum}"
http = "http://{host}:{http}"
"""
BROKER = """
cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
broker_id = 1
data = "data"
authorization = "off"
controllers = ["http://127.0.0.1:{http}"]
http = "{host}:{agent}"
{more}
"""


class Lone:
    """A configuration file for one process, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "process.toml"
        base = free_port_base()
        self.ports = {"quorum": base + 91, "http": base + 191, "agent": base + 291}

    def write(self, role: str, more: str = "", host: str = "127.0.0.1", **swap: str) -> None:
        text = {"controller": CONTROLLER, "broker": BROKER}[role]
        text = text.format(more=more, host=host, **self.ports)
        for old, new in swap.items():
            assert old in text
            # The first one: a node_id stands in the list of controllers as well.
            text = re.sub(f"^{old} = .*$", f"{old} = {new}", text, count=1, flags=re.MULTILINE)
        self.path.write_text(text)

    def start(self, role: str, *options: str) -> Said:
        return logberg(role, "--config", str(self.path), *options, timeout_s=PATIENCE_S)

    @contextmanager
    def running(self, role: str) -> Iterator[subprocess.Popen[str]]:
        """The process, started and answering; ended by SIGTERM with exit code 0."""
        process = subprocess.Popen(
            [sys.executable, "-m", "logberg", role, "--config", str(self.path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "_started" in line:
                    break
            # It is about to listen to signals.
            time.sleep(0.2)
            yield process
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def lone(tmp_path: Path) -> Lone:
    return Lone(tmp_path)


# -- configuration files -------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_a_configuration_file_that_is_missing(lone: Lone, role: str) -> None:
    refused(lone.start(role), str(lone.path), "can't be read", "--config")


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_a_configuration_file_that_is_not_toml(lone: Lone, role: str) -> None:
    lone.path.write_text("cluster_id: AAAA\n")
    refused(lone.start(role), str(lone.path), "not valid TOML", "line 1")


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_an_unknown_key_is_named_and_the_known_ones_listed(lone: Lone, role: str) -> None:
    lone.write(role, more="sesion_ms = 9000")
    refused(lone.start(role), str(lone.path), "sesion_ms", "session_ms", "heartbeat_ms")


def test_a_value_of_the_wrong_type_is_named(lone: Lone) -> None:
    lone.write("controller", node_id='"one"')
    refused(lone.start("controller"), str(lone.path), "node_id", "int")


def test_all_that_is_wrong_with_the_values_is_said_at_once(lone: Lone) -> None:
    more = "session_ms = 1000\nheartbeat_ms = 900\nlog_level = 'loud'"
    lone.write(
        "controller",
        more,
        node_id="7",
        cluster_id='""',
        quorum='"localhost"',
        http='"127.0.0.1:19191"',
    )
    refused(
        lone.start("controller"),
        "every controller must be listed",
        "logberg cluster-id",
        "use host:port",
        "https://127.0.0.1:19191.",
        "at most half of session_ms",
        "debug, info, warning, error",
    )
    lone.write("broker", broker_id="-3", controllers="[]")
    refused(lone.start("broker"), "broker_id is -3", "controllers is empty")
    lone.write("broker", http='"nowhere"')
    refused(lone.start("broker"), "use host:port")
    assert not (lone.folder / "data").exists()


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_a_new_node_must_say_whether_rights_count(lone: Lone, role: str) -> None:
    lone.write(role, authorization='""')
    refused(lone.start(role), 'authorization = "on"', "is new", "super_users")
    assert not (lone.folder / "data").exists()


def test_a_file_of_before_goes_on_without_enforcement_and_says_so(lone: Lone) -> None:
    lone.write("controller")
    with lone.running("controller"):
        pass
    lone.write("controller", authorization='""')
    with lone.running("controller") as process:
        assert process.stderr is not None
        assert any("authorization_not_enforced" in line for line in process.stderr)


def test_wrong_usage_is_told_apart(lone: Lone) -> None:
    for arguments in (["controller"], ["contoller"], ["up", "--brokers", "many"]):
        said = logberg(*arguments)
        assert said.code == 2, said
        assert "Traceback" not in said.err


# -- listeners -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "port"), [("controller", "http"), ("controller", "quorum"), ("broker", "agent")]
)
def test_a_port_that_is_in_use(lone: Lone, role: str, port: str) -> None:
    lone.write(role)
    with closing(socket.create_server(("127.0.0.1", lone.ports[port]))):
        said = lone.start(role)
    refused(said, str(lone.ports[port]), "in use", "choose another")


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_a_listener_beyond_loopback_without_tls(lone: Lone, role: str) -> None:
    lone.write(role, host="0.0.0.0")
    said = lone.start(role)
    refused(said, "0.0.0.0", "without TLS", "--insecure-network", "[tls]")


def test_one_beyond_loopback_that_the_operator_wants(lone: Lone) -> None:
    lone.write("controller", host="0.0.0.0", more="insecure_network = true")
    with lone.running("controller"):
        assert not port_is_free(lone.ports["http"])


def test_certificates_that_are_not_there_or_open_to_all(lone: Lone) -> None:
    tls = '[tls]\ncert = "a.crt"\nkey = "a.key"\nca = "ca.crt"'
    lone.write("controller", more=tls)
    refused(lone.start("controller"), "a.key", "cannot be read")
    for name in ("a.crt", "a.key", "ca.crt"):
        (lone.folder / name).write_text("no certificate\n")
    (lone.folder / "a.key").chmod(0o644)
    refused(lone.start("controller"), "a.key", "chmod 600")
    (lone.folder / "a.key").chmod(0o600)
    refused(lone.start("controller"), "a.crt", "PEM")


# -- both roles in one process -------------------------------------------------------------------


def test_an_agent_whose_port_is_in_use_ends_its_node(lone: Lone) -> None:
    """The controller has started by then: it ends in order, and can be started again."""
    lone.write("controller")
    with closing(socket.create_server(("127.0.0.1", lone.ports["agent"]))):
        said = lone.start("controller", "--with-broker")
    refused(said, str(lone.ports["agent"]), "in use", "choose another", "controller_ended")
    with lone.running("controller"):
        pass


def test_an_agent_beyond_loopback_without_tls_is_refused_before_the_node_starts(lone: Lone) -> None:
    lone.write("controller")
    lone.path.write_text(f"{lone.path.read_text()}\n[broker]\nhttp = '0.0.0.0:9292'\n")
    refused(lone.start("controller"), "0.0.0.0", "without TLS")
    assert not (lone.folder / "data").exists()


def test_an_agent_without_certificates_of_its_own(lone: Lone) -> None:
    lone.write("controller")
    tls = '\n[tls]\ncert = "a.crt"\nkey = "a.key"\nca = "ca.crt"\n'
    lone.path.write_text(lone.path.read_text() + tls)
    refused(lone.start("controller", "--with-broker"), str(lone.path), "broker.tls is missing")
    assert not (lone.folder / "data").exists()


# -- server.properties ---------------------------------------------------------------------------

PROPERTIES = """
process.roles={roles}
node.id=1
controller.quorum.voters=1@127.0.0.1:{quorum}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{agent},CONTROLLER://:{quorum}
log.dirs=data
logberg.cluster.id=AAAAAAAAAAAAAAAAAAAAAA
num.io.threads=8
num.partition=3
"""


def write_properties(lone: Lone, roles: str, more: str = "") -> None:
    lone.path = lone.folder / "server.properties"
    lone.path.write_text(PROPERTIES.format(roles=roles, **lone.ports) + more)


@pytest.mark.parametrize(("role", "roles"), [("controller", "controller"), ("broker", "broker")])
def test_a_file_of_kafkas_that_asks_for_too_much(lone: Lone, role: str, roles: str) -> None:
    write_properties(lone, roles, "zookeeper.connect=h:2181\nnum.partitions=none\n")
    said = lone.start(role)
    refused(said, "zookeeper.connect is refused", "line 11", "line 12")
    assert not (lone.folder / "data").exists()


def test_a_node_of_the_other_role(lone: Lone) -> None:
    write_properties(lone, "broker")
    refused(lone.start("controller"), str(lone.path), "logberg broker")
    write_properties(lone, "broker,controller")
    refused(lone.start("broker"), str(lone.path), "logberg controller")
    assert not (lone.folder / "data").exists()


def test_a_file_of_kafkas_runs_and_is_read_again(
    lone: Lone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both roles; the variables of Kafka's images count, and SIGHUP reads the file."""
    write_properties(lone, "broker,controller")
    monkeypatch.setenv("KAFKA_BROKER_SESSION_TIMEOUT_MS", "1000")
    # The variable is stronger than the file: its value is the one that is wrong.
    refused(lone.start("controller"), "heartbeat_ms is 2000", "session_ms (1000)")
    monkeypatch.delenv("KAFKA_BROKER_SESSION_TIMEOUT_MS")
    with lone.running("controller") as process:
        lone.path.write_text(f"{lone.path.read_text()}zookeeper.connect=h:1\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        for line in process.stderr:
            if "certificates_not_reloaded" in line:
                break
        assert "zookeeper.connect is refused" in line
    assert (lone.folder / "data" / "logberg-controller").is_dir()
    assert (lone.folder / "data" / "logberg-broker").is_dir()


def test_an_agent_and_its_controller_from_two_files_of_kafkas(lone: Lone, tmp_path: Path) -> None:
    write_properties(lone, "controller")
    with lone.running("controller"):
        agent = Lone(tmp_path / "agent")
        agent.folder.mkdir()
        agent.ports = {**lone.ports, "agent": agent.ports["agent"]}
        write_properties(agent, "broker", "node.id=7\nbroker.rack=b\n")
        with agent.running("broker"):
            asked = (
                "brokers",
                "list",
                "--controllers",
                f"http://127.0.0.1:{lone.ports['quorum'] + 100}",
            )
            until = time.monotonic() + PATIENCE_S
            while "online" not in (said := logberg(*asked)).out:
                assert time.monotonic() < until, said
        assert "7  online" in said.out
        assert f"PLAINTEXT://127.0.0.1:{agent.ports['agent']}" in said.out


# -- folders -------------------------------------------------------------------------------------


def test_two_processes_on_one_folder(lone: Lone, tmp_path: Path) -> None:
    lone.write("controller")
    with lone.running("controller") as first:
        second = Lone(tmp_path)
        second.path = tmp_path / "second.toml"
        second.write("controller")
        refused(second.start("controller"), "in use by another process", str(first.pid))


def test_two_agents_on_one_folder(lone: Lone, tmp_path: Path) -> None:
    lone.write("broker")
    # It registers nowhere: no controller runs. SIGTERM ends it all the same.
    with lone.running("broker") as first:
        second = Lone(tmp_path)
        second.path = tmp_path / "second.toml"
        second.write("broker")
        refused(second.start("broker"), "in use by another process", str(first.pid))


def test_a_controllers_folder_of_another_cluster_or_node(lone: Lone) -> None:
    lone.write("controller")
    with lone.running("controller"):
        pass
    before = contents(lone.folder / "data")
    lone.write("controller", cluster_id='"BBBBBBBBBBBBBBBBBBBBBB"')
    refused(
        lone.start("controller"), "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB", "own folder"
    )
    lone.write("controller")
    lone.path.write_text(lone.path.read_text().replace("node_id = 1", "node_id = 2"))
    refused(lone.start("controller"), "node 1", "node 2", "own")
    assert contents(lone.folder / "data") == before


def test_an_agents_folder_of_another_cluster_or_broker(lone: Lone) -> None:
    lone.write("broker")
    with lone.running("broker"):
        pass
    lone.write("broker", cluster_id='"BBBBBBBBBBBBBBBBBBBBBB"')
    refused(lone.start("broker"), "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB")
    lone.write("broker", broker_id="2")
    refused(lone.start("broker"), "broker 1", "2")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


# -- up ------------------------------------------------------------------------------------------


def test_up_refuses_folders_that_are_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "controller-1" / "journal").mkdir(parents=True)
    refused(logberg("up", "--data", str(tmp_path)), "controller-1", "--data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["controller-1"]


def test_up_refuses_a_number_of_controllers_that_has_no_use(tmp_path: Path) -> None:
    for count in ("0", "2"):
        said = logberg("up", "--data", str(tmp_path / "new"), "--controllers", count)
        assert said.code == 2, said
        assert "'1', '3', '5'" in said.err, said.err
        assert not (tmp_path / "new").exists()


def test_up_on_a_cluster_that_runs_and_with_another_number_of_controllers(tmp_path: Path) -> None:
    with running(tmp_path / "one", controllers=1) as cluster:
        refused(logberg("up", "--data", str(cluster.folder)), "in use", "runs already")
        said = logberg("up", "--data", str(cluster.folder), "--controllers", "3")
        refused(said, "cluster of 1 controllers", "--data")
        assert cluster.settled()


def test_up_with_the_folders_of_two_clusters_mixed(tmp_path: Path) -> None:
    """A controller's folder was moved in from another cluster: it refuses, and `up` says so."""
    for name in ("one", "two"):
        with running(tmp_path / name, controllers=1) as cluster:
            cluster.stop()
    (tmp_path / "one" / "controller-1").rename(tmp_path / "kept")
    (tmp_path / "two" / "controller-1").rename(tmp_path / "one" / "controller-1")
    one, two = (id_of(tmp_path / name) for name in ("one", "two"))
    said = logberg("up", "--data", str(tmp_path / "one"))
    refused(said, "controller-1 (process ", "ended with exit code 1", one, two)
    assert "Traceback" not in said.err
    # With its own folder back it goes on.
    (tmp_path / "one" / "controller-1").rename(tmp_path / "two" / "controller-1")
    (tmp_path / "kept").rename(tmp_path / "one" / "controller-1")
    again = RunningCluster(tmp_path / "one", controllers=1)
    try:
        again.start()
    finally:
        again.kill()


def id_of(folder: Path) -> str:
    found = msgspec.json.decode((folder / "cluster.json").read_bytes())
    return str(found["clusterId"])


def test_commands_without_a_cluster_say_so(tmp_path: Path) -> None:
    free = free_port_base()
    said = logberg("topics", "list", "--controllers", f"http://127.0.0.1:{free}", "--timeout", "1")
    refused(said, "does not answer", str(free))
    said = logberg("topics", "list", "--controllers", "127.0.0.1")
    assert said.code == 2, said
    assert "https://10.0.0.1:9191" in said.err
    refused(logberg("log", "verify", str(tmp_path)), "holds no log")
