"""The disk refuses a change: a broken disk refuses once, a full disk for a while; at every change.

Rule: each point runs in a copy of the world, as with kills. With a broken disk (EIO) the node may
end, and is then started again. But it must never sync the same file again, because the kernel may
have dropped the pages. A full disk (ENOSPC) takes nothing for a second. When there is room again,
the node must recover, by itself or after a restart.
"""

import errno
import os
from collections import Counter
from pathlib import Path

from tests.crashpoints.points import Enumeration
from tests.crashpoints.steps import Step, tear

NEEDS_ROOM = ("create", "write", "make_folder")
FULL_FOR_S = 1.0


class Refusals(Enumeration):
    """One run of a scenario, with all points at which the disk may refuse."""

    number = errno.EIO
    _refused: Step | None = None
    """In the copy: what was refused, in this life of the node."""
    _incarnation = 0

    def _on_step(self, step: Step) -> None:
        refused = self._refused
        if refused is not None and self._incarnation == self._stage.host.incarnations:
            self._stage.host.refuse_the_dead(step)
            if self.number == errno.ENOSPC and step.kind in NEEDS_ROOM:
                raise OSError(self.number, os.strerror(self.number))
            same = (step.kind, step.path) == (refused.kind, refused.path)
            if same and step.kind == "sync" and not step.path.endswith(".part"):
                self._stage.fail(f"a sync of {step.path} failed, and was tried again")
        super()._on_step(step)

    def _befall(self, step: Step, share: str, folder: Path) -> None:
        self._stage.host.move(folder)
        tear(step, folder, share)
        self._refused, self._incarnation = step, self._stage.host.incarnations
        if self.number == errno.ENOSPC:
            self._stage.host.free_bytes = 0
        raise OSError(self.number, os.strerror(self.number))

    def _afterwards(self) -> Counter[str]:
        stage = self._stage
        stage.struck = False
        stage.pass_time(FULL_FOR_S)
        survived = stage.host.running
        stage.host.free_bytes = 1 << 50
        if self.number == errno.ENOSPC:
            self._refused = None
        facts = stage.go_on(errors_before=True)
        return facts + Counter({"went on" if survived else "stopped and started again": 1})


class FullDisk(Refusals):
    number = errno.ENOSPC

    def _possible(self, step: Step) -> bool:
        return step.kind in NEEDS_ROOM
