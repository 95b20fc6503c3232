"""A leader: what it counts, what it sends, what it delivers, and how it stops leading."""

from typing import Any

import pytest

from quorum.api import NoRoomError, NotLeaderError, QuorumStoppedError, TransferRefusedError
from quorum.config import ENTRY_BYTES_MAX
from quorum.wire.codec import loads
from quorum.wire.frames import FrameKind, encode
from tests.unit.quorum.bench import DIRECTORIES, Bench


def leader(voters: int = 3, **settings: Any) -> Bench:
    bench = Bench(voters, **settings)
    bench.lead()
    return bench


def appended(bench: Bench) -> list[tuple[int, list[int]]]:
    """Who was sent which entries."""
    return [(n, [e[1] for e in f[3]]) for n, f in bench.taken(FrameKind.APPEND) if f[3]]


# Proposing.


def test_a_proposal_is_handed_up_once_a_majority_has_it_durably() -> None:
    bench = leader()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    assert bench.heard.payloads() == []
    bench.ack(2)
    assert bench.heard.payloads() == [b"x"]


def test_followers_write_while_the_leader_does() -> None:
    bench = leader()
    bench.stick_disk()
    bench.call(bench.node.propose, b"x")
    assert appended(bench) == [(2, [3]), (3, [3])]


def test_what_waits_during_a_sync_becomes_one_entry() -> None:
    bench = leader()
    bench.stick_disk()
    for number in range(5):
        bench.call(bench.node.propose, bytes([number]))
    assert appended(bench) == [(2, [3]), (3, [3])]
    bench.free_disk()
    frames = [f for n, f in bench.taken(FrameKind.APPEND) if f[3] and n == 2]
    [(command, index, _)] = frames[0][3]
    assert index == 4
    assert loads(command[1:]) == (0, ((b"\1", b"\2", b"\3", b"\4"),))


def test_proposals_made_at_one_moment_share_an_entry() -> None:
    bench = leader()

    def burst() -> None:
        for number in range(10):
            bench.node.propose(bytes([number]))

    bench.call(burst)
    assert appended(bench) == [(2, [3]), (3, [3])]
    bench.ack(2)
    bench.synced()
    assert bench.heard.payloads() == [bytes([number]) for number in range(10)]


