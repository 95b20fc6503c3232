"""Callers who wait for an answer: each has one answer, and one timer serves all."""

import pytest

from controller.leader.answer_waits import AnswerWaits
from metadata.errors import ErrorCode
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


class Bench:
    def __init__(self):
        self.world = World(1)
        self.process = SimulatedProcess(self.world, 1)
        self.clock = self.process.clock
        self.timers = 0
        self.waits = AnswerWaits(self, 10.0)
        self.answers = {}

    def monotonic(self):
        return self.clock.monotonic()

    def wall_ms(self):
        return self.clock.wall_ms()

    def call_soon(self, callback):
        self.clock.call_soon(callback)

    def call_later(self, delay_s, callback):
        self.timers += 1
        return self.clock.call_later(delay_s, callback)

    def wait(self, name):
        wait = self.waits.of(lambda outcome: self.answers.setdefault(name, []).append(outcome))
        self.process.run(lambda: self.waits.add(wait))
        return wait


@pytest.fixture
def bench():
    return Bench()


def test_each_is_answered_once_and_those_whose_time_ends_get_an_error(bench):
    early = bench.wait("early")
    bench.wait("late")
    bench.world.run_for(5.0)
    last = bench.wait("last")
    early.answer("done")
    early.answer("again")
    bench.world.run_for(5.1)
    assert bench.answers["early"] == ["done"]
    (timed_out,) = bench.answers["late"]
    assert timed_out.code is ErrorCode.REQUEST_TIMED_OUT
    assert "last" not in bench.answers
    bench.world.run_for(5.0)
    assert bench.answers["last"][0].code is ErrorCode.REQUEST_TIMED_OUT
    last.answer("too late")
    assert [len(given) for given in bench.answers.values()] == [1, 1, 1]
    assert len(bench.waits) == 0


def test_one_timer_serves_a_thousand(bench):
    for number in range(1_000):
        bench.wait(number).answer("done")
    assert bench.timers == 1
    assert len(bench.waits) == 1, "those that are answered are not kept"
    bench.world.run_for(60.0)
    assert bench.timers == 1


def test_a_caller_who_comes_while_others_time_out_waits_as_long(bench):
    wait = bench.waits.of(lambda _outcome: bench.wait("next"))
    bench.process.run(lambda: bench.waits.add(wait))
    bench.world.run_for(10.1)
    assert bench.answers == {}
    bench.world.run_for(10.1)
    assert [o.code for o in bench.answers["next"]] == [ErrorCode.REQUEST_TIMED_OUT]
