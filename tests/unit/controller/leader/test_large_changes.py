"""Large changes are prepared beside others, and written as if they had been decided alone."""

import json
from collections.abc import Generator

import pytest

from controller.leader import large_changes
from controller.storage.loading import load
from metadata.image.metadata_image import hash_from_scratch
from metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    ConfigResourceType,
    EndTransactionRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from runtime.simulated.clock import SimulatedClock
from tests.unit.controller.cluster import Broker, Cluster
from tests.unit.controller.leader.test_changes import body

pytestmark = pytest.mark.slow

BIG = 20_000
"""Partitions: some eight batches."""


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.online(1, 2, 3)
    # Each look at the clock costs: long work is cut into slices.
    cluster.processes[1].clock.cost_us = 50
    return cluster


@pytest.fixture
def release(monkeypatch):
    """Return a function: large changes wait after their decision until it is called."""
    plain = large_changes.Preparation._replay

    class Release:
        released = False

        def __call__(self):
            self.released = True

        def hold(self):
            self.released = False

    release = Release()

    def replay(self):
        while not release.released:
            yield
        yield from plain(self)

    monkeypatch.setattr(large_changes.Preparation, "_replay", replay)
    monkeypatch.setattr(SimulatedClock, "SOON_US", 1_000)
    return release


def big_topic(cluster, name="big"):
    """Ask for a large topic. Its creation is then under way."""
    replies = cluster.send("POST", "/v1/topics", body(name, BIG))
    cluster.run(0.1)
    assert cluster.leader._leader.proposer._large_changes._now is not None
    assert not replies
    return replies


def names(cluster):
    return [r.name for r in cluster.records() if isinstance(r, TopicRecord)]


def done(cluster, *replies):
    cluster.run_until(lambda: all(replies))
    cluster.processes[1].clock.cost_us = 0
    cluster.assert_equal()
    image = cluster.image
    assert image.state_hash == hash_from_scratch(image)
    return [(reply[0].status, json.loads(reply[0].body)) for reply in replies]


def test_small_changes_and_registrations_are_decided_while_a_large_one_is_prepared(
    cluster, release
):
    big = big_topic(cluster)
    small = [cluster.send("POST", "/v1/topics", body(f"small-{n}")) for n in range(100)]
    cluster.run_until(lambda: all(small))
    Broker(cluster, 4).register()
    assert not big
    release()
    (answer,) = done(cluster, big)
    assert answer[0] == 200
    assert names(cluster)[-1] == "big"
    kinds = [type(record) for record in cluster.records()]
    begin, end = kinds.index(BeginTransactionRecord), kinds.index(EndTransactionRecord)
    assert end - begin == BIG + 3


def test_what_came_meanwhile_is_in_the_image_too_whatever_it_was(cluster, release):
    cluster.create_topic("old", partitions=6, factor=3)
    big = big_topic(cluster)
    cluster.ask("DELETE", "/v1/topics/old")
    cluster.create_topic("new", partitions=2, factor=2)
    release()
    (answer,) = done(cluster, big)
    assert answer[0] == 200
    topics = cluster.image.topics
    assert topics.named("old") is None
    assert topics.named("new") is not None
    assert sum(topics.leads(broker) for broker in (1, 2, 3)) == len(topics.partitions) == BIG + 2


def test_a_large_topic_is_deleted_beside_other_changes(cluster, release):
    release()
    done(cluster, cluster.send("POST", "/v1/topics", body("big", BIG)))
    cluster.create_topic("old", partitions=6, factor=3)
    cluster.processes[1].clock.cost_us = 50
    release.hold()
    gone = cluster.send("DELETE", "/v1/topics/big")
    cluster.run(0.1)
    assert not gone
    Broker(cluster, 4).bring_online()
    cluster.create_topic("new", partitions=2, factor=2)
    release()
    ((status, _),) = done(cluster, gone)
    assert status == 200
    assert sorted(cluster.image.topics.by_name) == ["new", "old"]
    assert len(cluster.image.topics.partitions) == 8


def test_a_deletion_is_prepared_again_when_the_topic_was_changed_meanwhile(cluster, release):
    release()
    done(cluster, cluster.send("POST", "/v1/topics", body("big", BIG)))
    cluster.processes[1].clock.cost_us = 50
    release.hold()
    gone = cluster.send("DELETE", "/v1/topics/big")
    cluster.run(0.1)
    topic_id = cluster.image.topics.named("big").topic_id
    cluster.write(PartitionChangeRecord(7, topic_id, leader=-1))
    first = cluster.leader._leader.proposer._large_changes._now
    release()
    ((status, _),) = done(cluster, gone)
    assert (status, first.tries) == (200, 1)
    assert not len(cluster.image.topics.partitions)
    assert not len(cluster.image.topics.leaderless)


