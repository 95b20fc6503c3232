"""What all links promise to the cores: `runtime.links.interface`, sentence by sentence."""

from collections.abc import Callable

import pytest

from runtime.links.interface import FRAME_BYTES_MAX, LinkEnd, PeerLinks
from tests.conformance.link_kits import LinkKit, Recorder

Start = Callable[[int], tuple[PeerLinks, Recorder]]


@pytest.fixture
def start(link_kit: LinkKit) -> Start:
    def start_node(node_id: int) -> tuple[PeerLinks, Recorder]:
        links, recorder = link_kit.node(node_id), Recorder(node_id)
        links.start(recorder)
        links.set_peers(link_kit.peers())
        return links, recorder

    return start_node


def linked(one: Recorder, two: Recorder) -> bool:
    return one.is_linked(two.node_id) and two.is_linked(one.node_id)


def about(recorder: Recorder, node_id: int) -> list[tuple[object, ...]]:
    """What was heard about one node: others that are not started are refused all the time."""
    return [entry for entry in recorder.heard if entry[1] == node_id]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_two_nodes_find_each_other_in_either_order(
    link_kit: LinkKit, start: Start, order: tuple[int, int]
) -> None:
    _, first = start(order[0])
    link_kit.settle(lambda: ("down", order[1], LinkEnd.REFUSED) in first.heard)
    _, second = start(order[1])
    link_kit.settle(lambda: linked(first, second))


@pytest.mark.slow
def test_there_is_one_link_a_pair_and_it_stays(link_kit: LinkKit, start: Start) -> None:
    recorders = [start(node_id)[1] for node_id in (1, 2, 3)]
    link_kit.settle(lambda: all(linked(a, b) for a in recorders for b in recorders if a != b))
    link_kit.pass_time(1.0)
    for recorder in recorders:
        ups = [entry[1] for entry in recorder.heard if entry[0] == "up"]
        assert len(ups) == 2
        assert set(ups) == {1, 2, 3} - {recorder.node_id}


def test_frames_arrive_whole_and_in_order_in_both_directions(
    link_kit: LinkKit, start: Start
) -> None:
    (one, heard_one), (two, heard_two) = start(1), start(2)
    link_kit.settle(lambda: linked(heard_one, heard_two))
    frames = [bytes([n % 256]) * size for n, size in enumerate([1, 7, 8, 9, 300, 70_000, 2, 1_500])]
    for frame in frames:
        assert one.send(2, frame)
        assert two.send(1, frame[::-1])
    link_kit.settle(lambda: len(heard_two.frames()) == len(heard_one.frames()) == len(frames))
    assert heard_two.frames() == frames
    assert heard_one.frames() == [frame[::-1] for frame in frames]


def test_the_largest_frame_arrives(link_kit: LinkKit, start: Start) -> None:
    (one, heard_one), (_, heard_two) = start(1), start(2)
    link_kit.settle(lambda: linked(heard_one, heard_two))
    frame = bytes(range(256)) * (FRAME_BYTES_MAX // 256)
    assert one.send(2, frame)
    link_kit.settle(lambda: bool(heard_two.frames()))
    assert heard_two.frames() == [frame]


def test_a_frame_to_nobody_is_dropped(link_kit: LinkKit, start: Start) -> None:
    one, heard = start(1)
    assert not one.send(2, b"x")
    assert not one.send(77, b"x")
    link_kit.settle(lambda: ("down", 2, LinkEnd.REFUSED) in heard.heard)
    assert not one.send(2, b"x")


def test_a_handler_may_answer_at_once(link_kit: LinkKit, start: Start) -> None:
    (one, heard_one), (two, heard_two) = start(1), start(2)
    heard_two.on_frame_do = lambda node_id, frame: two.send(node_id, frame + b"!") and None
    link_kit.settle(lambda: linked(heard_one, heard_two))
    one.send(2, b"hello")
    link_kit.settle(lambda: heard_one.frames() == [b"hello!"])


@pytest.mark.parametrize(("dying", "living"), [(1, 2), (2, 1)])
def test_a_killed_peer_is_reset_then_refused_on_either_side(
    link_kit: LinkKit, start: Start, dying: int, living: int
) -> None:
    (_, heard), (_, other) = start(living), start(dying)
    link_kit.settle(lambda: linked(heard, other))
    link_kit.pass_time(0.2)
    before = len(about(heard, dying))
    link_kit.kill(dying)
    link_kit.settle(lambda: ("down", dying, LinkEnd.REFUSED) in about(heard, dying)[before:])
    assert about(heard, dying)[before : before + 2] == [
        ("down", dying, LinkEnd.RESET),
        ("down", dying, LinkEnd.REFUSED),
    ]


@pytest.mark.parametrize(("leaving", "staying"), [(1, 2), (2, 1)])
def test_a_peer_that_stops_in_order_is_closed(
    link_kit: LinkKit, start: Start, leaving: int, staying: int
) -> None:
    (_, heard), (links, other) = start(staying), start(leaving)
    link_kit.settle(lambda: linked(heard, other))
    before = len(about(heard, leaving))
    links.stop()
    link_kit.settle(lambda: len(about(heard, leaving)) > before)
    assert about(heard, leaving)[before] == ("down", leaving, LinkEnd.CLOSED)


def test_who_stopped_is_not_called_any_more(link_kit: LinkKit, start: Start) -> None:
    (one, heard_one), (_, heard_two) = start(1), start(2)
    link_kit.settle(lambda: linked(heard_one, heard_two))
    one.stop()
    before = list(heard_one.heard)
    link_kit.settle(lambda: not heard_two.is_linked(1))
    assert heard_one.heard == before


@pytest.mark.parametrize(("dying", "living"), [(1, 2), (2, 1)])
def test_a_peer_that_comes_back_is_linked_again(
    link_kit: LinkKit, start: Start, dying: int, living: int
) -> None:
    (links, heard), (_, other) = start(living), start(dying)
    link_kit.settle(lambda: linked(heard, other))
    link_kit.kill(dying)
    link_kit.settle(lambda: not heard.is_linked(dying))
    _, again = start(dying)
    link_kit.settle(lambda: linked(heard, again))
    assert links.send(dying, b"welcome back")
    link_kit.settle(lambda: again.frames() == [b"welcome back"])


def test_a_greeting_that_is_not_accepted_makes_no_link(link_kit: LinkKit, start: Start) -> None:
    _, heard_one = start(1)
    heard_one.refuse = "the cluster ids differ"
    _, heard_two = start(2)
    link_kit.pass_time(0.5)
    assert not heard_one.is_linked(2)
    assert not heard_two.is_linked(1)
    heard_one.refuse = None
    link_kit.settle(lambda: linked(heard_one, heard_two))


def test_a_peer_that_is_left_out_loses_its_link(link_kit: LinkKit, start: Start) -> None:
    (one, heard_one), (_, heard_two) = start(1), start(2)
    link_kit.settle(lambda: linked(heard_one, heard_two))
    heard_two.refuse = heard_one.refuse = "no peer"
    one.set_peers((link_kit.peers()[0], link_kit.peers()[2]))
    link_kit.settle(lambda: not heard_one.is_linked(2) and not heard_two.is_linked(1))
    assert not one.send(2, b"x")
