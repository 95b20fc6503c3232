"""A real cluster, a real Prometheus with our alerts, and what made each alert fire.

Rule: an alert that fires already before its cause proves nothing, so `fire` refuses it. The rules
are ours with shorter waits (`shorter_waits`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.deploy.prometheus_process import RULES, Prometheus
from tests.deploy.shorter_waits import write_shorter
from tests.process.running_cluster import RunningCluster

PATIENCE_S = 90.0


class FiredAlert(NamedTuple):
    """An alert that a cause made fire."""

    alert: str
    cause: str
    labels: str
    """Whom it named."""
    after_s: float
    """Seconds from the end of what the test did until Prometheus showed it."""


class AlertBench:
    """Causes alerts, and notes which ones fired."""

    def __init__(self, cluster: RunningCluster, prometheus: Prometheus) -> None:
        self.cluster = cluster
        self.prometheus = prometheus
        self.fired: list[FiredAlert] = []

    def firing(self, alert: str) -> list[dict[str, str]]:
        """Return the labels of an alert for each that fires now."""
        asked = f'ALERTS{{alertname="{alert}", alertstate="firing"}}'
        return [labels for labels, _ in self.prometheus.query(asked)]

    def fire(
        self,
        cause: str,
        act: Callable[[], object],
        *alerts: str,
        again: Callable[[], object] | None = None,
    ) -> None:
        """Cause alerts, and wait until each has fired.

        `again`: done again and again meanwhile, for causes that must last.
        """
        before = [alert for alert in alerts if self.firing(alert)]
        assert before == [], f"{before} fired before this: {cause}"
        act()
        began = time.monotonic()
        missing = list(alerts)
        while missing:
            if again is not None:
                again()
            for alert in list(missing):
                found = self.firing(alert)
                if found:
                    missing.remove(alert)
                    after = time.monotonic() - began
                    self.fired.append(FiredAlert(alert, cause, _whom(found), after))
            waited = time.monotonic() - began
            assert waited < PATIENCE_S, f"never fired: {missing}, by: {cause}\n{self._picture()}"
            time.sleep(0.5)

    def quiet(self, *alerts: str) -> None:
        """Wait until none of these fires."""
        until = time.monotonic() + PATIENCE_S
        while any(self.firing(alert) for alert in alerts):
            assert time.monotonic() < until, f"fires on: {alerts}\n{self._picture()}"
            time.sleep(0.5)

    def _picture(self) -> str:
        return f"{self.cluster.picture()}\n{self.prometheus.log()[-2000:]}"


def _whom(found: list[dict[str, str]]) -> str:
    """Such as `instance=127.0.0.1:19191`, of the first one that fires."""
    general = {"__name__", "alertname", "alertstate", "severity", "job"}
    named = {key: value for key, value in found[0].items() if key not in general}
    return ", ".join(f"{key}={value}" for key, value in sorted(named.items()))


@contextmanager
def alert_bench(folder: Path, cluster: RunningCluster) -> Iterator[AlertBench]:
    """Start the cluster and a Prometheus; nothing of them is left running."""
    place = folder / "prometheus"
    place.mkdir()
    rules = write_shorter(RULES, place / "rules.yml")
    try:
        cluster.start()
        with Prometheus(place, cluster, rules).running() as prometheus:
            bench = AlertBench(cluster, prometheus)
            cluster.until(lambda: _scrapes_all(bench), "Prometheus scrapes every node")
            yield bench
    finally:
        cluster.kill()


def _scrapes_all(bench: AlertBench) -> bool:
    try:
        found = bench.prometheus.query("up")
    except OSError:
        return False
    return len(found) == len(bench.cluster.local.children) and all(value for _, value in found)
