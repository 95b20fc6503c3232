"""The console follows a log in object storage: it is opened anew, and read again if it grew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.console.console import Console
from audit.console.log_source import REOPEN_S, RemoteSource
from audit.places import replicas
from audit.places.replicas import Replica, one_replica
from tests.unit.audit.console.test_console import ask
from tests.unit.audit.nodes import frames, write_node

PLACE = "memory://console-log"


@pytest.fixture
def store() -> Iterator[Any]:
    store = pytest.importorskip("fsspec").filesystem("memory")
    yield store
    store.rm("/console-log", recursive=True)


def put(store: Any, node: Path, *, without: int) -> None:
    """Copy a node's log, its last batches left out."""
    paths = sorted((node / "log").glob("*.log"))
    for path in paths:
        header, batches = frames(path)
        kept = batches[: len(batches) - without] if path == paths[-1] else batches
        store.pipe(f"/console-log/log/{path.name}", header + b"".join(kept))


def test_what_is_added_is_seen_after_a_while(store: Any, tmp_path: Path) -> None:
    node = tmp_path / "node"
    write_node(node, 120, 5)
    put(store, node, without=20)
    clock, opened = [100.0], []

    def choose() -> Replica:
        opened.append(clock[0])
        return one_replica(PLACE)

    source = RemoteSource(choose, now=lambda: clock[0])
    console = Console(source, tmp_path / "index", now=lambda: 0.0)
    console.keep_up(lambda: False)
    ends = [ask(console, "status")[1]["logEnd"]]
    put(store, node, without=7)
    console.keep_up(lambda: False)
    ends.append(ask(console, "status")[1]["logEnd"])
    assert opened == [100.0]
    clock[0] += REOPEN_S
    console.keep_up(lambda: False)
    ends.append(ask(console, "status")[1]["logEnd"])
    assert ends[0] == ends[1] < ends[2]
    last = str(ends[2] - 1)
    assert ask(console, "record", offset=last)[0] == 200
    put(store, node, without=0)
    clock[0] += REOPEN_S
    console.keep_up(lambda: False)
    status = ask(console, "status")[1]
    assert status["logEnd"] == one_replica(str(node)).reader().log_end
    assert ask(console, "record", offset=str(status["logEnd"] - 1))[0] == 200


def test_a_log_that_did_not_grow_is_not_read_again(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_node(tmp_path / "node", 60, 5)
    put(store, tmp_path / "node", without=0)
    clock = [0.0]
    source = RemoteSource(lambda: one_replica(PLACE), now=lambda: clock[0])
    before = source.newest()
    read: list[Replica] = []
    monkeypatch.setattr(replicas.Replica, "reader", read.append)
    for _ in range(5):
        clock[0] += REOPEN_S
        assert source.newest() is before
    assert read == []
