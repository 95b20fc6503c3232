"""Feature levels: when they may be raised and lowered, and what may be written at which level."""

import pytest

from metadata.codec import UnknownRecordError, decode_records, encode_records
from metadata.errors import ErrorCode
from metadata.features import BASE, ELR_VERSION, SUPPORTED, Levels, unknown_level
from metadata.image import EMPTY, MetadataDelta, ReplayError
from metadata.messages import SupportedFeature
from metadata.record_levels import NEEDS, needs_above
from metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterControllerRecord,
)
from tests.unit.controller.cluster import DECLARED, Broker, Cluster
from tests.unit.controller.leader.test_self_registration import levels, old_log


@pytest.fixture
def cluster():
    """Its levels are those of a log that release 0.1 began: there is much to raise."""
    return Cluster(initial_features=BASE)


def update(cluster, kind="upgrade", dry_run=False, **wanted):
    names = {"metadata": "metadata.version", "elr": ELR_VERSION, "logberg": "logberg.version"}
    updates = [
        {"feature": names.get(name, name), "maxVersionLevel": level, "upgradeType": kind}
        for name, level in wanted.items()
    ]
    return cluster.ask("POST", "/v1/features", {"updates": updates, "dryRun": dry_run})


def downgrade(cluster, **wanted):
    return update(cluster, "safe_downgrade", **wanted)


def test_a_level_is_raised_by_one_atomic_change(cluster):
    Broker(cluster, 1, features=DECLARED).register()
    status, reply = update(cluster, metadata=23, elr=1)
    assert status == 200
    assert [(f["name"], f["levelBefore"], f["level"]) for f in reply["features"]] == [
        ("metadata.version", 21, 23),
        (ELR_VERSION, 0, 1),
    ]
    assert levels(cluster) == {**BASE, "metadata.version": 23, ELR_VERSION: 1}
    assert cluster.batches()[-1].header.provenance.operation == "UpdateFeatures"
    cluster.assert_equal()


def test_a_dry_run_shows_the_records_and_writes_none(cluster):
    status, reply = update(cluster, dry_run=True, metadata=30)
    assert status == 200
    assert [r["data"]["featureLevel"] for r in reply["records"]] == [30]
    assert levels(cluster) == dict(BASE)


def test_the_level_that_it_has_is_no_change(cluster):
    end = cluster.image.offset
    assert update(cluster, metadata=21)[0] == 200
    assert cluster.image.offset == end


LOW = SupportedFeature(name="metadata.version", min_supported_version=21, max_supported_version=22)


@pytest.mark.parametrize(
    ("features", "why"),
    [
        ((), "broker 7 doesn't support metadata.version 23 (4.0-IV1): it declares none, which"),
        ((LOW,), "broker 7 doesn't support metadata.version 23 (4.0-IV1): it supports 21 to 22"),
    ],
    ids=["declares nothing", "supports less"],
)
def test_a_broker_that_does_not_support_a_level_keeps_it_back_until_it_is_gone(
    cluster, features, why
):
    Broker(cluster, 7, features=features).register()
    status, reply = update(cluster, metadata=23)
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert why in reply["message"]
    assert levels(cluster) == dict(BASE)
    assert cluster.ask("DELETE", "/v1/brokers/7")[0] == 200
    assert update(cluster, metadata=23)[0] == 200
    assert Broker(cluster, 7, features=features).fetch().error.code == "UNSUPPORTED_VERSION"


def test_a_controller_that_does_not_support_a_level_keeps_it_back(cluster):
    three = cluster.image.cluster.controllers[3]
    cluster.shared.cut(3)
    features = tuple(
        f.__class__(f.name, f.min_supported_version, min(f.max_supported_version, 22))
        for f in three.features
    )
    cluster.write(three.__class__(3, three.incarnation_id, False, (), features))
    status, reply = update(cluster, metadata=23)
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert "controller 3" in reply["message"]


