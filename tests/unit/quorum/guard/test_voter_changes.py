"""One node whose voters change: when a change may begin, and who is counted from then on."""

from collections.abc import Sequence

import pytest

from quorum.api import NotLeaderError, Voter, VoterChangeRefusedError
from quorum.membership.voters_entry import encode_voters
from quorum.wire.codec import dumps
from quorum.wire.frames import FrameKind
from runtime.links.interface import Peer
from tests.unit.quorum.bench import CLUSTER, DIRECTORIES, NOOP, Bench

PAYLOAD = b"a batch that says so"


def voters(bench: Bench, *numbers: int) -> tuple[Voter, ...]:
    """Node 1 and others, each with the directory under which the bench plays it."""
    me = Voter(1, bench.node.context.journal.directory_id, "node-1", 9093)
    return (me, *(Voter(n, DIRECTORIES[n], f"node-{n}", 9093) for n in numbers))


def command(*members: Voter, payload: bytes = PAYLOAD) -> bytes:
    return b"\0" + dumps((1, (encode_voters(members), (payload,))))


def in_force(bench: Bench) -> list[int]:
    return [voter.node_id for voter in bench.node.voters()]


def of_three(*observers: int) -> Bench:
    """Nodes 1, 2 and 3 vote, node 1 leads, and the others are linked observers."""
    bench = formed_by_three()
    bench.lead()
    for number in {4, 5} - {*observers}:
        bench.unlink(number)
    bench.synced()
    return bench


def formed_by_three() -> Bench:
    """Nodes 1, 2 and 3 vote; nodes 4 and 5 are linked and observe."""
    bench = Bench(5, formed=False, first_voters=(1, 2, 3))
    for number in (2, 3, 4):
        bench.link(number)
    assert in_force(bench) == [], "not before every configured node has said that it is empty"
    bench.link(5)
    bench.others = [2, 3]
    assert in_force(bench) == [1, 2, 3]
    return bench


def refused(bench: Bench, members: Sequence[Voter]) -> str:
    with pytest.raises(VoterChangeRefusedError) as error:
        bench.node.change_voters(members, PAYLOAD)
    assert in_force(bench) == [1, 2, 3]
    return str(error.value)


def change(bench: Bench, *numbers: int) -> None:
    bench.call(bench.node.change_voters, voters(bench, *numbers), PAYLOAD)
    bench.synced()


# When it may begin.


def test_who_does_not_lead_changes_nothing() -> None:
    bench = Bench()
    with pytest.raises(NotLeaderError):
        bench.node.change_voters(voters(bench, 2), PAYLOAD)


def test_a_leader_changes_nothing_before_it_has_committed_an_entry_of_its_own_epoch() -> None:
    """Two leaders could else change the same old set in ways whose majorities don't meet."""
    bench = formed_by_three()
    bench.win()
    with pytest.raises(NotLeaderError):
        bench.node.change_voters(voters(bench, 2), PAYLOAD)
    bench.ack(2)
    change(bench, 2)
    assert in_force(bench) == [1, 2]


def test_each_rule_refuses_with_a_sentence() -> None:
    bench = of_three(4, 5)
    bench.ack(4)
    assert "one voter is added or removed at a time" in refused(bench, voters(bench, 2, 3, 4, 5))
    assert "one voter is added or removed at a time" in refused(bench, voters(bench))
    assert "can't remove itself" in refused(bench, voters(bench, 2, 3)[1:])
    assert "the voters already" in refused(bench, voters(bench, 2, 3))
    assert "named twice" in refused(bench, (*voters(bench, 2, 3), voters(bench, 3)[1]))
    assert "1 to 9 voters" in refused(bench, ())
    assert "node 5 holds entries up to 0, and 2 are committed" in refused(
        bench, voters(bench, 2, 3, 5)
    )
    other = Voter(4, bytes(16), "node-4", 9093)
    assert "not on 0000" in refused(bench, (*voters(bench, 2, 3), other))
    port = Voter(4, DIRECTORIES[4], "node-4", 2**16)
    assert "can't be written" in refused(bench, (*voters(bench, 2, 3), port))
    bench.unlink(4)
    assert "node 4 is not linked" in refused(bench, voters(bench, 2, 3, 4))


