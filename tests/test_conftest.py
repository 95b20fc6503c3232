"""What `conftest.py` sets: Hypothesis' profile, the check of encodings, the order of files."""

import os
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logberg.processes.controller_configs import COMPARE_RECORDS, controller_config
from logberg.processes.settings.controller_settings import ControllerSettings
from tests.conftest import LONGEST_FIRST, longest_first

TESTS = Path(__file__).parent


@given(st.booleans())
def test_a_slow_example_does_not_fail(answer: bool) -> None:
    time.sleep(0.25)  # more than Hypothesis' own deadline of 200 ms
    assert answer in (True, False)


def test_slow_examples_are_no_sign_of_bad_health() -> None:
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_no_test_sets_a_deadline_of_its_own() -> None:
    # A program that runs alone, such as the fuzzer, has no conftest.
    own = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path.name not in ("conftest.py", "__main__.py", Path(__file__).name)
        and "hypothesis" in (text := path.read_text())
        and ("deadline=None" in text or "HealthCheck.too_slow" in text)
    ]
    assert own == []


def test_controllers_that_tests_start_compare_what_they_encode() -> None:
    settings = ControllerSettings(cluster_id="c", node_id=1, data="d", controllers=())
    assert os.environ[COMPARE_RECORDS] == "1"
    assert controller_config(settings).compare_records


def test_files_that_take_longest_begin_first() -> None:
    few, many, first, second = (TESTS / name for name in ("a", "b", *LONGEST_FIRST[:2]))
    assert longest_first([few, second, many, many, many, first, second]) == [
        first,
        second,
        many,
        few,
    ]


def test_the_list_of_long_files_has_only_files_that_are_there() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)
