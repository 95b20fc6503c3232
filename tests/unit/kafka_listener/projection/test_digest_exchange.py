"""Controllers compare their projected logs: the one that differs says so and stops."""

from collections.abc import Iterable
from typing import Any

import structlog
from structlog.testing import LogCapture

from kafka_listener.projection.batch_projection import BatchProjection, ProjectedBatch
from kafka_listener.projection.digest import EVERY_OFFSETS, DigestChain
from kafka_listener.projection.digest_exchange import EVERY_S, DigestExchange
from metadata.records import NoOpRecord, TopicRecord
from tests.kafka_quorum import KafkaCluster, batches_of
from tests.unit.kafka_listener.serving_kit import HandClock

VOTERS = (1, 2, 3)
ENDS = range(5, 3 * EVERY_OFFSETS, 5)


class Node:
    """One controller's digests and its exchange."""

    def __init__(
        self, node_id: int, nodes: dict[int, "Node"], voters: tuple[int, ...] = VOTERS
    ) -> None:
        self.node_id = node_id
        self.nodes = nodes
        self.clock = HandClock()
        self.chain = DigestChain()
        self.logs = LogCapture()
        self.verdicts: list[str] = []
        self.takes_part = True
        self.cut_off = False
        self.exchange = DigestExchange(
            self.clock,
            node_id,
            self.chain,
            self.tell,
            lambda: voters,
            lambda: self.takes_part,
            lambda: self.verdicts.append(self.exchange.verdict),
            structlog.wrap_logger(None, processors=[self.logs]),
        )
        nodes[node_id] = self

    def tell(self, data: bytes) -> None:
        assert len(data) < 512
        for node in self.nodes.values():
            if node is not self and not self.cut_off and not node.cut_off:
                node.exchange.take(self.node_id, data)

    def project(self, ends: Iterable[int] = ENDS, wrong_from: int | None = None) -> "Node":
        for end in ends:
            wrong = wrong_from is not None and end >= wrong_from
            self.chain.add(ProjectedBatch(end - 5, end, b"%d%s" % (end, b"!" * wrong)))
        return self


def run(nodes: dict[int, Node], seconds: float = 5 * EVERY_S) -> None:
    for _ in range(int(seconds / EVERY_S)):
        for node in nodes.values():
            node.clock.run(EVERY_S)


def made(wrong: dict[int, int], voters: tuple[int, ...] = VOTERS) -> dict[int, Node]:
    nodes: dict[int, Node] = {}
    for node_id in voters:
        Node(node_id, nodes, voters).project(wrong_from=wrong.get(node_id))
    return nodes


def test_equal_logs_are_equal() -> None:
    nodes = made({})
    run(nodes)
    assert [node.verdicts for node in nodes.values()] == [[], [], []]


def test_the_one_that_differs_from_the_majority_says_so_with_both_digests() -> None:
    nodes = made({2: 3000})
    run(nodes)
    assert nodes[2].exchange.wrong
    assert nodes[1].exchange.verdict == nodes[3].exchange.verdict == ""
    [event] = nodes[2].logs.entries
    assert event["event"] == "kafka_projection_differs"
    assert event["own_digest"] != event["other_digest"]
    assert (event["offset"] >= 3000, event["others"]) == (True, "1, 3")


def test_it_stays_wrong_though_later_windows_are_equal() -> None:
    nodes = made({2: 3000})
    run(nodes)
    later = range(4 * EVERY_OFFSETS + 5, 4 * EVERY_OFFSETS + 500, 5)
    for node in nodes.values():
        node.project(later)
    run(nodes)
    assert nodes[2].exchange.wrong
    assert nodes[1].exchange.verdict == nodes[3].exchange.verdict == ""


def test_two_that_differ_wait_for_the_third_to_tell_which_is_wrong() -> None:
    nodes = made({2: 3000})
    nodes[3].cut_off = True
    run(nodes)
    assert "no third" in nodes[1].exchange.verdict
    assert "no third" in nodes[2].exchange.verdict
    assert not nodes[1].exchange.wrong
    nodes[3].cut_off = False
    nodes[3].project([3 * EVERY_OFFSETS + 5])
    run(nodes)
    assert nodes[1].exchange.verdict == ""
    assert nodes[2].exchange.wrong


def test_a_difference_that_lies_far_back_is_found_too() -> None:
    """A controller that lags knows only the ends of windows of the others."""
    nodes: dict[int, Node] = {}
    for node_id in VOTERS:
        ends = range(5, (7 if node_id == 3 else 3) * EVERY_OFFSETS, 5)
        Node(node_id, nodes).project(ends, 1000 if node_id == 2 else None)
    run(nodes)
    assert nodes[2].exchange.wrong


def test_a_controller_without_the_cluster_key_takes_no_part() -> None:
    nodes = made({2: 3000})
    nodes[2].takes_part = False
    run(nodes)
    assert all(node.verdicts == [] for node in nodes.values())


def test_what_is_no_list_of_digests_is_ignored() -> None:
    nodes = made({})
    for data in (b"", b"\x01", b"\x01123", b"\x02" + bytes(24), bytes(24)):
        nodes[1].exchange.take(2, data)
    nodes[1].exchange.take(9, b"\x01" + (5).to_bytes(8, "big") + bytes(16))
    assert nodes[1].verdicts == []


def test_a_lone_controller_compares_with_nobody() -> None:
    nodes = made({}, voters=(1,))
    run(nodes)
    assert nodes[1].verdicts == []


def test_a_log_that_has_ended_growing_is_told_a_few_times_only() -> None:
    nodes: dict[int, Node] = {}
    told: list[bytes] = []
    node = Node(1, nodes).project()
    node.exchange._tell = told.append
    run(nodes, 30 * EVERY_S)
    assert len(told) == 3
    node.exchange.stop()
    node.project([3 * EVERY_OFFSETS + 5])
    run(nodes)
    assert len(told) == 3


def test_a_leader_whose_projection_is_wrong_shows_nothing_and_resigns(monkeypatch: Any) -> None:
    cluster = KafkaCluster()
    sound = BatchProjection.value_of
    wrong = cluster.quorum_requests[1].log._projection

    def broken(self: BatchProjection, record: Any, level: int) -> bytes:
        if self is wrong and isinstance(record, TopicRecord):
            record = TopicRecord("x" + record.name, record.topic_id)
        return sound(self, record, level)

    monkeypatch.setattr(BatchProjection, "value_of", broken)
    cluster.decide(TopicRecord("orders", b"t" * 16))
    cluster.decide(NoOpRecord())
    cluster.run_until(lambda: cluster.shared.leader is None, 3 * EVERY_S)
    assert cluster.quorum_requests[1].exchange.wrong
    [event] = cluster.events("kafka_projection_differs")
    assert "projected log of this controller (1)" in event["reason"]
    cluster.lead(2)
    assert batches_of(cluster.fetched(2))
    cluster.processes[1].run(lambda: cluster.shared.lead(1))
    cluster.run_until(lambda: cluster.shared.leader is None)
