"""Elections: who may stand, whose vote counts, and when a leader may not be replaced."""

import pytest

from quorum.wire.frames import FrameKind, encode
from runtime.links.interface import LinkEnd
from tests.unit.quorum.bench import DIRECTORIES, Bench


def test_a_silent_leader_is_doubted_after_one_to_two_timeouts_and_not_before() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.taken()
    bench.settle(0.49)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []
    bench.settle(0.6)
    assert {number for number, _ in bench.taken(FrameKind.PREVOTE_REQUEST)} == {2, 3}


def test_asking_moves_nobodys_term() -> None:
    bench = Bench()
    for number in bench.others:
        bench.unlink(number)
    bench.settle(20)
    assert bench.term == 0
    assert bench.role == "follower"


def test_a_refused_prevote_moves_no_term_either() -> None:
    bench = Bench()
    for _ in range(50):
        bench.settle(0.2)
        for number, fields in bench.taken(FrameKind.PREVOTE_REQUEST):
            bench.say(number, FrameKind.PREVOTE, 0, fields[0], False)
    assert bench.term == 0


def test_a_majority_of_prevotes_lets_it_stand_and_the_request_waits_for_its_own_vote() -> None:
    bench = Bench()
    bench.synced()
    bench.stick_disk()
    while not (requests := bench.taken(FrameKind.PREVOTE_REQUEST)):
        bench.settle(0.05)
    bench.say(3, FrameKind.PREVOTE, 0, requests[0][1][0], True)
    assert bench.role == "candidate"
    assert bench.term == 1
    assert bench.taken(FrameKind.VOTE_REQUEST) == []
    bench.free_disk()
    assert bench.taken(FrameKind.VOTE_REQUEST) == [(2, (1, 0, False)), (3, (1, 0, False))]


@pytest.mark.parametrize("old", ["round", "term"])
def test_prevotes_of_another_round_or_term_do_not_count(old: str) -> None:
    bench = Bench()
    while not (requests := bench.taken(FrameKind.PREVOTE_REQUEST)):
        bench.settle(0.05)
    number = requests[0][1][0]
    if old == "round":
        bench.say(3, FrameKind.PREVOTE, 0, number - 1, True)
    else:
        bench.say(2, FrameKind.PROBE, 4, 1)
        bench.say(3, FrameKind.PREVOTE, 0, number, True)
    assert bench.role == "follower"


def test_one_voters_vote_delivered_twice_counts_once() -> None:
    bench = Bench(voters=5)
    while not (requests := bench.taken(FrameKind.PREVOTE_REQUEST)):
        bench.settle(0.05)
    for number in (2, 3):
        bench.say(number, FrameKind.PREVOTE, 0, requests[0][1][0], True)
    assert bench.role == "candidate"
    for _ in range(4):
        bench.say(2, FrameKind.VOTE, 1)
    assert bench.role == "candidate"
    bench.say(3, FrameKind.VOTE, 1)
    assert bench.role == "leader"


def test_a_vote_of_an_older_term_counts_for_nothing() -> None:
    bench = Bench()
    bench.win()
    bench.say(2, FrameKind.PROBE, 9, 1)
    assert bench.role == "follower"
    while not (requests := bench.taken(FrameKind.PREVOTE_REQUEST)):
        bench.settle(0.05)
    bench.say(3, FrameKind.PREVOTE, 9, requests[0][1][0], True)
    assert bench.term == 10
    bench.say(2, FrameKind.VOTE, 1)
    bench.say(3, FrameKind.VOTE, 9)
    assert bench.role == "candidate"


def test_votes_and_prevotes_of_an_observer_do_not_count() -> None:
    bench = Bench()
    bench.unlink(3)
    bench.link(3, directory_id=DIRECTORIES[9])
    requests: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(20):
        bench.settle(0.05)
        requests += bench.taken(FrameKind.PREVOTE_REQUEST)
    assert {number for number, _ in requests} == {2}
    for _, fields in requests:
        frame = encode(FrameKind.PREVOTE, 0, DIRECTORIES[9], fields[0], True)
        bench.call(bench.node.on_frame, 3, frame)
    assert bench.role == "follower"


def test_a_vote_is_sent_once_it_is_durable_and_to_one_candidate_a_term() -> None:
    bench = Bench()
    bench.synced()
    bench.stick_disk()
    bench.say(2, FrameKind.VOTE_REQUEST, 1, 1, 0, False)
    assert bench.taken(FrameKind.VOTE) == []
    bench.free_disk()
    assert bench.taken(FrameKind.VOTE) == [(2, ())]
    bench.say(3, FrameKind.VOTE_REQUEST, 1, 1, 0, False)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []


