"""A follower: what it does with old, wrong and good appends, and when it answers."""

import pytest

from quorum.wire.frames import FrameKind, encode
from runtime.links.interface import LinkEnd
from tests.unit.quorum.bench import Bench, entry


@pytest.fixture
def bench() -> Bench:
    """Follows node 2 of term 1 with entries 2 to 4, of which 3 are committed."""
    bench = Bench()
    bench.append(2, 1, 3, 1, 0, 1, 1, 1)
    bench.synced()
    assert bench.taken(FrameKind.ACK)[-1] == (2, (4, 0, True))
    return bench


def test_an_old_append_truncates_nothing_and_is_answered_with_what_it_matched(
    bench: Bench,
) -> None:
    bench.append(2, 1, 2, 1, 0, 1)
    assert bench.terms == [0, 1, 1, 1]
    assert bench.taken(FrameKind.ACK) == [(2, (2, 0, True))]
    bench.append(2, 1, 9, 2, 1)
    assert bench.taken(FrameKind.ACK) == [(2, (2, 0, True))]
    assert bench.commit == 3


def test_a_heartbeat_commits_no_more_than_it_matched(bench: Bench) -> None:
    bench.append(2, 1, 9, 3, 1)
    assert bench.commit == 3
    bench.append(2, 1, 9, 4, 1)
    assert bench.commit == 4


def test_only_what_is_new_reaches_the_core(bench: Bench) -> None:
    bench.append(2, 1, 3, 1, 0, 1, 1, 1, 1)
    bench.synced()
    assert bench.terms == [0, 1, 1, 1, 1]
    assert bench.taken(FrameKind.ACK) == [(2, (5, 0, True))]


def test_a_real_conflict_replaces_the_tail(bench: Bench) -> None:
    bench.append(3, 2, 3, 3, 1, 2, 2)
    bench.synced()
    assert bench.terms == [0, 1, 1, 2, 2]
    assert bench.taken(FrameKind.ACK) == [(3, (5, 0, True))]
    assert bench.commit == 3


def test_a_gap_asks_for_what_follows_our_last(bench: Bench) -> None:
    bench.append(2, 1, 9, 7, 1, 1)
    assert bench.taken(FrameKind.ACK) == [(2, (-1, 5, True))]
    assert bench.commit == 3


def test_a_mismatch_asks_for_the_whole_run_of_that_term_but_nothing_committed() -> None:
    bench = Bench()
    bench.append(2, 1, 2, 1, 0, 1)
    bench.append(3, 2, 2, 2, 1, 2, 2, 2)
    bench.synced()
    bench.taken()
    bench.append(2, 3, 2, 5, 3)
    bench.synced()
    assert bench.taken(FrameKind.ACK) == [(2, (-1, 3, True))]
    assert bench.terms == [0, 1, 2, 2, 2]


def test_an_append_below_the_term_is_answered_with_the_term(bench: Bench) -> None:
    bench.append(3, 4, 3, 4, 1)
    bench.synced()
    bench.links.sent.clear()
    bench.append(2, 1, 4, 4, 1, 1)
    bench.synced()
    [(node_id, frame)] = bench.links.sent
    assert node_id == 2
    assert frame[:2] == (FrameKind.ACK, 4)
    assert frame[3:6] == (-1, 0, True)
    assert bench.terms == [0, 1, 1, 1]


def test_a_conflict_with_what_is_committed_stops_the_node(bench: Bench) -> None:
    bench.append(3, 2, 3, 1, 0, 2)
    assert bench.heard.kinds()[-1] == "stopped"
    assert "contradicts entry 2" in bench.heard.events[-1][1]
    assert bench.links.stopped


def test_an_answer_waits_until_the_entries_are_durable(bench: Bench) -> None:
    bench.stick_disk()
    bench.append(2, 1, 3, 4, 1, 1)
    bench.settle(0.1)
    assert bench.taken(FrameKind.ACK) == []
    # A heartbeat of what is durable needs no sync.
    bench.append(2, 1, 3, 4, 1)
    assert bench.taken(FrameKind.ACK) == [(2, (4, 0, True))]
    # One of what isn't is answered with a sign of life, and properly later.
    bench.append(2, 1, 3, 5, 1)
    assert bench.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    bench.free_disk()
    assert bench.taken(FrameKind.ACK) == [(2, (5, 0, True)), (2, (5, 0, True))]


