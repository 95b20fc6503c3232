"""Long lists in slices, steps that follow one another, and large requests that are freed."""

import pytest

from kafka_listener.asking.in_steps import distinct, each, for_each, run
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.letting_go import let_go
from kafka_listener.asking.request import KafkaFailure
from kafka_listener.asking.turns import Turns
from metadata.steps import finished
from tests.unit.kafka_listener.serving_kit import HandClock, TickingClock


def test_each_element_is_made_in_order_with_pauses():
    steps = each(str, range(1_000))
    assert sum(1 for _ in steps) == 1_000 // 64
    assert finished(each(str, range(3))) == ("0", "1", "2")
    noted = []
    for _ in for_each(noted.append, range(500)):
        assert len(noted) % 64 == 0
    assert noted == list(range(500))
    assert list(distinct("abcab")) == ["a", "b", "c"]


@pytest.mark.parametrize("error", [KafkaFailure(KafkaCode.INVALID_REQUEST), ZeroDivisionError()])
def test_an_early_error_is_raised_and_a_late_one_is_told(error):
    def fails_after(count):
        yield from range(count)
        raise error

    clock, told = TickingClock(), []
    with pytest.raises(type(error)):
        run(clock, fails_after(0), told.append, at_once=True)
    assert told == []
    run(clock, fails_after(0), told.append, at_once=False)
    run(clock, fails_after(100), told.append, at_once=True)
    assert told == []
    clock.run(10)
    assert told == [error, error]


def raised(error):
    raise error


def test_a_step_that_fails_in_a_later_turn_never_reaches_the_loop():
    """There it would end the process, and the repeated request the next controller's."""

    def step():
        done.append(1)
        if len(done) == 500:
            raise ZeroDivisionError
        turns.next()

    clock, done, told = TickingClock(), [], []
    turns = Turns(clock, step, told.append)
    turns.next()
    assert told == []
    clock.run(100)
    assert [type(error) for error in told] == [ZeroDivisionError]
    turns.next()
    clock.run(10)
    assert len(done) > 500


def test_steps_that_are_answered_at_once_take_slices():
    done = []

    def step():
        done.append(len(done))
        if len(done) < 1_000:
            turns.next()

    clock = TickingClock()
    turns = Turns(clock, step, raised)
    turns.next()
    assert 0 < len(done) < 20
    clock.run(10)
    assert done == list(range(1_000))


def test_a_step_that_fails_does_not_block_the_next():
    def step():
        done.append(1)
        if len(done) == 1:
            raise ZeroDivisionError

    done = []
    turns = Turns(HandClock(), step, raised)
    with pytest.raises(ZeroDivisionError):
        turns.next()
    turns.next()
    assert len(done) == 2


def test_a_large_request_is_emptied_in_slices_and_a_small_one_is_left():
    inner = [{"Partitions": [{"Index": n} for n in range(1_000)], "Ids": [1, 2]} for _ in range(4)]
    fields = {"Topics": inner, "Name": "a"}
    clock = TickingClock()
    let_go(clock, fields, 100)
    clock.run(10)
    assert len(fields["Topics"]) == 4
    let_go(clock, fields, 4_004)
    assert len(fields["Topics"]) == 4
    clock.run(10)
    assert fields == {"Topics": [], "Name": "a"}
    assert all(topic == {"Partitions": [], "Ids": []} for topic in inner)