def test_a_refused_topic_beside_a_large_one_keeps_nobody_waiting(cluster, release):
    cluster.create_topic("old")
    topics = [*body("big", BIG)["topics"], *body("old")["topics"]]
    big = cluster.send("POST", "/v1/topics", {"topics": topics})
    cluster.run(0.1)
    cluster.create_topic("small")
    assert not big
    release()
    ((status, answer),) = done(cluster, big)
    assert status == 200
    assert [(topic.get("error") or {}).get("code") for topic in answer["topics"]] == [
        None,
        "TOPIC_ALREADY_EXISTS",
    ]
    assert names(cluster) == ["old", "small", "big"]


def test_a_deletion_that_is_refused_beside_a_large_one_keeps_nobody_waiting(cluster, release):
    release()
    done(cluster, cluster.send("POST", "/v1/topics", body("big", BIG)))
    cluster.processes[1].clock.cost_us = 50
    release.hold()
    gone = cluster.send("DELETE", "/v1/topics", {"names": ["big", "nothing"]})
    cluster.run(0.1)
    cluster.create_topic("small")
    assert not gone
    release()
    ((status, _),) = done(cluster, gone)
    assert status == 200
    assert sorted(cluster.image.topics.by_name) == ["small"]


def test_a_deletion_is_prepared_again_when_the_topic_was_configured_meanwhile(cluster, release):
    release()
    done(cluster, cluster.send("POST", "/v1/topics", body("big", BIG)))
    cluster.processes[1].clock.cost_us = 50
    release.hold()
    gone = cluster.send("DELETE", "/v1/topics/big")
    cluster.run(0.1)
    cluster.write(ConfigRecord(ConfigResourceType.TOPIC, "big", "retention.ms", "1"))
    release()
    ((status, _),) = done(cluster, gone)
    assert status == 200
    assert not len(cluster.image.configs.resources)


def test_a_preparation_goes_on_when_another_topic_is_configured(cluster, release):
    big = big_topic(cluster)
    cluster.write(
        ConfigRecord(ConfigResourceType.TOPIC, "other", "retention.ms", "1"),
        ConfigRecord(ConfigResourceType.BROKER, "big", "a", "b"),
    )
    first = cluster.leader._leader.proposer._large_changes._now
    release()
    cluster.run_until(lambda: first is not cluster.leader._leader.proposer._large_changes._now)
    assert cluster.leader._leader.proposer._large_changes._now is None
    assert done(cluster, big)[0][0] == 200


def test_too_many_large_changes_are_told_to_come_later_and_small_ones_go_on(release):
    cluster = Cluster(waiting_decisions_max=2)
    cluster.online(1, 2, 3)
    cluster.processes[1].clock.cost_us = 50
    let_in = [big_topic(cluster, f"big-{number}") for number in range(3)]
    status, answer = cluster.ask("POST", "/v1/topics", body("big-3", BIG))
    assert (status, answer["code"]) == (429, "THROTTLED")
    cluster.create_topic("small")
    release()
    assert [status for status, _ in done(cluster, *let_in)] == [200, 200, 200]


def test_a_name_that_was_taken_meanwhile_is_refused_when_it_is_prepared_again(cluster, release):
    big = big_topic(cluster, "same")
    cluster.create_topic("same", factor=1)
    release()
    (answer,) = done(cluster, big)
    assert answer[1]["code"] == "TOPIC_ALREADY_EXISTS"
    assert BeginTransactionRecord not in {type(r) for r in cluster.records()}


def test_brokers_that_were_fenced_meanwhile_get_no_leader(cluster, release):
    big = big_topic(cluster)
    assert cluster.ask("DELETE", "/v1/brokers/3", query={"force": "true"})[0] == 200
    release()
    (answer,) = done(cluster, big)
    assert answer[0] == 200
    partitions = cluster.image.topics.partitions
    assert all(set(p.replicas) <= {1, 2} for p in partitions.values())


def test_a_change_that_is_always_overtaken_keeps_the_turn_in_the_end(cluster, monkeypatch):
    monkeypatch.setattr(large_changes, "FOLLOWED_MAX", 0)
    begun = []
    plain = large_changes.Preparation._replay

    def replay(self):
        begun.append(self.tries)
        cluster.send("POST", "/v1/topics", body(f"small-{len(begun)}"))
        return plain(self)

    monkeypatch.setattr(large_changes.Preparation, "_replay", replay)
    big = cluster.send("POST", "/v1/topics", body("big", BIG))
    (answer,) = done(cluster, big)
    assert answer[0] == 200
    assert begun == [1, 2, 3, 4]
    assert names(cluster) == ["small-1", "small-2", "small-3", "big", "small-4"]


def test_two_large_changes_are_prepared_one_after_the_other(cluster, release):
    first = big_topic(cluster, "first")
    second = big_topic(cluster, "second")
    assert cluster.leader._leader.proposer.waiting == 2
    release()
    answers = done(cluster, first, second)
    assert [status for status, _ in answers] == [200, 200]
    assert names(cluster) == ["first", "second"]


