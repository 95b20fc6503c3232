"""docs/audit/questions.md does what it says: its commands run as they stand."""

from pathlib import Path

import pytest

from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "questions.md"
pytestmark = [pytest.mark.process]


def test_the_log_answers_as_the_page_says(tmp_path: Path) -> None:
    questions = steps(PAGE)[MAIN]
    assert len(questions) > 8
    shell = Shell(tmp_path)
    try:
        for step in questions:
            code, printed = shell.run(step.command)
            where = f"docs/audit/questions.md, line {step.line}: {step.command}\n{printed}"
            assert code == 0, where
            assert step.expected is None or fits(step.expected, printed), where
    finally:
        shell.stop()
