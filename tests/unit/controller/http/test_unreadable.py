"""If the disk refuses a read, the caller gets an error, and the node goes on."""

from typing import Any

import pytest

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, fill


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Controller 3 leads, has no old batches in memory, and can't read its disk."""
    cluster = Cluster(**SMALL)
    (cluster.broker,) = cluster.online(1)
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(0.5)
    cluster.lead(3)

    def read(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cluster.shared.disks[3], "read", read)
    return cluster


def test_a_fetch_is_told(cluster: Any) -> None:
    reply = cluster.broker.fetch(fetched_offset=1, fetched_epoch=1, apply=False)
    assert reply.error.code == "STORAGE_ERROR"
    assert not cluster.stopped


def test_a_reader_of_the_log_is_told(cluster: Any) -> None:
    status, body = cluster.ask("GET", "/v1/log", node=3, query={"offset": "1"})
    assert (status, body["code"]) == (503, "STORAGE_ERROR")
    assert not cluster.stopped
