"""Real agents that must be refused: one of another cluster, a second one with the same id.

Each gets the reason, on its standard error or in its log. The broker with that id goes on.
"""

import datetime as dt
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.ports import free_port_base
from metadata.features import SUPPORTED
from tests.process.running_cluster import PATIENCE_S, POLL_S, RunningCluster, running

pytestmark = pytest.mark.process

INCARNATION = "MDAwMDAwMDAwMDAwMDAwMQ"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(
        tmp_path_factory.mktemp("bad-brokers"), controllers=1, brokers=2, principals=("Broker:9",)
    ) as cluster:
        cluster.create("before")
        yield cluster


class Agent:
    """An agent of a test's own: broker 1's configuration, changed."""

    def __init__(self, cluster: RunningCluster, folder: Path, **swap: str) -> None:
        folder.mkdir(exist_ok=True)
        text = (cluster.folder / "config" / "broker-1.toml").read_text()
        port = free_port_base() + 7
        own = {"data": f'"{folder / "data"}"', "http": f'"127.0.0.1:{port}"', **swap}
        for key, value in own.items():
            text, found = re.subn(
                f"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE
            )
            assert found == 1, key
        self.config = folder / "broker.toml"
        self.config.write_text(text)
        self.output = folder / "output"
        self.process: subprocess.Popen[bytes]

    @contextmanager
    def running(self) -> Iterator["Agent"]:
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "logberg", "broker", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            yield self
        finally:
            self.process.kill()
            self.process.wait()

    @property
    def said(self) -> str:
        return self.output.read_text()

    def says(self, *words: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not all(word in self.said for word in words):
            assert time.monotonic() < until, f"never {words}; it said {self.said}"
            time.sleep(POLL_S)

    def ends(self, code: int) -> None:
        assert self.process.wait(PATIENCE_S) == code, self.said
        assert "Traceback" not in self.said


def test_an_agent_of_another_cluster_talks_to_no_controller_and_says_why(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    agent = Agent(cluster, tmp_path / "agent", cluster_id='"another-cluster-0001"')
    with agent.running():
        certified = f"quorum://{cluster.local.cluster_id}/1"
        agent.says("controllers_unusable", f"its certificate is for '{certified}'")
        agent.says("and not for a controller of cluster another-cluster-0001")
    assert cluster.broker_states() == {1: "online", 2: "online"}


def test_an_agent_whose_certificate_nobody_knows_says_why_it_does_not_get_in(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    own = cluster.local.cluster_id
    authority = LocalCertificateAuthority(tmp_path / "ca", own, dt.datetime.now(dt.UTC))
    cert, key = authority.issue("broker-1", f"broker://{own}/1")
    agent = Agent(cluster, tmp_path / "agent", cert=f'"{cert}"', key=f'"{key}"')
    with agent.running():
        agent.says("certificate", cluster.url(1))
    # And the other way: the controllers' certificates are not of the CA that it trusts.
    agent = Agent(cluster, tmp_path / "agent2", ca=f'"{tmp_path / "ca" / "ca.crt"}"')
    with agent.running():
        agent.says("certificate verify failed", cluster.url(1))
    assert cluster.broker_states() == {1: "online", 2: "online"}


def test_an_agent_with_another_brokers_certificate_says_which_it_needs(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    agent = Agent(cluster, tmp_path / "agent", broker_id="3")
    with agent.running():
        agent.says("CLUSTER_AUTHORIZATION_FAILED", "it lacks the credentials of Broker:3")
    assert cluster.broker_states() == {1: "online", 2: "online"}


def test_a_second_process_with_a_live_brokers_id_waits_outside(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    """And takes its place when the first is gone for a session."""
    first = cluster.local.brokers[1]
    agent = Agent(cluster, tmp_path / "agent")
    with agent.running():
        agent.says("DUPLICATE_BROKER_REGISTRATION", "another process with broker id 1 is alive")
        assert first.running
        assert cluster.broker_states()[1] == "online"
        assert "broker_registered" not in agent.said
        first.kill()
        agent.says("broker_registered", '"online"')
        cluster.until(lambda: cluster.broker_states()[1] == "online", "the second serves")
        # The first, started again, is the second now.
        first.start()
        cluster.until(
            lambda: "DUPLICATE_BROKER" in cluster.output("broker-1"), "the first is refused"
        )
        agent.process.terminate()
        agent.ends(0)
    cluster.until(lambda: cluster.broker_states()[1] == "online", "the first serves again")


def fetch(cluster: RunningCluster, epoch: int, **more: Any) -> dict[str, Any]:
    body = {
        "clusterId": cluster.local.cluster_id,
        "brokerId": 9,
        "incarnationId": INCARNATION,
        "brokerEpoch": epoch,
        "wantedState": "fenced",
        **more,
    }
    answer: dict[str, Any] = cluster.ask(
        cluster.url(1), "POST", "/v1/metadata/fetch", body, token=cluster.token_of("Broker:9")
    ).body
    return answer


def test_a_second_process_is_refused_also_while_the_first_is_fenced_and_alive(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    """Kafka lets it in (its check looks at unfenced brokers only)."""
    features = [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in SUPPORTED.items()
    ]
    endpoint = {"name": "HTTP", "host": "127.0.0.1", "port": 19999}
    place = {"endpoints": [endpoint], "features": features}
    reply = fetch(cluster, -1, registration=place)
    assert reply["error"] is None
    epoch, offset = reply["brokerEpoch"], reply["highWatermark"]
    own = cluster.local.cluster_id
    authority = LocalCertificateAuthority(cluster.folder / "certs", own, dt.datetime.now(dt.UTC))
    cert, key = authority.issue("broker-9", f"broker://{own}/9")
    agent = Agent(cluster, tmp_path / "agent", broker_id="9", cert=f'"{cert}"', key=f'"{key}"')
    with agent.running():
        # More than a session.
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            reply = fetch(cluster, epoch, fetchedOffset=offset, appliedOffset=offset)
            assert reply["error"] is None, reply
            assert reply["state"] == "fenced"
            time.sleep(0.3)
        agent.says("DUPLICATE_BROKER_REGISTRATION", "another process with broker id 9 is alive")
        assert "broker_registered" not in agent.said
        # The first falls silent.
        agent.says("broker_registered", '"online"')
        reply = fetch(cluster, epoch)
        assert reply["error"]["code"] == "STALE_BROKER_EPOCH"
        agent.process.terminate()
        agent.ends(0)


def test_nothing_of_it_was_lost(cluster: RunningCluster) -> None:
    cluster.create("after")
    for child in cluster.local.children:
        assert "Traceback" not in cluster.output(child.name)
    cluster.check_nothing_lost()
