"""Which terms a node accepts, how far a frame may raise them, and the last term."""

import pytest

from quorum.folder_opening import ACCEPT_EPOCH
from quorum.guard.ceiling import CLIMB_ALONE, CLIMB_LED
from quorum.journal.opening import UNKNOWN_VOTE
from quorum.terms import LEAP_MAX, TERM_MAX, leap_from
from quorum.wire.frames import FrameKind, encode
from runtime.simulated.world import SimulationFailedError
from tests.unit.quorum.bench import DIRECTORIES, Bench, entry, formation
from tests.unit.quorum.wire.test_frames import FRAMES

FRESH = b"w" * 16
HIGH = 1_000


def with_fresh_directory() -> Bench:
    """A leader of term 1 to which a fresh directory is linked, under the node id of voter 3."""
    bench = Bench()
    bench.lead()
    bench.unlink(3)
    assert bench.link(3, directory_id=FRESH, empty=True) == 3
    bench.taken()
    return bench


@pytest.mark.parametrize(("kind", "fields"), FRAMES, ids=lambda item: getattr(item, "name", ""))
def test_the_term_of_a_non_voter_means_nothing(kind: FrameKind, fields: tuple[object, ...]) -> None:
    bench = with_fresh_directory()
    before = bench.term
    bench.call(bench.node.on_frame, 3, encode(kind, HIGH, FRESH, *fields))
    assert (bench.term, bench.role) == (before, "leader")


@pytest.mark.parametrize("term", [TERM_MAX, 2**31, 2**62 - 1, 2**62, 2**63 - 1, 2**64 - 1, -1])
@pytest.mark.parametrize("fresh", [True, False])
def test_an_extreme_term_raises_nobodys(term: int, fresh: bool) -> None:
    bench = with_fresh_directory() if fresh else Bench()
    before = bench.term
    for kind, fields in FRAMES:
        directory = FRESH if fresh else DIRECTORIES[3]
        bench.call(bench.node.on_frame, 3, encode(kind, term, directory, *fields))
    assert bench.term == before
    assert "stopped" not in bench.heard.kinds()


def test_a_voters_term_counts_up_to_the_leap_and_no_further() -> None:
    bench = Bench()
    bench.say(2, FrameKind.PROBE, LEAP_MAX + 1, 1)
    assert bench.term == 0
    assert bench.node.context.counters["epoch_too_far_ahead"] == 1
    assert ("epoch_too_far_ahead", 1) in bench.node.status().refused
    bench.say(2, FrameKind.PROBE, LEAP_MAX, 1)
    assert bench.term == LEAP_MAX
    # The ceiling is of the process, not of the frame: leaps don't add up.
    bench.say(2, FrameKind.PROBE, LEAP_MAX + 1, 1)
    assert bench.term == LEAP_MAX


def test_an_observer_learns_terms_from_voters() -> None:
    bench = Bench(formed=False)
    pinned = formation((1, b"1" * 16), (2, DIRECTORIES[2]), (3, DIRECTORIES[3]))
    bench.link(2, empty=False, formation=pinned)
    assert bench.role == "observer"
    bench.append(2, HIGH, 1, 1, 0, HIGH)
    assert bench.term == HIGH
    bench.synced()
    assert bench.taken(FrameKind.ACK)[-1] == (2, (2, 0, False))


def show(bench: Bench, term: int, seconds: float) -> None:
    for _ in range(int(seconds / 0.1)):
        bench.say(2, FrameKind.PROBE, term, 1)
        bench.settle(0.1)


def test_a_node_that_is_truly_that_far_behind_says_so_and_follows_step_by_step() -> None:
    bench = Bench()
    far = LEAP_MAX + 2 * CLIMB_ALONE
    show(bench, far, 0.4)
    assert f"node 2 is in epoch {far}, too far above ours" in bench.node.status().note
    assert bench.term == 0
    show(bench, far, 3.0)
    assert bench.term == far
    assert bench.node.status().note == ""


def test_a_frame_that_came_once_moves_no_ceiling() -> None:
    bench = Bench()
    bench.say(2, FrameKind.PROBE, TERM_MAX, 1)
    for _ in range(100):
        bench.append(3, 1, 1, 1, 0)
        bench.settle(0.1)
    assert bench.node.guard.ceiling.term == LEAP_MAX
    assert bench.node.status().note == ""


def test_while_a_leader_is_heard_the_ceiling_rises_slowly() -> None:
    bench = Bench()
    for _ in range(50):
        bench.append(3, 1, 1, 1, 0)
        bench.say(2, FrameKind.PROBE, TERM_MAX, 1)
        bench.settle(0.1)
    assert bench.term == 1
    assert 0 < bench.node.guard.ceiling.term - LEAP_MAX <= 10 * CLIMB_LED


def test_forged_leaps_never_use_up_the_terms() -> None:
    term = 0
    for _ in range(100_000):
        term += leap_from(term)
    assert term < TERM_MAX


def at_the_end() -> Bench:
    """A node in the last term, by its journal."""
    bench = Bench()
    bench.node.context.journal.set_term(TERM_MAX, None)
    bench.settle(1.5)
    bench.host.kill()
    bench.boot()
    for number in bench.others:
        bench.link(number)
    assert bench.term == TERM_MAX
    return bench


def test_nobody_stands_in_the_last_term_and_it_says_so() -> None:
    bench = at_the_end()
    bench.settle(5)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []
    assert bench.term == TERM_MAX
    assert "is the last one" in bench.node.status().note


def test_a_leader_of_the_last_term_is_followed_and_its_transfer_refused() -> None:
    bench = at_the_end()
    bench.append(2, TERM_MAX, 2, 1, 0, TERM_MAX)
    bench.synced()
    assert bench.taken(FrameKind.ACK)[-1] == (2, (2, 0, True))
    bench.say(2, FrameKind.TIMEOUT_NOW, TERM_MAX)
    assert (bench.role, bench.term) == ("follower", TERM_MAX)


def poisoned() -> Bench:
    """A journal that 0.1 wrote after a forged frame: its last word is a term that can't be."""
    bench = Bench()
    bench.append(2, 1, 2, 1, 0, 1)
    bench.node.context.journal.set_term(2**62 - 1, None)
    bench.settle(1.5)
    bench.host.kill()
    return bench


def test_a_journal_in_an_impossible_epoch_is_refused_with_what_to_do() -> None:
    bench = poisoned()
    with pytest.raises(
        SimulationFailedError, match=r"holds epoch 4611686018427387903.*`accept-epoch`"
    ):
        bench.boot()


def test_the_operators_word_leads_back_from_an_impossible_epoch_once() -> None:
    bench = poisoned()
    bench.host.platter.put(ACCEPT_EPOCH, b"")
    bench.boot()
    assert bench.term == 1 + LEAP_MAX
    assert bench.node.context.journal.voted_for == UNKNOWN_VOTE
    assert not bench.disk.exists(ACCEPT_EPOCH)
    assert bench.terms == [0, 1]
    bench.host.lose_power()
    bench.boot()
    assert bench.term == 1 + LEAP_MAX


def test_an_entry_of_an_impossible_epoch_has_no_way_back() -> None:
    bench = Bench()
    journal = bench.node.context.journal
    bench.call(journal.add, entry(2, 2**31)[0], 2, 2**31)
    bench.call(journal.sync)
    bench.synced()
    bench.host.kill()
    bench.host.platter.put(ACCEPT_EPOCH, b"")
    with pytest.raises(SimulationFailedError, match="holds an entry of epoch 2147483648"):
        bench.boot()
