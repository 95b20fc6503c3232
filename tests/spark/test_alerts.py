"""Each alert fires where it must, once, and not where it must not."""

import itertools

from audit.spark.alerts import (
    FLAPPING,
    LEADERLESS,
    PRIVILEGED,
    AlertRules,
    AlertsCarried,
    Concerning,
    FencedBroker,
    LeaderChange,
    PrivilegedChange,
    judge,
)

MINUTE = 60_000
RULES = AlertRules(fencings=3, fencing_window_ms=10 * MINUTE, leaderless_ms=MINUTE)


def told(*batches):
    """Judge micro-batches, each (leaders, fencings, changes, horizon); return the alerts."""
    carried, found = AlertsCarried(), []
    for leaders, fencings, changes, horizon_ms in batches:
        concerned = Concerning(changes, fencings, leaders)
        carried, alerts = judge(carried, concerned, horizon_ms, RULES)
        found += alerts
    return [(alert.kind, alert.subject, alert.offset, alert.time_ms) for alert in found]


def leader(offset, ms, leader, kind="changed", partition=0):
    return LeaderChange(offset, "T", partition, "orders", ms, kind, leader)


def fenced(offset, ms, broker=3):
    return FencedBroker(offset, broker, ms)


def test_a_privileged_change_is_told_once():
    row = PrivilegedChange(
        7, 500, "acl", "acl:x", "User:eve", "", "token", "10.0.0.7", "", "CREATE_ACLS"
    )
    found = told(([], [], [row], 500), ([], [], [], 900))
    assert found == [(PRIVILEGED, "acl:x", 7, 500)]
    _, (alert,) = judge(AlertsCarried(), Concerning([row], [], []), 500, RULES)
    said = "User:eve (token from 10.0.0.7) changed acl:x (acl) by CREATE_ACLS"
    assert alert.sentence == said
    row = row._replace(principal="User:ANONYMOUS", auth_method="none", acted_as="Broker:7")
    _, (alert,) = judge(AlertsCarried(), Concerning([row], [], []), 500, RULES)
    assert alert.sentence.startswith("User:ANONYMOUS as Broker:7 (none from 10.0.0.7) changed")


def test_an_ordinary_change_is_not_told():
    assert told(([leader(1, 0, 4, "created")], [fenced(2, 0)], [], 99 * MINUTE)) == []


def test_a_broker_that_is_fenced_again_and_again():
    rows = [fenced(n, n * MINUTE) for n in range(1, 6)]
    wanted = [(FLAPPING, "broker:3", 3, 3 * MINUTE)]
    assert told(([], rows, [], 5 * MINUTE)) == wanted
    one_by_one = [([], [row], [], row[2]) for row in rows]
    assert told(*one_by_one) == wanted


def test_a_broker_that_came_to_rest_and_flaps_again_is_told_again():
    rows = [fenced(n, n * MINUTE) for n in (1, 2, 3, 31, 32, 33)]
    assert [offset for _, _, offset, _ in told(([], rows, [], 33 * MINUTE))] == [3, 33]


def test_fencings_that_are_far_apart_or_of_others_are_no_flapping():
    apart = [fenced(n, n * 6 * MINUTE) for n in range(5)]
    others = [fenced(10 + n, 50 * MINUTE + n, broker=10 + n) for n in range(5)]
    assert told(([], [*apart, *others], [], 90 * MINUTE)) == []


def test_a_leader_that_is_lost_and_not_replaced():
    lost = leader(5, 1_000, -1)
    wanted = [(LEADERLESS, "partition:orders-0", 5, 1_000 + MINUTE)]
    assert (
        told(([lost], [], [], 1_000), ([], [], [], 2 * MINUTE), ([], [], [], 9 * MINUTE)) == wanted
    )
    late = leader(6, 1_000 + MINUTE, 2)
    assert told(([lost, late], [], [], 2 * MINUTE)) == wanted
    assert told(([lost], [], [], 1_000), ([late], [], [], 2 * MINUTE)) == wanted
    assert told(([lost], [], [], 2 * MINUTE), ([leader(6, 3 * MINUTE, 2)], [], [], 9 * MINUTE)) == (
        wanted
    )


def test_a_leader_that_is_replaced_in_time_or_removed_is_not_told():
    lost = leader(5, 1_000, -1)
    for end in (leader(6, MINUTE, 2), leader(6, MINUTE, None, "removed")):
        assert told(([lost, end], [], [], 9 * MINUTE)) == []
        assert told(([lost], [], [], 1_000), ([end], [], [], 9 * MINUTE)) == []
    assert told(([lost], [], [], 1_000 + MINUTE - 1)) == []


def test_alerts_are_the_same_however_the_log_is_cut():
    """Two losses of one partition, one of another: cut at each place, or not at all."""
    rows = [
        leader(1, 0, -1),
        leader(2, 2 * MINUTE, 4),
        leader(3, 3 * MINUTE, -1, partition=1),
        leader(4, 3 * MINUTE + 1, -1),
        leader(5, 3 * MINUTE + 2, None),
        leader(6, 5 * MINUTE, 1),
    ]
    whole = told((rows, [], [], 9 * MINUTE))
    assert [offset for _, _, offset, _ in whole] == [1, 3, 4]
    for first, second in itertools.combinations(range(1, len(rows)), 2):
        pieces = (rows[:first], rows[first:second], rows[second:])
        batches = [(piece, [], [], piece[-1][4]) for piece in pieces]
        found = told(*batches, ([], [], [], 9 * MINUTE))
        assert sorted(found) == sorted(whole), (first, second)
