"""The rate at which a ledger grows."""

import pytest

from controller.http.ledger_growth import LedgerGrowth
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, fill

DAY_S = 86_400


class Bench:
    def __init__(self):
        self.world = World(1)
        self.size = 1_000
        clock = SimulatedProcess(self.world, 1).clock
        self.growth = LedgerGrowth(clock, lambda: self.size)

    def later(self, seconds, more):
        self.world.run_for(seconds)
        self.size += more
        self.growth.bytes()


def test_the_rate_is_known_after_ten_minutes():
    bench = Bench()
    assert bench.growth.bytes() == 1_000
    bench.later(300, 50)
    assert bench.growth.bytes_a_day() is None
    bench.later(300, 50)
    assert bench.growth.bytes_a_day() == pytest.approx(100 / 600 * DAY_S)


def test_only_the_last_day_counts():
    bench = Bench()
    bench.growth.bytes()
    bench.later(3_600, 10**9)
    for _ in range(30):
        bench.later(3_600, 240)
    assert bench.growth.bytes_a_day() == pytest.approx(240 * 24, rel=0.05)


def test_a_ledger_that_does_not_grow_has_the_rate_0():
    bench = Bench()
    bench.growth.bytes()
    bench.later(1_200, 0)
    assert bench.growth.bytes_a_day() == 0


def test_a_ledger_that_was_replaced_begins_anew():
    bench = Bench()
    bench.growth.bytes()
    bench.later(1_200, 5_000)
    bench.later(60, -5_500)
    assert bench.growth.bytes() == 500
    assert bench.growth.bytes_a_day() is None


def test_a_closed_ledger_is_not_known():
    bench = Bench()
    bench.size = None
    assert bench.growth.bytes() == 0
    assert bench.growth.bytes_a_day() is None


def test_a_controller_tells_it():
    cluster = Cluster(nodes=1, **SMALL)
    cluster.online(1)
    fill(cluster)
    ledger = cluster.controllers[1]._storage.open_ledger()
    files = cluster.platters[1].names
    on_disk = sum(len(files[name].content) for name in files if name.startswith("log/"))
    assert ledger.size_bytes() == on_disk

    def metrics():
        body = cluster.ask("GET", "/metrics")[1]
        return body.decode() if isinstance(body, bytes) else body

    said = metrics()
    assert f"logberg_ledger_bytes {on_disk}" in said
    assert "\nlogberg_ledger_bytes_per_day " not in said
    cluster.run(700)
    cluster.online(1)
    fill(cluster, start=100)
    cluster.run(61)
    assert "\nlogberg_ledger_bytes_per_day " in metrics()
