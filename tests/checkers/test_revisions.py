"""The revision check finds what is planted in a history, and nothing in one that is in order."""

import ast
import copy
import sys
from pathlib import Path

import pytest

from tests.checkers.history import (
    AT_LEAST,
    CREATE,
    DELETE,
    EXISTS,
    LIST,
    OK,
    REFUSED,
    STALE,
    UNKNOWN_TOPIC,
    Effect,
    Log,
    Operation,
    from_lines,
    to_lines,
)
from tests.checkers.revisions import judged, understated, violations

A, B = ["0a" * 16, 1, 1, 0, 0], ["0b" * 16, 2, 1, 0, 0]


def operation(kind, call, back, offset, **about):
    outcome = about.pop("outcome", OK)
    made = Operation(kind, call, call * 10, "client", **about)
    if back is not None:
        made.told(back, back * 10, outcome, offset)
    return made


def good():
    """Creates a and b, deletes a; reads between and beside; one write is never answered."""
    operations = [
        operation(LIST, 1, 2, 3, topics={}),
        operation(CREATE, 3, 6, 5, topic="a", request_id="r1"),
        operation(LIST, 4, 5, 5, topics={"a": A}),
        operation(CREATE, 7, 10, 8, topic="b", request_id="r2"),
        operation(LIST, 8, 9, 5, topics={"a": A}),
        operation(DELETE, 11, None, None, topic="a", request_id="r3"),
        operation(CREATE, 12, 15, 12, topic="b", request_id="r4", outcome=REFUSED, code=EXISTS),
        operation(STALE, 13, 14, 3, topics={}),
        operation(AT_LEAST, 16, 17, 8, asked=8, topics={"a": A, "b": B}),
        operation(LIST, 18, 19, 12, topics={"b": B}),
        operation(
            DELETE, 20, 21, 13, topic="c", request_id="r5", outcome=REFUSED, code=UNKNOWN_TOPIC
        ),
        operation(CREATE, 22, None, None, topic="d", request_id="r6"),
    ]
    effects = [
        Effect(3, 1, "", "BeginEpoch"),
        Effect(5, 1, "r1", "CreateTopics", {"a": A}),
        Effect(8, 1, "r2", "CreateTopics", {"b": B}),
        Effect(10, 2, "r3", "DeleteTopics", {"a": None}),
        Effect(12, 2, "r4", "CreateTopics"),
        Effect(13, 2, "r5", "DeleteTopics"),
    ]
    return operations, Log(0, {}, effects)


def test_a_good_history_is_in_order_also_from_a_file():
    operations, log = good()
    assert violations(operations, log) == []
    read, read_log = from_lines(to_lines({"seed": 1}, operations, log))
    assert (read, read_log) == (operations, log)
    assert judged(operations, log)["judged list"] == 4


def stale_read(operations, log):
    operations[9].told(19, 190, OK, 8)
    operations[9].topics = {"a": A, "b": B}


def read_from_the_future(operations, log):
    """It saw what was not even asked for when it was answered."""
    operations[2].told(5, 50, OK, 8)
    operations[2].topics = {"a": A, "b": B}


def read_past_the_end(operations, log):
    operations[9].told(19, 190, OK, 99)


def wrong_content(operations, log):
    operations[8].topics = {"a": A}


def wrong_detail(operations, log):
    operations[8].topics = {"a": A, "b": [*B[:-1], 1]}


def torn_read(operations, log):
    """What a read of two keys may never see: the later write without the earlier one."""
    operations[8].topics = {"b": B}


def lost_write(operations, log):
    del log.effects[2]


def lost_write_with_its_reads(operations, log):
    """The only trace of the write is that it was acknowledged."""
    del log.effects[2]
    del operations[8:10]
    del operations[6]
    del log.effects[3]


def twice(operations, log):
    log.effects.append(Effect(15, 3, "r1", "CreateTopics", {"a": A}))


def unanswered_twice(operations, log):
    log.effects.append(Effect(15, 3, "r3", "DeleteTopics", {"b": None}))


def before_it_was_asked_for(operations, log):
    operations[5].call = 30


def another_place(operations, log):
    operations[1].offset = 6


def another_effect(operations, log):
    log.effects[1].topics = {"a": A, "x": B}


def deleted_instead(operations, log):
    log.effects[3].topics = {"b": None}


def nobody_asked(operations, log):
    log.effects.append(Effect(15, 3, "r9", "CreateTopics", {"z": A}))


def refused_and_done(operations, log):
    log.effects[4].topics = {"b": B}


def refused_for_no_reason(operations, log):
    operations[10].code = UNKNOWN_TOPIC
    operations[10].topic = "b"


def below_what_was_asked(operations, log):
    operations[8].asked = 9


def answers_out_of_order(operations, log):
    """A write that began after another was acknowledged stands before it."""
    log.effects[1].end, log.effects[2].end = 8, 5
    log.effects[1], log.effects[2] = log.effects[2], log.effects[1]
    operations[1].offset, operations[3].offset = 8, 5
    for number in (8, 4, 2):
        del operations[number]


PLANTED = {
    stale_read: "before its call",
    read_from_the_future: "stands at 8; before its call",
    read_past_the_end: "the log ends at 13",
    wrong_content: "of b it was told None",
    wrong_detail: "of b it was told",
    torn_read: "of a it was told None",
    lost_write: "is not in the log",
    lost_write_with_its_reads: "is not in the log",
    twice: "took effect at",
    unanswered_twice: "took effect at",
    before_it_was_asked_for: "stands at 10; before its call",
    another_place: "was told 6, and stands at 5",
    another_effect: "did something else",
    deleted_instead: "did something else",
    nobody_asked: "nobody asked for",
    refused_and_done: "was refused with",
    refused_for_no_reason: "not so there",
    below_what_was_asked: "and asked for 9",
    answers_out_of_order: "stands at 5; before its call",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_planted_is_found(plant):
    operations, log = copy.deepcopy(good())
    plant(operations, log)
    found = violations(operations, log)
    assert any(PLANTED[plant] in each for each in found), found


def test_an_age_that_is_too_small_is_found():
    """The read began over 1 ms after offset 8 was answered, and it answers 3."""
    operations, _ = good()
    assert understated(operations) == []
    operations[7].call_us = 1_102
    assert "an age of 0 ms; 8 had been told" in understated(operations)[0]
    operations[7].age_ms = 1
    assert understated(operations) == []


def test_what_lies_before_the_log_is_not_judged():
    operations, log = good()
    later = Log(8, {"a": A, "b": B}, log.effects[3:])
    assert violations(operations, later) == []


@pytest.mark.parametrize("name", ["history", "revisions", "registers"])
def test_a_checker_imports_neither_product_nor_simulation(name):
    tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = {each for each in modules if each.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign <= {"tests.checkers.history"}