def test_a_folder_is_not_replaced_in_one_step() -> None:
    """The majorities {1, 3} and {1, 3 with another folder} meet, {2, 3} and {1, that} don't."""
    bench = of_three()
    other = Voter(3, bytes(16), "node-3", 9093)
    assert "remove the old directory first" in refused(bench, (*voters(bench, 2), other))


def test_one_change_at_a_time() -> None:
    bench = of_three(4, 5)
    bench.ack(4)
    bench.ack(5)
    change(bench, 2, 3, 4)
    with pytest.raises(VoterChangeRefusedError, match="entry 3 is not committed yet"):
        bench.node.change_voters(voters(bench, 2, 3, 4, 5), PAYLOAD)
    bench.ack(2)
    bench.ack(4)
    bench.ack(5)
    change(bench, 2, 3, 4, 5)
    assert in_force(bench) == [1, 2, 3, 4, 5]


def test_a_change_that_waits_for_its_turn_keeps_others_out() -> None:
    bench = of_three(4)
    bench.ack(4)
    bench.stick_disk()
    bench.call(bench.node.propose, b"before")
    bench.call(bench.node.propose, b"too")
    bench.call(bench.node.change_voters, voters(bench, 2, 3, 4), PAYLOAD)
    bench.call(bench.node.propose, b"behind")
    with pytest.raises(VoterChangeRefusedError, match="under way"):
        bench.node.change_voters(voters(bench, 2), PAYLOAD)
    bench.free_disk()
    for _ in range(4):
        for number in (2, 3, 4):
            bench.ack(number)
        bench.synced()
    assert bench.heard.payloads() == [b"before", b"too", PAYLOAD, b"behind"]
    assert in_force(bench) == [1, 2, 3, 4]


def test_a_removal_that_leaves_no_majority_is_refused() -> None:
    """Node 3 is behind: without node 2 nothing could be written."""
    bench = of_three()
    bench.call(bench.node.propose, b"x")
    bench.synced()
    bench.ack(2)
    assert "[3] don't hold what is committed" in refused(bench, voters(bench, 3))
    change(bench, 2)
    assert in_force(bench) == [1, 2]


# Who counts.


def test_an_added_voter_is_counted_from_the_append_on() -> None:
    bench = of_three(4)
    bench.ack(4)
    change(bench, 2, 3, 4)
    assert in_force(bench) == [1, 2, 3, 4], "in force, not committed"
    bench.ack(2)
    assert bench.heard.payloads() == [], "two of four are no majority"
    bench.ack(4)
    assert bench.heard.payloads() == [PAYLOAD]


def test_a_removed_voter_is_counted_no_more() -> None:
    bench = of_three(4)
    bench.ack(4)
    change(bench, 2, 3, 4)
    for number in (2, 3, 4):
        bench.ack(number)
    bench.taken()
    change(bench, 2, 4)
    assert in_force(bench) == [1, 2, 4]
    assert 3 not in {number for number, _ in bench.taken(FrameKind.APPEND)}, "not before it commits"
    bench.ack(3)
    assert bench.heard.payloads() == [PAYLOAD]
    bench.ack(4)
    assert bench.heard.payloads() == [PAYLOAD, PAYLOAD]
    bench.settle(0.2)
    bench.synced()
    assert 3 in {number for number, _ in bench.taken(FrameKind.APPEND)}, "it learns of it"


def test_the_last_voter_goes_on_alone_once_its_own_copy_is_durable() -> None:
    bench = of_three()
    change(bench, 2)
    bench.ack(2)
    assert bench.heard.payloads() == [PAYLOAD]
    bench.stick_disk()
    bench.call(bench.node.change_voters, voters(bench), PAYLOAD)
    assert in_force(bench) == [1]
    assert bench.heard.payloads() == [PAYLOAD]
    bench.free_disk()
    assert bench.heard.payloads() == [PAYLOAD, PAYLOAD]


