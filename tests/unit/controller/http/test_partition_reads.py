"""Lists of partitions, plans, what-if and explanations: what they say, page by page."""

from typing import Any

import pytest

from controller.http.replicas import lists
from metadata.messages import WantedState
from metadata.records import PartitionChangeRecord
from tests.unit.controller.cluster import DECLARED, SESSION_S, Broker, Cluster, keep_alive


def made(**config: Any) -> Any:
    """Brokers 1 to 4, in racks a and b by turns; topics `a`, `b` and `c`."""
    cluster: Any = Cluster(nodes=1, **config)
    for broker_id in (1, 2, 3, 4):
        cluster.online(broker_id, rack="ab"[broker_id % 2], features=DECLARED)
    cluster.assign("a", (1, 2), (2, 3), (3, 4))
    cluster.assign("b", (1,), (2,))
    cluster.assign("c", (4, 1), (4, 2))
    return cluster


def rows(cluster: Any, path: str = "/v1/partitions", **query: str) -> list[str]:
    """Read all pages, and return the partitions by name."""
    found: list[str] = []
    token: dict[str, str] = {}
    while True:
        status, reply = cluster.ask("GET", path, query={**query, **token})
        assert status == 200, reply
        found += [f"{row['topic']}-{row['partition']}" for row in reply["partitions"]]
        if reply["continuation"] is None:
            return found
        token = {"continuation": reply["continuation"]}


def change(cluster: Any, name: str, number: int, **fields: Any) -> None:
    topic = cluster.image.topics.named(name)
    cluster.write(PartitionChangeRecord(number, topic.topic_id, **fields))


ALL = ["a-0", "a-1", "a-2", "b-0", "b-1", "c-0", "c-1"]


@pytest.mark.parametrize("limit", ["1", "2", "3", "7", "1000"])
def test_all_partitions_in_order_in_pages_of_any_size(limit: str) -> None:
    assert rows(made(), limit=limit) == ALL


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("limit", ["1", "1000"])
def test_filters_and_both_ways_to_find_topics(
    monkeypatch: pytest.MonkeyPatch, limit: str, few: int
) -> None:
    monkeypatch.setattr(lists, "_FEW", few)
    cluster = made()
    change(cluster, "a", 1, isr=(2,))
    change(cluster, "b", 0, leader=-1)
    change(cluster, "c", 1, isr=(2,), leader=-1)
    assert rows(cluster, limit=limit, leaderless="true") == ["b-0", "c-1"]
    assert rows(cluster, limit=limit, underReplicated="true") == ["a-1", "c-1"]
    assert rows(cluster, limit=limit, leaderless="true", underReplicated="true") == ["c-1"]
    assert rows(cluster, limit=limit, topic="a") == ["a-0", "a-1", "a-2"]
    assert rows(cluster, limit=limit, topic="a", underReplicated="true") == ["a-1"]
    body = {"partitions": [{"topic": "c", "partition": 0, "replicas": [4, 3]}]}
    assert cluster.ask("POST", "/v1/reassignments", body)[0] == 200
    assert rows(cluster, limit=limit, reassigning="true") == ["c-0"]
    assert rows(cluster, "/v1/reassignments", limit=limit) == ["c-0"]
    assert rows(cluster, "/v1/reassignments", limit=limit, topic="a") == []


