"""Logs by URL: a real S3-compatible server through pyarrow, other stores through fsspec."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.places.remote import without_secrets
from audit.places.replicas import NoLogError, one_replica, open_replicas
from audit.places.streams import BLOCK_BYTES, CachedTree, RangeStream
from audit.questions.state import state_at
from tests.unit.audit.nodes import write_node


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("up")
    for name in ("controller-1", "controller-2"):
        write_node(folder / name, checkpoint_every=100)
    return folder


@pytest.fixture(scope="module")
def contents(cluster: Path) -> list[bytes]:
    return [batch.encoded for batch in one_replica(str(cluster)).reader().batches()]


@pytest.fixture(scope="module")
def s3(cluster: Path) -> Iterator[str]:
    """A server behind the path in a URL, with the cluster and an archive of it."""
    fs = pytest.importorskip("pyarrow.fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = fs.S3FileSystem(
            endpoint_override=f"{host}:{port}",
            scheme="http",
            region="us-east-1",
            access_key="any",
            secret_key="any",
            allow_bucket_creation=True,
        )
        store.create_dir("history")
        paths = [path for path in cluster.rglob("*") if path.is_file() and path.name != ".lock"]
        for path in paths:
            with store.open_output_stream(f"history/prod/{path.relative_to(cluster)}") as out:
                out.write(path.read_bytes())
        for kind in ("tar", "gztar", "zip"):
            packed = Path(shutil.make_archive(str(cluster.parent / "packed"), kind, cluster))
            with store.open_output_stream(f"history/{packed.name}", compression=None) as out:
                out.write(packed.read_bytes())
        yield f"?endpoint_override={host}:{port}&scheme=http&access_key=any&secret_key=any"
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["prod", "prod/", "packed.tar", "packed.tar.gz", "packed.zip"])
def test_a_bucket_holds_the_same_log(s3: str, path: str, contents: list[bytes]) -> None:
    replicas = open_replicas(f"s3://history/{path}{s3}")
    assert [replica.name for replica in replicas] == ["controller-1", "controller-2"]
    for replica in replicas:
        assert [batch.encoded for batch in replica.reader().batches()] == contents
        assert "any" not in replica.location
        assert not replica.live


@pytest.mark.parametrize("path", ["prod/controller-2", "prod/controller-2/log"])
def test_one_node_of_a_bucket_and_its_log_folder(s3: str, path: str) -> None:
    replica = one_replica(f"s3://history/{path}{s3}")
    assert replica.name == "controller-2"
    end = replica.reader().log_end
    found = state_at(replica, end)
    assert found.checkpoint
    assert found.image.state_hash == state_at(replica, end, snapshots=False).image.state_hash


def test_a_bucket_that_is_not_there_and_an_empty_place(s3: str) -> None:
    with pytest.raises(NoLogError, match=r"s3://nothing.*bucket does not exist"):
        open_replicas(f"s3://nothing/prod{s3}")
    with pytest.raises(NoLogError, match="holds no log"):
        open_replicas(f"s3://history/elsewhere{s3}")
    with pytest.raises(NoLogError, match="can't be read"):
        open_replicas(f"s3://history/no.tar{s3}")


@pytest.mark.slow
def test_a_store_that_can_t_be_reached_is_said_without_its_keys() -> None:
    pytest.importorskip("pyarrow")
    url = "s3://me:secret@history/prod?endpoint_override=127.0.0.1:1&scheme=http"
    with pytest.raises(NoLogError, match="Could not connect") as raised:
        open_replicas(url)
    assert "secret" not in str(raised.value)
    with pytest.raises(NoLogError, match="'colour' is unknown"):
        open_replicas("s3://history/prod?colour=red")


def test_other_schemes_go_through_fsspec(cluster: Path, contents: list[bytes]) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for path in cluster.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/saved/{path.relative_to(cluster)}", path.read_bytes())
    try:
        replicas = open_replicas("memory://saved")
        assert [replica.name for replica in replicas] == ["controller-1", "controller-2"]
        assert [batch.encoded for batch in replicas[1].reader().batches()] == contents
        with pytest.raises(NoLogError, match="holds no log"):
            open_replicas("memory://other")
    finally:
        memory.store.clear()
    with pytest.raises(NoLogError, match="Protocol not known"):
        open_replicas("nothing://x")


def test_without_the_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    for url in ("s3://history/prod", "memory://saved"):
        with pytest.raises(NoLogError, match=r"Install logberg\[audit\]"):
            open_replicas(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://me:secret@bucket/a/b?access_key=AK&secret_key=SK&region=x", "s3://bucket/a/b"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("zip://a.zip::s3://me:secret@bucket/b?token=1", "zip://a.zip::s3://bucket/b"),
        ("http://me:secret@host:80/x?sig=1", "http://host:80/x"),
    ],
)
def test_no_secret_of_a_url_is_shown(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_no_secret_is_in_what_a_library_says() -> None:
    pytest.importorskip("aiohttp")
    pytest.importorskip("fsspec")
    with pytest.raises(NoLogError) as raised:
        open_replicas("http://me:secret@127.0.0.1:1/prod?sig=hidden")
    assert "127.0.0.1" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "hidden" not in str(raised.value)


class CountingTree:
    """A tree with one file that counts the reads."""

    location = "counted"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def files(self, folder):
        return ["file"]

    def folders(self, folder):
        return []

    def size(self, path):
        return len(self.data)

    def read(self, path, position=0, length=None):
        end = len(self.data) if length is None else position + length
        self.asked.append((position, end - position))
        return self.data[position:end]


def test_only_what_is_asked_for_is_fetched_and_only_once() -> None:
    data = bytes(range(256)) * (BLOCK_BYTES // 32)
    tree = CountingTree(data)
    cached = CachedTree(tree)
    assert cached.read("file", 10, 20) == data[10:30]
    assert tree.asked == [(0, BLOCK_BYTES)]
    assert cached.read("file", 5, BLOCK_BYTES * 3) == data[5 : 5 + BLOCK_BYTES * 3]
    assert tree.asked[1:] == [(BLOCK_BYTES, BLOCK_BYTES * 3)]
    assert cached.read("file", 0, BLOCK_BYTES * 4) == data[: BLOCK_BYTES * 4]
    assert cached.read("file", len(data) - 5, 50) == data[-5:]
    assert cached.read("file", len(data), 50) == b""
    assert cached.read("file") == data


def test_the_cache_is_bounded() -> None:
    data = bytes(BLOCK_BYTES * 8)
    tree = CountingTree(data)
    cached = CachedTree(tree, cache_bytes=BLOCK_BYTES * 2)
    for block in (0, 1, 2, 0):
        cached.read("file", block * BLOCK_BYTES, 10)
    assert [position // BLOCK_BYTES for position, _ in tree.asked] == [0, 1, 2, 0]


def test_a_file_of_a_tree_is_a_stream() -> None:
    tree = CountingTree(bytes(range(100)))
    stream = RangeStream(tree, "file")
    assert stream.read(3) == bytes(range(3))
    assert stream.seek(-10, 2) == 90
    assert stream.read() == bytes(range(90, 100))
    assert stream.seek(5) == 5
    assert stream.seek(5, 1) == 10
    assert stream.read(1) == b"\x0a"
