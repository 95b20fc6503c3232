"""A real Prometheus on loopback, which scrapes a cluster of real processes each second.

Rule: it reads the scrape configuration that we ship, with its addresses and files changed, and
whatever rules it is given.
"""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.ports import free_port
from tests.docs import source
from tests.process.running_cluster import RunningCluster

SCRAPE = source.ROOT / "deploy" / "prometheus" / "prometheus.yml"
RULES = source.ROOT / "deploy" / "prometheus" / "logberg.rules.yml"
SCRAPE_EVERY = "1s"

Series = list[tuple[dict[str, str], float]]


class Prometheus:
    """It is configured when it is made, and runs within `running`."""

    def __init__(self, folder: Path, cluster: RunningCluster, rules: Path = RULES) -> None:
        """`folder`: of its own; it exists."""
        self.url = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._configure(
            cluster,
            rules,
            {
                "logberg-controllers": [cluster.url(n) for n in cluster.local.controllers],
                "logberg-agents": [cluster.local.agent_url(n) for n in cluster.local.brokers],
            },
        )

    def _configure(
        self, cluster: RunningCluster, rules: Path, urls: dict[str, Sequence[str]]
    ) -> None:
        token = self._folder / "token"
        token.write_text(cluster.token)
        config = yaml.safe_load(SCRAPE.read_text())
        config["global"] = {"scrape_interval": SCRAPE_EVERY, "evaluation_interval": SCRAPE_EVERY}
        config["rule_files"] = [str(rules)]
        for job in config["scrape_configs"]:
            job["tls_config"]["ca_file"] = cluster.local.file.ca
            if "authorization" in job:
                job["authorization"]["credentials_file"] = str(token)
            hosts = [url.removeprefix("https://") for url in urls[job["job_name"]]]
            job["static_configs"] = [{"targets": hosts}]
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(config))

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

    def query(self, expression: str) -> Series:
        """Return the series that a query gives now. Raises OSError."""
        found = self.ask("/api/v1/query", query=expression)
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    def log(self) -> str:
        """What it printed."""
        return (self._folder / "prometheus.log").read_text()
