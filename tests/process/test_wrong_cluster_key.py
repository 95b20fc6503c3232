"""A real controller with another cluster key says so when it starts, and does not lead."""

import signal
from pathlib import Path

import pytest

from metadata.sealing import KEY_BYTES
from runtime.disk.secret_file import write_new_secret
from tests.process.running_cluster import running

pytestmark = pytest.mark.process


def test_a_controller_with_another_cluster_key_says_so_and_does_not_lead(tmp_path: Path) -> None:
    with running(tmp_path / "cluster") as cluster:
        wrong = cluster.folder / "wrong.key"
        write_new_secret(wrong, KEY_BYTES)
        config = cluster.folder / "config" / "controller-3.toml"
        right = str(cluster.folder / "config" / "cluster.key")
        assert right in config.read_text()
        third = cluster.controller(3)
        third.signal(signal.SIGTERM)
        assert third.wait(20.0)
        config.write_text(config.read_text().replace(right, str(wrong)))
        third.start()
        cluster.until(lambda: "cluster_key_differs" in cluster.output("controller-3"), "it says so")
        cluster.until(cluster.settled, "it follows")
        for _ in range(2):
            killed = cluster.leader()
            assert killed != 3
            cluster.controller(killed).kill()
            assert cluster.leader(but=killed) != 3
            cluster.controller(killed).start()
            cluster.until(cluster.settled, "the killed controller is back")
        status = cluster.status(3)
        assert status is not None
        assert "does not lead" in status["note"]
