"""Runs the commands of a page as they stand, one after another, and compares what they print."""

from pathlib import Path

from tests.docs.pages import MAIN, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT


def follow(page: Path, folder: Path, least: int) -> None:
    """Run the page's commands in a folder; it must have `least` of them at least."""
    commands = steps(page)[MAIN]
    assert len(commands) >= least
    shell = Shell(folder)
    try:
        for step in commands:
            code, printed = shell.run(step.command)
            where = f"{page.relative_to(ROOT)}, line {step.line}: {step.command}\n{printed}"
            assert code == 0, where
            assert step.expected is None or fits(step.expected, printed), where
    finally:
        shell.stop()
