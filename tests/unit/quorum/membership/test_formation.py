"""The first start, and which peers may link afterwards."""

from typing import Any

import pytest

from quorum.membership.formation import encode_formation
from quorum.membership.greeting import certificate_name, decode_greeting
from quorum.wire.codec import dumps
from quorum.wire.frames import FrameKind
from tests.unit.quorum.bench import CLUSTER, DIRECTORIES, Bench, formation


def me(bench: Bench) -> bytes:
    return bench.node.context.journal.directory_id


def all_of(bench: Bench, *numbers: int) -> bytes:
    return formation((1, me(bench)), *((number, DIRECTORIES[number]) for number in numbers))


def test_nothing_is_formed_before_every_configured_controller_is_there() -> None:
    bench = Bench(formed=False)
    bench.link(2)
    bench.settle(5)
    assert bench.node.voters() == ()
    assert "not here: [3]" in bench.node.status().note
    bench.link(3)
    assert [voter.node_id for voter in bench.node.voters()] == [1, 2, 3]
    bench.synced()
    assert bench.taken(FrameKind.FORMATION) == [
        (2, (all_of(bench, 2, 3),)),
        (3, (all_of(bench, 2, 3),)),
    ]


def greeted(bench: Bench) -> tuple[bool, bytes]:
    """What the node greets with: whether it is empty, and its formation."""
    greeting = decode_greeting(bench.node.greeting())
    return greeting.empty, greeting.formation


def test_it_tells_nobody_of_a_formation_that_it_may_still_forget() -> None:
    """Who hears of it counts as not empty any more, and does not write it unless it votes."""
    bench = Bench(formed=False)
    bench.link(2)
    bench.stick_disk()
    bench.link(3)
    bench.settle(1.0)
    assert bench.node.context.voters.we_vote
    assert greeted(bench) == (False, b"")
    assert bench.taken(FrameKind.FORMATION) == []
    bench.unlink(3)
    bench.link(3)
    assert bench.taken(FrameKind.FORMATION) == []
    bench.free_disk()
    assert greeted(bench) == (False, all_of(bench, 2, 3))
    assert {number for number, _ in bench.taken(FrameKind.FORMATION)} == {2, 3}


def test_it_tells_it_again_until_the_peer_shows_that_it_has_it() -> None:
    """A frame may be lost on a link that stays open."""
    bench = Bench()
    bench.synced()
    bench.taken()
    bench.settle(0.6)
    assert {number for number, _ in bench.taken(FrameKind.FORMATION)} == {2, 3}
    bench.say(2, FrameKind.FORMATION, 0, all_of(bench, 2, 3))
    bench.taken()
    bench.settle(0.6)
    assert {number for number, _ in bench.taken(FrameKind.FORMATION)} == {3}
    bench.unlink(3)
    bench.link(3, empty=False, formation=all_of(bench, 2, 3))
    bench.taken()
    bench.settle(3)
    assert bench.taken(FrameKind.FORMATION) == []


def test_an_observer_that_does_not_write_it_hears_it_once_in_an_election_timeout() -> None:
    bench = Bench()
    for number in (2, 3):
        bench.say(number, FrameKind.FORMATION, 0, all_of(bench, 2, 3))
    bench.unlink(3)
    bench.link(3, directory_id=DIRECTORIES[9], empty=False)
    bench.synced()
    bench.taken()
    bench.settle(5)
    assert 8 <= len(bench.taken(FrameKind.FORMATION)) <= 11


def test_an_observer_tells_nobody() -> None:
    bench = Bench(formed=False)
    others = formation((1, b"o" * 16), (2, DIRECTORIES[2]), (3, DIRECTORIES[3]))
    bench.link(2, empty=False, formation=others)
    bench.link(3)
    bench.settle(3)
    assert bench.role == "observer"
    assert greeted(bench) == (False, b"")
    assert bench.taken(FrameKind.FORMATION) == []


def test_an_answer_of_a_link_that_ended_does_not_count() -> None:
    bench = Bench(formed=False)
    bench.link(2)
    bench.unlink(2)
    bench.link(3)
    assert bench.node.voters() == ()


def test_who_is_not_empty_and_has_no_formation_holds_it_up() -> None:
    """As a node whose journal was damaged does."""
    bench = Bench(formed=False)
    bench.link(2, empty=False)
    bench.link(3)
    assert bench.node.voters() == ()


def test_a_formation_that_names_our_directory_is_adopted() -> None:
    bench = Bench(formed=False)
    bench.link(2, empty=False, formation=all_of(bench, 2, 3))
    assert bench.node.context.voters.we_vote
    bench.synced()
    bench.host.lose_power()
    bench.boot()
    assert bench.node.context.voters.we_vote


