"""docs/audit/generated.md does what it says: its commands run as they stand."""

from pathlib import Path

import pytest

from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "generated.md"


@pytest.mark.slow
def test_the_page_s_commands_run_and_print_what_it_says(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        found = steps(PAGE)[MAIN]
        assert len(found) == 3
        for step in found:
            code, printed = shell.run(step.command)
            where = f"{PAGE.name}, line {step.line}: {step.command}\nprinted:\n{printed}"
            assert code == 0, where
            assert step.expected is None or fits(step.expected, printed), where
    finally:
        shell.stop()
