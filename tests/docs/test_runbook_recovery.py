"""The runbook's way back from a lost majority, run as it stands on a cluster that lost it."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base
from tests.docs.pages import fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]
PAGE = ROOT / "docs" / "runbook.md"
PATIENCE_S = 60.0


def ready(shell: Shell, file: str, word: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while word not in (shell.folder / file).read_text():
        assert time.monotonic() < until, shell.said()
        time.sleep(0.1)


def take(shell: Shell, name: str) -> None:
    """Do the steps of one part of the page, and see that the page is right."""
    for step in steps(PAGE)[name]:
        code, printed = shell.run(step.command)
        where = f"{PAGE.name}, line {step.line}: {step.command}\nprinted:\n{printed}"
        assert code == 0, where
        assert step.expected is not None
        assert fits(step.expected, printed), where


@contextmanager
def shell_in(folder: Path) -> Iterator[Shell]:
    """A shell whose background processes must all end in order."""
    shell = Shell(folder)
    try:
        yield shell
    except BaseException:
        shell.stop()
        raise
    assert set(shell.stop()) <= {0}, shell.said()


def test_the_page_brings_a_lost_majority_back(tmp_path: Path) -> None:
    with shell_in(tmp_path) as shell:
        shell.start(f"logberg up --brokers 0 --port-base {free_port_base()}")
        ready(shell, "background-1.txt", "ready:")
    for n in (2, 3):
        shutil.rmtree(tmp_path / "logberg-data" / f"controller-{n}")
    with shell_in(tmp_path) as shell:
        take(shell, "recover")
        shell.start("logberg controller --config logberg-data/config/controller-1.toml")
        until = time.monotonic() + PATIENCE_S
        create = "logberg coordination keys put recovered yes"
        while (done := shell.run(create))[0] != 0:
            assert time.monotonic() < until, done[1]
            time.sleep(0.5)
        take(shell, "recovered")