def test_a_read_under_way_is_confirmed_by_the_new_voters() -> None:
    bench = of_three(4)
    bench.ack(4)
    ready: list[bool] = []
    bench.call(bench.node.read_index, ready.append)
    change(bench, 2, 3, 4)
    rounds = [fields[0] for _, fields in bench.taken(FrameKind.PROBE)]
    last = bench.node.context.view.last
    for number in (2, 3):
        bench.say(number, FrameKind.PROBE_ANSWER, bench.term, min(rounds), last, True)
    assert ready == [], "two of three confirmed the old round"
    for number in (2, 4):
        bench.say(number, FrameKind.PROBE_ANSWER, bench.term, max(rounds), last, True)
    assert ready == [True]


# A follower.


def follower() -> Bench:
    """Node 1 follows node 2; nodes 4 and 5 are linked observers."""
    bench = formed_by_three()
    bench.append(2, 1, 1, 1, 0, 1)
    return bench


def append_voters(bench: Bench, leader: int, term: int, previous: int, *numbers: int) -> None:
    entry = (command(*voters(bench, *numbers)), previous + 1, term)
    of_previous = bench.terms[previous - 1]
    bench.say(leader, FrameKind.APPEND, term, 1, previous, of_previous, [entry])


def test_a_follower_takes_them_over_and_undoes_them_with_their_entry() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2, 3, 4)
    assert in_force(bench) == [1, 2, 3, 4]
    bench.say(3, FrameKind.APPEND, 2, 1, 2, 1, [(NOOP, 3, 2)])
    assert in_force(bench) == [1, 2, 3]


def test_a_restart_finds_the_voters_of_the_log() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2, 3, 4)
    bench.synced()
    bench.host.lose_power()
    bench.boot()
    assert in_force(bench) == [1, 2, 3, 4]


def test_a_candidate_asks_and_counts_its_own_voters() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2, 4)
    bench.synced()
    assert in_force(bench) == [1, 2, 4]
    bench.taken()
    for _ in range(60):
        bench.settle(0.05)
        requests = bench.taken(FrameKind.PREVOTE_REQUEST)
        if requests:
            break
    assert sorted(number for number, _ in requests) == [2, 4]
    bench.say(3, FrameKind.PREVOTE, bench.term, requests[0][1][0], True)
    bench.synced()
    assert bench.role == "follower", "node 3 does not vote any more"
    bench.say(4, FrameKind.PREVOTE, bench.term, requests[0][1][0], True)
    bench.synced()
    assert bench.role == "candidate"
    bench.say(3, FrameKind.VOTE, bench.term)
    assert bench.role == "candidate"
    bench.say(4, FrameKind.VOTE, bench.term)
    assert bench.role == "leader"


def test_a_removed_node_observes_and_says_since_when() -> None:
    bench = follower()
    entry = (command(*voters(bench, 2, 3)[1:]), 3, 1)
    bench.say(2, FrameKind.APPEND, 1, 1, 2, 1, [entry])
    bench.taken()
    bench.settle(5)
    assert bench.role == "observer"
    assert "not among the voters since entry 3" in bench.node.status().note
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_an_added_node_votes_before_its_log_says_so_and_remembers_how_it_was_formed() -> None:
    """Node 1 is an observer of a quorum that nodes 2 and 3 formed; node 2's log adds it."""
    bench = Bench(3, formed=False, first_voters=(2, 3))
    formed = dumps((bench.node.config.cluster_id, ((2, DIRECTORIES[2]), (3, DIRECTORIES[3]))))
    for number in (2, 3):
        bench.link(number, empty=False, formation=formed)
    assert bench.role == "observer"
    bench.settle(1)
    bench.taken()
    bench.say(2, FrameKind.VOTE_REQUEST, 1, 2, 1, False)
    bench.synced()
    assert [number for number, _ in bench.taken(FrameKind.VOTE)] == [2]
    bench.append(2, 1, 1, 1, 0, 1)
    append_voters(bench, 2, 1, 2, 2, 3)
    bench.synced()
    assert in_force(bench) == [1, 2, 3]
    bench.host.lose_power()
    bench.boot()
    assert in_force(bench) == [1, 2, 3]
    assert bench.role == "follower"


