"""Requests are answered, refused, lost or late; each is settled exactly once."""

from collections.abc import Callable

import pytest

from runtime.http.requests import Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import PathProfile, SimulatedNetwork
from runtime.simulated.requests import SimulatedServer
from runtime.simulated.world import World

URL = "https://controller-1:9000"
GET = Request("GET", "/", body=b"question")


class Room:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.server_host = SimulatedHost(self.world, self.network, 1)
        self.client_host = SimulatedHost(self.world, self.network, 101)
        self.client_host.boot()
        self.requests = self.client_host.requests()
        self.served: list[Request] = []
        self.replies: list[Callable[[Reply], None]] = []
        self.answers_at_once = True
        self.outcomes: list[Reply | Unreachable] = []

    def serve(self) -> SimulatedServer:
        return SimulatedServer(self.network, self.server_host.boot(), URL, self.handle)

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        self.served.append(request)
        if self.answers_at_once:
            reply(Reply(200, b"answer"))
        else:
            self.replies.append(reply)

    def ask(self, deadline_s: float = 2.0) -> Reply | Unreachable | None:
        before = len(self.outcomes)
        self.requests.request(URL, GET, self.outcomes.append, deadline_s)
        self.world.run_for(0)
        assert len(self.outcomes) == before, "a reply comes later, on the loop"
        self.world.run_for(deadline_s + 1)
        assert len(self.outcomes) <= before + 1
        return self.outcomes[-1] if len(self.outcomes) > before else None


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_request_is_answered(room: Room) -> None:
    room.serve()
    assert room.ask() == Reply(200, b"answer")
    assert room.served == [GET]


def test_a_server_that_does_not_run_refuses(room: Room) -> None:
    assert room.requests
    room.requests.request(URL, GET, room.outcomes.append, 1)
    room.world.run_for(2)
    assert room.outcomes == [Unreachable("refused (simulated)", refused=True)]
    server = room.serve()
    server.stop()
    outcome = room.ask()
    assert isinstance(outcome, Unreachable)
    assert outcome.refused
    room.server_host.kill()
    outcome = room.ask()
    assert isinstance(outcome, Unreachable)
    assert outcome.refused


def test_a_server_without_power_or_paused_does_not_answer_at_all(room: Room) -> None:
    room.serve()
    room.server_host.pause()
    assert room.ask() == Unreachable("no answer within 2.0 s")
    assert room.served == []
    room.server_host.resume()
    room.world.run_for(1)
    # The caller has gone, but its request has its effect.
    assert room.served == [GET]
    assert len(room.outcomes) == 1
    room.server_host.lose_power()
    assert room.ask() == Unreachable("no answer within 2.0 s")


def test_a_kill_with_requests_under_way_resets_them(room: Room) -> None:
    room.serve()
    room.answers_at_once = False
    room.requests.request(URL, GET, room.outcomes.append, 30)
    room.world.run_for(1)
    room.server_host.kill()
    room.world.run_for(1)
    assert room.outcomes == [Unreachable("the connection was reset (simulated)")]
    room.replies[0](Reply(200))
    room.world.run_for(60)
    assert len(room.outcomes) == 1


def test_a_late_answer_is_not_heard(room: Room) -> None:
    room.serve()
    room.answers_at_once = False
    assert room.ask(0.5) == Unreachable("no answer within 0.5 s")
    room.replies[0](Reply(200))
    room.world.run_for(1)
    assert len(room.outcomes) == 1
    with pytest.raises(AssertionError, match="answered once"):
        room.replies[0](Reply(200))


def test_an_abandoned_request_is_not_answered(room: Room) -> None:
    room.serve()
    pending = room.requests.request(URL, GET, room.outcomes.append, 1)
    pending.abandon()
    room.world.run_for(3)
    assert room.served == [GET]
    assert room.outcomes == []


def test_a_dead_caller_hears_nothing(room: Room) -> None:
    room.serve()
    room.requests.request(URL, GET, room.outcomes.append, 1)
    room.client_host.kill()
    room.requests.request(URL, GET, room.outcomes.append, 1)
    room.world.run_for(3)
    assert room.served == [GET]
    assert room.outcomes == []


def test_the_request_or_its_reply_can_be_cut_off(room: Room) -> None:
    room.serve()
    room.network.block(101, 1)
    assert isinstance(room.ask(), Unreachable)
    assert room.served == []
    room.network.unblock(101, 1)
    room.network.block(1, 101)
    assert isinstance(room.ask(), Unreachable)
    assert room.served == [GET]
    room.network.heal()
    assert room.ask() == Reply(200, b"answer")


def test_loss_takes_requests_and_replies(room: Room) -> None:
    room.serve()
    room.network.set_profile(PathProfile(loss=0.3))
    outcomes = [room.ask() for _ in range(200)]
    answered = sum(isinstance(outcome, Reply) for outcome in outcomes)
    assert 0.35 < answered / 200 < 0.65
    assert answered < len(room.served) < 180


def test_requests_come_twice_only_when_asked_for(room: Room) -> None:
    room.serve()
    for _ in range(50):
        room.ask()
    assert len(room.served) == 50
    room.network.set_profile(PathProfile(duplicate=0.5))
    for _ in range(100):
        assert room.ask() == Reply(200, b"answer")
    assert 180 < len(room.served) < 220


def test_a_url_serves_one_living_process(room: Room) -> None:
    room.serve()
    with pytest.raises(OSError, match="in use"):
        SimulatedServer(room.network, room.server_host.process, URL, room.handle)
    room.server_host.kill()
    room.serve()
    assert room.ask() == Reply(200, b"answer")
