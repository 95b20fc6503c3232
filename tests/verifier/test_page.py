"""docs/audit/verify-yourself.md does what it says: its commands run as they stand."""

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "verify-yourself.md"


@pytest.mark.slow
@pytest.mark.process
def test_the_page_is_right(tmp_path: Path) -> None:
    blocks = steps(PAGE)
    assert set(blocks) == {MAIN}
    assert len(blocks[MAIN]) > 12
    shutil.copy(ROOT / "verifier" / "logberg_verify.py", tmp_path)
    shell = Shell(tmp_path)
    try:
        for step in blocks[MAIN]:
            code, printed = shell.run(step.command)
            where = f"line {step.line}: {step.command}\nprinted:\n{printed}"
            if step.expected is None:
                assert code == 0, where
            else:
                assert fits(step.expected, printed), where
    finally:
        assert shell.stop() == []