def test_voters_that_cannot_be_read_stop_the_node() -> None:
    bench = follower()
    entry = (b"\0" + dumps((1, (b"nobody", ()))), 3, 1)
    bench.say(2, FrameKind.APPEND, 1, 1, 2, 1, [entry])
    assert bench.heard.kinds()[-1] == "stopped"


# Voters that our log does not name yet.


def test_a_later_leader_is_followed_once_a_voter_has_told_of_it() -> None:
    bench = follower()
    bench.append(4, 2, 1, 2, 1, 2)
    assert bench.terms == [0, 1], "nobody knows node 4 as a voter"
    later = encode_voters(voters(bench, 2, 3, 4))
    bench.say(5, FrameKind.VOTERS, 0, 9, later)
    bench.append(4, 2, 1, 2, 1, 2)
    assert bench.terms == [0, 1], "node 5 is no voter, so nobody believes it"
    bench.say(3, FrameKind.VOTERS, 1, 9, later)
    bench.append(4, 2, 1, 2, 1, 2)
    assert bench.terms == [0, 1, 2]
    assert in_force(bench) == [1, 2, 3], "it is followed, and counted nowhere"


def test_who_is_surely_no_voter_believes_any_linked_peer() -> None:
    """All voters that its log names may be gone; nobody counts what it holds."""
    bench = follower()
    entry = (command(*voters(bench, 2, 3)[1:]), 3, 1)
    later = encode_voters(voters(bench, 4, 5)[1:])
    bench.say(2, FrameKind.APPEND, 1, 1, 2, 1, [entry])
    bench.say(5, FrameKind.VOTERS, 0, 9, later)
    bench.append(4, 2, 1, 3, 1, 2)
    assert bench.terms == [0, 1, 1], "its removal may still be undone"
    bench.synced()
    bench.say(2, FrameKind.APPEND, 1, 3, 3, 1, [])
    bench.say(5, FrameKind.VOTERS, 0, 9, later)
    bench.append(4, 2, 3, 3, 1, 2)
    assert bench.terms == [0, 1, 1, 2]


def test_an_older_set_and_one_that_cannot_be_read_are_ignored() -> None:
    bench = follower()
    bench.say(3, FrameKind.VOTERS, 1, 0, encode_voters(voters(bench, 2, 3, 4)))
    bench.say(3, FrameKind.VOTERS, 1, 9, b"nobody")
    bench.append(4, 2, 1, 2, 1, 2)
    assert bench.terms == [0, 1]
    assert dict(bench.node.status().refused)["bad_voters"] == 1


def test_the_newest_set_is_repeated_after_a_change_only() -> None:
    bench = of_three(4)
    bench.ack(4)
    bench.settle(2)
    assert bench.taken(FrameKind.VOTERS) == []
    bench = of_three(4)
    bench.ack(4)
    bench.taken()
    change(bench, 2, 3, 4)
    bench.settle(0.1)
    told = bench.taken(FrameKind.VOTERS)
    assert {number for number, _ in told} == {2, 3, 4}
    assert told[0][1] == (3, encode_voters(voters(bench, 2, 3, 4)))


# Under load.