def test_a_voter_that_has_not_registered_keeps_every_level_back(monkeypatch):
    cluster = old_log(monkeypatch, 3)
    cluster.lead(2)
    cluster.run(0.5)
    status, reply = update(cluster, metadata=22)
    assert (status, reply["code"]) == (409, "FEATURE_UPDATE_FAILED")
    assert "not registered themselves: 3" in reply["message"]
    status, reply = cluster.ask("GET", "/v1/features")
    assert "not registered themselves: 3" in reply["note"]
    assert [n["nodeId"] for n in reply["nodes"] if not n["registered"]] == [3]


@pytest.mark.parametrize(
    ("kind", "wanted", "why"),
    [
        ("upgrade", {"metadata": 34}, "supports 21 to 33"),
        ("upgrade", {"metadata": 20}, "supports 21 to 33"),
        ("upgrade", {"metadata": 0}, "supports 21 to 33"),
        ("upgrade", {"logberg": 7}, "supports 1 to 6"),
        ("upgrade", {"no.such": 1}, "there is no feature 'no.such'"),
        ("upgrade", {"elr": 1, "metadata": 22}, "needs metadata.version 23 (4.0-IV1)"),
        ("safe_downgrade", {"metadata": 26}, "is an upgrade"),
        ("unsafe_downgrade", {"metadata": 21}, "not offered"),
    ],
)
def test_what_can_not_be_is_refused_with_a_reason(cluster, kind, wanted, why):
    status, reply = update(cluster, kind, **wanted)
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert why in reply["message"]
    assert levels(cluster) == dict(BASE)


def test_a_feature_that_is_there_twice_is_refused(cluster):
    one = {"feature": "metadata.version", "maxVersionLevel": 22}
    status, reply = cluster.ask("POST", "/v1/features", {"updates": [one, one]})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_a_level_is_lowered_only_where_nothing_can_be_lost(cluster):
    assert update(cluster, metadata=29)[0] == 200
    status, reply = update(cluster, metadata=23)
    assert "is a downgrade" in reply["message"]
    assert downgrade(cluster, metadata=23)[0] == 200
    status, reply = downgrade(cluster, metadata=22)
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert "PartitionRecord with eligible_leader_replicas" in reply["message"]
    assert levels(cluster)["metadata.version"] == 23


def test_everybody_sees_levels_and_what_each_node_supports(cluster):
    Broker(cluster, 7, features=()).register()
    status, reply = cluster.ask("GET", "/v1/features")
    assert status == 200
    states = {f["name"]: (f["level"], f["levelName"]) for f in reply["features"]}
    assert states["metadata.version"] == (21, "3.9-IV0")
    assert states[ELR_VERSION] == (0, None)
    nodes = [(n["kind"], n["nodeId"], n["declared"]) for n in reply["nodes"]]
    assert nodes == [
        ("controller", 1, True),
        ("controller", 2, True),
        ("controller", 3, True),
        ("broker", 7, False),
    ]


# -- the gate ---------------------------------------------------------------------------------

TOPIC = bytes(15) + b"\x09"
GATED = {
    "eligible leader replicas": (
        23,
        PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=(1,)),
    ),
    "a controller that is forgotten": (33, UnregisterControllerRecord(3)),
    "cordoned directories": (
        30,
        RegisterBrokerRecord(5, bytes(16), 0, (), (), None, cordoned_log_dirs=()),
    ),
}


@pytest.mark.parametrize(("level", "record"), GATED.values(), ids=GATED)
def test_a_record_is_refused_below_its_level_and_written_at_it(cluster, level, record):
    end = cluster.image.offset
    refused = cluster.decide(record)
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert f"metadata.version {level}" in refused.message
    assert f"metadata.version={level}" in refused.message
    assert cluster.image.offset == end
    if not isinstance(record, PartitionChangeRecord):
        assert update(cluster, metadata=level)[0] == 200
        assert cluster.decide(record).wrote


def test_a_level_counts_for_what_stands_behind_it_in_the_same_decision(cluster):
    level = FeatureLevelRecord("metadata.version", 33)
    forget = UnregisterControllerRecord(3)
    assert cluster.decide(forget, level).code is ErrorCode.UNSUPPORTED_VERSION
    assert cluster.decide(level, forget).wrote


