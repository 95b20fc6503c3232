"""The rules of replication, case by case: `cases/replication_rules.toml`.

Each row is named by its section of Kafka's rules: 5 (events), 6 (AlterPartition), 8 (ElectLeaders),
9 (ELR) and 10 (worked cases). `steps.py` explains the words.
"""

import tomllib
from typing import Any

import pytest

from tests.unit.controller.cluster import keep_alive
from tests.unit.controller.managers.case_steps import FOLDER
from tests.unit.controller.managers.steps import Case

TABLES = tomllib.loads((FOLDER / "replication_rules.toml").read_text())


def rows(table: str) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in TABLES[table]]


@pytest.mark.parametrize(
    ("steps", "elr", "state"),
    [
        pytest.param(row["steps"], elr, row[elr], id=f"{row['name']}-{elr}")
        for row in TABLES["worked"]
        for elr in ("plain", "elr")
    ],
)
def test_section_10_worked_cases(steps: str, elr: str, state: str) -> None:
    case = Case(elr=elr == "elr")
    case.run(steps)
    assert case.state == state


def test_case_j_the_stopping_broker_is_flagged() -> None:
    case = Case()
    case.run("stop 1")
    assert case.cluster.broker(1).in_controlled_shutdown


def test_case_k_the_first_change_raises_no_leader_epoch_and_the_answer_names_the_new_leader() -> (
    None
):
    case = Case()
    case.run("reassign 4,2,3")
    assert case.partition.replicas == (4, 2, 3, 1)
    assert case.state == "leader 1, isr 1 2 3, elr -, last -, le 0, pe 1"
    assert case.run("alter 1: 1,2,3,4") == "NEW_LEADER_ELECTED"
    assert case.partition.replicas == (4, 2, 3)


def test_case_l_what_the_callers_are_told() -> None:
    case = Case()
    case.run("fence 1")
    assert case.run("alter 2: 2,3 le=1 pe=0") == "INVALID_UPDATE_VERSION"
    assert case.run("alter 1: 1,2 le=0 pe=0") == "FENCED_LEADER_EPOCH"


@pytest.mark.parametrize("row", rows("alter_partition"))
def test_section_6_alter_partition(row: dict[str, str]) -> None:
    case = Case()
    case.run(row.get("before", ""))
    kept = case.partition
    assert case.run(f"alter {row['alter']}") == row["answer"]
    if row["answer"].isupper() and row["answer"] != "NEW_LEADER_ELECTED":
        assert case.partition is kept


def test_partitions_of_one_request_are_judged_one_by_one() -> None:
    case = Case(partitions=3)
    wanted = {"leaderEpoch": 0, "partitionEpoch": 0, "newIsrWithEpochs": [{"brokerId": 1}]}
    rows = [{**wanted, "partitionIndex": n} for n in (0, 7, 1, 1)]
    rows[2]["leaderEpoch"] = 5
    topic = {"topicName": "t", "partitions": [*rows, {**wanted, "partitionIndex": 2}]}
    body = {
        "clusterId": "a-test-cluster",
        "brokerId": 1,
        "brokerEpoch": case.brokers[1].epoch,
        "topics": [topic],
    }
    status, reply = case.cluster.ask("POST", "/v1/partitions/alter", body)
    assert status == 200
    found = [p["error"] and p["error"]["code"] for p in reply["topics"][0]["partitions"]]
    assert found == [
        None,
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_CONTROLLER",
        "INVALID_REQUEST",
        None,
    ]
    assert [case.cluster.partition("t", n).isr for n in range(3)] == [(1,), (1, 2, 3), (1,)]
    (batch,) = [
        b for b in case.cluster.batches() if b.header.provenance.operation == "AlterPartition"
    ]
    assert reply["offset"] == batch.header.end_offset


@pytest.mark.parametrize("row", rows("elect_leaders"))
def test_section_8_elect_leaders(row: dict[str, str]) -> None:
    case = Case()
    case.run(row.get("before", ""))
    assert case.elect(row["kind"]) == row["answer"]


def test_elections_of_unknown_partitions() -> None:
    case = Case()
    assert case.elect("PREFERRED", partition=1) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert case.elect("UNCLEAN", topic="gone") == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("row", rows("events"))
def test_section_5_events(row: dict[str, Any]) -> None:
    case = Case(elr=row.get("elr", False))
    for step in row["steps"].split(";"):
        if step.strip() == "pass 300":
            alive = [
                b for b in case.brokers.values() if not case.cluster.broker(b.broker_id).fenced
            ]
            keep_alive(case.cluster, alive, 301.0)
        else:
            case.run(step)
    assert case.state == row["state"]


@pytest.mark.parametrize("row", rows("elr"))
def test_section_9_elr(row: dict[str, str]) -> None:
    case = Case(elr=True)
    case.run(row["steps"])
    assert case.state == row["state"]
