"""Files of peers, and the digests that travel with heartbeats."""

import pytest

from quorum.api import PeerFile
from quorum.wire.frames import FrameKind, encode
from tests.unit.quorum.bench import DIRECTORIES, Bench


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.settle(0.01)
    bench.disk.make_folder("log")
    bench.disk.replace("log/a", b"0123456789")
    bench.disk.make_folder("secret")
    bench.disk.replace("secret/key", b"hidden")
    bench.synced()
    bench.taken()
    return bench


def test_a_shared_folder_is_listed(bench: Bench) -> None:
    bench.say(2, FrameKind.LIST, 0, 5, "log")
    bench.synced()
    assert bench.taken(FrameKind.LISTED) == [(2, (5, True, (("a", 10),)))]


def test_other_folders_are_not(bench: Bench) -> None:
    for folder in ("secret", "journal", "", ".", "log/..", "/etc"):
        bench.say(2, FrameKind.LIST, 0, 5, folder)
        bench.synced()
        assert bench.taken(FrameKind.LISTED) == [(2, (5, False, ()))]


def test_a_piece_is_read_by_position(bench: Bench) -> None:
    bench.say(2, FrameKind.READ, 0, 5, "log/a", 4, 3)
    bench.say(2, FrameKind.READ, 0, 6, "log/a", 8, 100)
    bench.say(2, FrameKind.READ, 0, 7, "log/a", 99, 100)
    bench.synced()
    assert bench.taken(FrameKind.PIECE) == [
        (2, (5, 10, b"456")),
        (2, (6, 10, b"89")),
        (2, (7, 10, b"")),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "secret/key",
        "manifest",
        "log",
        "log/",
        "log/..",
        "log/../secret/key",
        "../log/a",
        "/log/a",
        "log//a",
        "log/a/b",
        "log/\0",
        "log/a\\b",
        "log/absent",
        "journal/00000000000000000001.wal",
    ],
)
def test_other_names_are_answered_with_nothing(bench: Bench, name: str) -> None:
    bench.say(2, FrameKind.READ, 0, 5, name, 0, 100)
    bench.synced()
    assert bench.taken(FrameKind.PIECE) == [(2, (5, -1, b""))]


def test_a_piece_that_is_too_long_is_too(bench: Bench) -> None:
    bench.say(2, FrameKind.READ, 0, 5, "log/a", 0, 2 * 1024 * 1024)
    bench.synced()
    assert bench.taken(FrameKind.PIECE) == [(2, (5, -1, b""))]


def test_more_than_was_asked_for_is_no_answer(bench: Bench) -> None:
    got: list[object] = []
    bench.call(bench.node.read_file, 3, "log/x", 5, 10, got.append)
    [(_, (number, *_rest))] = bench.taken(FrameKind.READ)
    bench.say(3, FrameKind.PIECE, 0, number, 100, b"01234567890")
    assert got == [None]


def test_answers_come_back_to_who_asked(bench: Bench) -> None:
    got: list[object] = []
    bench.call(bench.node.list_files, 2, "log", got.append)
    bench.call(bench.node.read_file, 3, "log/x", 5, 10, got.append)
    [(_, (first, folder))] = [s for s in bench.taken() if s[0] == 2 and len(s[1]) == 2]
    assert folder == "log"
    # Another peer can't answer for the one that was asked.
    bench.say(3, FrameKind.LISTED, 0, first, True, (("x", 1),))
    assert got == []
    bench.say(2, FrameKind.LISTED, 0, first, True, (("x", 1),))
    bench.say(3, FrameKind.PIECE, 0, first + 1, 100, b"56789")
    bench.say(3, FrameKind.PIECE, 0, first + 1, 100, b"again")
    assert got == [(("x", 1),), PeerFile(100, b"56789")]


