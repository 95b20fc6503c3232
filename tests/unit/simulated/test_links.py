"""Links: greetings, order, how ends show, cuts, and the faults beyond the promise."""

import itertools
from collections.abc import Callable

import pytest

from runtime.links.interface import FRAME_BYTES_MAX, LinkEnd
from runtime.simulated.host import SimulatedHost
from runtime.simulated.links import QUEUE_BYTES_MAX, SimulatedLinks
from runtime.simulated.network import SILENCE_US, PathProfile, SimulatedNetwork
from runtime.simulated.world import US, SimulationFailedError, World


class Node:
    """Records all calls of its links."""

    def __init__(self, room: "Room", node_id: int) -> None:
        self.id = node_id
        self.room = room
        self.host = SimulatedHost(room.world, room.network, node_id)
        self.greets_as = str(node_id).encode()
        self.refuses: str | None = None
        self.rejections: list[str] = []

    def boot(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.told: list[tuple[int, int, object]] = []
        process = self.host.boot()
        self.links = self.host.links(self.rejections.append)

        def start() -> None:
            self.links.set_peers(self.room.peers)
            self.links.start(self)

        process.run(start)

    def events(self) -> list[tuple[int, object]]:
        return [(node_id, what) for _, node_id, what in self.told]

    def linked(self) -> list[int]:
        up: list[int] = []
        for _, node_id, what in self.told:
            if what == "up":
                up.append(node_id)
            elif node_id in up:
                up.remove(node_id)
        return sorted(up)

    def greeting(self) -> bytes:
        return self.greets_as

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        return self.refuses or int(greeting)

    def on_link_up(self, node_id: int) -> None:
        assert node_id not in self.linked()
        self.told.append((self.room.world.now_us, node_id, "up"))

    def on_frame(self, node_id: int, frame: bytes) -> None:
        assert node_id in self.linked()
        self.frames.append((node_id, frame))

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        self.told.append((self.room.world.now_us, node_id, end))


class Room:
    def __init__(self, seed: int = 1, size: int = 2) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.peers = tuple(self.network.peer(n) for n in range(1, size + 1))
        self.nodes = [Node(self, n) for n in range(1, size + 1)]

    def up(self, settle: float = 1.0) -> list[Node]:
        for node in self.nodes:
            node.boot()
        self.world.run_for(settle)
        return self.nodes

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        return self.world.run_for(seconds, until)


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.mark.parametrize("seed", range(20))
def test_nodes_find_each_other_once(seed: int) -> None:
    nodes = Room(seed, size=5).up()
    for node in nodes:
        others = [n.id for n in nodes if n is not node]
        assert node.linked() == others
        assert [what for _, what in node.events() if what == "up"] == ["up"] * 4


def test_frames_arrive_whole_and_in_order(room: Room) -> None:
    one, two = room.up()
    sent = [b"%d" % number * (number % 50 + 1) for number in range(500)]

    def send() -> None:
        for frame in sent[len(two.frames) :][:10]:
            assert one.links.send(2, frame)
        if len(two.frames) < len(sent):
            one.host.process.clock.call_later(0.01, send)

    one.host.process.run(send)
    room.run(3)
    assert [frame for _, frame in two.frames] == sent


def test_a_killed_peer_is_reset_then_refused_within_a_few_milliseconds() -> None:
    for seed in range(10):
        room = Room(seed)
        one, two = room.up()
        one.told.clear()
        killed_us = room.world.now_us
        two.host.kill()
        room.run(0.015)
        assert one.events()[:2] == [(2, LinkEnd.RESET), (2, LinkEnd.REFUSED)]
        assert not one.links.send(2, b"x")
        assert one.told[1][0] - killed_us < 13_000
        two.boot()
        room.run(1)
        assert one.linked() == [2]
        assert two.linked() == [1]


def test_a_peer_without_power_says_nothing_until_the_time_is_out(room: Room) -> None:
    one, two = room.up()
    one.told.clear()
    two.host.lose_power()
    room.run(4.9)
    assert one.events() == []
    assert one.links.send(2, b"into the void")
    room.run(2)
    assert set(one.events()) == {(2, LinkEnd.UNREACHABLE)}
    assert len(one.events()) >= 2


def test_a_machine_that_is_back_resets_what_it_does_not_know(room: Room) -> None:
    one, two = room.up()
    two.host.lose_power()
    # As soon as it runs, but before it listens.
    two.host.boot()
    one.told.clear()
    one.links.send(2, b"for the old life")
    room.run(0.02)
    assert one.events()[0] == (2, LinkEnd.RESET)


def test_a_paused_peer_shows_as_nothing_and_reads_all_later(room: Room) -> None:
    one, two = room.up()
    one.told.clear()
    two.host.pause()
    sent = [b"%d" % number for number in range(50)]
    for frame in sent:
        assert one.links.send(2, frame)
    room.run(30)
    assert one.events() == []
    assert two.frames == []
    two.host.resume()
    room.run(1)
    assert [frame for _, frame in two.frames] == sent


def test_a_dial_to_a_paused_peer_times_out(room: Room) -> None:
    one, two = room.up()
    two.host.pause()
    one.host.kill()
    one.boot()
    room.run(1.5)
    assert one.events() == [(2, LinkEnd.UNREACHABLE)]
    two.host.resume()
    room.run(1)
    assert one.linked() == [2]
    assert two.linked() == [1]


def test_a_full_queue_refuses_frames(room: Room) -> None:
    one, two = room.up()
    two.host.pause()
    frame = bytes(FRAME_BYTES_MAX)
    taken = 0
    while one.links.send(2, frame):
        taken += 1
    assert taken == QUEUE_BYTES_MAX // FRAME_BYTES_MAX
    two.host.resume()
    room.run(5)
    assert len(two.frames) == taken
    assert one.links.send(2, frame)
    for bad in (b"", bytes(FRAME_BYTES_MAX + 1)):
        with pytest.raises(AssertionError):
            one.links.send(2, bad)


def test_a_greeting_that_is_not_accepted_opens_nothing(room: Room) -> None:
    one, two = room.nodes
    two.refuses = "another cluster"
    room.up(settle=2)
    assert one.linked() == two.linked() == []
    assert set(two.rejections) == {"another cluster"}
    assert all(what == LinkEnd.REJECTED or what == "up" for _, what in one.events())
    two.refuses = None
    room.run(2)
    assert one.linked() == [2]


@pytest.mark.parametrize("liar", [b"1", b"7"])
def test_a_peer_that_is_someone_else_is_not_accepted(room: Room, liar: bytes) -> None:
    one, two = room.nodes
    two.greets_as = liar
    room.up(settle=1)
    assert 2 not in [node_id for node_id, what in one.events() if what == "up"]
    assert any("where node 2 was expected" in text for text in one.rejections)


def test_an_orderly_stop_and_a_changed_set_of_peers(room: Room) -> None:
    one, two = room.up()
    one.told.clear()
    two.told.clear()
    two.links.stop()
    room.run(0.5)
    assert one.events()[0] == (2, LinkEnd.CLOSED)
    assert set(one.events()[1:]) == {(2, LinkEnd.REFUSED)}
    assert two.events() == []
    two.host.kill()
    two.boot()
    room.run(1)
    assert one.linked() == [2]
    one.told.clear()
    two.links.set_peers(())
    one.links.set_peers(())
    room.run(1)
    assert one.events() == [(2, LinkEnd.CLOSED)]


def test_an_address_serves_one_process(room: Room) -> None:
    one, _ = room.up()
    again = SimulatedLinks(room.network, one.host.process)
    with pytest.raises(OSError, match="in use"):
        again.start(one)


def test_a_one_way_cut_loses_what_goes_that_way_only(room: Room) -> None:
    one, two = room.up()
    room.network.block(1, 2)
    one.links.send(2, b"lost")
    two.links.send(1, b"comes through")
    room.run(1)
    assert two.frames == []
    assert one.frames == [(2, b"comes through")]
    room.network.unblock(1, 2)
    one.links.send(2, b"after")
    room.run(1)
    assert two.frames == [(1, b"after")]


def test_what_a_held_cut_keeps_arrives_after_it_in_order(room: Room) -> None:
    one, two = room.up()
    room.network.cut([1], [2], hold=True)
    one.links.send(2, b"a")
    one.links.send(2, b"b")
    room.run(2)
    assert two.frames == []
    room.network.mend([1], [2])
    one.links.send(2, b"c")
    room.run(1)
    assert [frame for _, frame in two.frames] == [b"a", b"b", b"c"]


def test_a_long_cut_breaks_the_link_on_both_sides_and_it_comes_back(room: Room) -> None:
    one, two = room.up()
    one.told.clear()
    two.told.clear()
    room.network.cut([1], [2])
    # A short mend in between starts the time anew.
    room.run(3)
    room.network.mend([1], [2])
    room.network.cut([1], [2])
    room.run(3)
    assert one.events() == two.events() == []
    room.run(SILENCE_US / US)
    assert one.events()[0] == (2, LinkEnd.UNREACHABLE)
    assert two.events()[0] == (1, LinkEnd.UNREACHABLE)
    room.network.heal()
    room.run(2)
    assert one.linked() == [2]
    assert two.linked() == [1]


def test_cuts_that_overlap_end_with_the_last(room: Room) -> None:
    one, two = room.up()
    room.network.cut([1], [2])
    room.network.block(1, 2)
    room.network.mend([1], [2])
    assert room.network.path(1, 2).blocked
    assert not room.network.path(2, 1).blocked
    room.network.unblock(1, 2)
    one.links.send(2, b"x")
    room.run(1)
    assert two.frames == [(1, b"x")]


def test_a_reset_is_seen_by_both_and_mended_at_once(room: Room) -> None:
    one, two = room.up()
    one.links.reset(2)
    room.run(0.02)
    assert one.events() == [(2, "up"), (2, LinkEnd.RESET), (2, "up")]
    assert two.events() == [(1, "up"), (1, LinkEnd.RESET), (1, "up")]


def test_who_sends_into_a_connection_that_is_over_is_told(room: Room) -> None:
    """Cluster seed 163422: word of the end was lost, and a leader sent into nothing for ever."""
    one, two = room.up()
    room.network.block(1, 2)
    one.links.set_peers(())
    room.run(0.1)
    assert (one.linked(), two.linked()) == ([], [1])
    room.network.unblock(1, 2)
    two.links.send(1, b"is anybody there?")
    room.run(0.1)
    assert one.frames == []
    assert two.events()[1] == (1, LinkEnd.RESET)


def arrivals(profile: PathProfile, count: int = 2_000) -> list[int]:
    room = Room(5)
    one, two = room.up()
    room.network.set_profile(profile)

    def send(number: int) -> None:
        one.links.send(2, b"%d" % number)
        if number + 1 < count:
            one.host.process.clock.call_later(0.001, lambda: send(number + 1))

    one.host.process.run(lambda: send(0))
    room.run(count / 1000 + 5)
    return [int(frame) for _, frame in two.frames]


def test_loss_takes_its_share_and_leaves_the_order() -> None:
    came = arrivals(PathProfile(loss=0.3))
    assert 0.6 < len(came) / 2_000 < 0.8
    assert came == sorted(set(came))


def test_duplicates_come_twice() -> None:
    came = arrivals(PathProfile(duplicate=0.1))
    assert set(came) == set(range(2_000))
    assert 0.05 < len(came) / 2_000 - 1 < 0.15


def test_late_frames_are_overtaken() -> None:
    came = arrivals(PathProfile(late=0.1))
    assert sorted(came) == list(range(2_000))
    overtaken = sum(a > b for a, b in itertools.pairwise(came))
    assert 100 < overtaken < 300


def test_old_frames_come_again_in_another_life_of_the_link() -> None:
    room = Room(5)
    one, two = room.up()
    room.network.set_profile(PathProfile(replay=0.3))
    for number in range(300):
        one.links.send(2, b"first life %d" % number)
    room.run(1)
    two.host.kill()
    two.boot()
    room.run(1)
    for number in range(300):
        one.links.send(2, b"second life %d" % number)
    room.run(1)
    old = [frame for _, frame in two.frames if frame.startswith(b"first")]
    assert len(old) > 20
    assert len(two.frames) - len(old) >= 300


def test_an_exception_of_a_handler_fails_the_run(room: Room) -> None:
    one, two = room.up()
    two.on_frame = lambda node_id, frame: 1 / 0
    one.links.send(2, b"x")
    with pytest.raises(SimulationFailedError, match="node 2: ZeroDivisionError"):
        room.run(1)
