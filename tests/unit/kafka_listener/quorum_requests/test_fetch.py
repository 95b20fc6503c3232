"""Fetch of the metadata log, as Kafka's raft client sends it and as bytes."""

from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.quorum_requests.handlers import FETCH
from kafka_listener.quorum_requests.unregistered import UnregisteredBrokers
from metadata.records import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from runtime.http.requests import Caller
from tests.kafka_quorum import KafkaCluster, batches_of, fetch_fields, partition_of


@pytest.fixture
def cluster() -> KafkaCluster:
    return KafkaCluster()


def test_a_new_broker_reads_the_whole_log(cluster: KafkaCluster) -> None:
    said = cluster.fetched()
    batches = batches_of(said)
    assert [batches[0].base_offset, batches[0].control, batches[0].epoch] == [0, True, 1]
    ends = [batch.base_offset + len(batch.records) for batch in batches]
    assert [batch.base_offset for batch in batches[1:]] == ends[:-1]
    assert said["HighWatermark"] == ends[-1] == cluster.end() == cluster.image.offset
    assert (said["ErrorCode"], said["LogStartOffset"], said["LastStableOffset"]) == (0, 0, -1)
    assert said["CurrentLeader"] == {"LeaderId": 1, "LeaderEpoch": 1}


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "an older epoch": ({"epoch": 0}, 74),
    "a newer epoch": ({"epoch": 9}, 75),
    "a standby": ({"node_id": 2}, 6),
    "a negative offset": ({"offset": -1}, 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_whoever_asks_wrongly_learns_who_leads(cluster: KafkaCluster, name: str) -> None:
    said, code = WRONG[name]
    answer = cluster.fetched(**said)
    assert answer["ErrorCode"] == code
    assert answer["Records"] == b""
    assert answer["CurrentLeader"] == {"LeaderId": 1, "LeaderEpoch": 1}


@pytest.mark.parametrize(("epoch", "code"), [(5, 8), (4, 74), (6, 75)])
def test_while_nobody_leads_a_broker_asks_others(
    cluster: KafkaCluster, epoch: int, code: int
) -> None:
    """NOT_LEADER_OR_FOLLOWER in its own epoch would keep a Kafka broker at this controller."""
    cluster.shared.leader = None
    cluster.shared.epoch = 5
    for node_id in (1, 2):
        cluster.processes[node_id].run(cluster.shared.nodes[node_id].learn)
    answer = cluster.fetched(2, epoch=epoch)
    assert (answer["ErrorCode"], answer["NodeEndpoints"]) == (code, [])
    assert answer["CurrentLeader"] == {"LeaderId": -1, "LeaderEpoch": 5}


def test_another_cluster_is_told_so(cluster: KafkaCluster) -> None:
    [answer] = cluster.fetch(cluster="another")
    assert answer["ErrorCode"] == KafkaCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"topic": b"x" * 16}, KafkaCode.UNKNOWN_TOPIC_ID),
        ({"partition": 1}, KafkaCode.INVALID_REQUEST),
        ({"topics": []}, KafkaCode.INVALID_REQUEST),
    ],
)
def test_only_the_metadata_log_is_here(
    cluster: KafkaCluster, said: dict[str, Any], code: KafkaCode
) -> None:
    fields = fetch_fields(1, **said)
    if "partition" in said:
        fields["Topics"][0]["Partitions"][0]["Partition"] = said["partition"]
    fields["Topics"] = said.get("topics", fields["Topics"])
    assert cluster.refusal(1, FETCH, 18, fields) is code


def test_without_news_a_fetch_waits_for_the_next_commit(cluster: KafkaCluster) -> None:
    end = cluster.end()
    for version, watermark in ((18, end), (17, -1)):
        answers = cluster.fetch(
            offset=end, last_epoch=1, version=version, watermark=watermark, wait_ms=5000
        )
        assert answers == []
        cluster.decide(NoOpRecord())
        assert [b.base_offset for b in batches_of(partition_of(answers[0]))] == [end]
        end = cluster.end()


def test_a_lower_high_watermark_is_answered_at_once(cluster: KafkaCluster) -> None:
    end = cluster.end()
    [answer] = cluster.fetch(offset=end, last_epoch=1, watermark=end - 1)
    assert partition_of(answer)["HighWatermark"] == end