def test_an_entry_is_at_most_as_large_as_its_bound() -> None:
    bench = leader()

    def burst() -> None:
        for _ in range(9):
            bench.node.propose(bytes(ENTRY_BYTES_MAX // 4))

    bench.call(burst)
    for _ in range(4):
        bench.synced()
        bench.ack(2)
    sizes = [len(entry[0]) for entry in bench.node.context.journal[2:]]
    assert len(sizes) == 3
    assert max(sizes) <= ENTRY_BYTES_MAX
    with pytest.raises(ValueError, match=r"1\.25 MiB"):
        bench.node.propose(bytes(ENTRY_BYTES_MAX))


def test_who_does_not_lead_refuses_and_says_who_does() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    with pytest.raises(NotLeaderError) as refused:
        bench.node.propose(b"x")
    assert (refused.value.leader, refused.value.epoch) == (2, 1)


def test_a_new_leader_refuses_until_its_noop_is_committed() -> None:
    bench = Bench()
    bench.win()
    with pytest.raises(NotLeaderError):
        bench.node.propose(b"x")
    bench.ack(3)
    bench.call(bench.node.propose, b"x")


def test_a_disk_without_room_refuses_proposals_and_takes_them_again_when_it_has() -> None:
    bench = Bench(1)
    bench.settle(1.0)
    bench.host.faults.capacity_bytes = 1_000_000
    bench.settle(1.1)
    with pytest.raises(NoRoomError, match="almost full"):
        bench.node.propose(b"x")
    bench.host.faults.heal()
    bench.settle(1.1)
    bench.call(bench.node.propose, b"x")
    bench.synced()
    assert bench.heard.payloads() == [b"x"]


def test_a_stopped_node_says_so() -> None:
    bench = leader()
    bench.call(bench.node.stop)
    with pytest.raises(QuorumStoppedError):
        bench.node.propose(b"x")


# Counting.


def test_an_answer_of_another_term_moves_nothing() -> None:
    bench = leader()
    term = bench.term
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.say(2, FrameKind.ACK, term - 1, 3, 0, True)
    assert bench.commit == 2
    bench.say(2, FrameKind.ACK, term, 3, 0, True)
    assert bench.commit == 3


def test_an_answer_beyond_our_log_moves_nothing() -> None:
    bench = leader()
    bench.say(2, FrameKind.ACK, bench.term, 9, 0, True)
    bench.say(3, FrameKind.ACK, bench.term, 9, 0, True)
    bench.call(bench.node.propose, b"x")
    bench.synced()
    assert bench.commit == 2
    assert bench.node.context.counters["ack_beyond_our_log"] == 2


def test_answers_count_no_further_than_our_own_durable_copy() -> None:
    bench = leader()
    bench.stick_disk()
    bench.call(bench.node.propose, b"x")
    bench.ack(2)
    bench.ack(3)
    assert bench.commit == 2
    bench.free_disk()
    assert bench.commit == 3
    assert bench.heard.payloads() == [b"x"]


def test_a_single_voter_hands_up_what_is_durable_and_no_more() -> None:
    bench = Bench(1)
    bench.settle(1.0)
    assert bench.role == "leader"
    bench.stick_disk()
    bench.call(bench.node.propose, b"x")
    bench.settle(0.1)
    assert bench.heard.payloads() == []
    bench.free_disk()
    assert bench.heard.payloads() == [b"x"]


def test_an_observer_is_sent_entries_but_not_counted() -> None:
    bench = Bench()
    bench.lead()
    bench.unlink(3)
    bench.link(3, directory_id=DIRECTORIES[9])
    bench.call(bench.node.propose, b"x")
    bench.synced()
    assert (3, [3]) in appended(bench)
    frame = encode(FrameKind.ACK, bench.term, DIRECTORIES[9], 3, 0, True)
    bench.call(bench.node.on_frame, 3, frame)
    assert bench.commit == 2
    state = next(r for r in bench.node.status().replicas if r.node_id == 3)
    assert (state.match_index, state.is_voter) == (3, False)


def test_a_damaged_voter_is_not_counted_either() -> None:
    bench = leader()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.say(2, FrameKind.ACK, bench.term, 3, 0, False)
    assert bench.commit == 2
    bench.ack(3)
    assert bench.commit == 3


def test_what_is_in_flight_is_not_sent_again_at_every_answer() -> None:
    bench = leader()
    for number in range(3):
        bench.call(bench.node.propose, bytes([number]))
        bench.synced()
    assert [entries for n, entries in appended(bench) if n == 2] == [[3], [4], [5]]
    bench.ack(2, 3)
    bench.settle(0.3)
    assert [entries for n, entries in appended(bench) if n == 2] == []


def test_a_follower_that_asks_is_sent_again_from_there() -> None:
    bench = leader()
    for number in range(3):
        bench.call(bench.node.propose, bytes([number]))
        bench.synced()
    bench.taken()
    bench.say(2, FrameKind.ACK, bench.term, -1, 4, True)
    bench.settle(0.2)
    assert (2, [4, 5]) in appended(bench)


def test_a_stale_request_to_go_back_below_what_is_acknowledged_is_ignored() -> None:
    bench = leader()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.ack(2)
    bench.taken()
    bench.say(2, FrameKind.ACK, bench.term, -1, 2, True)
    bench.settle(0.3)
    assert [entries for n, entries in appended(bench) if n == 2] == []


def test_a_follower_that_insists_on_lacking_what_it_acknowledged_is_sent_it_again() -> None:
    """It was put back to an earlier time. One answer may be late, but not for so long."""
    bench = leader()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.ack(2)
    bench.taken()
    for _ in range(12):
        bench.say(2, FrameKind.ACK, bench.term, -1, 2, True)
        bench.settle(0.05)
    assert (2, [2, 3]) in appended(bench)


def test_who_lacked_once_and_matches_since_does_not_insist() -> None:
    bench = leader()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.ack(2)
    bench.taken()
    for _ in range(3):
        bench.say(2, FrameKind.ACK, bench.term, -1, 2, True)
        bench.settle(0.3)
        bench.ack(2)
    assert [entries for n, entries in appended(bench) if n == 2] == []


def test_a_full_window_waits_for_answers_and_then_goes_on() -> None:
    bench = leader(window_bytes=10_000)
    for _ in range(6):
        bench.call(bench.node.propose, bytes(4_000))
        bench.synced()
        bench.ack(3)
    sent = [entries for n, entries in appended(bench) if n == 2]
    assert [3] in sent
    assert sent[-1][-1] < 7
    for _ in range(8):
        last = max(index for entries in sent for index in entries)
        bench.ack(2, last)
        bench.settle(0.2)
        sent += [entries for n, entries in appended(bench) if n == 2]
    assert sorted({index for entries in sent for index in entries}) == [3, 4, 5, 6, 7, 8]


def test_a_full_queue_of_the_link_loses_nothing() -> None:
    bench = leader()
    bench.links.full.add(2)
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.links.full.clear()
    for _ in range(4):
        bench.settle(0.15)
        for number, fields in bench.taken(FrameKind.APPEND):
            if number == 2 and fields[3]:
                return
            if number == 2:
                bench.say(2, FrameKind.ACK, bench.term, -1, 3, True)
            bench.ack(3)
    raise AssertionError("the entry was never sent again")


# Ceasing to lead.


def test_a_leader_that_hears_no_majority_steps_down_within_a_timeout() -> None:
    bench = leader()
    bench.settle(0.44)
    assert bench.role == "leader"
    bench.settle(0.13)
    assert bench.role == "follower"
    assert bench.heard.kinds()[-2:] == ["lost", "leader"]


def test_a_leader_that_stood_still_reads_its_answers_before_it_doubts() -> None:
    bench = leader()
    bench.process.pause()
    bench.settle(3)
    bench.process.resume()
    bench.settle()
    assert bench.role == "leader"
    bench.ack(2)
    bench.settle(0.3)
    assert bench.role == "leader"
    bench.settle(0.4)
    assert bench.role == "follower", "silence while it runs counts in full"


def test_a_higher_term_in_any_answer_ends_leadership_and_drops_what_waited() -> None:
    bench = leader()
    bench.stick_disk()
    for _ in range(3):
        bench.call(bench.node.propose, b"x")
    bench.say(3, FrameKind.ACK, bench.term + 5, -1, 0, True)
    assert bench.role == "follower"
    bench.free_disk()
    assert "lost" in bench.heard.kinds()
    assert bench.node.context.view.last == 3


def test_a_vote_request_does_not_unseat_a_leader_that_is_followed() -> None:
    bench = leader()
    term = bench.term
    bench.say(3, FrameKind.VOTE_REQUEST, term + 1, 9, term, False)
    assert (bench.role, bench.term) == ("leader", term)


def test_resigning_pauses_proposals_and_tells_the_most_caught_up_voter() -> None:
    bench = leader()
    bench.call(bench.node.propose, b"before")
    bench.synced()
    bench.ack(3)
    bench.taken()
    bench.call(bench.node.resign, "a test")
    assert bench.taken(FrameKind.TIMEOUT_NOW) == [(3, ())]
    bench.call(bench.node.propose, b"meanwhile")
    assert bench.node.context.view.last == 3
    bench.say(3, FrameKind.VOTE_REQUEST, bench.term + 1, 3, bench.term, True)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == [(3, ())]
    assert bench.role == "follower"


def test_resigning_with_nobody_to_take_over_stops_leading_all_the_same() -> None:
    bench = leader()
    for number in bench.others:
        bench.unlink(number)
    term = bench.term
    bench.call(bench.node.resign, "a test")
    assert (bench.role, bench.term) == ("follower", term + 1)


def test_a_successor_that_does_not_take_over_is_not_waited_for_longer_than_a_timeout() -> None:
    bench = leader()
    bench.call(bench.node.resign, "a test")
    for _ in range(12):
        bench.settle(0.05)
        bench.ack(2) if bench.role == "leader" else None
    assert bench.role == "follower"


def test_a_single_voter_that_resigns_leads_again_in_a_new_epoch() -> None:
    bench = Bench(1)
    bench.settle(1.0)
    term = bench.term
    bench.call(bench.node.resign, "it saw its own batch skipped")
    bench.settle(0.3)
    assert bench.role == "leader"
    assert bench.term > term
    assert bench.heard.kinds().count("leading") == 2


def test_a_leader_that_gave_up_a_moment_ago_tells_nobody_to_stand() -> None:
    bench = leader()
    told = []
    for _ in range(3):
        bench.call(bench.node.resign, "no cluster key")
        told.append(len(bench.taken(FrameKind.TIMEOUT_NOW)))
        bench.say(3, FrameKind.VOTE_REQUEST, bench.term + 1, 9, bench.term, True)
        bench.synced()
        assert bench.role == "follower"
        bench.lead()
    assert told == [1, 0, 0]
    bench.settle(0.0)
    for _ in range(110):
        bench.settle(0.05)
        for number in bench.others:
            bench.ack(number)
    bench.call(bench.node.resign, "a moment is over")
    assert len(bench.taken(FrameKind.TIMEOUT_NOW)) == 1


def test_a_single_voter_that_resigns_again_and_again_uses_few_epochs() -> None:
    bench = Bench(1)
    bench.settle(1.0)
    term = bench.term
    for _ in range(200):
        bench.settle(0.05)
        if bench.role == "leader":
            bench.call(bench.node.resign, "no cluster key")
    assert bench.term - term < 60


def test_a_leader_whose_disk_is_stuck_hands_over() -> None:
    bench = leader()
    bench.stick_disk()
    bench.call(bench.node.propose, b"x")
    for _ in range(40):
        bench.settle(0.05)
        if bench.taken(FrameKind.TIMEOUT_NOW):
            return
        if bench.role == "leader":
            bench.ack(2)
    raise AssertionError("it went on leading")


def test_commands_are_never_forwarded() -> None:
    bench = leader()
    bench.stick_disk()
    core = bench.node.context.core
    assert core is not None
    bench.say(3, FrameKind.APPEND, bench.term + 1, 2, 2, bench.term, [])
    core.append([b"x"])
    bench.call(core.tick)
    assert bench.node.context.counters == {"forwarding_refused": 1}


# Reads.


def test_a_read_waits_for_a_majority_that_answers_after_the_call() -> None:
    bench = leader()
    ready: list[bool] = []
    bench.call(bench.node.read_index, ready.append)
    assert ready == []
    probes = bench.taken(FrameKind.PROBE)
    assert {number for number, _ in probes} == {2, 3}
    bench.say(2, FrameKind.PROBE_ANSWER, bench.term, probes[0][1][0], 2, True)
    assert ready == [True]


@pytest.mark.parametrize("wrong", ["round", "term", "damaged"])
def test_answers_that_prove_nothing_do_not_count(wrong: str) -> None:
    bench = leader()
    ready: list[bool] = []
    bench.call(bench.node.read_index, ready.append)
    number = bench.taken(FrameKind.PROBE)[0][1][0]
    number -= wrong == "round"
    term = bench.term - (wrong == "term")
    for _ in range(3):
        bench.say(2, FrameKind.PROBE_ANSWER, term, number, 2, wrong != "damaged")
    assert ready == []


def test_reads_that_come_during_a_round_share_the_next() -> None:
    bench = leader()
    ready: list[str] = []
    bench.call(bench.node.read_index, lambda _: ready.append("first"))
    first = bench.taken(FrameKind.PROBE)[0][1][0]
    for _ in range(10):
        bench.call(bench.node.read_index, lambda _: ready.append("later"))
    assert bench.taken(FrameKind.PROBE) == []
    bench.say(2, FrameKind.PROBE_ANSWER, bench.term, first, 2, True)
    assert ready == ["first"]
    [(_, (second,)), _] = bench.taken(FrameKind.PROBE)
    bench.say(3, FrameKind.PROBE_ANSWER, bench.term, second, 2, True)
    assert ready == ["first"] + ["later"] * 10


def test_reads_fail_when_leadership_is_lost_and_where_it_never_was() -> None:
    bench = leader()
    ready: list[bool] = []
    bench.call(bench.node.read_index, ready.append)
    bench.say(2, FrameKind.ACK, bench.term + 1, -1, 0, True)
    assert ready == [False]
    bench.call(bench.node.read_index, ready.append)
    assert ready == [False, False]


def test_a_node_answers_a_probe_of_its_term_and_a_wiped_one_never() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.synced()
    bench.taken()
    bench.say(2, FrameKind.PROBE, 1, 77)
    assert bench.taken(FrameKind.PROBE_ANSWER) == [(2, (77, 1, True))]


# To a named voter.


def test_a_named_voter_is_told_to_stand_once_it_holds_everything() -> None:
    bench = Bench(3)
    term = bench.lead()
    bench.call(bench.node.propose, b"before")
    bench.synced()
    bench.ack(2)
    bench.taken()
    bench.call(bench.node.hand_over, 3, "a test")
    assert bench.taken(FrameKind.TIMEOUT_NOW) == [], "node 2 holds all, and was not named"
    bench.ack(3)
    assert [number for number, _ in bench.taken(FrameKind.TIMEOUT_NOW)] == [3]
    assert bench.role == "leader"
    assert bench.term == term


def test_a_leader_whose_named_successor_does_not_take_over_goes_on() -> None:
    bench = Bench(3)
    term = bench.lead()
    bench.call(bench.node.hand_over, 3, "a test")
    bench.call(bench.node.propose, b"waits")
    for _ in range(8):
        bench.settle(0.1)
        for number in bench.others:
            bench.ack(number)
    assert (bench.role, bench.term) == ("leader", term)
    assert b"waits" in bench.heard.payloads()


def test_a_reason_not_to_lead_ends_a_transfer_to_a_named_voter() -> None:
    bench = Bench(3)
    bench.lead()
    bench.call(bench.node.hand_over, 3, "a test")
    bench.call(bench.node.resign, "the disk is broken")
    bench.settle(1.0)
    assert bench.role != "leader"


def test_whom_the_leadership_is_not_handed_to() -> None:
    bench = Bench(3)
    with pytest.raises(NotLeaderError):
        bench.node.hand_over(2, "a test")
    bench.lead()
    bench.call(bench.node.hand_over, 1, "it leads")
    assert not bench.node.guard.transfer.running
    with pytest.raises(TransferRefusedError, match=r"no voter; voters are \[1, 2, 3\]") as unknown:
        bench.node.hand_over(9, "a test")
    assert not unknown.value.later
    bench.unlink(3)
    with pytest.raises(TransferRefusedError, match="node 3 is not linked") as gone:
        bench.node.hand_over(3, "a test")
    assert gone.value.later
    bench.call(bench.node.hand_over, 2, "a test")
    with pytest.raises(TransferRefusedError, match="being handed over"):
        bench.node.hand_over(2, "a test")