def test_one_that_does_not_makes_us_an_observer_that_writes_nothing() -> None:
    bench = Bench(formed=False)
    others = formation((1, b"o" * 16), (2, DIRECTORIES[2]), (3, DIRECTORIES[3]))
    bench.link(2, empty=False, formation=others)
    assert bench.role == "observer"
    assert bench.node.context.journal.formation is None
    bench.append(2, 3, 2, 1, 0, 3)
    bench.synced()
    assert bench.heard.payloads() == [b"2/3"]
    bench.say(2, FrameKind.VOTE_REQUEST, 9, 9, 9, False)
    bench.settle(3)
    assert bench.taken(FrameKind.VOTE) == []
    assert bench.taken(FrameKind.PREVOTE_REQUEST) == []


def test_an_empty_node_hears_of_the_formation_later_too() -> None:
    bench = Bench(formed=False)
    bench.link(2)
    bench.say(2, FrameKind.FORMATION, 0, all_of(bench, 2, 3))
    assert bench.node.context.voters.we_vote


def test_peers_formed_otherwise_are_not_talked_to() -> None:
    bench = Bench()
    other = formation((1, me(bench)), (2, DIRECTORIES[2]), (3, b"o" * 16))
    bench.unlink(2)
    refused = bench.link(2, empty=False, formation=other)
    assert "formed with other voters" in str(refused)
    bench.say(3, FrameKind.FORMATION, 0, other)
    bench.append(3, 5, 1, 1, 0)
    assert bench.term == 0


def test_a_formation_of_another_cluster_or_of_rubbish_is_refused() -> None:
    bench = Bench(formed=False)
    bench.link(2)
    for rubbish in (
        encode_formation("another", {1: me(bench)}),
        b"\x93\1\2\3",
        b"x",
        b"\x92\xa1c\1",
    ):
        bench.say(2, FrameKind.FORMATION, 0, rubbish)
    assert bench.node.voters() == ()


def test_a_single_controller_forms_at_once() -> None:
    bench = Bench(1)
    assert [voter.node_id for voter in bench.node.voters()] == [1]
    bench.settle(0.5)
    assert bench.role == "leader"


def test_a_formed_node_needs_nobody_to_start_again() -> None:
    bench = Bench()
    bench.synced()
    bench.host.kill()
    bench.boot()
    assert [voter.node_id for voter in bench.node.voters()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"cluster_id": "another"}, "belongs to cluster another"),
        ({"wire_format": 9}, "speaks wire format 9"),
        ({"node_id": 1}, "under our node id"),
        ({"node_id": 8}, "not among the configured controllers, and no certificate says who"),
        ({"directory_id": b"short"}, "not one of a Logberg controller"),
        ({"formation": 5}, "not one of a Logberg controller"),
    ],
)
def test_a_wrong_greeting_is_refused_with_a_sentence(other: dict[str, Any], sentence: str) -> None:
    bench = Bench(formed=False)
    assert sentence in str(bench.link(2, **other))


def test_a_greeting_of_random_bytes_is_refused() -> None:
    bench = Bench(formed=False)
    for rubbish in (b"", b"GET / HTTP/1.1", b"\xff" * 40, b"\x91" * 5000):
        assert "not one of a Logberg controller" in str(bench.node.judge(None, rubbish, None))


def test_whoever_answers_must_be_whom_we_dialled() -> None:
    bench = Bench(formed=False)
    assert "node 3 was dialled" in str(bench.node.judge(3, bench.greeting_of(2), None))
    assert bench.node.judge(2, bench.greeting_of(2), None) == 2


def test_a_certificate_must_name_cluster_and_node() -> None:
    bench = Bench(formed=False)
    assert certificate_name(CLUSTER, 2) == f"quorum://{CLUSTER}/2"
    assert bench.node.judge(None, bench.greeting_of(2), certificate_name(CLUSTER, 2)) == 2
    refused = bench.node.judge(None, bench.greeting_of(2), certificate_name(CLUSTER, 3))
    assert "shows a certificate for" in str(refused)


def test_a_copy_of_our_own_folder_is_refused() -> None:
    bench = Bench(formed=False)
    assert "a copy of our folder" in str(bench.link(2, directory_id=me(bench)))


def test_a_wiped_peer_is_linked_as_an_observer() -> None:
    bench = Bench()
    bench.unlink(3)
    assert bench.link(3, directory_id=DIRECTORIES[9]) == 3
    assert bench.node.context.replicas.linked_voters()[0].node_id == 2
    assert len(bench.node.context.replicas.linked_voters()) == 1


@pytest.mark.parametrize("directory", [2**62, -1, "text", None, 1.5, ()])
def test_a_formation_of_other_things_is_refused_and_costs_nothing(directory: object) -> None:
    bench = Bench(formed=False)
    forged = dumps((CLUSTER, ((1, bench.node.context.journal.directory_id), (2, directory))))
    assert bench.link(2, empty=False, formation=forged) == 2
    assert not bench.node.context.voters.known
    assert "stopped" not in bench.heard.kinds()
