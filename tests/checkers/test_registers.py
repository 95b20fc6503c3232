"""The search agrees with trying every order, on histories made by hand and at random."""

import random
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.checkers.history import CREATE, DELETE, LIST, OK, REFUSED, UNKNOWN_TOPIC, Operation
from tests.checkers.registers import Step, Verdict, search, steps_of

FOREVER = float("inf")


def is_there(value):
    return (True,) if value else ()


def is_absent(value):
    return () if value else (False,)


def create(value):
    return () if value else (True,)


def delete(value):
    return (False,) if value else ()


def perhaps_create(value):
    return (True,) if value else (True, False)


def perhaps_delete(value):
    return (True, False) if value else (False,)


GOOD: dict[str, list[tuple[float, float, Any]]] = {
    "one after the other": [(1, 2, create), (3, 4, is_there), (5, 6, delete), (7, 8, is_absent)],
    "a read beside a write sees either": [(1, 6, create), (2, 3, is_absent), (4, 5, is_there)],
    "an unanswered write takes effect late": [
        (1, FOREVER, perhaps_create),
        (2, 3, is_absent),
        (4, 5, is_there),
    ],
    "an unanswered write never takes effect": [(1, FOREVER, perhaps_create), (2, 3, is_absent)],
    "two writers, one order": [(1, 8, create), (2, 7, delete), (3, 4, is_there), (9, 10, create)],
}
BAD: dict[str, list[tuple[float, float, Any]]] = {
    "stale read": [(1, 2, create), (3, 4, is_absent)],
    "lost write": [(1, 2, create), (3, 4, is_absent), (5, 6, is_absent)],
    "done twice": [(1, 2, create), (3, 4, delete), (5, 6, is_there)],
    "read from the future": [(1, 2, is_there), (3, 4, create)],
    "back and forth": [(1, 8, create), (2, 3, is_there), (4, 5, is_absent)],
    "an unanswered write undone": [
        (1, FOREVER, perhaps_create),
        (2, 3, is_there),
        (4, 5, is_absent),
    ],
    "two winners": [(1, 4, create), (2, 3, create)],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_has_an_order(name):
    assert search([Step(*step) for step in GOOD[name]]) is Verdict.LEGAL


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_has_none(name):
    assert search([Step(*step) for step in BAD[name]]) is Verdict.ILLEGAL


def every_order(steps):
    """Try them all."""
    for order in permutations(steps):
        if any(
            later.back < earlier.call
            for place, earlier in enumerate(order)
            for later in order[place + 1 :]
        ):
            continue
        values = {False}
        for step in order:
            values = {after for value in values for after in step.then(value)}
        if values:
            return Verdict.LEGAL
    return Verdict.ILLEGAL


KINDS = (create, delete, is_there, is_absent, perhaps_create, perhaps_delete)


def drawn(dice, kinds=KINDS):
    """A few steps of a few clients, each with one at a time."""
    count = dice.randint(2, 6)
    places = dice.sample(range(100), 2 * count)
    steps = []
    for number in range(count):
        call, back = sorted(places[2 * number : 2 * number + 2])
        then = dice.choice(kinds)
        steps.append(Step(call, FOREVER if then.__name__.startswith("perhaps") else back, then))
    return steps


def test_it_agrees_with_trying_every_order():
    dice, verdicts = random.Random(4), {Verdict.LEGAL: 0, Verdict.ILLEGAL: 0}
    for _ in range(3_000):
        steps = drawn(dice)
        verdict = search(steps)
        assert verdict is every_order(steps)
        verdicts[verdict] += 1
    assert min(verdicts.values()) > 600


PERHAPS = {create: perhaps_create, delete: perhaps_delete}


def test_steps_of_unknown_outcome_may_be_left_out_and_stand_for_one_another():
    dice, verdicts = random.Random(7), {Verdict.LEGAL: 0, Verdict.ILLEGAL: 0}
    for _ in range(2_000):
        steps = [
            replace(step, back=FOREVER) if step.then in PERHAPS and dice.random() < 0.6 else step
            for step in drawn(dice, (create, delete, create, delete, is_there, is_absent))
        ]
        told = [
            Step(step.call, step.back, PERHAPS[step.then]) if step.unknown else step
            for step in steps
        ]
        verdict = search(steps)
        assert verdict is every_order(told)
        verdicts[verdict] += 1
    assert min(verdicts.values()) > 400


def test_a_crowd_of_unknown_outcomes_is_no_reason_to_give_up():
    """As in seed 124 of the kind `drawn`: many clients without answers, and a few reads."""
    steps = [Step(n, FOREVER, delete if n % 2 else create) for n in range(100)]
    steps += [Step(200 + n, 300 + n, is_there if n % 3 else is_absent) for n in range(60)]
    assert search(steps, most=500) is Verdict.LEGAL
    turns = range(400, 400 + 4 * 60, 4)
    more = [Step(n, n + 1, is_there) for n in turns] + [
        Step(n + 2, n + 3, is_absent) for n in turns
    ]
    assert search([*steps, *more]) is Verdict.ILLEGAL


def test_it_gives_up_in_time_and_says_so():
    steps = [Step(n, 1_000 + n, is_absent) for n in range(40)]
    steps += [Step(50 + n, 900, create if n % 2 else delete) for n in range(20)]
    steps += [Step(2_000, 2_001, is_there)]
    assert search(steps, most=2_000) is Verdict.GAVE_UP


def test_a_long_quiet_history_takes_a_step_for_each_operation():
    steps = []
    for n in range(1_000):
        steps.append(Step(4 * n, 4 * n + 3, delete if n % 2 else create))
        steps.append(Step(4 * n + 1, 4 * n + 2, is_there))
    assert search(steps, most=4 * len(steps)) is Verdict.LEGAL


def told(kind, call, back, outcome=OK, **about):
    made = Operation(kind, call, 0, "client", **about)
    if back is not None:
        made.told(back, 0, outcome, None)
    return made


def test_answers_become_steps():
    answers = [
        told(CREATE, 1, 2, topic="a"),
        told(LIST, 3, 4, topics={"a": []}),
        told(DELETE, 5, None, topic="a"),
        told(DELETE, 6, 7, outcome=REFUSED, code=UNKNOWN_TOPIC, topic="a"),
        told(CREATE, 8, 9, outcome=REFUSED, code="INVALID_REPLICATION_FACTOR", topic="a"),
        told(LIST, 10, 11, topics={}),
        told(CREATE, 12, 13, topic="b"),
        told(LIST, 14, None),
    ]
    assert len(steps_of(answers, "a")) == 5
    assert search(steps_of(answers, "a")) is Verdict.LEGAL
    answers[5].topics = {"a": []}
    assert search(steps_of(answers, "a")) is Verdict.ILLEGAL
