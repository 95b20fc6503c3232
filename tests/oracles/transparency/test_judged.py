"""Go's `sumdb/tlog` and `sumdb/note` accept what we make of 1,000 trees, and nothing spoiled."""

from random import Random

import pytest

from benchmarks.peers.tools import NoToolError
from tests.oracles.transparency.drawn_trees import questions, spoiled
from tests.oracles.transparency.judge import ask, judge

TREES = 1000

pytestmark = pytest.mark.slow


def test_go_accepts_what_is_right_and_refuses_each_change() -> None:
    try:
        program = judge()
    except NoToolError as error:
        pytest.skip(str(error))
    random = Random(17)
    right = [question for _ in range(TREES) for question in questions(random)]
    wrong = [spoiled(random, question) for question in right]
    said = ask(program, right)
    assert len(said) == 6 * TREES
    assert [(one["kind"], why) for one, why in zip(right, said, strict=True) if why] == []
    refused = ask(program, wrong)
    assert [one for one, why in zip(wrong, refused, strict=True) if not why] == []