def busy_leader() -> Bench:
    """Node 1 leads three voters and observes 4 and 5; an entry is committed every 50 ms for 2 s.

    Node 4 is always one entry behind, node 5 stays where it was after the first second.
    """
    bench = of_three(4, 5)
    for number in range(40):
        bench.call(bench.node.propose, b"%d" % number)
        bench.synced()
        last = bench.node.context.view.last
        for voter in (2, 3):
            bench.ack(voter)
        bench.ack(4, last - 1)
        if number < 20:
            bench.ack(5, last - 1)
        bench.settle(0.03)
    return bench


def test_who_keeps_up_may_be_added_and_the_entry_waits_until_it_holds_all() -> None:
    bench = busy_leader()
    last = bench.node.context.view.last
    assert "node 5 holds entries up to" in refused(bench, voters(bench, 2, 3, 5))
    bench.call(bench.node.change_voters, voters(bench, 2, 3, 4), PAYLOAD)
    bench.synced()
    assert in_force(bench) == [1, 2, 3], "node 4 lacks an entry that is committed"
    bench.ack(4, last)
    bench.synced()
    assert in_force(bench) == [1, 2, 3, 4]


def test_a_new_leader_does_not_know_yet_who_keeps_up() -> None:
    bench = busy_leader()
    bench.say(2, FrameKind.VOTE_REQUEST, bench.term + 1, 1_000, bench.term, True)
    bench.call(bench.node.resign, "a test")
    bench.settle(0.6)
    bench.lead()
    bench.ack(4, bench.node.context.view.last - 1)
    assert "node 4 holds entries up to" in refused(bench, voters(bench, 2, 3, 4))


def test_who_is_linked_is_a_candidate_with_the_configured_address() -> None:
    bench = of_three(4)
    assert bench.node.candidate(4) == Voter(4, DIRECTORIES[4], "node-4", 9093)
    assert bench.node.candidate(5) is None
    assert bench.node.candidate(9) is None


def test_the_set_is_settled_once_it_is_committed() -> None:
    bench = of_three(4)
    bench.ack(4)
    assert (bench.node.voter_set().index, bench.node.voter_set().settled) == (0, True)
    bench.stick_disk()
    bench.call(bench.node.change_voters, voters(bench, 2, 3, 4), PAYLOAD)
    assert not bench.node.voter_set().settled


# Controllers that are not configured.


def test_a_node_that_is_not_configured_observes_if_its_certificate_names_it() -> None:
    bench = of_three()
    greeting = bench.greeting_of(8)
    refusal = bench.call(bench.node.judge, None, greeting, None)
    assert "no certificate says who it is" in refusal
    assert "certificate for nobody" in bench.call(bench.node.judge, None, greeting, "")
    assert bench.call(bench.node.judge, None, greeting, f"quorum://{CLUSTER}/8") == 8
    bench.call(bench.node.on_link_up, 8)
    assert bench.node.candidate(8) == Voter(8, DIRECTORIES[8], "", 0)
    assert in_force(bench) == [1, 2, 3]


def test_a_voter_that_is_not_configured_is_dialled_and_needs_no_certificate() -> None:
    bench = of_three()
    bench.call(bench.node.judge, None, bench.greeting_of(8), f"quorum://{CLUSTER}/8")
    bench.call(bench.node.on_link_up, 8)
    bench.ack(8)
    assert 8 not in {peer.node_id for peer in bench.links.peers}
    bench.call(bench.node.change_voters, voters(bench, 2, 3, 8), PAYLOAD)
    bench.synced()
    assert in_force(bench) == [1, 2, 3, 8]
    bench.settle(0.1)
    assert bench.links.peers[-1] == Peer(8, "node-8", 9093)
    assert bench.call(bench.node.judge, None, bench.greeting_of(8), None) == 8


def test_a_node_that_is_not_configured_does_not_keep_a_quorum_from_forming() -> None:
    bench = Bench(3, formed=False)
    bench.call(bench.node.judge, None, bench.greeting_of(8), f"quorum://{CLUSTER}/8")
    bench.call(bench.node.on_link_up, 8)
    bench.link(2)
    bench.link(3)
    assert in_force(bench) == [1, 2, 3]