def test_a_leader_that_goes_says_so_and_leaves_nothing(cluster, release):
    big, behind = big_topic(cluster, "first"), big_topic(cluster, "second")
    end = cluster.image.offset
    cluster.lead(2)
    assert [r[0].status for r in (big, behind)] == [503, 503]
    assert not names(cluster)
    assert cluster.image.offset == end + 1
    release()
    cluster.lead(1)
    done(cluster, cluster.send("POST", "/v1/topics", body("first", BIG)))


def commit_a_part(cluster):
    """Commit three batches of a large transaction. Return the others, which only the leader has."""
    cluster.processes[1].clock.cost_us = 0
    cluster.shared.cut(2, 3)
    cluster.send("POST", "/v1/topics", body("big", BIG))
    quorum = cluster.shared.nodes[1]
    cluster.run_until(lambda: len(quorum.waiting) >= 5)
    cluster.run(0.1)
    waiting = list(quorum.waiting)
    quorum.waiting.clear()
    cluster.shared.heal()
    cluster.shared.commit(cluster.shared.epoch, waiting[:3])
    cluster.run(0.1)
    assert not cluster.controllers[1].image.transaction.built
    return waiting[3:]


def test_an_image_without_its_branch_is_loaded_from_before_the_transaction(cluster):
    commit_a_part(cluster)
    controller = cluster.controllers[1]

    def no_checkpoint() -> Generator[None, None, None]:
        raise AssertionError("the ledger continues the image, so no checkpoint is read")
        yield

    steps = load(controller.image, controller.ledger, no_checkpoint, controller._log)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            loaded = stop.value
            break
    assert loaded.offset == controller.ledger.log_end == controller.image.offset
    assert loaded.transaction.built
    assert loaded.transaction.branch.topics.named("big") is not None
    assert loaded == cluster.controllers[2].image


@pytest.mark.parametrize("committed", [0, 100])
def test_a_leader_that_goes_in_the_middle_replays_what_it_had_only_written(cluster, committed):
    """It never built the branch. All batches of the transaction may still be committed."""
    waiting, epoch = commit_a_part(cluster), cluster.shared.epoch
    old = cluster.controllers[1]
    cluster.processes[1].run(lambda: old.on_leadership_lost(epoch))
    cluster.shared.commit(epoch, waiting[:committed])
    cluster.run(0.2)
    cluster.lead(1)
    there = cluster.image.topics.named("big") is not None
    assert there == (committed > len(waiting))
    cluster.create_topic("small", factor=1)
    cluster.assert_equal()


def test_a_defect_in_a_preparation_is_answered_and_the_next_one_goes_on(cluster, monkeypatch):
    plain = large_changes.Preparation._replay

    def replay(self):
        yield
        if not seen:
            seen.append(self)
            raise RuntimeError("a defect")
        yield from plain(self)

    seen = []
    monkeypatch.setattr(large_changes.Preparation, "_replay", replay)
    first = cluster.send("POST", "/v1/topics", body("first", BIG))
    second = cluster.send("POST", "/v1/topics", body("second", BIG))
    with pytest.raises(Exception, match="a defect"):
        cluster.run_until(lambda: bool(first and second))
    answers = done(cluster, first, second)
    assert [status for status, _ in answers] == [500, 200]


def on_condition(cluster, name):
    """Ask for a large topic on condition that its name is as it is now."""
    headers = {"x-logberg-expect-offset": str(cluster.image.offset)}
    replies = cluster.send("POST", "/v1/topics", body(name, BIG), headers=headers)
    cluster.run(0.1)
    assert not replies
    return replies


def test_a_condition_is_checked_again_when_the_change_is_written(cluster, release):
    big = on_condition(cluster, "big")
    assert cluster.ask("POST", "/v1/topics", body("big"))[0] == 200
    assert cluster.ask("DELETE", "/v1/topics/big")[0] == 200
    release()
    ((status, reply),) = done(cluster, big)
    assert (status, reply["code"]) == (412, "STALE_EXPECTED_OFFSET")
    assert cluster.image.topics.named("big") is None


def test_a_condition_holds_while_others_change(cluster, release):
    big = on_condition(cluster, "big")
    assert cluster.ask("POST", "/v1/topics", body("small"))[0] == 200
    release()
    ((status, reply),) = done(cluster, big)
    assert (status, reply["topics"][0]["error"]) == (200, None)


def test_a_large_change_breaks_the_conditions_of_those_behind_it(cluster):
    read_at = cluster.image.offset
    big = cluster.send("POST", "/v1/topics", body("big", BIG))
    assert done(cluster, big)[0][0] == 200
    headers = {"x-logberg-expect-offset": str(read_at)}
    status, reply = cluster.ask("DELETE", "/v1/topics/big", headers=headers)
    assert (status, reply["details"]["resource"]) == (412, "topic:big")
