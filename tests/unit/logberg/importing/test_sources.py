"""Sources: two equal readings, URLs, and files of nodes (M4, in pure form)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from logberg.importing.source_error import SourceError
from logberg.importing.tree_file import read_tree_file
from logberg.importing.unchanged import read_unchanged
from logberg.importing.zookeeper_source import ZooKeeperSource


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ("aa", 2),
        ("abb", 3),
        ("abab", None),
        ("abcdd", 5),
        ("abcdef", None),
    ],
)
def test_a_source_is_read_until_two_readings_are_equal(readings: str, found: int | None) -> None:
    done = 0

    def read() -> Sequence[str]:
        nonlocal done
        done += 1
        return readings[done - 1]

    if found is None:
        with pytest.raises(SourceError, match="changed while it was read"):
            read_unchanged(read, len(readings))
    else:
        assert read_unchanged(read, len(readings)) == readings[found - 1]
        assert done == found


@pytest.mark.parametrize(
    "url",
    [
        "zookeeper://",
        "zookeeper://a,,b/kafka",
        "etcd://a:2379",
        "zookeeper://a/kafka?ttl=5",
        "zookeeper://a#b",
        "://",
    ],
)
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(SourceError):
        ZooKeeperSource(url, 1.0)


def test_the_name_of_a_source_has_no_password() -> None:
    source = ZooKeeperSource("zookeeper://kafka:secret@zk1:2181,zk2/kafka", 1.0)
    assert source.name == "zookeeper://zk1:2181,zk2/kafka"


@pytest.mark.parametrize(
    "text", ["", "{}", '[{"data":"a"}]', '[{"path":"/a"},{"path":"/a"}]', '[{"path":5}]', "\udcff"]
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "nodes.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SourceError, match=r"nodes\.json"):
        read_tree_file(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_tree_file(tmp_path / "nothing.json")
