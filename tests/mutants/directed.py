"""Runs directed tests with a mutant, and returns why they fail.

Rule: each test runs in a process of its own, forked from one that has imported the whole product
and no test. The mutant is patched in, and then pytest collects. So no test has imported the sound
build before. A test that is not found, or can't be collected, does not count as a kill.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants import seed_searches  # noqa: F401 - the whole product, imported while it is sound
from tests.mutants.patches import patched
from tests.mutants.table import MUTANTS

LIMIT_S = 900.0
ONE_LIMIT_S = 60
"""For one test."""
ROOT = Path(__file__).parents[2]
OPTIONS = (
    *("-q", "-x", "--import-mode=importlib", "-p", "no:cacheprovider"),
    *("-c", os.devnull, "--rootdir", str(ROOT)),
)
"""Of pytest only what a plain test needs: it is begun anew for each."""


class Run(NamedTuple):
    """A test, in which build."""

    mutant: str
    """Empty: the sound one."""
    node: str


class Verdict(NamedTuple):
    """What became of a run."""

    outcome: str
    """passed · failed · not run"""
    says: str
    took_s: float


class _Listener:
    def __init__(self) -> None:
        self.reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.reports.append(report)


def run_apart(runs: Sequence[Run]) -> list[Verdict]:
    """Run tests in another process."""
    command = [sys.executable, "-m", "tests.mutants.directed"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    verdicts = [Verdict(*json.loads(line)) for line in done.stdout.splitlines()]
    if len(verdicts) != len(runs):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return verdicts


def run_forked(run: Run) -> Verdict:
    """Run a test in a fork of this process, which has imported no test and no broken build."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # It must end, whatever a broken build does, and whoever waited for it may be gone.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ONE_LIMIT_S)
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(_run_here(run), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return Verdict(*json.loads(told)) if told else Verdict("not run", "it did not end", 0.0)


def _run_here(run: Run) -> Verdict:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    listener = _Listener()
    began = time.monotonic()
    patches = MUTANTS[run.mutant].patches if run.mutant else ()
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with patched(patches), quiet[0], quiet[1]:
        pytest.main([*OPTIONS, run.node], plugins=[listener])
    took_s = round(time.monotonic() - began, 3)
    failed = [report for report in listener.reports if report.failed]
    if failed:
        return Verdict("failed", _why(failed[0]), took_s)
    return Verdict("passed" if listener.reports else "not run", "", took_s)


def _why(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(report.longrepr) if crash is None else crash.message
    return str(message).partition("\n")[0]


def main() -> int:
    for mutant, node in json.loads(sys.stdin.read()):
        print(json.dumps(run_forked(Run(mutant, node))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
