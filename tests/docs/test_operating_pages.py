"""docs/operating/README.md does what it says: its commands run as they stand."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base
from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]
PAGE = ROOT / "docs" / "operating" / "README.md"
READY_S = 90.0


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    try:
        yield shell
    finally:
        codes = shell.stop()
    assert set(codes) <= {0}, f"exit codes {codes}\n{shell.said()}"


def test_the_page_does_what_it_says(shell: Shell) -> None:
    found = steps(PAGE)
    assert set(found) == {MAIN}
    first, *rest = found[MAIN]
    assert first.background
    shell.start(f"{first.command} --port-base {free_port_base()}")
    output = shell.folder / "background-1.txt"
    until = time.monotonic() + READY_S
    while "ready:" not in output.read_text():
        assert shell.background[0].poll() is None, shell.said()
        assert time.monotonic() < until, shell.said()
        time.sleep(0.1)
    assert len(rest) > 8
    for step in rest:
        code, printed = shell.run(step.command)
        where = f"line {step.line}: {step.command}\nprinted:\n{printed}\n{shell.said()}"
        assert code == 0, where
        assert step.expected is not None, where
        assert fits(step.expected, printed), where
