"""What operators use, on a real cluster: figures, `doctor`, the support bundle, `top`."""

import json
import math
import signal
import ssl
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from logberg.operating.samples import Samples
from logberg.version import VERSION
from tests.process.running_cluster import RunningCluster

pytestmark = pytest.mark.process

CANARY = "canary4711hunter2"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("operating")
    cluster = RunningCluster(
        folder / "cluster", brokers=2, configs={"sasl.jaas.config": CANARY}, slow_request_ms=1
    )
    try:
        cluster.start()
        for number in range(5):
            cluster.create(f"topic-{number}", replication_factor=2)
        yield cluster
        cluster.stop()
    finally:
        cluster.kill()


def figures(cluster: RunningCluster, n: int) -> Samples:
    answer = cluster.ask(cluster.url(n), "GET", "/metrics")
    assert answer.status == 200
    return Samples(answer.body.decode())


def agents_figures(cluster: RunningCluster, n: int) -> Samples:
    context = ssl.create_default_context(cafile=cluster.local.file.ca)
    url = f"{cluster.local.agent_url(n)}/metrics"
    with urllib.request.urlopen(url, context=context, timeout=10) as answer:
        return Samples(answer.read().decode())


def test_every_process_has_the_figures_of_a_process(cluster: RunningCluster) -> None:
    found = [figures(cluster, n) for n in cluster.local.controllers]
    found += [agents_figures(cluster, n) for n in cluster.local.brokers]
    for samples in found:
        assert samples.value("logberg_build_info", version=VERSION) == 1
        assert abs((samples.value("logberg_wall_clock_seconds") or 0) - time.time()) < 10
        assert 0 < (samples.value("process_open_fds") or 0) < 200
        left_s = (
            samples.value("logberg_certificate_expiry_seconds", file="cert") or 0
        ) - time.time()
        assert 89 * 86_400 < left_s < 91 * 86_400


def test_controllers_measure_their_disks_and_voters(cluster: RunningCluster) -> None:
    leader = cluster.leader()
    for n in cluster.local.controllers:
        samples = figures(cluster, n)
        assert samples.count("logberg_disk_sync_seconds") > 5
        assert (samples.quantile("logberg_disk_sync_seconds", 0.5) or math.inf) < 8
        assert (samples.value("logberg_disk_free_bytes") or 0) > 0
        heard = samples.all("logberg_quorum_replica_heard_seconds")
        assert len(heard) == (2 if n == leader else 0)
        assert all(0 <= sample.value < 5 for sample in heard)
        assert {sample.labels["role"] for sample in heard} <= {"voter"}
        assert samples.value("logberg_quorum_voters") == (3 if n == leader else 0)
        assert samples.value("logberg_quorum_observers") == 0


def test_slow_requests_are_in_the_log(cluster: RunningCluster) -> None:
    output = "".join(cluster.output(f"controller-{n}") for n in cluster.local.controllers)
    lines = [json.loads(line) for line in output.splitlines() if '"request_slow"' in line]
    slow = [line for line in lines if line["operation"] == "create_topics"]
    assert slow
    assert all(line["principal"] == "User:admin" and line["seconds"] >= 0.001 for line in slow)


def test_doctor_finds_a_sound_cluster_sound(cluster: RunningCluster) -> None:
    agents = [f"--agent={cluster.local.agent_url(n)}" for n in cluster.local.brokers]
    said = cluster.command("doctor", "--data", str(cluster.folder), *agents, "-o", "json")
    found = json.loads(said.out)
    by_check = {check["check"] for check in found["checks"]}
    assert by_check == {
        *("nodes", "versions", "clocks", "chain", "disks", "syncs", "certificates"),
        *("descriptors", "access", "heads"),
    }
    # The machine of a test may have a full or slow disk; nothing else may be wrong.
    bad = [
        c for c in found["checks"] if c["state"] == "act" and c["check"] not in ("disks", "syncs")
    ]
    assert bad == []
    assert said.code == (1 if found["act"] else 0)
    chain = next(c for c in found["checks"] if c["check"] == "chain")
    assert chain["state"] == "ok"
    assert chain["found"].startswith("3 controllers have one history up to offset ")
    nodes = [c for c in found["checks"] if c["check"] == "descriptors"]
    assert len(nodes) == 5


def test_doctor_says_which_controller_is_down_and_exits_with_1(cluster: RunningCluster) -> None:
    victim = cluster.controller(cluster.standby())
    victim.signal(signal.SIGSTOP)
    try:
        said = cluster.command("doctor", "--data", str(cluster.folder), "--quiet")
    finally:
        victim.signal(signal.SIGCONT)
    assert said.code == 1, said
    assert "does not answer" in said.out or "no quorum" in said.out, said
    assert "start it, or see why" in said.out
    assert "has to be done now" in said.err
    cluster.until(cluster.settled, "the controller is back")


