"""A part of the crash points in each run of the tests; `python -m tests.crashpoints` has them all.

In processes of their own: a copy of a test runner would report twice.
"""

import subprocess
import sys

import pytest

from tests.crashpoints.scenarios import SCENARIOS


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("role", SCENARIOS)
def test_a_node_killed_at_any_change_of_its_files_comes_back_with_all_it_promised(
    role: str,
) -> None:
    assert " 0 failed" in command("tests.crashpoints", "--role", role, "--every", "90")


def test_a_node_killed_again_while_it_starts_comes_back_too() -> None:
    said = command("tests.crashpoints", "--role", "restarted jumper", "--every", "6")
    assert " 0 failed" in said


def test_a_disk_that_breaks_while_a_gap_in_the_history_is_noted_stops_the_node() -> None:
    """Else the error was lost in the loop, and the history never whole."""
    role = ("--role", "jumper on a broken disk", "--only", ".gap", "--every", "17")
    assert " 0 failed" in command("tests.crashpoints", *role)


def test_a_disk_that_is_wrong_is_found() -> None:
    assert "NOT FOUND" not in command("tests.crashpoints.broken")
