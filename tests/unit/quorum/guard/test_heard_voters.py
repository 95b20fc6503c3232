"""One follower and changes of the voters that are cut off: who may lead it, and who may not."""

from quorum.membership.voters_entry import encode_voters
from quorum.wire.frames import FrameKind
from tests.unit.quorum.bench import NOOP, Bench
from tests.unit.quorum.guard.test_voter_changes import (
    append_voters,
    command,
    follower,
    in_force,
    voters,
)


def commit(bench: Bench, index: int) -> None:
    """Node 2, the leader of term 1, says that the log is committed up to this index."""
    bench.synced()
    bench.say(2, FrameKind.APPEND, 1, index, index, 1, [])


def observer() -> Bench:
    """Node 1 knows that it is no voter since entry 3: nodes 2 and 3 are. Node 2 leads."""
    bench = follower()
    entry = (command(*voters(bench, 2, 3)[1:]), 3, 1)
    bench.say(2, FrameKind.APPEND, 1, 1, 2, 1, [entry])
    commit(bench, 3)
    return bench


def removed_while_observed() -> Bench:
    """The same, and node 2 has removed node 3 by entry 4, which is not committed."""
    bench = observer()
    entry = (command(voters(bench, 2)[1]), 4, 1)
    bench.say(2, FrameKind.APPEND, 1, 3, 3, 1, [entry])
    assert in_force(bench) == [2]
    return bench


def test_an_observer_follows_a_voter_whose_removal_is_cut_off() -> None:
    """Node 2 lost the removal of node 3 with its power, and node 3 was elected without it."""
    bench = removed_while_observed()
    bench.say(3, FrameKind.APPEND, 2, 3, 3, 1, [(NOOP, 4, 2)])
    assert bench.terms == [0, 1, 1, 2]
    assert in_force(bench) == [2, 3]


def test_a_voter_follows_a_voter_whose_removal_is_cut_off_and_votes_for_it() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2)
    assert in_force(bench) == [1, 2]
    bench.settle(2)
    bench.taken()
    bench.say(3, FrameKind.VOTE_REQUEST, 2, 4, 2, False)
    bench.synced()
    assert [number for number, _ in bench.taken(FrameKind.VOTE)] == [3]
    bench.say(3, FrameKind.APPEND, 2, 1, 2, 1, [(NOOP, 3, 2)])
    assert bench.terms == [0, 1, 2]
    assert in_force(bench) == [1, 2, 3]


def test_nobody_follows_a_voter_whose_removal_is_committed() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2)
    commit(bench, 3)
    bench.settle(0.2)
    bench.append(3, 2, 3, 3, 1, 2)
    assert bench.terms == [0, 1, 1]
    assert dict(bench.node.status().refused)["voters_frame_of_an_observer"] == 1


def test_a_set_that_is_told_may_be_earlier_than_one_that_is_not_committed() -> None:
    """Node 3 did not hold entry 5 when it was elected; it added node 4 by its entry 4 and ended."""
    bench = follower()
    bench.append(2, 1, 1, 2, 1, 1, 1)
    append_voters(bench, 2, 1, 4, 2)
    bench.append(4, 3, 1, 3, 1, 2, 3)
    assert bench.terms == [0, 1, 1, 1, 1], "nobody has told of node 4"
    bench.say(3, FrameKind.VOTERS, 2, 4, encode_voters(voters(bench, 2, 3, 4)))
    bench.append(4, 3, 1, 3, 1, 2, 3)
    assert bench.terms == [0, 1, 1, 2, 3]


def test_what_one_peer_told_hides_nothing_that_another_tells() -> None:
    """Node 2 told of a set at 9, which was cut off with its entry, and is gone."""
    bench = follower()
    bench.say(2, FrameKind.VOTERS, 1, 9, encode_voters(voters(bench, 2, 3, 5)))
    bench.say(3, FrameKind.VOTERS, 2, 4, encode_voters(voters(bench, 2, 3, 4)))
    bench.append(4, 3, 1, 2, 1, 2)
    assert bench.terms == [0, 1, 2]


def test_who_tells_another_set_has_withdrawn_the_one_before() -> None:
    bench = follower()
    bench.say(3, FrameKind.VOTERS, 1, 9, encode_voters(voters(bench, 2, 3, 5)))
    bench.say(3, FrameKind.VOTERS, 2, 4, encode_voters(voters(bench, 2, 3, 4)))
    bench.append(5, 3, 1, 2, 1, 2)
    assert bench.terms == [0, 1]
    bench.append(4, 3, 1, 2, 1, 2)
    assert bench.terms == [0, 1, 2]


def test_who_is_in_no_set_that_may_be_in_force_believes_any_linked_peer() -> None:
    """The newest set may be cut off; the observer is not in the one before either."""
    bench = removed_while_observed()
    bench.say(5, FrameKind.VOTERS, 0, 9, encode_voters(voters(bench, 4, 5)[1:]))
    bench.append(4, 2, 3, 4, 1, 2)
    assert bench.terms == [0, 1, 1, 1, 2]


def test_a_set_that_our_log_names_is_no_news() -> None:
    bench = follower()
    append_voters(bench, 2, 1, 2, 2, 3, 4)
    bench.say(3, FrameKind.VOTERS, 1, 3, encode_voters(voters(bench, 2, 3, 4)))
    assert not bench.node.context.heard_voters.known
    bench.say(3, FrameKind.VOTERS, 1, 9, encode_voters(voters(bench, 2, 3, 4, 5)))
    assert bench.node.context.heard_voters.members == {1, 2, 3, 4, 5}
    append_voters(bench, 2, 1, 3, 2, 3, 4, 5)
    assert not bench.node.context.heard_voters.known
