"""Imports on real processes: from a file, and from a real ZooKeeper (M1 to M6, M10).

What needs ZooKeeper runs only with LOGBERG_SERVERS=1; the rest always.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from logberg.importing.kafka_layout import read_kafka
from logberg.importing.source_error import SourceError
from logberg.importing.unchanged import read_unchanged
from logberg.importing.zookeeper_source import ZooKeeperSource
from metadata.messages.records_json import record_to_json
from tests.coordination.servers.tier import serving
from tests.coordination.servers.zookeeper import ZooKeeperServers
from tests.process.running_cluster import Said, running
from tests.unit.logberg.importing.trees import FILE, kafka_tree

pytestmark = [pytest.mark.process, pytest.mark.slow]


def command(cluster: Any, *arguments: str) -> Said:
    """Run a command within the cluster's folder."""
    said: Said = cluster.command(*arguments, "--data", ".")
    return said


def shown(cluster: Any, *arguments: str) -> Any:
    said = command(cluster, *arguments, "--output", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_file_of_nodes_is_imported_once_and_the_audit_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        file = str(FILE)
        rehearsal = command(cluster, "import", "zookeeper", file, "--dry-run")
        assert rehearsal.code == 0, rehearsal.err
        assert "would write" in rehearsal.out
        assert "waits for its deletion" in rehearsal.out
        done = command(cluster, "import", "zookeeper", file, "--reason", "we move")
        assert done.code == 0, done.err
        again = command(cluster, "import", "zookeeper", file)
        assert "imported: 0 records" in again.out
        described = shown(cluster, "topics", "describe", "orders")
        assert "CeWW5BSKWE2ClPIKl05eLw" in json.dumps(described)
        told = cluster.command("audit", "who", "controller-1", "topic:orders")
        assert "import of kafka_tree.json at revision" in told.out
        assert "we move" in told.out


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with serving(lambda: ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))) as servers:
        yield servers


@pytest.fixture
def writer(servers: ZooKeeperServers) -> Iterator[Any]:
    """A session that writes, with an empty place of its own at the root."""
    client = KazooClient(hosts=servers.endpoints[0], timeout=10)
    client.start(20)
    try:
        yield client
        client.delete("/kafka", recursive=True)
    finally:
        client.stop()
        client.close()


def load(client: Any, root: str = "/kafka") -> None:
    """Write the tree as Kafka did: versions by repeated sets, ephemeral nodes by this session.

    The file names parents before their children, which then are there.
    """
    client.ensure_path(root)
    for entry in json.loads(FILE.read_text()):
        path, data = root + entry["path"], (entry["data"] or "").encode()
        client.create(path, data, ephemeral=entry.get("ephemeral", False), makepath=True)
        for _ in range(entry.get("version", 0)):
            client.set(path, data)


def source_of(servers: ZooKeeperServers, user: str = "", root: str = "/kafka") -> ZooKeeperSource:
    return ZooKeeperSource(f"zookeeper://{user}{servers.endpoints[0]}{root}", 20.0)


def test_an_empty_place_gives_nothing_and_a_missing_one_is_an_error(
    servers: ZooKeeperServers, writer: Any
) -> None:
    with pytest.raises(SourceError, match="no such node"):
        source_of(servers).read()
    writer.ensure_path("/kafka")
    tree, zxid = source_of(servers).read()
    assert len(tree) == 0
    assert zxid > 0


def test_the_tree_of_a_real_server_gives_what_the_file_gives(
    servers: ZooKeeperServers, writer: Any
) -> None:
    load(writer)
    tree, zxid = source_of(servers).read()
    found, wanted = read_kafka(tree), read_kafka(kafka_tree())
    # An id that is assigned depends on the change that made the topic's node.
    assert without_assigned(found.records) == without_assigned(wanted.records)
    assert zxid >= tree.last_zxid
    left = {each.path: each.why for each in found.left}
    for path in ("/controller", "/brokers/ids/0", "/brokers/ids/1", "/brokers/ids/2"):
        assert "ephemeral" in left[path]


def without_assigned(records: list[Any]) -> list[Any]:
    known = [record_to_json(each, show_secrets=True) for each in records]
    ancient = next(
        each["data"]["topicId"] for each in known if each["data"].get("name") == "ancient"
    )
    return json.loads(json.dumps(known).replace(ancient, "assigned"))


