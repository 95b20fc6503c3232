"""Controllers register themselves, and logs get their feature levels."""

import pytest

import controller.leader.activation
from controller.leader.first_levels import FirstLevels
from controller.leader.self_registration import ANNOUNCEMENT
from controller.managers.features import objections
from metadata.codec import decode_records, encode_record
from metadata.features import BASE, SUPPORTED
from metadata.messages import SupportedFeature
from metadata.records import (
    BeginEpochRecord,
    FeatureLevelRecord,
    RegisterControllerRecord,
)
from tests.unit.controller.cluster import Broker, Cluster


@pytest.fixture
def cluster():
    return Cluster()


def old_log(monkeypatch, *old_nodes, **config):
    """Make a cluster whose log release 0.1 began. `old_nodes` still run it, unannounced."""
    with monkeypatch.context() as patch:
        patch.setattr(controller.leader.activation, "level_records", lambda *_: ())
        patch.setattr(FirstLevels, "when_known", lambda self, then: then({}))
        made = Cluster(leader=None, **config)
        for node_id in made.shared.node_ids:
            # The first epoch is one of 0.1: nobody registers in it.
            made.controllers[node_id]._leader.self_registration.begin = lambda: None
        made.lead(1)
    for node_id in made.shared.node_ids:
        del made.controllers[node_id]._leader.self_registration.begin
        if node_id in old_nodes:
            made.shared.nodes[node_id].announce(b"")
            made.shared.nodes[node_id].announce = lambda data: None
    assert not levels(made)
    return made


def levels(cluster):
    return dict(cluster.image.features.levels.items())


def registered(cluster):
    return sorted(c.controller_id for c in cluster.image.cluster.controllers.values())


def batches_with(cluster, record_class):
    return [b for b in cluster.batches() if any_of(b, record_class)]


def any_of(batch, record_class):
    return any(isinstance(r, record_class) for r in decode_records(batch.records))


def test_a_new_log_begins_with_the_levels_in_its_first_batch(cluster):
    (batch,) = batches_with(cluster, FeatureLevelRecord)
    assert batch.header.base_offset == 0
    assert levels(cluster) == {name: SUPPORTED[name].high for name in BASE}
    assert any_of(batch, BeginEpochRecord)


def test_every_controller_registers_itself_and_is_named_as_who_did(cluster):
    assert registered(cluster) == [1, 2, 3]
    three = cluster.image.cluster.controllers[3]
    assert [(e.name, e.host, e.port) for e in three.end_points] == [
        ("CONTROLLER", "controller-3", 80)
    ]
    declared = {f.name: (f.min_supported_version, f.max_supported_version) for f in three.features}
    assert declared == {name: tuple(levels) for name, levels in SUPPORTED.items()}
    batches = batches_with(cluster, RegisterControllerRecord)
    principals = sorted(b.header.provenance.principal for b in batches)
    assert principals == ["Controller:1", "Controller:2", "Controller:3"]
    cluster.assert_equal()


def test_only_a_new_process_registers_again(cluster):
    before = cluster.image.cluster.controllers[2]
    cluster.lead(3)
    cluster.run(1.0)
    assert len(batches_with(cluster, RegisterControllerRecord)) == 3
    cluster.kill(2)
    cluster.start(2)
    cluster.run_until(cluster.registered)
    after = cluster.image.cluster.controllers[2]
    assert after.incarnation_id != before.incarnation_id
    assert len(batches_with(cluster, RegisterControllerRecord)) == 4
    cluster.run(1.0)
    assert not cluster.shared.nodes[2].announcement


@pytest.mark.parametrize(
    "data",
    [b"\xc1", b"", encode_record(FeatureLevelRecord("metadata.version", 30))],
    ids=["no record", "nothing", "another record"],
)
def test_an_announcement_that_is_none_is_refused_and_reported(cluster, data):
    end = cluster.image.offset
    cluster.controllers[1].on_digest(2, ANNOUNCEMENT + data, True)
    cluster.run(0.5)
    assert cluster.image.offset == end
    assert cluster.events("announcement_refused")


