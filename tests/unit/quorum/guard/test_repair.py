"""A damaged node doesn't vote until it has caught up, and then only in later terms."""

import pytest

from quorum.wire.frames import FrameKind
from tests.unit.quorum.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """Acknowledged entries up to 6 of term 1, then a byte of entry 4 rotted."""
    bench = Bench()
    bench.append(2, 1, 3, 1, 0, 1, 1, 1, 1, 1)
    bench.settle(1.2)
    bench.host.kill()
    [name] = [n for n in bench.host.platter.names if n.endswith(".wal")]
    data = bytes(bench.host.platter.names[name].content)
    bench.host.platter.flip_bit(name, data.index(b"4/1"))
    bench.boot()
    for number in bench.others:
        bench.link(number)
    bench.taken()
    assert bench.role == "damaged"
    return bench


def answer(bench: Bench, number: int, term: int, last: int) -> None:
    """Answer the newest question."""
    bench.say(number, FrameKind.PROBE_ANSWER, term, bench.node.guard.repair._round, last, True)


def test_it_neither_votes_nor_stands(bench: Bench) -> None:
    bench.say(2, FrameKind.VOTE_REQUEST, 9, 99, 9, False)
    bench.say(2, FrameKind.PREVOTE_REQUEST, 9, 1, 99, 9)
    bench.settle(5)
    assert bench.taken(FrameKind.VOTE) == []
    assert bench.taken(FrameKind.PREVOTE) == []
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_its_answers_say_that_they_do_not_count(bench: Bench) -> None:
    bench.append(2, 2, 3, 3, 1, 2)
    bench.synced()
    assert bench.taken(FrameKind.ACK) == [(2, (4, 0, False))]
    bench.say(2, FrameKind.PROBE, 2, 5)
    assert (2, (5, 4, False)) in bench.taken(FrameKind.PROBE_ANSWER)


def test_it_is_not_empty(bench: Bench) -> None:
    assert not bench.node.context.formation.is_empty


def test_it_votes_again_once_it_holds_what_the_leader_held_and_all_have_answered(
    bench: Bench,
) -> None:
    bench.append(2, 3, 3, 3, 1, 1, 1, 1, 3)
    bench.settle(0.6)
    assert bench.taken(FrameKind.PROBE)
    answer(bench, 2, 3, 7)
    bench.append(2, 3, 3, 7, 3)
    assert bench.role == "damaged"
    answer(bench, 3, 3, 7)
    bench.append(2, 3, 3, 7, 3)
    bench.synced()
    assert bench.role == "follower"
    bench.settle(1.0)
    bench.taken()
    # Not in this term: its forgotten vote may have been cast in it.
    bench.say(3, FrameKind.VOTE_REQUEST, 3, 99, 3, True)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []
    bench.say(3, FrameKind.VOTE_REQUEST, 4, 99, 3, True)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == [(3, ())]


def test_not_before_every_voter_has_said_what_it_remembers(bench: Bench) -> None:
    """The generation that the repair begins has to be above all of that."""
    bench.host.kill()
    bench.boot()
    bench.link(2)
    bench.call(bench.node.judge, None, bench.greeting_of(3), None)
    bench.call(bench.node.on_link_up, 3)
    bench.append(2, 3, 3, 3, 1, 1, 1, 1, 3)
    bench.settle(0.6)
    for spoken in (False, True):
        if spoken:
            bench.say(3, FrameKind.REMEMBER, 0, b"", 0, b"", 0)
            bench.settle(0.6)
        answer(bench, 3, 3, 7)
        answer(bench, 2, 3, 7)
        bench.append(2, 3, 3, 7, 3)
        bench.synced()
        assert bench.role == ("follower" if spoken else "damaged")


def test_it_has_no_voice_before_a_durable_frame_says_that_the_repair_was_durable(
    bench: Bench,
) -> None:
    bench.append(2, 3, 3, 3, 1, 1, 1, 1, 3)
    bench.settle(0.6)
    answer(bench, 2, 3, 7)
    answer(bench, 3, 3, 7)
    bench.stick_disk()
    bench.append(2, 3, 3, 7, 3)
    assert bench.role == "follower"
    assert not bench.node.context.may_vote
    bench.free_disk()
    bench.settle(0.2)
    assert bench.node.context.may_vote


def test_not_while_a_voter_names_a_higher_term_than_the_leaders(bench: Bench) -> None:
    bench.append(2, 3, 3, 3, 1, 1, 1, 1, 3)
    bench.settle(0.6)
    answer(bench, 3, 5, 7)
    bench.say(2, FrameKind.APPEND, 3, 3, 7, 3, ())
    answer(bench, 2, 3, 7)
    bench.append(2, 3, 3, 7, 3)
    bench.synced()
    assert bench.role == "damaged"


def test_not_before_everything_the_leader_named_is_durable_here(bench: Bench) -> None:
    bench.append(2, 3, 3, 3, 1, 1, 1)
    bench.settle(0.6)
    answer(bench, 3, 3, 9)
    answer(bench, 2, 3, 9)
    bench.append(2, 3, 3, 5, 1, 1, 3, 3)
    bench.synced()
    assert bench.role == "damaged"
    bench.append(2, 3, 3, 8, 3, 3)
    bench.synced()
    bench.append(2, 3, 3, 9, 3)
    assert bench.role == "follower"


def test_repair_survives_a_restart_and_damage_does_too(bench: Bench) -> None:
    bench.host.kill()
    bench.boot()
    assert bench.role == "damaged"
    for number in bench.others:
        bench.link(number)
    bench.append(2, 3, 3, 3, 1, 1, 1, 1, 3)
    bench.settle(0.6)
    answer(bench, 3, 3, 7)
    answer(bench, 2, 3, 7)
    bench.append(2, 3, 3, 7, 3)
    bench.synced()
    bench.host.lose_power()
    bench.boot()
    assert bench.role == "follower"
    for number in bench.others:
        bench.link(number)
    bench.say(3, FrameKind.VOTE_REQUEST, 3, 99, 3, True)
    bench.synced()
    assert bench.taken(FrameKind.VOTE) == []