def test_doctor_reads_a_folder_and_leaves_it_as_it_was(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    folder = cluster.data(1)
    before = sorted(path.name for path in folder.iterdir())
    said = cluster.command("doctor", "--folder", str(folder), "-o", "json")
    found = {check["check"]: check for check in json.loads(said.out)["checks"]}
    assert set(found) == {"disks", "syncs", "chain"}
    assert found["chain"]["state"] == "ok"
    assert found["syncs"]["found"].startswith("20 syncs of 4096 bytes: median ")
    assert sorted(path.name for path in folder.iterdir()) == before
    empty = cluster.command("doctor", "--folder", str(tmp_path), "-o", "json")
    assert {check["check"] for check in json.loads(empty.out)["checks"]} == {"disks", "syncs"}


def test_the_bundle_holds_what_helps_and_no_canary(cluster: RunningCluster, tmp_path: Path) -> None:
    data = ("--data", str(cluster.folder))
    password = tmp_path / "password"
    password.write_text(f"{CANARY}\n")
    # Canaries in records, in a reason, in a configuration and in a process's log.
    for command in (
        ("users", "scram", "set", "carol", "--password-file", str(password), *data),
        ("configs", "set", "topic", "topic-0", "retention.ms=471147114711", *data),
        ("coordination", "keys", "put", "secrets/db", CANARY, *data),
        (
            "topics",
            "create",
            "why",
            "--replication-factor",
            "2",
            "--reason",
            f"the password is {CANARY}",
            *data,
        ),
    ):
        done = cluster.command(*command)
        assert done.code == 0, done
    log = tmp_path / "controller.log"
    log.write_text(
        cluster.output("controller-1")
        + json.dumps({"event": "library_log", "error": f"Bearer {CANARY}", "token": CANARY})
        + f"\nValueError: {CANARY}\n"
    )
    file = tmp_path / "support.tar.gz"
    configs = sorted((cluster.folder / "config").glob("*.toml"))
    said = cluster.command(
        *("support-bundle", str(file), *data, "--log-file", str(log)),
        *(option for path in configs for option in ("--config", str(path))),
        *("--folder", str(cluster.folder)),
    )
    assert said.code == 0, said
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as bundle:
        files = {
            member.name: opened.read().decode()
            for member in bundle.getmembers()
            if (opened := bundle.extractfile(member)) is not None
        }
    secrets = {CANARY, "471147114711", cluster.token}
    for path in (cluster.folder / "config").glob("*.key"):
        secrets.add(path.read_text().strip())
    secrets |= {
        line
        for path in (cluster.folder / "certs").glob("*.key")
        for line in path.read_text().splitlines()
        if "-----" not in line
    }
    assert len(secrets) > 10
    found = {(name, secret) for name, text in files.items() for secret in secrets if secret in text}
    assert found == set()
    # It helps, all the same.
    assert f'"logberg": "{VERSION}"' in files["logberg-support/about.json"]
    assert '"chainHash": "' in files["logberg-support/controllers/1/status.json"]
    assert "logberg_disk_sync_seconds_count" in files["logberg-support/controllers/2/metrics.txt"]
    operations = [
        json.loads(line)["operation"]
        for line in files["logberg-support/log/newest-batches.jsonl"].splitlines()
    ]
    assert {"CreateTopics", "AlterUserScramCredentials"} <= set(operations)
    config = json.loads(files["logberg-support/local/config-3-controller-1.toml.json"])
    assert config["node_id"] == 1
    assert '"controller_started"' in files["logberg-support/local/log-1-controller.log"]
    assert "admin.token" in files["logberg-support/local/folder-1-cluster.txt"]


def test_a_bundle_replaces_no_file(cluster: RunningCluster, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("kept")
    said = cluster.command("support-bundle", str(file), "--data", str(cluster.folder))
    assert said.code == 1
    assert "is there already" in said.err
    assert file.read_text() == "kept"


def test_top_shows_a_frame_without_a_terminal(cluster: RunningCluster) -> None:
    cluster.create("seen-in-top", replication_factor=2)
    said = cluster.command("top", "--once", "--data", str(cluster.folder))
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert f"active: controller {cluster.leader()}, epoch" in lines[0]
    assert sum(line.split()[1:2] == ["online"] for line in lines) == 2
    assert any("User:admin" in line and "CreateTopics" in line for line in lines)
    refused = cluster.command("top", "--data", str(cluster.folder))
    assert refused.code == 1
    assert "--once" in refused.err
    found = json.loads(cluster.command("top", "--data", str(cluster.folder), "-o", "json").out)
    assert found["active"] == cluster.leader()
    assert found["changes"][-1]["records"]