def test_what_is_of_another_kind_is_no_answer(bench: Bench) -> None:
    got: list[object] = []
    bench.call(bench.node.list_files, 2, "log", got.append)
    [(_, (number, _))] = bench.taken(FrameKind.LIST)
    bench.say(2, FrameKind.PIECE, 0, number, 100, b"56789")
    assert got == []
    bench.say(2, FrameKind.LISTED, 0, number, True, (("x", 1),))
    assert got == [(("x", 1),)]


def test_an_answer_to_an_earlier_life_answers_nothing(bench: Bench) -> None:
    """Hunt seed 156: frames of before come again, and numbers that begin anew fit them."""
    got: list[object] = []
    bench.call(bench.node.list_files, 2, "log", got.append)
    [(_, (earlier, _))] = bench.taken(FrameKind.LIST)
    bench.host.kill()
    bench.boot()
    # Each link asks a question of its own first: the same links, so that the numbers could meet.
    bench.link(2)
    bench.link(3)
    bench.taken()
    bench.call(bench.node.list_files, 2, "log", got.append)
    assert len(bench.taken(FrameKind.LIST)) == 1
    bench.say(2, FrameKind.LISTED, 0, earlier, True, (("x", 1),))
    assert got == []


def test_no_answer_is_none(bench: Bench) -> None:
    got: list[object] = []
    bench.call(bench.node.list_files, 2, "log", got.append)
    bench.call(bench.node.read_file, 2, "log/x", 0, 10, got.append)
    bench.links.full.add(3)
    bench.call(bench.node.read_file, 3, "log/x", 0, 10, got.append)
    assert got == [None]
    bench.settle(5.1)
    assert got == [None, None, None]


def test_a_digest_goes_to_everybody_with_every_heartbeat(bench: Bench) -> None:
    bench.call(bench.node.set_digest, b"one")
    for _ in range(3):
        bench.settle(0.15)
        taken = [(number, fields[0]) for number, fields in bench.taken(FrameKind.DIGEST)]
        assert taken == [(2, b"one"), (3, b"one")]


def test_a_peers_digest_is_handed_up(bench: Bench) -> None:
    bench.say(3, FrameKind.DIGEST, 0, b"theirs", 0, -1, 0, -1, True)
    assert bench.heard.events[-1] == ("digest", 3, b"theirs", True)


def test_a_digest_of_a_peer_with_another_folder_is_an_observers(bench: Bench) -> None:
    bench.unlink(3)
    bench.link(3, directory_id=DIRECTORIES[9])
    frame = encode(FrameKind.DIGEST, 0, DIRECTORIES[9], b"theirs", 0, -1, 0, -1, True)
    bench.call(bench.node.on_frame, 3, frame)
    assert bench.heard.events[-1] == ("digest", 3, b"theirs", False)


def test_a_digest_has_a_size(bench: Bench) -> None:
    with pytest.raises(ValueError, match="512"):
        bench.node.set_digest(bytes(513))


def test_an_answer_that_nobody_asked_for_is_not_even_read(bench: Bench) -> None:
    large = encode(FrameKind.LISTED, 0, DIRECTORIES[3], 1, True, (("x", 1),) * 100_000)[:-1]
    bench.call(bench.node.list_files, 2, "log", lambda _: None)
    bench.call(bench.node.on_frame, 3, large)
    assert bench.node.context.counters == {"answer_to_no_question": 1}
    bench.call(bench.node.on_frame, 2, large)
    assert bench.node.context.counters["bad_frame"] == 1


def test_who_waits_for_a_peer_whose_link_ends_is_told_at_once(bench: Bench) -> None:
    got: list[object] = []
    bench.call(bench.node.list_files, 2, "log", lambda listed: got.append(("list of 2", listed)))
    bench.call(bench.node.read_file, 3, "log/x", 5, 10, lambda piece: got.append(("3", piece)))
    bench.unlink(2)
    assert got == [("list of 2", None)]
    bench.unlink(3)
    assert got == [("list of 2", None), ("3", None)]