def test_a_fetch_without_news_is_answered_when_its_time_is_over(cluster: KafkaCluster) -> None:
    end = cluster.end()
    answers = cluster.fetch(offset=end, last_epoch=1, watermark=end, wait_ms=500)
    cluster.run(0.4)
    assert answers == []
    cluster.run(0.2)
    assert partition_of(answers[0])["ErrorCode"] == 0
    assert partition_of(answers[0])["Records"] == b""


def test_a_held_fetch_is_answered_when_the_leader_changes(cluster: KafkaCluster) -> None:
    end = cluster.end()
    answers = cluster.fetch(offset=end, last_epoch=1, watermark=end, wait_ms=5000)
    cluster.lead(2)
    assert partition_of(answers[0])["ErrorCode"] == 74
    assert partition_of(answers[0])["CurrentLeader"] == {"LeaderId": 2, "LeaderEpoch": 2}


def test_a_new_leader_says_no_high_watermark_before_its_epoch_has_begun(
    cluster: KafkaCluster,
) -> None:
    cluster.processes[2].run(lambda: cluster.shared.lead(2))
    assert not cluster.controllers[2].active
    [answer] = cluster.fetch(2, offset=cluster.end(2), last_epoch=1, watermark=-1, wait_ms=0)
    assert partition_of(answer)["HighWatermark"] == -1
    cluster.run_until(lambda: cluster.controllers[2].active)
    end = cluster.end(2)
    assert cluster.fetched(2, offset=end, last_epoch=2)["HighWatermark"] == end


@pytest.mark.parametrize(("offset", "last_epoch"), [(3, 7), (10_000, 1)])
def test_another_history_is_told_where_it_diverges(
    cluster: KafkaCluster, offset: int, last_epoch: int
) -> None:
    answer = cluster.fetched(offset=offset, last_epoch=last_epoch)
    end = min(cluster.leader.ledger.log_end, offset)
    assert answer["DivergingEpoch"] == {"Epoch": 1, "EndOffset": end}
    assert answer["Records"] == b""


def test_an_open_transaction_is_shown_when_it_has_ended(cluster: KafkaCluster) -> None:
    cluster.decide(BeginTransactionRecord("large"), NoOpRecord())
    end = cluster.end()
    assert end == cluster.image.offset - 2
    answers = cluster.fetch(offset=end, last_epoch=1, watermark=end, wait_ms=5000)
    cluster.decide(EndTransactionRecord())
    assert [b.base_offset for b in batches_of(partition_of(answers[0]))] == [end, end + 2]


def test_small_answers_hold_one_batch(cluster: KafkaCluster) -> None:
    batches = batches_of(cluster.fetched(max_bytes=1))
    assert len(batches) == 1
    inside = batches_of(cluster.fetched(offset=3, last_epoch=1, max_bytes=1))
    assert inside[0].base_offset <= 3 < inside[0].base_offset + len(inside[0].records)


def test_a_limit_of_the_partition_that_is_not_set_is_none(cluster: KafkaCluster) -> None:
    """Kafka's raft client sets only the limit of the whole answer."""
    limited = batches_of(cluster.fetched(max_bytes=1))
    assert len(batches_of(cluster.fetched(partition_max_bytes=0))) > len(limited)


def test_with_authentication_only_brokers_may_read_the_log() -> None:
    cluster = KafkaCluster(require_authentication=True, super_users=frozenset({"User:root"}))
    for principal in ("Broker:11", "User:root"):
        assert cluster.fetched(caller=Caller(principal, "certificate"))["ErrorCode"] == 0
    refused = cluster.refusal(1, FETCH, 18, fetch_fields(1), Caller("User:al", "token"))
    assert refused is KafkaCode.CLUSTER_AUTHORIZATION_FAILED


