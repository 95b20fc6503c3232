"""Registration, heartbeats and orderly stops of Kafka's brokers, through our own routes."""

import pytest
import structlog
from structlog.testing import LogCapture

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import KafkaRequest
from kafka_listener.brokers.registration import Registrations
from metadata.records import FeatureLevelRecord, Voter, VoterKRaftVersions, VotersRecord
from metadata.uuids import uuid_text
from runtime.http.requests import Caller
from tests.unit.image.replaying import replayed
from tests.unit.kafka_listener.brokers.listening import FEATURES, KafkaBroker, ListeningCluster

VOTER = Voter(7, bytes(16), (), VoterKRaftVersions(0, 1))


def test_the_broker_epoch_is_the_offset_of_the_registration():
    cluster = ListeningCluster()
    end = cluster.image.offset
    broker = KafkaBroker(cluster, 101)
    assert broker.register() == {"ThrottleTimeMs": 0, "ErrorCode": 0, "BrokerEpoch": end}
    registered = cluster.broker(101)
    assert registered.broker_epoch == end
    assert registered.incarnation_id == broker.incarnation


def test_a_broker_is_caught_up_when_it_has_applied_its_registration():
    """Kafka names the last applied offset. One too few is not enough, and nobody is unfenced."""
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101)
    broker.register()
    early = broker.beat(broker.epoch - 1)
    assert (early["ErrorCode"], early["IsCaughtUp"], early["IsFenced"]) == (0, False, True)
    starting = broker.beat(broker.epoch, fence=True)
    assert (starting["IsCaughtUp"], starting["IsFenced"]) == (True, True)
    ready = broker.beat(broker.epoch)
    assert (ready["IsCaughtUp"], ready["IsFenced"], ready["ShouldShutDown"]) == (True, False, False)
    assert cluster.broker(101).active


def test_a_heartbeat_without_news_is_answered_at_once():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101).bring_online()
    before = cluster.world.now
    assert broker.beat()["ErrorCode"] == 0
    assert cluster.world.now - before < 0.02


def test_an_offset_beyond_the_log_is_refused():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101).bring_online()
    assert broker.beat(cluster.image.offset)["ErrorCode"] == KafkaCode.INVALID_REQUEST


def test_a_broker_stops_in_order_and_its_id_is_free_at_once():
    cluster = ListeningCluster()
    broker, other = (KafkaBroker(cluster, each).bring_online() for each in (101, 102))
    cluster.assign("t", [101, 102])
    first = broker.beat(stop=True)
    assert (first["IsFenced"], first["ShouldShutDown"]) == (False, False)
    assert cluster.broker(101).in_controlled_shutdown
    assert cluster.partition("t").leader == 102
    other.beat()
    cluster.run(0.2)
    last = broker.beat(stop=True)
    assert (last["IsFenced"], last["ShouldShutDown"]) == (True, True)
    again = KafkaBroker(cluster, 101, LogDirs=broker.registration["LogDirs"])
    assert again.register()["ErrorCode"] == 0


def test_a_second_process_waits_for_the_session_of_the_first():
    cluster = ListeningCluster()
    KafkaBroker(cluster, 101).bring_online()
    second = KafkaBroker(cluster, 101)
    assert second.register()["ErrorCode"] == KafkaCode.DUPLICATE_BROKER_REGISTRATION


def test_the_same_process_amends_its_registration():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101).bring_online()
    epoch = broker.epoch
    assert broker.register(Rack="r1")["BrokerEpoch"] == epoch
    assert cluster.broker(101).rack == "r1"
    assert cluster.broker(101).active


def test_a_failed_directory_reaches_the_log():
    cluster = ListeningCluster()
    directories = [bytes([n]) * 16 for n in (1, 2)]
    broker = KafkaBroker(cluster, 101, LogDirs=directories).bring_online()
    assert broker.beat(OfflineLogDirs=directories[:1])["ErrorCode"] == 0
    cluster.run(0.5)
    assert cluster.broker(101).log_dirs == (directories[1],)


