"""A fetch that reads a damaged segment gets an error, whichever way it reads it."""

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, fill


def test_where_histories_part_is_not_known_while_the_segment_that_tells_is_gone() -> None:
    cluster = Cluster(**SMALL)
    (broker,) = cluster.online(1)
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    platter = cluster.platters[3]
    platter.remove(sorted(name for name in platter.names if name.startswith("log/"))[1])
    cluster.start(3)
    cluster.run(0.5)
    cluster.lead(3)
    reply = broker.fetch(fetched_epoch=0, apply=False)
    assert reply.error.code == "STORAGE_ERROR"
    assert cluster.events("ledger_damaged")