def test_the_log_is_the_same_on_every_controller_and_after_a_restart(
    cluster: KafkaCluster,
) -> None:
    cluster.decide(NoOpRecord())
    first = cluster.fetched()["Records"]
    cluster.lead(2)
    assert cluster.fetched(2)["Records"].startswith(first)
    cluster.kill(1)
    cluster.start(1)
    cluster.run(1.0)
    cluster.lead(1)
    assert cluster.fetched(1)["Records"].startswith(first)
    digests = [requests.log.digests.at(5) for requests in cluster.quorum_requests.values()]
    assert len(set(digests)) == 1


def test_the_cluster_id_may_be_missing(cluster: KafkaCluster) -> None:
    assert cluster.fetched(cluster=None)["ErrorCode"] == 0


def test_a_broker_that_never_registers_is_told_of_with_the_likely_cause(
    cluster: KafkaCluster,
) -> None:
    """A wrong controller.listener.names: it fetches the log and finds no leader to register at."""
    for _ in range(20):
        cluster.fetch(offset=cluster.end(), last_epoch=1, replica=101)
        cluster.run(1.0)
    [event] = cluster.events("kafka_broker_unregistered")
    assert event["broker_id"] == 101
    assert "controller.listener.names doesn't name CONTROLLER" in event["reason"]


def test_a_broker_that_registers_or_fetches_for_a_moment_is_not_told_of() -> None:
    logs = LogCapture()
    brokers = UnregisteredBrokers(structlog.wrap_logger(None, processors=[logs]))
    for second in range(30):
        brokers.fetched(101, "CONTROLLER", {101} if second > 5 else set(), second * 1000)
        brokers.fetched(102, "CONTROLLER", set(), second * 11_000)
    assert logs.entries == []


def test_a_new_leader_says_no_high_watermark_before_its_projection_has_caught_up(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's raft client stops for good when a high watermark goes back."""
    behind = cluster.quorum_requests[2].log
    before = cluster.end(2)
    with monkeypatch.context() as patch:
        patch.setattr(behind, "_work", SimpleNamespace(cancel=lambda: None))
        cluster.decide(NoOpRecord())
        cluster.lead(2)
        [answer] = cluster.fetch(2, offset=before, last_epoch=1, watermark=-1, wait_ms=0)
        assert partition_of(answer)["HighWatermark"] == -1
    cluster.decide(NoOpRecord())
    end = cluster.end(2)
    assert end > before + 2
    [answer] = cluster.fetch(2, offset=end, last_epoch=2, watermark=-1, wait_ms=0)
    assert partition_of(answer)["HighWatermark"] == end


def test_nothing_is_shown_of_a_projection_that_may_be_wrong(cluster: KafkaCluster) -> None:
    cluster.quorum_requests[1].exchange.verdict = "it differs"
    answer = cluster.fetched(wait_ms=0)
    assert (answer["ErrorCode"], answer["Records"]) == (KafkaCode.KAFKA_STORAGE_ERROR, b"")
    assert cluster.fetched(epoch=0)["ErrorCode"] == KafkaCode.FENCED_LEADER_EPOCH


def test_a_new_leader_that_has_applied_less_cuts_nothing_off(cluster: KafkaCluster) -> None:
    """A broker may hold what the earlier leader committed, and this one has not applied yet."""
    end = cluster.end()
    cluster.shared.leader, cluster.shared.epoch = 2, 2
    node = cluster.shared.nodes[2]
    cluster.processes[2].run(node.learn)
    assert not cluster.controllers[2].active
    answers = cluster.fetch(2, epoch=2, offset=end + 4, last_epoch=1, wait_ms=200)
    assert answers == []
    cluster.run(0.5)
    partition = partition_of(answers[0])
    assert (partition["ErrorCode"], partition["DivergingEpoch"]["EndOffset"]) == (0, -1)


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "a controller's node id": ({"replica": 2}, 2, "node id 2 belongs to a controller"),
    "another cluster's folder": (
        {"cluster": "another", "replica": 15},
        15,
        "was formatted for cluster id another",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_log_says_once_why_a_broker_can_not_fetch(cluster: KafkaCluster, name: str) -> None:
    said, broker_id, words = REFUSED[name]
    for _ in range(3):
        cluster.fetch(**said)
    [event] = [each for each in cluster.logs.entries if each["event"] == "kafka_broker_refused"]
    assert event["broker_id"] == broker_id
    assert words in event["reason"]
