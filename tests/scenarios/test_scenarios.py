"""Scenarios in text files: commands, and what they print.

A file is one scenario. A line is a command (see `handlers`). The lines after its `----`, up to a
blank line, are its output. `#` begins a comment. With LOGBERG_REWRITE=1 in the environment the test
writes the present output into the files; read it before you commit it.
"""

import os
from pathlib import Path

import pytest

from tests.scenarios.handlers import Scenario

FOLDER = Path(__file__).parent
SCENARIOS = sorted(FOLDER.glob("*.txt"))


def told(text):
    """Return the scenario with its present output, in the form of the file."""
    scenario, lines, expected = Scenario(), [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            expected = False
            lines.append("")
        elif line.startswith("#") or expected:
            if line.startswith("#"):
                lines.append(line)
        elif line == "----":
            expected = True
        else:
            lines.append(line)
            try:
                printed = scenario.run(line)
            except Exception as error:
                raise AssertionError(f"line {number}, {line!r}: {error}") from error
            if printed:
                lines += ["----", *printed]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_story(path):
    text = path.read_text()
    now = told(text)
    if os.environ.get("LOGBERG_REWRITE") == "1":
        path.write_text(now)
    else:
        assert now == text


def test_there_are_stories_and_a_wrong_line_is_seen():
    assert len(SCENARIOS) >= 5
    text = (FOLDER / "silent_broker.txt").read_text()
    wrong = text.replace("\n1 offline\n", "\n1 online\n")
    assert wrong != text
    assert told(wrong) == text
