"""Every change of a node's files in a scenario is a point at which the node is killed.

Rule: the scenario runs once. At each step, and also in the middle of a write, the process forks. In
the copy, which has a copy of the folder, the node is killed, started again on what is left, and
judged at the end. The original continues the scenario. With `twice`, the copy also kills the node
at each step of its restart, and judges after that.
"""

import os
import re
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crashpoints.scenarios import SCENARIOS, stage_for
from tests.crashpoints.splitting import Splitting
from tests.crashpoints.stage import Stage, StruckError
from tests.crashpoints.steps import Step, Steps, shares, tear

COPY = "copy-"
Wanted = Callable[[str], bool]
"""Whether a point (`17:half`, and `17:half/3:before` for a second kill) is to be tried."""


@dataclass
class Found:
    """What a scenario's points came to."""

    points: int = 0
    by_step: Counter[str] = field(default_factory=Counter)
    by_file: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    """All that the scenario has, tried or not."""
    failed: dict[str, str] = field(default_factory=dict)
    """What went wrong, by point."""
    facts: Counter[str] = field(default_factory=Counter)
    """What the judges saw."""


class Enumeration:
    """One run of a scenario, with all its points."""

    def __init__(self, name: str, wanted: Wanted, jobs: int, *, twice: bool = False) -> None:
        self.name = name
        self.found = Found()
        self.on_point: Callable[[], None] = lambda: None
        """Called after each point, to show progress."""
        self.only = ""
        """Points of files whose names have this in them."""
        self._wanted = wanted
        self._twice = twice
        self._splitting = Splitting(1 if twice else jobs, self._reported)
        self._jobs = jobs
        self._armed = True
        self._where = ""
        """The points at which this copy has killed the node."""
        self._labels: dict[str, Step] = {}
        self._first = 0
        self._steps: Steps
        self._stage: Stage

    @property
    def in_copy(self) -> bool:
        """Whether this is a copy, which reports to the original only."""
        return self._splitting.is_copy

    def run(self) -> Found:
        """Run the scenario; return the results of its points."""
        with tempfile.TemporaryDirectory(prefix="crashpoints-", dir=memory()) as folder:
            with self._set_up(Path(folder) / "node"):
                self._tell()
            self._splitting.finish()
        return self.found

    @contextmanager
    def _set_up(self, root: Path) -> Iterator[None]:
        self._steps = Steps(root, self._on_step)
        self._stage = stage_for(self.name, self._steps)
        self._steps.install()
        try:
            yield
        finally:
            self._steps.remove()
            self._steps.close_left_open()

    def _tell(self) -> None:
        scenario = SCENARIOS[self.name]
        try:
            scenario.tell(self._stage)
        except StruckError:
            self._end_copy()
        except Exception:
            # Whatever it is, a copy must not unwind into what belongs to the original.
            if not self._splitting.is_copy:
                raise
            self._end_copy(traceback.format_exc())
        self.found.steps = self._steps.count
        missed = [event for event in scenario.must_see if not self._stage.seen[event]]
        assert not missed, f"the story of the {self.name} never came to {missed}"

    # -- at a step -------------------------------------------------------------------------------

    def _on_step(self, step: Step) -> None:
        self._stage.host.refuse_the_dead(step)
        if not self._armed or self.only not in step.path or not self._possible(step):
            return
        step = step._replace(number=step.number - self._first)
        for share in shares(step):
            label = f"{self._where}{step.number}:{share}"
            if self._wanted(label):
                self._labels[label] = step
                # Copied before the split: the original goes on writing at once.
                folder = self._copied()
                if self._splitting.split(label):
                    self._inject(step, share, label, folder)

    def _copied(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=COPY, dir=self._steps.root.parent)) / "node"
        if self._steps.root.exists():
            self._steps.note_places()
            shutil.copytree(self._steps.root, folder)
        return folder

    def _possible(self, step: Step) -> bool:
        """Whether it can happen at this step."""
        return True

    def _inject(self, step: Step, share: str, label: str, folder: Path) -> None:
        """In the copy: die at this step."""
        self._armed = False
        self._where = f"{label}/"
        self._labels = {}
        self.found = Found()
        self._stage.struck = True
        self._befall(step, share, folder)

    def _befall(self, step: Step, share: str, folder: Path) -> None:
        """What happens at the point: the node is killed, and its unfinished write stands there."""
        self._steps.root = folder
        tear(step, folder, share)
        self._stage.host.kill()
        self._stage.host.process.ensure_alive()

    def _afterwards(self) -> Counter[str]:
        """What the copy does then."""
        return self._stage.go_on(self._disarm)

    def _end_copy(self, failure: str = "") -> None:
        """In the copy: go on, judge and report; doesn't return."""
        facts: Counter[str] = Counter()
        again = self._twice and "/" not in self._where.rstrip("/")
        try:
            if not failure:
                if again:
                    self._arm_again()
                facts = self._afterwards()
        except StruckError:
            self._end_copy()
        except Exception:  # noqa: BLE001 - whatever went wrong is what this point came to
            failure = traceback.format_exc()
        if again:
            self._splitting.finish()
        if self._steps.root.parent.name.startswith(COPY):
            shutil.rmtree(self._steps.root.parent, ignore_errors=True)
        self._splitting.report(_report(self.found, facts, failure))

    def _arm_again(self) -> None:
        self._first = self._steps.count
        self._splitting.jobs = self._jobs
        self._armed = True

    def _disarm(self) -> None:
        self._armed = False

    # -- in the original -------------------------------------------------------------------------

    def _reported(self, label: str, report: dict[str, Any]) -> None:
        step, found = self._labels.pop(label), self.found
        if report.get("failure"):
            found.failed[label] = f"{step.kind} {step.path}\n{report['failure']}"
        found.failed |= report.get("failed", {})
        found.points += 1 + report.get("points", 0)
        found.by_step += Counter({step.kind: 1}) + Counter(report.get("by_step", {}))
        kind_of_file = f"{step.kind} {re.sub('[0-9]+', 'N', step.path)}"
        found.by_file += Counter({kind_of_file: 1}) + Counter(report.get("by_file", {}))
        found.facts += Counter(report.get("facts", {}))
        self.on_point()


def _report(found: Found, facts: Counter[str], failure: str) -> dict[str, Any]:
    return {
        "failure": failure,
        "failed": found.failed,
        "points": found.points,
        "by_step": found.by_step,
        "by_file": found.by_file,
        "facts": found.facts + facts,
    }


def memory() -> str | None:
    """Where files live in memory: a kill loses nothing that was written, so a sync may be free."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