@pytest.mark.parametrize(
    ("broker_id", "changes", "code", "words"),
    [
        (1, {}, KafkaCode.INVALID_REGISTRATION, "share one space"),
        (101, {"ClusterId": "other"}, KafkaCode.INCONSISTENT_CLUSTER_ID, "belongs to other"),
        (101, {"LogDirs": [bytes(15) + b"\7"]}, KafkaCode.INVALID_REGISTRATION, "reserved"),
        (101, {"LogDirs": [b"d" * 16] * 2}, KafkaCode.INVALID_REGISTRATION, "twice"),
        (101, {"Features": FEATURES[1:]}, KafkaCode.UNSUPPORTED_VERSION, "metadata.version"),
        (101, {"IsMigratingZkBroker": True}, KafkaCode.INVALID_REGISTRATION, "ZooKeeper"),
    ],
    ids=["a controller's id", "cluster", "reserved", "twice", "features", "ZooKeeper"],
)
def test_what_can_t_work_is_refused_and_the_log_says_why_once(broker_id, changes, code, words):
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, broker_id)
    for _ in range(2):
        assert broker.register(**changes) == {
            "ThrottleTimeMs": 0,
            "ErrorCode": code,
            "BrokerEpoch": -1,
        }
    (event,) = cluster.events("kafka_broker_refused")
    assert event["broker_id"] == broker_id
    assert words in event["reason"]
    assert broker_id not in cluster.image.cluster.brokers


def test_a_second_process_with_a_node_id_is_refused_and_the_log_says_why_once():
    cluster = ListeningCluster()
    KafkaBroker(cluster, 101).bring_online()
    twin = KafkaBroker(cluster, 101)
    for _ in range(3):
        assert twin.register()["ErrorCode"] == KafkaCode.DUPLICATE_BROKER_REGISTRATION
    (event,) = cluster.events("kafka_broker_refused")
    assert (event["broker_id"], "another process" in event["reason"]) == (101, True), event


def test_only_the_leader_takes_registrations_and_heartbeats():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101).bring_online()
    standby = next(n for n in cluster.controllers if n != cluster.shared.leader)
    said = cluster.kafka(62, 4, broker.registration, node=standby)
    assert said["ErrorCode"] == KafkaCode.NOT_CONTROLLER
    beat = {
        "BrokerId": 101,
        "BrokerEpoch": broker.epoch,
        "CurrentMetadataOffset": 1,
        "WantFence": False,
        "WantShutDown": False,
    }
    assert cluster.kafka(63, 2, beat, node=standby)["ErrorCode"] == KafkaCode.NOT_CONTROLLER


def test_a_stranger_s_heartbeat_is_stale():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101)
    broker.epoch = 3
    assert broker.beat(0)["ErrorCode"] == KafkaCode.STALE_BROKER_EPOCH
    broker.bring_online()
    broker.epoch += 1
    assert broker.beat(0)["ErrorCode"] == KafkaCode.STALE_BROKER_EPOCH


def test_only_its_own_credentials_register_a_broker_where_authentication_is_required():
    cluster = ListeningCluster(require_authentication=True)
    for caller, code in (
        (Caller("User:bob", "token"), KafkaCode.CLUSTER_AUTHORIZATION_FAILED),
        (Caller("Broker:102", "certificate"), KafkaCode.CLUSTER_AUTHORIZATION_FAILED),
        (Caller("Broker:101", "certificate"), KafkaCode.NONE),
    ):
        assert KafkaBroker(cluster, 101, caller).register()["ErrorCode"] == code


def test_ids_of_directories_are_kept_as_they_are():
    cluster = ListeningCluster()
    broker = KafkaBroker(cluster, 101)
    broker.register()
    assert [uuid_text(each) for each in cluster.broker(101).log_dirs] == [
        uuid_text(each) for each in broker.registration["LogDirs"]
    ]


class OldController:
    """A controller whose log names no level, as one that release 0.1 began."""

    active = True

    def __init__(self, *records):
        self.image = replayed(*records)


@pytest.mark.parametrize(
    ("records", "broker_id", "code", "words"),
    [
        ((), 101, KafkaCode.UNSUPPORTED_VERSION, "logberg features upgrade metadata.version"),
        (
            (FeatureLevelRecord("metadata.version", 30), VotersRecord((VOTER,))),
            7,
            KafkaCode.INVALID_REGISTRATION,
            "node id 7 belongs to a controller",
        ),
    ],
    ids=["no metadata.version", "a voter that has not registered"],
)
def test_a_broker_is_refused_before_it_would_loop(records, broker_id, code, words):
    logs, answers = LogCapture(), []
    log = structlog.wrap_logger(None, processors=[logs])
    registrations = Registrations(OldController(*records), None, RefusedBrokers(log))
    fields = {"BrokerId": broker_id, "IsMigratingZkBroker": False}
    registrations.handle(KafkaRequest(62, 4, str(broker_id), fields), answers.append)
    assert answers == [{"ErrorCode": code, "BrokerEpoch": -1}]
    [event] = logs.entries
    assert event["event"] == "kafka_broker_refused"
    assert words in event["reason"]
