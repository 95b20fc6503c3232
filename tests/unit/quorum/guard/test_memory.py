"""What peers remember of a node, and what it does when they remember more than it does."""

import pytest

from quorum.guard.memory import folder_number
from quorum.journal import Known
from quorum.wire.formats import OLDEST_FORMAT
from quorum.wire.frames import FrameKind, encode
from tests.unit.quorum.bench import DIRECTORIES, Bench

INCARNATION = b"\0\0\0\0a life.."


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.settle(0.2)
    bench.taken()
    return bench


def told(bench: Bench, number: int) -> tuple[object, ...]:
    """The newest position that the node sent to a peer."""
    return [fields for n, fields in bench.taken(FrameKind.REMEMBER) if n == number][-1]


def remembers(bench: Bench, number: int, incarnation: bytes, position: int) -> None:
    bench.say(number, FrameKind.REMEMBER, 0, b"", 0, incarnation, position)


def test_it_tells_every_peer_its_life_and_how_far_it_is_durable(bench: Bench) -> None:
    journal = bench.node.context.journal
    for number in bench.others:
        last = bench.node.context.view.last
        bench.append(2, 1, 1, last, int(last > 1), 1, 1)
        bench.settle(0.3)
        assert bench.node.context.view.last == last + 2
        assert told(bench, number)[:2] == (
            journal.history.lineage.incarnation,
            journal.durable_position,
        )


def test_the_leader_knows_how_far_it_is_before_it_is_acknowledged_to(bench: Bench) -> None:
    bench.append(2, 1, 1, 1, 0, 1, 1)
    bench.synced()
    sent = [(frame[0], frame) for number, frame in bench.links.sent if number == 2]
    kinds = [kind for kind, _ in sent]
    assert FrameKind.ACK in kinds
    before = [
        frame for kind, frame in sent[: kinds.index(FrameKind.ACK)] if kind == FrameKind.REMEMBER
    ]
    journal = bench.node.context.journal
    assert before[-1][3:5] == (journal.history.lineage.incarnation, journal.durable_position)
    assert before[-1][4] >= journal.position_of_entry(journal.last_index)


def speak_format_2(bench: Bench, number: int) -> None:
    bench.say(number, FrameKind.LIST, 0, 1, "wire-formats/1-2")
    bench.taken()


def acknowledgements(bench: Bench, number: int) -> list[tuple[object, ...]]:
    """What the acknowledgements to a peer tell of the folder."""
    sent = [frame for n, frame in bench.links.sent if n == number and frame[0] == FrameKind.ACK]
    return [frame[6:] for frame in sent]


def test_where_the_format_allows_it_the_acknowledgement_itself_says_how_far_it_is(
    bench: Bench,
) -> None:
    speak_format_2(bench, 2)
    bench.append(2, 1, 1, 1, 0, 1)
    bench.synced()
    bench.taken()
    bench.append(2, 1, 1, 2, 1, 1)
    bench.synced()
    journal = bench.node.context.journal
    position = journal.position_of_entry(3)
    assert acknowledgements(bench, 2) == [(journal.history.lineage.incarnation, position)]
    assert bench.taken(FrameKind.REMEMBER) == []


def test_an_acknowledgement_of_a_folder_that_was_found_out_tells_nothing_of_it(
    bench: Bench,
) -> None:
    speak_format_2(bench, 2)
    remembers(bench, 3, INCARNATION, 4096)
    bench.append(2, 1, 1, 1, 0, 1, 1)
    bench.synced()
    assert set(acknowledgements(bench, 2)) == {(b"", 0)}


def test_an_older_acknowledgement_takes_nothing_from_what_is_remembered(bench: Bench) -> None:
    bench.lead()
    known = bench.node.context.journal.history.known
    for incarnation, position, remembered in (
        (INCARNATION, 512, Known(INCARNATION, 512)),
        (INCARNATION, 300, Known(INCARNATION, 512)),
        (b"", 0, Known(INCARNATION, 512)),
        (b"\0\0\0\0life two", 10, Known(b"\0\0\0\0life two", 10)),
    ):
        bench.say(2, FrameKind.ACK, bench.term, 1, 0, True, incarnation, position)
        assert known[DIRECTORIES[2]] == remembered


def test_an_acknowledgement_of_an_earlier_epoch_is_remembered_though_it_counts_no_more(
    bench: Bench,
) -> None:
    term = bench.lead()
    bench.say(2, FrameKind.ACK, term - 1, 1, 0, True, INCARNATION, 512)
    assert bench.node.context.journal.history.known[DIRECTORIES[2]] == Known(INCARNATION, 512)


def test_all_know_how_far_it_is_before_it_votes(bench: Bench) -> None:
    bench.settle(2)
    bench.links.sent.clear()
    bench.say(2, FrameKind.VOTE_REQUEST, bench.term + 1, 99, bench.term + 1, False)
    bench.synced()
    kinds = [frame[0] for _, frame in bench.links.sent]
    assert kinds.index(FrameKind.REMEMBER) < kinds.index(FrameKind.VOTE)
    position = bench.node.context.journal.position_of_vote
    told = {n: f[4] for n, f in bench.links.sent if f[0] == FrameKind.REMEMBER}
    assert set(told) == {2, 3}
    assert min(told.values()) >= position


