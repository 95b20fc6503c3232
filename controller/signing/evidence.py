"""Keeps two heads that contradict each other as files, for people.

Rule: nothing in `evidence/` is read again, replaced or removed by the node. At most `KEPT_MAX`
pairs are kept, the first ones.

    evidence/heads-1.theirs   the head that somebody else has, as a signed note
    evidence/heads-1.ours     the newest head of this node
    evidence/heads-1.why      a sentence
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from runtime.disk.interface import Disk

FOLDER: Final = "evidence"
KEPT_MAX: Final = 16


class HeadEvidence:
    """The heads in the folder `evidence/` of one node."""

    def __init__(self, disk: Disk, log: FilteringBoundLogger) -> None:
        self._disk = disk
        self._log = log
        self._kept = 0

    def keep(self, theirs: str, ours: str, why: str) -> None:
        """Write a pair, in the background."""
        if self._kept >= KEPT_MAX:
            return
        self._kept += 1

        def write() -> str:
            self._disk.make_folder(FOLDER)
            there = sum(name.endswith(".why") for name in self._disk.list(FOLDER))
            if there >= KEPT_MAX:
                return ""
            stem = f"{FOLDER}/heads-{there + 1}"
            for ending, text in (("theirs", theirs), ("ours", ours), ("why", f"{why}\n")):
                self._disk.replace(f"{stem}.{ending}", text.encode())
            return stem

        def done(stem: str | None, error: OSError | None) -> None:
            if error is not None:
                self._log.error("head_evidence_failed", why=str(error))
            elif stem:
                self._log.error("head_evidence_kept", files=stem, why=why)

        self._disk.in_background(write, done)