def test_nobody_registers_another_node(cluster):
    end = cluster.image.offset
    three = cluster.image.cluster.controllers[3]
    forged = RegisterControllerRecord(3, bytes(16), False, (), three.features)
    cluster.controllers[1].on_digest(2, ANNOUNCEMENT + encode_record(forged), True)
    cluster.run(0.5)
    assert cluster.image.offset == end


def test_an_old_log_gets_levels_once_every_voter_has_registered(monkeypatch):
    cluster = old_log(monkeypatch, 3)
    cluster.lead(2)
    cluster.run(1.0)
    assert registered(cluster) == [1, 2]
    assert not levels(cluster)
    assert "not registered themselves: 3" in cluster.events("feature_levels_wait")[-1]["reason"]
    cluster.kill(3)
    cluster.start(3)
    cluster.run_until(lambda: levels(cluster) == dict(BASE))
    (batch,) = batches_with(cluster, FeatureLevelRecord)
    assert batch.header.provenance.operation == "BeginFeatureLevels"
    assert batch.header.count == len(BASE)
    cluster.assert_equal()


def test_a_controller_that_went_back_to_the_old_release_holds_the_levels_back(monkeypatch):
    """It is registered, but the release that it runs now doesn't know levels."""
    cluster = old_log(monkeypatch, 3)
    cluster.lead(1)
    cluster.run(1.0)
    assert registered(cluster) == [1, 2]
    back, announced = cluster.shared.nodes[2], cluster.shared.nodes[2].announcement
    back.announce(b"")
    cluster.run(3.0)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(3.0)
    assert registered(cluster) == [1, 2, 3]
    assert not levels(cluster)
    assert "not running this release now: 2" in cluster.events("feature_levels_wait")[-1]["reason"]
    back.announce(announced)
    cluster.run_until(lambda: levels(cluster) == dict(BASE))


def test_an_old_log_waits_for_a_broker_that_does_not_support_the_lowest_levels(monkeypatch):
    cluster = old_log(monkeypatch)
    low = SupportedFeature(
        name="metadata.version", min_supported_version=1, max_supported_version=20
    )
    Broker(cluster, 7, features=(low,)).register()
    Broker(cluster, 8).register()
    cluster.lead(2)
    cluster.run(1.0)
    assert registered(cluster) == [1, 2, 3]
    assert not levels(cluster)
    assert list(objections(cluster.image, BASE)) == [
        "broker 7 doesn't support metadata.version 21 (3.9-IV0): it supports 1 to 20"
    ]
    assert cluster.ask("DELETE", "/v1/brokers/7", query={"force": "true"})[0] == 200
    cluster.run_until(lambda: levels(cluster) == dict(BASE))


def test_the_change_of_leader_does_not_write_levels_twice(monkeypatch):
    cluster = old_log(monkeypatch)
    for node_id in (2, 3, 1, 2):
        cluster.lead(node_id)
        cluster.run(0.3)
    assert len(batches_with(cluster, FeatureLevelRecord)) == 1
    assert len(batches_with(cluster, RegisterControllerRecord)) == 3


def test_a_registration_that_is_refused_for_want_of_room_is_tried_again(cluster):
    cluster.kill(1)
    cluster.shared.nodes[2].room = 1
    cluster.lead(2)
    cluster.start(1)
    cluster.run(0.5)
    assert cluster.shared.nodes[2].refused
    cluster.shared.nodes[2].room = None
    cluster.run_until(cluster.registered)


def test_a_broker_that_declares_nothing_supports_the_lowest_levels():
    cluster = Cluster(initial_features=BASE)
    Broker(cluster, 1, features=()).register()
    cluster.write(FeatureLevelRecord("metadata.version", 22))
    reply = Broker(cluster, 2, features=()).fetch()
    assert reply.error.code == "UNSUPPORTED_VERSION"
    assert "the broker supports 21" in reply.error.message
