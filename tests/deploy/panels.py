"""Asks a real Prometheus, which scrapes a real cluster, every query of the dashboard.

Rule: the cluster is three controllers and two agents, with TLS and tokens, as `logberg up` makes
it. Prometheus reads the scrape configuration that we ship, with its addresses and files changed.
"""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.conformance.ports import free_port
from tests.docs import source
from tests.process.running_cluster import RunningCluster

DASHBOARD = source.ROOT / "deploy" / "grafana" / "logberg.json"
SCRAPE = source.ROOT / "deploy" / "prometheus" / "prometheus.yml"
RULES = source.ROOT / "deploy" / "prometheus" / "logberg.rules.yml"
PATIENCE_S = 60.0
SCRAPE_EVERY = "1s"


class Panel(NamedTuple):
    """One query of the dashboard."""

    row: str
    title: str
    unit: str
    query: str


class PanelAnswer(NamedTuple):
    """What Prometheus answered."""

    panel: Panel
    series: list[tuple[dict[str, str], float]]


def panels() -> list[Panel]:
    """Every query, in the order of the dashboard."""
    found, row = [], ""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        unit = panel["fieldConfig"]["defaults"]["unit"]
        found += [Panel(row, panel["title"], unit, t["expr"]) for t in panel["targets"]]
    return found


class Prometheus:
    """A Prometheus of our own, on loopback."""

    def __init__(self, folder: Path, cluster: RunningCluster) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        (folder / "token").write_text(cluster.token)
        config = yaml.safe_load(SCRAPE.read_text())
        config["global"] = {"scrape_interval": SCRAPE_EVERY, "evaluation_interval": SCRAPE_EVERY}
        config["rule_files"] = [str(RULES)]
        urls = {
            "logberg-controllers": [cluster.url(n) for n in cluster.local.controllers],
            "logberg-agents": [cluster.local.agent_url(n) for n in cluster.local.brokers],
        }
        for job in config["scrape_configs"]:
            job["tls_config"]["ca_file"] = cluster.local.file.ca
            if "authorization" in job:
                job["authorization"]["credentials_file"] = str(folder / "token")
            hosts = [url.removeprefix("https://") for url in urls[job["job_name"]]]
            job["static_configs"] = [{"targets": hosts}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))

    @contextmanager
    def running(self) -> Iterator["Prometheus"]:
        """Run it within the block."""
        with (self._folder / "prometheus.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            yield self
        finally:
            process.terminate()
            process.wait(20)

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of an answer. Raises OSError."""
        url = f"{self.url}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the series that a query gives now."""
        found = self.ask("/api/v1/query", query=expression)
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    def log(self) -> str:
        """What it printed."""
        return (self._folder / "prometheus.log").read_text()


def answers(prometheus: Prometheus, cluster: RunningCluster) -> list[PanelAnswer]:
    """Let the cluster work until every query has data, and return what was answered."""
    until = time.monotonic() + PATIENCE_S
    number = 0
    while True:
        number += 1
        cluster.create(f"panel-{number}", replication_factor=2)
        try:
            found = [PanelAnswer(panel, prometheus.query(panel.query)) for panel in panels()]
        except (OSError, urllib.error.URLError):
            found = []
        # Two scrapes make a rate.
        if number > 4 and found and all(each.series for each in found):
            return found
        empty = [each.panel.title for each in found if not each.series]
        assert time.monotonic() < until, f"no data: {empty}\n{prometheus.log()[-3000:]}"
        time.sleep(1.0)


def asked_anew(folder: Path) -> list[PanelAnswer]:
    """Run a cluster and a Prometheus, and return the answers."""
    cluster = RunningCluster(folder / "cluster", brokers=2)
    try:
        cluster.start()
        with Prometheus(folder, cluster).running() as prometheus:
            found = answers(prometheus, cluster)
        cluster.stop()
        return found
    finally:
        cluster.kill()