def test_it_says_back_what_a_peer_said_of_itself_when_the_link_opens_again(bench: Bench) -> None:
    bench.say(2, FrameKind.REMEMBER, 0, INCARNATION, 512, b"", 0)
    bench.unlink(2)
    bench.taken()
    bench.link(2)
    assert told(bench, 2)[2:] == (INCARNATION, 512)
    bench.settle(1.2)
    bench.host.kill()
    bench.boot()
    bench.link(2)
    assert bench.taken(FrameKind.REMEMBER)[0] == (2, (b"", 0, INCARNATION, 512))
    assert bench.node.context.journal.history.known == {DIRECTORIES[2]: Known(INCARNATION, 512)}


def test_it_says_nothing_of_itself_to_a_peer_that_has_not_spoken(bench: Bench) -> None:
    bench.host.kill()
    bench.boot()
    bench.call(bench.node.judge, None, bench.greeting_of(2), None)
    bench.call(bench.node.on_link_up, 2)
    bench.settle(1.0)
    assert {fields[:2] for _, fields in bench.taken(FrameKind.REMEMBER)} == {(b"", 0)}
    remembers(bench, 2, b"", 0)
    bench.settle(0.2)
    assert told(bench, 2)[0] == bench.node.context.journal.history.lineage.incarnation


def test_who_is_remembered_with_more_than_it_holds_is_damaged(bench: Bench) -> None:
    remembers(bench, 3, bench.node.context.journal.history.lineage.incarnation, 1)
    assert bench.role == "follower"
    remembers(bench, 3, INCARNATION, 4096)
    assert bench.role == "damaged"
    assert "node 3 remembers" in bench.node.status().note
    assert not bench.node.context.may_vote
    bench.synced()
    bench.host.lose_power()
    bench.boot()
    assert bench.role == "damaged"


def test_a_leader_that_hears_it_leads_no_more(bench: Bench) -> None:
    term = bench.lead()
    remembers(bench, 3, INCARNATION, 4096)
    assert bench.role == "damaged"
    assert bench.term == term + 1
    bench.synced()
    assert ("lost", term) in bench.heard.events
    bench.settle(5)
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_who_is_damaged_promises_nothing_and_asks_nobody_to_remember_it(bench: Bench) -> None:
    """So the folder as it was before the damage may be put back."""
    remembers(bench, 3, INCARNATION, 4096)
    bench.synced()
    bench.taken()
    bench.settle(2.0)
    assert {fields[:2] for _, fields in bench.taken(FrameKind.REMEMBER)} <= {(b"", 0)}


def test_a_vote_that_waits_for_the_disk_does_not_leave_a_folder_that_was_found_out(
    bench: Bench,
) -> None:
    bench.settle(2)
    bench.taken()
    bench.stick_disk()
    bench.say(2, FrameKind.VOTE_REQUEST, bench.term + 1, 99, bench.term + 1, False)
    remembers(bench, 3, INCARNATION, 4096)
    assert bench.role == "damaged"
    bench.free_disk()
    bench.settle(0.2)
    assert bench.taken(FrameKind.VOTE) == []


def test_nor_does_an_acknowledgement(bench: Bench) -> None:
    bench.stick_disk()
    bench.append(2, 1, 1, 1, 0, 1, 1)
    remembers(bench, 3, INCARNATION, 4096)
    bench.free_disk()
    bench.settle(0.2)
    assert not any(counts for _, (_, _, counts) in bench.taken(FrameKind.ACK))


def test_a_loss_counts_once_whoever_remembers_it(bench: Bench) -> None:
    remembers(bench, 3, INCARNATION, 4096)
    bench.node.context.journal.history.repaired(b"repaired")
    remembers(bench, 2, INCARNATION, 4000)
    assert bench.role == "follower"
    # Another life that went with it, which nobody spoke of at the time.
    remembers(bench, 2, b"\0\0\0\0older...", 5000)
    assert bench.role == "follower"
    remembers(bench, 2, b"\0\0\0\1unheard.", 1)
    assert bench.role == "damaged"


def test_its_voice_waits_until_all_have_spoken_but_not_for_ever(bench: Bench) -> None:
    bench.host.kill()
    bench.boot()
    bench.link(2)
    bench.taken()
    bench.say(2, FrameKind.PREVOTE_REQUEST, bench.term + 1, 1, 9, bench.term + 1)
    bench.append(2, 9, 1, 1, 0, 9)
    assert bench.taken(FrameKind.PREVOTE) == []
    bench.synced()
    assert bench.taken(FrameKind.ACK)[-1] == (2, (2, 0, False))
    bench.settle(0.6)
    bench.append(2, 9, 1, 2, 9)
    bench.synced()
    assert bench.taken(FrameKind.ACK)[-1] == (2, (2, 0, True))


