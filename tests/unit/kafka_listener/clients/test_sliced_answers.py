"""Answers that are made in slices: shared, kept, bounded, and given exactly once."""

from kafka_listener.clients.sliced_answers import SlicedAnswers
from kafka_listener.wire.body_parts import Parts
from metadata.image import EMPTY
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from tests.unit.image.replaying import replayed
from tests.unit.kafka_listener.clients.front import broker


class Slow:
    """A clock whose every reading is a slice later, so that each step takes a slice."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self._now = 0.0
        self.call_soon = clock.call_soon
        self.call_later = clock.call_later
        self.wall_ms = clock.wall_ms

    def monotonic(self) -> float:
        self._now += 0.006
        return self._now


class Maker:
    def __init__(self, **more) -> None:
        self.world = World(1)
        host = SimulatedHost(self.world, SimulatedNetwork(self.world), 1)
        self.answers = SlicedAnswers(Slow(host.boot().clock), **more)
        self.told: list[bytes | Exception] = []
        self.steps = 0

    def making(self, body: bytes, fails: bool = False):
        for _ in range(3):
            self.steps += 1
            yield
        if fails:
            raise ValueError("cannot be encoded")
        return (body,)

    def give(self, key: str, image=EMPTY, body: bytes = b"body", fails: bool = False) -> None:
        self.answers.give(image, key, lambda: self.making(body, fails), self.tell)

    def tell(self, body: Parts | Exception) -> None:
        self.told.append(body if isinstance(body, Exception) else b"".join(body))

    def run(self) -> None:
        self.world.run_for(1.0)


def test_an_answer_takes_many_slices_and_comes_once():
    maker = Maker()
    maker.give("a")
    assert (maker.told, maker.steps) == ([], 1)
    maker.run()
    assert (maker.told, maker.steps) == ([b"body"], 3)


def test_those_that_ask_meanwhile_share_the_making():
    maker = Maker()
    for _ in range(5):
        maker.give("a")
    maker.run()
    assert maker.told == [b"body"] * 5
    assert (maker.answers.made, maker.steps) == (1, 3)
    maker.give("a")
    assert len(maker.told) == 6


def test_an_answer_of_an_older_image_is_given_and_not_kept():
    maker = Maker()
    newer = replayed(broker(1))
    maker.give("a", body=b"old")
    maker.give("a", image=newer, body=b"new")
    maker.run()
    assert set(maker.told) == {b"new", b"old"}
    maker.give("a", image=newer, body=b"never made")
    assert maker.told[-1] == b"new"


def test_who_waits_is_told_when_making_fails():
    maker = Maker()
    maker.give("a", fails=True)
    maker.give("a")
    maker.run()
    assert [type(one) for one in maker.told] == [ValueError, ValueError]
    maker.give("a")
    maker.run()
    assert maker.told[-1] == b"body"


def test_what_is_kept_is_bounded():
    maker = Maker(kept_bytes_max=10)
    for key in ("a", "b", "c"):
        maker.give(key, body=b"12345")
        maker.run()
    assert maker.answers.kept_bytes == 10
    maker.give("c", body=b"again")
    maker.run()
    assert maker.told[-1] == b"again"
    maker.give("a", image=replayed(broker(1)), body=b"fresh")
    maker.run()
    assert maker.answers.kept_bytes == 5
