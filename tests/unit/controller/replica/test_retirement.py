"""The image before a large change is freed in slices, not when its last user drops it."""

import gc

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.leader.test_changes import body


def test_the_image_before_a_large_change_is_kept_and_dropped_in_slices():
    cluster = Cluster(nodes=1)
    cluster.online(1)
    cluster.create_topic("first", partitions=5_000, factor=1)
    cluster.run(2.0)
    retirement = cluster.leader._replica.applier.retirement
    assert len(retirement) == 0
    before = cluster.image.topics.partitions
    page = before.pages()[0]
    replies = cluster.send("DELETE", "/v1/topics/first")
    cluster.run_until(lambda: bool(replies))
    kept = len(retirement)
    assert kept >= len(before.pages())
    assert any(one is page for one in retirement._waiting)
    del before
    cluster.run(2.0)
    assert len(retirement) == 0
    assert not [one for one in gc.get_referrers(page) if one is retirement._dropping]


def test_what_a_transaction_wrote_so_far_is_dropped_without_waiting():
    """Each of its batches replaces the branch, which a standby builds batch by batch."""
    cluster = Cluster(nodes=2)
    cluster.online(1)
    retirement = cluster.controllers[2]._replica.applier.retirement
    begin, retirement._begin = retirement._begin, lambda: None
    replies = cluster.send("POST", "/v1/topics", body("big", 20_000))
    cluster.run_until(lambda: bool(replies))
    cluster.run(0.1)
    assert len(retirement._dropping) > 0
    retirement._begin = begin
    retirement._begin()
    cluster.run(2.0)
    assert len(retirement) == 0


def test_a_small_change_keeps_nothing():
    cluster = Cluster(nodes=1)
    cluster.online(1)
    cluster.create_topic("t", partitions=3, factor=1)
    replies = cluster.send("POST", "/v1/topics", body("u", 10))
    cluster.run_until(lambda: bool(replies))
    assert len(cluster.leader._replica.applier.retirement) == 0