def test_a_vote_survives_a_loss_of_power() -> None:
    bench = Bench()
    bench.say(2, FrameKind.VOTE_REQUEST, 1, 1, 0, False)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == [(2, ())]
    bench.host.lose_power()
    bench.boot()
    bench.link(3)
    bench.say(3, FrameKind.VOTE_REQUEST, 1, 1, 0, False)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []


def test_nobody_is_voted_for_while_a_leader_is_heard() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.taken()
    bench.say(3, FrameKind.PREVOTE_REQUEST, 1, 5, 9, 1)
    assert bench.taken() == [(3, (5, False))]
    bench.say(3, FrameKind.VOTE_REQUEST, 2, 9, 1, False)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []
    assert bench.term == 1


def test_a_transfer_by_the_leader_is_the_exception() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.taken()
    bench.say(3, FrameKind.VOTE_REQUEST, 2, 9, 1, True)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == [(3, ())]


def test_a_shorter_log_gets_neither_prevote_nor_vote() -> None:
    bench = Bench()
    bench.append(2, 1, 2, 1, 0, 1)
    bench.settle(0.55)
    bench.taken()
    bench.say(3, FrameKind.PREVOTE_REQUEST, 1, 5, 1, 0)
    assert (3, (5, False)) in bench.taken(FrameKind.PREVOTE)
    bench.say(3, FrameKind.VOTE_REQUEST, 2, 1, 0, False)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []


def test_timeout_now_of_the_leader_stands_at_once_and_of_nobody_else() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.say(3, FrameKind.TIMEOUT_NOW, 1)
    assert bench.role == "follower"
    bench.taken()
    bench.say(2, FrameKind.TIMEOUT_NOW, 1)
    assert bench.role == "candidate"
    bench.synced()
    assert (3, (1, 0, True)) in bench.taken(FrameKind.VOTE_REQUEST)


def test_a_leader_that_was_reset_and_refuses_is_replaced_at_once() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.taken()
    bench.unlink(2, LinkEnd.RESET)
    assert bench.node.leader_and_epoch().leader == 2
    bench.unlink(2, LinkEnd.REFUSED)
    assert bench.node.leader_and_epoch().leader is None
    bench.settle(0.051)
    assert bench.taken(FrameKind.PREVOTE_REQUEST)


def test_after_a_crash_an_answer_from_far_away_counts_although_we_have_asked_again() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.unlink(2, LinkEnd.RESET, LinkEnd.REFUSED)
    bench.taken()
    bench.settle(0.051)
    requests = bench.taken(FrameKind.PREVOTE_REQUEST)
    bench.settle(0.15)
    assert bench.taken(FrameKind.PREVOTE_REQUEST)
    bench.say(3, FrameKind.PREVOTE, 1, requests[0][1][0], True)
    assert bench.role == "candidate"


def test_after_the_doubt_an_answer_to_an_earlier_request_does_not_count() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.unlink(2, LinkEnd.RESET, LinkEnd.REFUSED)
    bench.taken()
    bench.settle(0.051)
    requests = bench.taken(FrameKind.PREVOTE_REQUEST)
    bench.settle(1.2)
    bench.say(3, FrameKind.PREVOTE, 1, requests[0][1][0], True)
    assert bench.role == "follower"


@pytest.mark.parametrize(
    "ends",
    [
        (LinkEnd.RESET,),
        (LinkEnd.REFUSED,),
        (LinkEnd.RESET, LinkEnd.UNREACHABLE),
        (LinkEnd.UNREACHABLE, LinkEnd.REFUSED),
        (LinkEnd.CLOSED,),
    ],
)
def test_a_leader_of_which_less_is_known_is_waited_for(ends: tuple[LinkEnd, ...]) -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.unlink(2, *ends)
    bench.taken()
    bench.settle(0.4)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_a_leader_that_came_back_after_the_reset_is_not_doubted() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.unlink(2, LinkEnd.RESET)
    bench.link(2)
    bench.unlink(2, LinkEnd.REFUSED)
    bench.settle(0.3)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_another_followers_end_does_not_matter() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.unlink(3, LinkEnd.RESET, LinkEnd.REFUSED)
    bench.settle(0.3)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_a_full_or_stuck_disk_does_not_stand() -> None:
    bench = Bench()
    bench.host.faults.capacity_bytes = 10_000
    bench.settle(5)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == [] or bench.term == 0
    note = bench.node.status().note
    assert "the disk is almost full: 0 MiB are free, 64 MiB are kept in reserve" in note
