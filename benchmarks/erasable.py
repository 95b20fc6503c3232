"""What it costs a change that addresses are sealed and names have pseudonyms.

    python -m benchmarks.erasable [--rounds N] [--changes N]

One controller for each combination of the settings runs in this process, on the simulated clock and
disk: nothing is sent or synced, so what is measured is the processor time of the controller's own
code. A person with a certificate changes a quota. The clusters take turns, in changing order, and
what counts is the median of the differences within a round. Exit 1 above `MOST_US`.
"""

import argparse
import statistics
import sys
import time
from typing import Any, Final

from metadata.people import USER
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster

MOST_US: Final = 100.0
"""A fifth of what a change may cost."""
_PERSON: Final = Caller(f"{USER}alice@example.com", "certificate", "203.0.113.7")
_COVERED: Final = (f"{USER}*@example.com",)
_PLAIN: Final = "neither"
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    _PLAIN: {},
    "sealed addresses": {"seal_addresses": True},
    "pseudonyms": {"pseudonyms": _COVERED},
    "both": {"seal_addresses": True, "pseudonyms": _COVERED},
}
_CLUSTER: Any = Cluster


def made(settings: dict[str, Any], people: int) -> Any:
    """Return a cluster, in which other people have pseudonyms if it gives any."""
    cluster = _CLUSTER(
        nodes=1,
        cluster_key=ClusterKey(bytes(32)),
        checkpoint_bytes=1 << 40,
        compare_records=False,
        **settings,
    )
    for start in range(0, people, 100):
        acls = [
            {
                "resourceType": "TOPIC",
                "resourceName": "orders",
                "operation": "READ",
                "principal": f"{USER}{number}@example.com",
            }
            for number in range(start, min(start + 100, people))
        ]
        status, reply = cluster.ask("POST", "/v1/acls", {"acls": acls}, caller=_PERSON)
        if status != 200:
            raise RuntimeError(f"the entries were refused: {reply}")
    return cluster


def change_us(cluster: Any, changes: int) -> float:
    """Return the processor time of a change in µs."""
    entity = [{"entityType": "user", "entityName": "ci"}]
    started = time.process_time()
    for number in range(changes):
        operation = {"key": "producer_byte_rate", "value": float(number + 1)}
        entry = {"entity": entity, "operations": [operation]}
        cluster.ask("POST", "/v1/quotas", {"entries": [entry]}, caller=_PERSON)
    return (time.process_time() - started) / changes * 1e6


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.erasable")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--changes", type=int, default=200, help="of each round and cluster")
    parser.add_argument("--people", type=int, default=1_000, help="who have pseudonyms")
    asked = parser.parse_args()
    clusters = {name: made(each, asked.people) for name, each in _SETTINGS.items()}
    more: dict[str, list[float]] = {name: [] for name in clusters}
    plain = []
    for number in range(asked.rounds):
        order = list(clusters)[:: 1 if number % 2 else -1]
        cost = {name: change_us(clusters[name], asked.changes) for name in order}
        plain.append(cost[_PLAIN])
        for name in clusters:
            more[name].append(cost[name] - cost[_PLAIN])
    print(f"a change with {_PLAIN}: {statistics.median(plain):.0f} µs of processor time")
    worst = 0.0
    for name, found in more.items():
        if name != _PLAIN:
            middle = statistics.median(found)
            worst = max(worst, middle)
            print(f"  more with {name}: {middle:.1f} µs ({min(found):.1f} to {max(found):.1f})")
    return 1 if worst > MOST_US else 0


if __name__ == "__main__":
    sys.exit(main())
