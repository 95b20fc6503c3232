"""Where controllers listen for Kafka stands in the voters' record (ADR 0071)."""

from typing import Any

from controller.managers.voter_addresses import set_voter_addresses
from metadata.codec import decode_records
from metadata.records import VotersRecord
from tests.unit.controller.cluster import Cluster


def address(node_id: int) -> tuple[str, str, int]:
    return ("CONTROLLER", f"controller-{node_id}", 9090 + node_id)


def told(cluster: Any) -> list[list[tuple[str, str, int]]]:
    """Return the endpoints of each voter in the log."""
    cluster.run(1.0)
    return [[(p.name, p.host, p.port) for p in v.endpoints] for v in cluster.image.quorum.voters]


def quorums(cluster: Any) -> list[tuple[str, str, int]]:
    return [("QUORUM", voter.host, voter.port) for voter in cluster.leader.quorum.voters()]


def test_each_controller_s_address_is_written_when_it_has_registered() -> None:
    cluster = Cluster(kafka_address=address)
    expected = [[own, address(n)] for n, own in enumerate(quorums(cluster), 1)]
    assert told(cluster) == expected
    points = cluster.image.cluster.controllers[2].end_points
    assert [(p.name, p.port) for p in points] == [("HTTP", 80), ("CONTROLLER", 9092)]
    cluster.assert_equal()


def test_an_address_that_changed_is_written_again_and_nothing_else() -> None:
    cluster = Cluster(kafka_address=address)
    before = told(cluster)
    cluster.config["kafka_address"] = lambda n: ("CONTROLLER", "elsewhere", n)
    cluster.kill(3)
    cluster.start(3)
    cluster.run_until(cluster.registered)
    own = quorums(cluster)[2]
    assert told(cluster) == [*before[:2], [own, ("CONTROLLER", "elsewhere", 3)]]
    assert set_voter_addresses(cluster.image).records == ()


def test_a_new_leader_writes_no_address_again() -> None:
    cluster = Cluster(kafka_address=address)
    told(cluster)
    written = voters_records(cluster)
    cluster.lead(2)
    cluster.run(1.0)
    assert voters_records(cluster) == written


def test_without_a_listener_the_voters_are_as_the_first_leader_wrote_them() -> None:
    cluster = Cluster()
    assert told(cluster) == [[own] for own in quorums(cluster)]
    assert voters_records(cluster) == 1


def test_a_listener_that_is_gone_is_left_out() -> None:
    cluster = Cluster(kafka_address=address)
    told(cluster)
    cluster.config["kafka_address"] = None
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
        cluster.start(node_id)
    cluster.run(0.5)
    cluster.lead(1)
    cluster.run_until(cluster.registered)
    assert told(cluster) == [[own] for own in quorums(cluster)]


def voters_records(cluster: Any) -> int:
    records = (r for b in cluster.batches() for r in decode_records(b.records))
    return sum(isinstance(record, VotersRecord) for record in records)
