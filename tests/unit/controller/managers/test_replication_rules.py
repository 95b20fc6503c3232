"""The rules of replication as tables: worked cases, AlterPartition, ElectLeaders, events.

Each row is named by its section of Kafka's rules: 5 (events), 6 (AlterPartition), 8 (ElectLeaders)
and 10 (worked cases). `steps.py` explains the words.
"""

import pytest

from tests.unit.controller.cluster import keep_alive
from tests.unit.controller.managers.steps import Case

F = "fence 1; fence 2; fence 3"
WORKED = [
    # steps, state without ELR, state with ELR
    (
        "a",
        "fence 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
    ),
    (
        "b",
        "fence 1; unfence 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
    ),
    (
        "c",
        "fence 1; unfence 1; alter 2: 1,2,3 le=1 pe=1",
        "leader 2, isr 1 2 3, elr -, last -, le 1, pe 2",
        "leader 2, isr 1 2 3, elr -, last -, le 1, pe 2",
    ),
    (
        "d",
        "fence 1; unfence 1; alter 2: 1,2,3 le=1 pe=1; prefer",
        "leader 1, isr 1 2 3, elr -, last -, le 2, pe 3",
        "leader 1, isr 1 2 3, elr -, last -, le 2, pe 3",
    ),
    (
        "e",
        "fence 1; fence 2",
        "leader 3, isr 3, elr -, last -, le 2, pe 2",
        "leader 3, isr 3, elr 2, last -, le 2, pe 2",
    ),
    (
        "f",
        F,
        "leader -1, isr 3, elr -, last -, le 3, pe 3",
        "leader -1, isr -, elr 2 3, last 3, le 3, pe 3",
    ),
    (
        "g",
        f"{F}; unfence 2",
        "leader -1, isr 3, elr -, last -, le 3, pe 3",
        "leader 2, isr 2, elr 3, last -, le 4, pe 4",
    ),
    (
        "h",
        f"{F}; unfence 3",
        "leader 3, isr 3, elr -, last -, le 4, pe 4",
        "leader 3, isr 3, elr 2, last -, le 4, pe 4",
    ),
    (
        "i",
        f"{F}; unclean; unfence 2",
        "leader 2, isr 2, elr -, last -, le 4, pe 4, recovering",
        "leader 2, isr 2, elr 3, last -, le 4, pe 4",
    ),
    (
        "j",
        "stop 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
    ),
    (
        "k",
        "reassign 4,2,3; alter 1: 1,2,3,4",
        "leader 4, isr 2 3 4, elr -, last -, le 1, pe 2",
        "leader 4, isr 2 3 4, elr -, last -, le 1, pe 2",
    ),
    (
        "l",
        "fence 1; alter 2: 2,3 le=1 pe=0",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
        "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
    ),
]


@pytest.mark.parametrize(
    ("steps", "elr", "state"),
    [
        pytest.param(steps, elr, state, id=f"10-{name}-{'elr' if elr else 'plain'}")
        for name, steps, *states in WORKED
        for elr, state in enumerate(states)
    ],
)
def test_section_10_worked_cases(steps: str, elr: int, state: str) -> None:
    case = Case(elr=bool(elr))
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


NOBODY = "A" * 22
RECOVERING = "change leader_recovery_state=1 isr=1"


@pytest.mark.parametrize(
    ("before", "alter", "answer"),
    [
        pytest.param("", "1: 1,2 epoch=1", "STALE_BROKER_EPOCH", id="6-1"),
        pytest.param("", f"1: 1,2 id={NOBODY}", "UNKNOWN_TOPIC_ID", id="6-2-id"),
        pytest.param("", "1: 1,2 topic=gone", "UNKNOWN_TOPIC_OR_PARTITION", id="6-2-name"),
        pytest.param("", "1: 1,2 partition=7", "UNKNOWN_TOPIC_OR_PARTITION", id="6-2-partition"),
        pytest.param("", "1: 1,2 le=1", "NOT_CONTROLLER", id="6-3-leader"),
        pytest.param("", "1: 1,2 pe=1", "NOT_CONTROLLER", id="6-3-partition"),
        pytest.param("fence 1; unfence 1", "1: 1,2 le=0", "FENCED_LEADER_EPOCH", id="6-4"),
        pytest.param("", "2: 1,2", "INVALID_REQUEST", id="6-5"),
        pytest.param("alter 1: 1,2", "1: 1,2,3 pe=0", "INVALID_UPDATE_VERSION", id="6-6"),
        pytest.param("", "1: 1,4", "INVALID_REQUEST", id="6-7-strangers"),
        pytest.param("", "1: 1,2,2", "INVALID_REQUEST", id="6-7-duplicates"),
        pytest.param("", "1: -", "INVALID_REQUEST", id="6-7-empty"),
        pytest.param("", "1: 2,3", "INVALID_REQUEST", id="6-8"),
        pytest.param(RECOVERING, "1: 1,2 state=1", "INVALID_REQUEST", id="6-9"),
        pytest.param("", "1: 1 state=1", "INVALID_REQUEST", id="6-10"),
        pytest.param("fence 2", "1: 1,2", "INELIGIBLE_REPLICA", id="6-11-fenced"),
        pytest.param("change leader=3; stop 3", "1: 1,3", "INELIGIBLE_REPLICA", id="6-11-stopping"),
        pytest.param("unregister 2", "1: 1,2", "INELIGIBLE_REPLICA", id="6-11-unregistered"),
        pytest.param("", "1: 1,2@1", "INELIGIBLE_REPLICA", id="6-11-epoch"),
        pytest.param("reassign 4,2,3", "1: 1,2,3,4", "NEW_LEADER_ELECTED", id="6-12"),
        pytest.param("", "1: 1,2", "leader 1, isr 1 2, le 0, pe 1", id="6-13-shrink"),
        pytest.param("alter 1: 1", "1: 1,3,2", "leader 1, isr 1 3 2, le 0, pe 2", id="6-13-expand"),
        pytest.param(
            RECOVERING, "1: 1 state=0", "leader 1, isr 1, le 0, pe 2", id="6-13-recovered"
        ),
        pytest.param("", "1: 1,2,3", "leader 1, isr 1 2 3, le 0, pe 0", id="6-13-as-it-is"),
        pytest.param("", "1: 1,2 topic=t", "leader 1, isr 1 2, le 0, pe 1", id="6-13-by-name"),
    ],
)
def test_section_6_alter_partition(before: str, alter: str, answer: str) -> None:
    case = Case()
    case.run(before)
    if alter.startswith("1: 1,3") and "stop 3" in before:
        case.run("change leader=1 isr=1,2")
    kept = case.partition
    assert case.run(f"alter {alter}") == answer
    if answer.isupper() and answer != "NEW_LEADER_ELECTED":
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


