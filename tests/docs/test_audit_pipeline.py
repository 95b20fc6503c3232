"""docs/audit/pipeline.md does what it says: its commands run as they stand."""

from pathlib import Path

import pytest

from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "pipeline.md"
pytestmark = [pytest.mark.process]


def test_jobs_are_asked_as_the_page_says(tmp_path: Path) -> None:
    commands = steps(PAGE)[MAIN]
    assert len(commands) == 5
    shell = Shell(tmp_path)
    try:
        for step in commands:
            code, printed = shell.run(step.command)
            where = f"docs/audit/pipeline.md, line {step.line}: {step.command}\n{printed}"
            assert code == 0, where
            assert step.expected is None or fits(step.expected, printed), where
    finally:
        shell.stop()