def test_an_old_log_takes_what_release_0_1_wrote_and_nothing_newer(monkeypatch):
    cluster = old_log(monkeypatch, 3)
    cluster.lead(2)
    Broker(cluster, 7, log_dirs=(bytes(15) + b"\xff",)).register()
    assert cluster.decide(UnregisterControllerRecord(1)).code is ErrorCode.UNSUPPORTED_VERSION


def test_replay_does_not_ask_for_levels():
    image = replayed(GATED["cordoned directories"][1])
    assert image.cluster.brokers[5].cordoned_log_dirs == ()


def test_at_the_highest_level_nothing_is_closed():
    assert not needs_above({name: levels.high for name, levels in SUPPORTED.items()})
    closed = needs_above(BASE)
    assert PartitionRecord in closed
    assert ConfigRecord not in closed


def test_every_need_names_a_field_that_is_there():
    for record, needs in NEEDS.items():
        for need in needs:
            assert not need.field or need.field in record.__struct_fields__
            assert need.level <= SUPPORTED[need.feature].high


# -- levels of a newer release ----------------------------------------------------------------


def replayed(*records):
    delta = MetadataDelta(EMPTY)
    delta.replay_all(records, 0)
    delta.finish_batch(len(records), 1, 0)
    return delta.apply()


@pytest.mark.parametrize("name", ["metadata.version", "logberg.version"])
def test_replay_ends_at_a_level_that_this_build_does_not_know(name):
    high = SUPPORTED[name].high
    assert replayed(FeatureLevelRecord(name, high)).features.levels[name] == high
    with pytest.raises(ReplayError, match=rf"{name} {high + 1} from here on.*up to {high}"):
        replayed(FeatureLevelRecord(name, high + 1))


def test_levels_of_features_that_are_not_ours_are_kept():
    assert replayed(FeatureLevelRecord("group.version", 9)).features.levels["group.version"] == 9


def test_an_unknown_record_beside_its_level_is_explained_by_the_level():
    known = encode_records([FeatureLevelRecord("logberg.version", 8)])
    newer = b"\x92" + known[1:] + b"\x91\xcd\x75\x30"
    with pytest.raises(UnknownRecordError, match=r"type 300 version 0.*logberg.version 8"):
        decode_records(newer)
    with pytest.raises(UnknownRecordError, match=r"a feature level above metadata.version 33"):
        decode_records(b"\x91\x91\xcd\x75\x30")
    assert unknown_level("logberg.version", 1) == ""


def newer_release(monkeypatch, cluster):
    """Raise logberg.version to a level that this build doesn't know, as a newer release would."""
    with monkeypatch.context() as newer:
        newer.setitem(SUPPORTED, "logberg.version", Levels(1, 7))
        cluster.shared.cut(3)
        assert cluster.decide(FeatureLevelRecord("logberg.version", 7)).wrote
        cluster.run(0.2)


SENTENCE = "feature level logberg.version 7 from here on, and this build knows levels up to 6"


def test_a_running_node_of_an_older_build_stops_with_a_sentence(monkeypatch, cluster):
    newer_release(monkeypatch, cluster)
    cluster.shared.heal()
    cluster.run(0.5)
    assert SENTENCE in cluster.stopped[3]
    assert "`logberg features list`" in cluster.stopped[3]


@pytest.mark.parametrize("checkpointed", [False, True], ids=["from the log", "from a checkpoint"])
def test_an_older_build_does_not_start_on_a_newer_log(monkeypatch, cluster, checkpointed):
    newer_release(monkeypatch, cluster)
    if checkpointed:
        with monkeypatch.context() as newer:
            newer.setitem(SUPPORTED, "logberg.version", Levels(1, 7))
            cluster.processes[2].run(cluster.controllers[2].write_checkpoint)
            cluster.run(0.5)
    assert bool([n for n in cluster.platters[2].names if "checkpoints/" in n]) is checkpointed
    cluster.kill(2)
    cluster.start(2)
    cluster.run(0.5)
    assert SENTENCE in cluster.stopped[2]
    # What was there is still there for the newer build.
    assert bool([n for n in cluster.platters[2].names if "checkpoints/" in n]) is checkpointed