def test_no_sign_of_life_leaves_before_the_term_is_durable(bench: Bench) -> None:
    bench.stick_disk()
    bench.append(2, 7, 3, 4, 1)
    assert bench.taken(FrameKind.ACK) == []


def test_a_heartbeat_is_answered_at_once_though_commit_records_wait(bench: Bench) -> None:
    bench.stick_disk()
    bench.append(2, 1, 4, 4, 1)
    assert bench.taken(FrameKind.ACK) == [(2, (4, 0, True))]


def test_a_promise_made_in_a_term_that_is_over_is_never_sent(bench: Bench) -> None:
    """Entry 5 is acknowledged in term 1 and truncated in term 2; then the disk syncs."""
    bench.stick_disk()
    bench.append(2, 1, 3, 4, 1, 1)
    bench.append(3, 2, 3, 4, 1, 2)
    bench.links.sent.clear()
    bench.free_disk()
    answers = [(n, f[1], f[3]) for n, f in bench.links.sent if f[0] == FrameKind.ACK]
    assert answers == [(3, 2, 5)]


def test_what_is_committed_goes_up_once_our_own_copy_is_durable(bench: Bench) -> None:
    before = bench.heard.payloads()
    bench.stick_disk()
    bench.append(2, 1, 5, 4, 1, 1)
    bench.settle(0.1)
    assert bench.heard.payloads() == [*before, b"4/1"]
    bench.free_disk()
    assert bench.heard.payloads() == [*before, b"4/1", b"5/1"]


def test_an_epoch_is_told_only_once_it_is_durable(bench: Bench) -> None:
    bench.stick_disk()
    bench.append(3, 2, 3, 4, 1)
    assert bench.node.leader_and_epoch() == (2, 1)
    bench.free_disk()
    assert bench.node.leader_and_epoch() == (3, 2)
    assert bench.heard.events[-1] == ("leader", 3, 2)


def test_a_second_leader_in_one_term_is_not_followed(bench: Bench) -> None:
    bench.append(3, 1, 4, 4, 1, 1)
    assert bench.terms == [0, 1, 1, 1]
    assert bench.taken(FrameKind.ACK) == []
    assert bench.node.context.counters == {"second_leader": 1}


def test_an_observer_can_not_lead(bench: Bench) -> None:
    bench.unlink(3)
    assert bench.link(3, directory_id=b"x" * 16) == 3
    frame = encode(FrameKind.APPEND, 5, b"x" * 16, 4, 4, 1, [entry(5, 5)])
    bench.call(bench.node.on_frame, 3, frame)
    assert bench.terms == [0, 1, 1, 1]
    assert bench.term == 1


def test_frames_of_another_directory_under_a_known_id_are_dropped(bench: Bench) -> None:
    frame = encode(FrameKind.APPEND, 5, b"x" * 16, 4, 4, 1, [entry(5, 5)])
    bench.call(bench.node.on_frame, 2, frame)
    assert bench.term == 1
    assert bench.node.context.counters == {"frame_of_another_directory": 1}


def test_frames_without_a_link_are_dropped(bench: Bench) -> None:
    bench.unlink(2, LinkEnd.CLOSED)
    bench.append(2, 1, 3, 4, 1, 1)
    assert bench.terms == [0, 1, 1, 1]


def test_a_restart_keeps_term_entries_and_what_was_handed_up(bench: Bench) -> None:
    bench.settle(1.2)
    bench.host.kill()
    bench.boot()
    assert bench.mark is None
    assert bench.term >= 1
    assert bench.terms == [0, 1, 1, 1]
    bench.settle(0.2)
    assert bench.heard.payloads() == [b"2/1", b"3/1"]