def test_a_page_ends_when_it_has_looked_at_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fits: each page is empty, and says where to go on, until the end."""
    monkeypatch.setattr(lists, "LOOKED_AT_MAX", 2)
    monkeypatch.setattr(lists, "_FEW", 0)
    cluster = made()
    change(cluster, "c", 1, isr=(2,))
    status, reply = cluster.ask("GET", "/v1/partitions", query={"underReplicated": "true"})
    assert (status, reply["partitions"]) == (200, [])
    assert reply["continuation"] is not None
    assert rows(cluster, underReplicated="true") == ["c-1"]
    assert rows(cluster) == ALL


def test_pages_are_of_one_state() -> None:
    cluster = made()
    _, first = cluster.ask("GET", "/v1/partitions", query={"limit": "4"})
    cluster.ask("DELETE", "/v1/topics/c")
    query = {"limit": "4", "continuation": first["continuation"]}
    _, second = cluster.ask("GET", "/v1/partitions", query=query)
    assert [f"{r['topic']}-{r['partition']}" for r in second["partitions"]] == ALL[4:]
    status, reply = cluster.ask("GET", "/v1/partitions", query={**query, "leaderless": "true"})
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("/v1/partitions", {"topic": "x"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("/v1/partitions", {"limit": "0"}, "INVALID_REQUEST"),
        ("/v1/partitions", {"leaderless": "maybe"}, "INVALID_REQUEST"),
        ("/v1/partitions/a/9", {}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("/v1/partitions/x/0", {}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("/v1/partitions/a/x", {}, "INVALID_REQUEST"),
        ("/v1/reassignments/plan", {}, "INVALID_REQUEST"),
        ("/v1/reassignments/plan", {"brokers": "1,x"}, "INVALID_REQUEST"),
        ("/v1/reassignments/plan", {"brokers": "9"}, "BROKER_ID_NOT_REGISTERED"),
        ("/v1/reassignments/plan", {"brokers": "1,2,3,4"}, "INVALID_REPLICATION_FACTOR"),
        ("/v1/what-if/loss", {}, "INVALID_REQUEST"),
        ("/v1/what-if/loss", {"brokers": "9"}, "BROKER_ID_NOT_REGISTERED"),
        ("/v1/what-if/loss", {"rack": "z"}, "INVALID_REQUEST"),
        ("/v1/brokers/9/explain", {}, "BROKER_ID_NOT_REGISTERED"),
    ],
)
def test_what_is_refused(path: str, query: dict[str, str], code: str) -> None:
    status, reply = made().ask("GET", path, query=query)
    assert status >= 400
    assert reply["code"] == code, reply


# -- plans -----------------------------------------------------------------------------------------


def plan(cluster: Any, brokers: str) -> dict[str, tuple[list[int], list[int]]]:
    _, reply = cluster.ask("GET", "/v1/reassignments/plan", query={"brokers": brokers})
    return {
        f"{row['topic']}-{row['partition']}": (row["before"], row["replicas"])
        for row in reply["partitions"]
    }


def test_a_plan_keeps_places_and_prefers_another_rack_then_the_emptiest_broker() -> None:
    cluster = made()
    moves = plan(cluster, "1")
    assert sorted(moves) == ["a-0", "b-0", "c-0"]
    # Broker 2 is in rack a; 3 is in rack b and 4 in a.
    assert moves["a-0"] == ([1, 2], [3, 2])
    assert moves["c-0"] == ([4, 1], [4, 3])
    # Broker 2 has four replicas, 3 at most four with those above, 4 has three.
    assert moves["b-0"][1] in ([3], [4])


def test_a_plan_that_is_carried_out_empties_the_brokers() -> None:
    cluster = made()
    moves = plan(cluster, "1,4")
    body = {
        "partitions": [
            {
                "topic": name.partition("-")[0],
                "partition": int(name.partition("-")[2]),
                "replicas": replicas,
            }
            for name, (_, replicas) in moves.items()
        ]
    }
    status, reply = cluster.ask("POST", "/v1/reassignments", body)
    assert (status, [row for row in reply["partitions"] if row.get("error")]) == (200, [])
    for topic_id, number in list(cluster.image.topics.held_by(1)) + list(
        cluster.image.topics.held_by(4)
    ):
        partition = cluster.image.topics.partitions[topic_id, number]
        assert {1, 4} & set(partition.replicas) <= set(partition.removing)
    assert plan(cluster, "1,4") == {}


def test_where_no_other_broker_is_left_a_replica_stays() -> None:
    cluster = made()
    cluster.assign("wide", (1, 2, 3, 4))
    assert plan(cluster, "1")["wide-0"] == ([1, 2, 3, 4], [1, 2, 3, 4])


# -- what if ---------------------------------------------------------------------------------------


def test_what_losing_brokers_would_write_is_what_it_writes() -> None:
    cluster = made()
    query = {"brokers": "2", "all": "true"}
    _, said = cluster.ask("GET", "/v1/what-if/loss", query=query)
    assert (said["brokers"], said["touched"], said["leaderless"]) == ([2], 4, 1)
    assert [r["type"] for r in said["brokerChanges"]] == ["BROKER_REGISTRATION_CHANGE_RECORD"]
    mark = cluster.image.offset
    assert rows(cluster, leaderless="true") == [], "it only says what would be"
    fenced = cluster.broker(2).incarnation_id
    broker = Broker(cluster, 2, incarnation=fenced, rack="a", features=DECLARED).register()
    broker.fetch(WantedState.FENCED)
    cluster.run(0.1)
    assert cluster.broker(2).fenced
    written = [
        (record.topic_id, record.partition_id, record.isr, record.leader)
        for record in cluster.records(mark)
        if isinstance(record, PartitionChangeRecord)
    ]
    told = [
        (
            cluster.image.topics.named(row["topic"]).topic_id,
            row["partition"],
            tuple(change["data"]["isr"]) if "isr" in change["data"] else None,
            change["data"].get("leader", -2),
        )
        for row in said["partitions"]
        for change in row["changes"]
    ]
    assert sorted(told) == sorted(written)


def test_a_rack_is_all_of_its_brokers_one_after_another() -> None:
    cluster = made(min_insync_replicas=2)
    _, said = cluster.ask("GET", "/v1/what-if/loss", query={"rack": "a"})
    assert said["brokers"] == [2, 4]
    trouble = {
        f"{row['topic']}-{row['partition']}": (row["leaderAfter"], row["leaderless"])
        for row in said["partitions"]
    }
    assert trouble == {
        "a-0": (1, False),
        "a-1": (3, False),
        "a-2": (3, False),
        "b-1": (-1, True),
        "c-0": (1, False),
        "c-1": (-1, True),
    }
    assert (said["leaderless"], said["underMinIsr"]) == (2, 6)
    twice = next(r for r in said["partitions"] if r["topic"] == "c" and r["partition"] == 1)
    assert len(twice["changes"]) == 2, "broker 2 is lost, then 4"


# -- explain ---------------------------------------------------------------------------------------


def says(cluster: Any, path: str) -> str:
    _, reply = cluster.ask("GET", path)
    return " | ".join(finding["says"] for finding in reply["findings"])


def test_a_partition_without_a_leader_says_who_could_lead_and_why_they_do_not() -> None:
    cluster: Any = Cluster(nodes=1)
    one, two, three = cluster.online(1, 2, 3, features=DECLARED)
    cluster.assign("t", (1, 2, 3))
    assert says(cluster, "/v1/partitions/t/0") == ""
    keep_alive(cluster, [one, three], SESSION_S + 1)
    said = says(cluster, "/v1/partitions/t/0")
    assert "broker 2 is not in sync: broker 2 is fenced and was last heard" in said
    two.catch_up()
    cluster.run(0.1)
    assert "adds it once it has caught up" in says(cluster, "/v1/partitions/t/0")
    keep_alive(cluster, [two, three], SESSION_S + 1)
    assert "broker 3 leads, and the preferred leader is broker 1" in says(
        cluster, "/v1/partitions/t/0"
    )
    keep_alive(cluster, [two], SESSION_S + 1)
    said = says(cluster, "/v1/partitions/t/0")
    assert "it has no leader: of the replicas that are in sync (3) none can lead" in said
    assert "broker 2 may lack writes, because it is not in sync; broker 2 is online" in said
    assert "it gets a leader when one of the brokers 3 comes online" in said
    assert "an unclean election could choose broker 2 now" in said


def test_a_reassignment_says_whom_it_waits_for() -> None:
    cluster = made(min_insync_replicas=2)
    change(cluster, "a", 0, isr=(1,))
    body = {"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 3]}]}
    cluster.ask("POST", "/v1/reassignments", body)
    said = says(cluster, "/v1/partitions/a/0")
    assert "being reassigned (adding 3, removing 2), and waits for 3" in said
    assert "1 replicas are in sync, and min.insync.replicas is 2" in said


def test_a_fenced_broker_says_why() -> None:
    cluster: Any = Cluster(nodes=1)
    one, two = cluster.online(1, 2, features=DECLARED)
    assert says(cluster, "/v1/brokers/1/explain") == ""
    keep_alive(cluster, [two], SESSION_S + 1)
    assert "nothing was heard from it for" in says(cluster, "/v1/brokers/1/explain")
    one.fetch(WantedState.FENCED)
    assert "does not ask to be online" in says(cluster, "/v1/brokers/1/explain")


def test_a_stopping_broker_says_who_has_not_seen_the_new_leaders() -> None:
    cluster: Any = Cluster(nodes=1)
    one, two = cluster.online(1, 2, features=DECLARED)
    cluster.assign("t", (1, 2))
    one.fetch(WantedState.STOPPING)
    cluster.run(0.1)
    assert cluster.broker(1).in_controlled_shutdown
    assert not cluster.broker(1).fenced
    assert "broker 2 has applied everything before" in says(cluster, "/v1/brokers/1/explain")
    assert two.applied < cluster.broker(1).controlled_shutdown_offset
