"""A few rounds of contention among processes. `make contention` runs 200."""

import pytest

from tests.process.contention import Contention
from tests.process.running_cluster import running

pytestmark = pytest.mark.process

ROUNDS = 6


def test_never_two_holders(tmp_path):
    with running(tmp_path / "three") as cluster:
        counts = Contention(cluster, clients=4, seed=3).run(ROUNDS)
    assert counts["rounds"] == ROUNDS
    assert counts["log: guarded writes"] > ROUNDS
    assert counts["write: Fenced"] > 0, "no write came late, so no fence was asked"
