"""ISRs, directories, producer ids and unregistering, as Kafka's brokers ask for them."""

import msgspec
import pytest

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import KafkaRequest
from kafka_listener.brokers import partition_changes, replica_directories
from kafka_listener.brokers.handlers import broker_handlers
from kafka_listener.wire.messages import decode_response, encode_response
from metadata.messages import AlterPartitionReply, AlterPartitionRequest
from metadata.messages.errors import ErrorReply
from metadata.messages.partitions import AlteredPartition, AlteredTopic
from runtime.http.requests import Reply
from tests.unit.kafka_listener.brokers.listening import KafkaBroker, ListeningCluster


def isr_change(cluster, broker, name, isr, numbers=(0,), version=3, **changes):
    """Return the fields of an AlterPartition."""
    partitions = []
    for number in numbers:
        known = cluster.partition(name, number)
        asked = {
            "PartitionIndex": number,
            "LeaderEpoch": known.leader_epoch,
            "PartitionEpoch": known.partition_epoch,
        }
        if version >= 3:
            asked["NewIsrWithEpochs"] = [
                {"BrokerId": each, "BrokerEpoch": cluster.broker(each).broker_epoch} for each in isr
            ]
        else:
            asked["NewIsr"] = list(isr)
        partitions.append({**asked, **changes})
    return {
        "BrokerId": broker.broker_id,
        "BrokerEpoch": broker.epoch,
        "Topics": [
            {"TopicId": cluster.image.topics.named(name).topic_id, "Partitions": partitions}
        ],
    }


@pytest.fixture
def pair():
    cluster = ListeningCluster()
    return (
        cluster,
        KafkaBroker(cluster, 101).bring_online(),
        KafkaBroker(cluster, 102).bring_online(),
    )


@pytest.mark.parametrize("version", [2, 3])
def test_an_isr_shrinks_and_grows_and_the_answer_is_what_is_committed(pair, version):
    cluster, leader, _ = pair
    cluster.assign("t", [101, 102])
    for isr in ([101], [101, 102]):
        asked = isr_change(cluster, leader, "t", isr, version=version)
        answer = leader.ask(56, version, asked)
        (partition,) = answer["Topics"][0]["Partitions"]
        known = cluster.partition("t")
        assert answer["ErrorCode"] == partition["ErrorCode"] == 0
        assert answer["Topics"][0]["TopicId"] == cluster.image.topics.named("t").topic_id
        assert partition["Isr"] == isr == list(known.isr)
        assert partition["PartitionEpoch"] == known.partition_epoch
        assert (partition["LeaderId"], partition["LeaderEpoch"]) == (101, known.leader_epoch)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"LeaderEpoch": -1}, KafkaCode.FENCED_LEADER_EPOCH),
        ({"PartitionEpoch": -1}, KafkaCode.INVALID_UPDATE_VERSION),
        ({"LeaderEpoch": 9}, KafkaCode.NOT_CONTROLLER),
        (
            {"NewIsrWithEpochs": [{"BrokerId": 101}, {"BrokerId": 102, "BrokerEpoch": 1}]},
            KafkaCode.INELIGIBLE_REPLICA,
        ),
    ],
)
def test_refusals_of_one_partition_have_kafka_s_codes(pair, changes, code):
    cluster, leader, _ = pair
    cluster.assign("t", [101, 102])
    leader.ask(56, 3, isr_change(cluster, leader, "t", [101]))
    answer = leader.ask(56, 3, isr_change(cluster, leader, "t", [101, 102], **changes))
    assert answer["ErrorCode"] == 0
    assert answer["Topics"][0]["Partitions"][0]["ErrorCode"] == code


def test_a_stale_broker_epoch_refuses_the_whole_request(pair):
    cluster, leader, _ = pair
    cluster.assign("t", [101, 102])
    asked = {**isr_change(cluster, leader, "t", [101]), "BrokerEpoch": leader.epoch + 1}
    answer = leader.ask(56, 3, asked)
    assert (answer["ErrorCode"], answer["Topics"]) == (KafkaCode.STALE_BROKER_EPOCH, [])


def test_many_partitions_are_changed_in_turns_and_answered_in_order(pair):
    cluster, leader, _ = pair
    count = partition_changes._AT_ONCE * 2 + 10
    cluster.assign("t", *[[101, 102]] * count)
    cluster.assign("u", [101, 102])
    asked = isr_change(cluster, leader, "t", [101], range(count))
    asked["Topics"] += isr_change(cluster, leader, "u", [101])["Topics"]
    answer = leader.ask(56, 3, asked)
    said = [p["PartitionIndex"] for topic in answer["Topics"] for p in topic["Partitions"]]
    assert said == [*range(count), 0]
    assert {p["ErrorCode"] for topic in answer["Topics"] for p in topic["Partitions"]} == {0}
    assert all(list(cluster.partition("t", n).isr) == [101] for n in range(count))