def test_its_voice_counts_at_once_when_all_have_spoken(bench: Bench) -> None:
    bench.host.kill()
    bench.boot()
    bench.link(2)
    bench.link(3)
    bench.taken()
    bench.say(2, FrameKind.PREVOTE_REQUEST, bench.term + 1, 1, 9, bench.term + 1)
    assert bench.taken(FrameKind.PREVOTE) == [(2, (1, True))]


def test_a_wiped_disk_under_a_voters_id_does_not_speak_for_the_voter(bench: Bench) -> None:
    bench.host.kill()
    bench.boot()
    bench.link(2)
    bench.link(3, directory_id=b"w" * 16, empty=False)
    assert not bench.node.context.may_vote
    bench.settle(0.6)
    assert bench.node.context.may_vote


def test_a_strangers_memory_says_nothing(bench: Bench) -> None:
    """A wiped disk under a voter's id is no voter: nothing is taken from it."""
    bench.unlink(3)
    bench.link(3, directory_id=b"w" * 16, empty=False)
    frame_incarnation = bench.node.context.journal.history.known
    frame = encode(FrameKind.REMEMBER, 0, b"w" * 16, INCARNATION, 10, INCARNATION, 4096)
    bench.call(bench.node.on_frame, 3, frame)
    assert bench.role == "follower"
    assert bench.node.context.journal.history.known == frame_incarnation


def named(bench: Bench, number: int) -> list[bytes | int]:
    """The folders that the memories sent to a peer are about; 0: it is not said."""
    sent, bench.links.sent = bench.links.sent, []
    return [
        frame[7] or (0 if frame[3] else frame[4])
        for n, frame in sent
        if n == number and frame[0] == FrameKind.REMEMBER
    ]


def test_a_memory_of_another_folder_means_nothing() -> None:
    """A frame from before our folder was wiped may come again."""
    bench = Bench()
    context = bench.node.context
    bench.unlink(3)
    context.compared.clear()
    bench.say(2, FrameKind.REMEMBER, 0, INCARNATION, 512, INCARNATION, 4096, b"wiped since ....")
    assert bench.role == "follower"
    assert context.counters["memory_of_another_folder"] == 1
    assert not context.journal.history.known
    assert not context.compared
    ours = context.journal.directory_id
    bench.say(2, FrameKind.REMEMBER, 0, INCARNATION, 512, INCARNATION, 4096, ours)
    assert bench.role == "damaged"
    assert context.journal.history.known == {DIRECTORIES[2]: Known(INCARNATION, 512)}
    assert context.compared == {2}


def test_it_says_whose_folder_it_remembers_where_the_format_allows_it(bench: Bench) -> None:
    bench.settle(1.2)
    assert set(named(bench, 2)) == {0}
    speak_format_2(bench, 2)
    bench.settle(1.2)
    assert set(named(bench, 2)) == {DIRECTORIES[2]}
    # The next link may be one to an earlier release.
    bench.unlink(2)
    bench.taken()
    bench.link(2)
    bench.settle(1.2)
    first, *later = named(bench, 2)
    assert first == folder_number(DIRECTORIES[2])
    assert set(later) == {0}


def test_the_first_memory_on_a_link_names_its_folder_by_a_number(bench: Bench) -> None:
    """It is of format 1, and old ones come again as well."""
    context = bench.node.context
    ours = folder_number(context.journal.directory_id)
    for number in (ours + 1, ours - 1, 1):
        bench.say(3, FrameKind.REMEMBER, 0, b"", number, INCARNATION, 4096)
        assert bench.role == "follower"
    assert context.counters["memory_of_another_folder"] == 3
    bench.say(3, FrameKind.REMEMBER, 0, b"", ours, INCARNATION, 4096)
    assert bench.role == "damaged"


def test_it_tells_of_itself_right_after_the_first_memory(bench: Bench) -> None:
    journal = bench.node.context.journal
    for frames_lost in (False, True):
        bench.unlink(2)
        bench.taken()
        bench.call(bench.node.judge, None, bench.greeting_of(2), None)
        bench.call(bench.node.on_link_up, 2)
        assert told(bench, 2)[0] == b""
        if frames_lost:
            bench.settle(0.2)
        else:
            remembers(bench, 2, b"", 0)
        assert told(bench, 2)[:2] == (
            journal.history.lineage.incarnation,
            journal.durable_position,
        )


def test_it_asks_for_the_format_before_it_says_anything(bench: Bench) -> None:
    """So the peer's first answer to what it says has the newer format."""
    bench.unlink(2)
    bench.taken()
    bench.link(2)
    kinds = [frame[0] for number, frame in bench.links.sent if number == 2]
    assert kinds[:2] == [FrameKind.LIST, FrameKind.REMEMBER]
    old = Bench(newest_format=OLDEST_FORMAT)
    kinds = [frame[0] for number, frame in old.links.sent if number == 2]
    assert kinds[0] == FrameKind.REMEMBER