@pytest.mark.parametrize(
    ("before", "kind", "answer"),
    [
        pytest.param("", "PREFERRED", "ELECTION_NOT_NEEDED", id="8-1"),
        pytest.param("", "UNCLEAN", "ELECTION_NOT_NEEDED", id="8-2"),
        pytest.param("change leader=2", "PREFERRED", "leader 1", id="8-3"),
        pytest.param("fence 1", "PREFERRED", "PREFERRED_LEADER_NOT_AVAILABLE", id="8-4"),
        pytest.param(F, "UNCLEAN", "ELIGIBLE_LEADERS_NOT_AVAILABLE", id="8-5"),
        pytest.param(f"{F}; unfence 2", "UNCLEAN", "leader 2", id="8-6"),
        # The leader is lost, and some other replica is valid: that is a success.
        pytest.param("fence 1; change leader=-1", "PREFERRED", "leader 2", id="8-7"),
        # A preferred election never turns unclean, not even where the topic allows it.
        pytest.param(
            "unclean; fence 3; change isr=3 leader=-1",
            "PREFERRED",
            "PREFERRED_LEADER_NOT_AVAILABLE",
            id="8-8",
        ),
    ],
)
def test_section_8_elect_leaders(before: str, kind: str, answer: str) -> None:
    case = Case()
    case.run(before)
    assert case.elect(kind) == answer


def test_elections_of_unknown_partitions() -> None:
    case = Case()
    assert case.elect("PREFERRED", partition=1) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert case.elect("UNCLEAN", topic="gone") == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("steps", "elr", "state"),
    [
        pytest.param(
            "fence 1", False, "leader 2, isr 2 3, elr -, last -, le 1, pe 1", id="5-1-fence"
        ),
        pytest.param(
            "stop 3; stop 2; stop 1",
            False,
            "leader -1, isr 1, elr -, last -, le 1, pe 3",
            id="5-2-controlled-shutdown",
        ),
        pytest.param(
            f"{F}; unfence 3",
            False,
            "leader 3, isr 3, elr -, last -, le 4, pe 4",
            id="5-3-unfence",
        ),
        pytest.param(
            "unregister 3",
            False,
            "leader 1, isr 1 2, elr -, last -, le 0, pe 1",
            id="5-4-unregister-leaves-isr",
        ),
        pytest.param(
            "fence 2; fence 3; unregister 3",
            True,
            "leader 1, isr 1, elr -, last -, le 0, pe 3",
            id="5-4-unregister-leaves-elr",
        ),
        pytest.param(
            "fence 2; fence 3; restart 3",
            True,
            "leader 1, isr 1, elr -, last -, le 0, pe 3",
            id="5-5-new-incarnation-leaves-elr",
        ),
        pytest.param(
            "fence 2; fence 3; restart 3 clean",
            True,
            "leader 1, isr 1, elr 3, last -, le 0, pe 2",
            id="5-5-clean-restart-stays-eligible",
        ),
        pytest.param(
            "offline 1",
            False,
            "leader 2, isr 2 3, elr -, last -, le 1, pe 1",
            id="5-6-directory-offline",
        ),
        pytest.param(
            "change leader=2; pass 300",
            False,
            "leader 1, isr 1 2 3, elr -, last -, le 2, pe 2",
            id="5-7-preferred-balance",
        ),
        pytest.param(
            "unclean; fence 3; change isr=3 leader=-1; pass 300",
            False,
            "leader 1, isr 1, elr -, last -, le 2, pe 3, recovering",
            id="5-8-unclean-scan",
        ),
        pytest.param(
            f"{F}; unfence 2; unclean",
            False,
            "leader 2, isr 2, elr -, last -, le 4, pe 4, recovering",
            id="5-9-unclean-at-once",
        ),
        pytest.param(
            "fence 1; fence 2; unfence 1; unclean; fence 3",
            False,
            "leader 1, isr 1, elr -, last -, le 3, pe 3, recovering",
            id="5-9-unclean-inline",
        ),
        pytest.param(
            "fence 2; fence 3; configure min.insync.replicas=1",
            True,
            "leader 1, isr 1, elr -, last -, le 0, pe 3",
            id="5-10-min-isr-changes",
        ),
    ],
)
def test_section_5_events(steps: str, elr: bool, state: str) -> None:
    case = Case(elr=elr)
    for step in steps.split(";"):
        if step.strip() == "pass 300":
            alive = [
                b for b in case.brokers.values() if not case.cluster.broker(b.broker_id).fenced
            ]
            keep_alive(case.cluster, alive, 301.0)
        else:
            case.run(step)
    assert case.state == state