def test_replicas_are_put_into_directories_in_turns(pair):
    cluster, *_ = pair
    directories = [bytes([n]) * 16 for n in (1, 2)]
    broker = KafkaBroker(cluster, 103, LogDirs=directories).bring_online()
    count = replica_directories._AT_ONCE + 10
    cluster.assign("t", *[[103]] * count)
    topic_id = cluster.image.topics.named("t").topic_id
    partitions = [{"PartitionIndex": n} for n in [*range(count), 10_000]]
    asked = {
        "BrokerId": 103,
        "BrokerEpoch": broker.epoch,
        "Directories": [
            {"Id": directories[1], "Topics": [{"TopicId": topic_id, "Partitions": partitions}]}
        ],
    }
    answer = broker.ask(73, 0, asked)
    codes = [p["ErrorCode"] for p in answer["Directories"][0]["Topics"][0]["Partitions"]]
    assert answer["ErrorCode"] == 0
    assert codes == [0] * count + [KafkaCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.partition("t", count - 1).directories == (directories[1],)


def test_blocks_of_producer_ids_follow_each_other(pair):
    _, *brokers = pair
    blocks = [
        broker.ask(67, 0, {"BrokerId": broker.broker_id, "BrokerEpoch": broker.epoch})
        for broker in brokers
    ]
    assert [(b["ErrorCode"], b["ProducerIdStart"], b["ProducerIdLen"]) for b in blocks] == [
        (0, 0, 1000),
        (0, 1000, 1000),
    ]
    stale = brokers[0].ask(67, 0, {"BrokerId": 101, "BrokerEpoch": 1})
    assert stale["ErrorCode"] == KafkaCode.STALE_BROKER_EPOCH


def test_a_broker_is_unregistered_unless_something_is_lost_with_it(pair):
    cluster, first, second = pair
    cluster.assign("t", [101])
    refused = second.ask(64, 0, {"BrokerId": 101})
    assert refused["ErrorCode"] == KafkaCode.POLICY_VIOLATION
    assert refused["ErrorMessage"]
    assert first.ask(64, 0, {"BrokerId": 999})["ErrorCode"] == KafkaCode.BROKER_ID_NOT_REGISTERED
    assert second.beat(stop=True)["ShouldShutDown"]
    assert first.ask(64, 0, {"BrokerId": 102})["ErrorCode"] == 0
    assert 102 not in cluster.image.cluster.brokers


def test_turns_that_are_answered_at_once_don_t_go_deeper_with_each(pair):
    """A change that is refused may be answered within the call."""
    cluster, leader, _ = pair
    count = partition_changes._AT_ONCE * 300
    numbers = ("PartitionIndex", "LeaderEpoch", "PartitionEpoch", "LeaderRecoveryState")
    partition = {**dict.fromkeys(numbers, 0), "NewIsrWithEpochs": []}
    topics = [{"TopicId": b"no such topic id", "Partitions": [partition] * count}]
    asked = {"BrokerId": 101, "BrokerEpoch": leader.epoch, "Topics": topics}
    handlers = broker_handlers(
        cluster.leader,
        cluster.leader.handle,
        Asking(_refused_at_once, cluster.processes[cluster.shared.leader].clock),
        lambda _key: None,
        None,
        cluster_id="c",
        require_authentication=False,
    )
    answers = []
    handlers[56](KafkaRequest(56, 3, "101", asked), answers.append)
    cluster.run(0.1)
    (answer,) = answers
    answer = decode_response(56, 3, encode_response(56, 3, answer))
    (topic,) = _merged(answer["Topics"])
    assert len(topic) == count
    assert set(topic) == {KafkaCode.UNKNOWN_TOPIC_ID}


def _refused_at_once(request, on_reply):
    """Answer AlterPartition as the route does for topics that don't exist."""
    asked = msgspec.msgpack.decode(request.body, type=AlterPartitionRequest)
    error = ErrorReply("UNKNOWN_TOPIC_ID", "no such topic")
    topics = tuple(
        AlteredTopic(
            topic_id=topic.topic_id,
            partitions=tuple(
                AlteredPartition(each.partition_index, error=error) for each in topic.partitions
            ),
        )
        for topic in asked.topics
    )
    body = msgspec.msgpack.encode(AlterPartitionReply(topics=topics))
    on_reply(Reply(200, body, {"content-type": "application/msgpack"}))


def _merged(topics):
    found = {}
    for topic in topics:
        codes = [each["ErrorCode"] for each in topic["Partitions"]]
        found.setdefault(topic["TopicId"], []).extend(codes)
    return list(found.values())
