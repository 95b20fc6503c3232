"""The operator's round after the damage waits for nodes that are still fetching."""

import pytest

from tests.simulation.aftermath import have_ledgers_mended
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation


def test_a_ledger_that_does_not_even_say_whose_it_was_is_waited_for() -> None:
    """Damage seed 810: the round came while the node had read its damage and fetched nothing."""
    cluster = Cluster(5, Shape())
    fault_atlas = cluster.expect_damage()
    fault_atlas.victims = [2]
    cluster.start_all()
    names = cluster.hosts[2].platter.names
    assert cluster.world.run_for(60, lambda: "manifest" in names)
    cluster.hosts[2].kill()
    for name in [n for n in names if n.endswith((".log", ".wal"))]:
        cluster.hosts[2].platter.flip_bit(name, 50 if name.endswith(".log") else 300)
    cluster.network.cut([2], [1, 3])
    cluster.start(2)
    assert cluster.controllers[2].ledger is None
    cluster.later(2.0, cluster.network.heal)
    have_ledgers_mended(cluster)
    cluster.busy = False
    assert cluster.world.run_for(30, cluster.at_rest), cluster.unrest()
    assert fault_atlas.judge_folders()["in the end a sound voter"] == 1