def test_a_tree_that_changes_while_it_is_read_is_read_again(
    servers: ZooKeeperServers, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two readings the source changes three times; then it rests."""
    load(writer)
    changes = iter(b'{"config":{"consumer_byte_rate":"%d"}}' % n for n in range(1, 4))
    readings = 0

    def meddled(read: Callable[[], Any], most: int) -> Any:
        def and_change() -> Any:
            nonlocal readings
            readings += 1
            found = read()
            data = next(changes, None)
            if data is not None:
                writer.set("/kafka/config/clients/batch%20job", data)
            return found

        return read_unchanged(and_change, most)

    monkeypatch.setattr("logberg.importing.zookeeper_source.read_unchanged", meddled)
    tree, _ = source_of(servers).read()
    assert readings == 5
    node = tree.get("/config/clients/batch%20job")
    assert node is not None
    assert node.data == b'{"config":{"consumer_byte_rate":"3"}}'


def test_a_tree_that_never_rests_is_refused(servers: ZooKeeperServers, writer: Any) -> None:
    writer.ensure_path("/kafka/config/clients/a")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            writer.set("/kafka/config/clients/a", b"{}")

    meddler = threading.Thread(target=write)
    meddler.start()
    try:
        with pytest.raises(SourceError, match="changed while it was read"):
            source_of(servers).read()
    finally:
        stop.set()
        meddler.join()


def test_secrets_need_the_credentials_of_kafka(servers: ZooKeeperServers, writer: Any) -> None:
    data = b'{"config":{"producer_byte_rate":"5"}}'
    acl = [make_digest_acl("kafka", "secret", all=True)]
    writer.ensure_path("/kafka/config/users")
    writer.create("/kafka/config/users/alice", data, acl=acl)
    with pytest.raises(SourceError, match="/config/users/alice: these credentials may not read"):
        source_of(servers).read()
    tree, _ = source_of(servers, "kafka:secret@").read()
    assert tree.get("/config/users/alice").data == data
    writer.add_auth("digest", "kafka:secret")


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match="no server answered within 1 s"):
        ZooKeeperSource("zookeeper://127.0.0.1:1/kafka", 1.0).read()


def test_zookeeper_becomes_the_quorum_and_a_malformed_node_stops_it(
    servers: ZooKeeperServers, writer: Any, tmp_path: Path
) -> None:
    load(writer)
    writer.set("/kafka/config/clients/batch%20job", b"{")
    url = f"zookeeper://{servers.endpoints[0]}/kafka"
    with running(tmp_path) as cluster:
        refused = command(cluster, "import", "zookeeper", url)
        assert refused.code == 1
        assert "/config/clients/batch%20job" in refused.err
        assert shown(cluster, "topics", "list")["topics"] == []
        done = shown(cluster, "import", "zookeeper", url, "--skip-malformed")
        assert done["reply"]["conflictCount"] == 0
        names = {each["name"] for each in shown(cluster, "topics", "list")["topics"]}
        assert {"orders", "moving", "unclean", "ancient"} <= names
        assert "doomed" not in names
        again = shown(cluster, "import", "zookeeper", url, "--skip-malformed")
        assert again["reply"]["written"] == 0
        configs = shown(cluster, "configs", "describe", "topic", "orders")
        assert "604800000" in json.dumps(configs)
        writer.set("/kafka/config/clients/batch%20job", b'{"config":{"consumer_byte_rate":"7"}}')
        more = shown(cluster, "import", "zookeeper", url)
        assert more["reply"]["written"] == 1


def nodes_file(folder: Path, count: int) -> str:
    """Write a file of nodes with 16,000 bytes each."""
    file = folder / "nodes.json"
    nodes = [{"path": f"/k/{n:05}", "data": f"{n:08}" * 2_000} for n in range(count)]
    file.write_text(json.dumps([{"path": "/k", "data": None}, *nodes]))
    return str(file)


def test_an_import_of_many_megabytes_is_one_change_and_can_be_ended_and_begun_again(
    tmp_path: Path,
) -> None:
    """12 MB of keys go in parts. The client dies on the way, and the leader before the last try."""
    with running(tmp_path / "cluster") as cluster:
        arguments = ["import", "zookeeper", nodes_file(tmp_path, 800), "--layout", "plain"]
        whole = [sys.executable, "-m", "logberg", *arguments, "--data", "."]
        child = subprocess.Popen(
            whole, cwd=cluster.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert child.stderr is not None
        assert any("1 of " in line for line in child.stderr)
        child.kill()
        child.wait()
        child.stderr.close()
        assert keys_of(cluster) == 0
        said = command(cluster, *arguments, "--dry-run")
        assert "would write 800 records" in said.out, said.err
        leader = cluster.leader()
        cluster.controller(leader).kill()
        cluster.leader(but=leader)
        said = command(cluster, *arguments, "--timeout", "30")
        assert said.code == 0, said.err
        assert "imported: 800 records" in said.out
        assert keys_of(cluster) == 800
        assert "imported: 0 records; 800 are here already" in command(cluster, *arguments).out


def keys_of(cluster: Any) -> int:
    path = "/v1/coordination/keys?prefix=k/&keysOnly=true"
    answer = cluster.ask(cluster.url(cluster.leader()), "GET", path)
    assert answer.status == 200, answer.body
    return len(answer.body["records"])
