"""Mutants of the archive: what leaves a node, what proves its copy, and how it is read back."""

from collections.abc import Callable
from typing import Any

from ledger.segments import LOG_FOLDER
from runtime.disk.interface import Disk
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

_VERIFY = "receipt = yield from self._access.verify(self._job, base, segment.header.previous, end)"


class OwnCopies:
    """The node's own log, in the place of the archive."""

    def __init__(self, disk: Disk, location: str) -> None:
        self._disk = disk
        self.location = location

    def read(self, name: str, position: int, length: int) -> bytes:
        return self._disk.read(f"{LOG_FOLDER}/{name}", position, length)

    def run(self, work: Callable[[Any], Any], on_done: Callable[[Any, Any], None]) -> None:
        on_done(work(self), None)


ARCHIVING = (
    Mutant(
        "a segment is removed before its copy was verified",
        "I25",
        "What the archive took counts as what it holds.",
        (
            Patch(
                "controller.storage.archiving.Archiving._secure",
                edited(
                    (
                        _VERIFY,
                        (
                            "receipt = Receipt(self._config.cluster_id, segment.header.previous, "
                            "end, self._disk.size(segment.path), bytes(32))"
                        ),
                    )
                ),
            ),
        ),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "the node's own copy is verified and not the archive's",
        "I25",
        "The bytes that prove a segment are read from the node's disk.",
        (
            Patch(
                "controller.storage.archiving.Archiving._secure",
                edited(
                    (
                        _VERIFY,
                        (
                            "from tests.mutants.archiving import OwnCopies\n"
                            "    own = ArchiveAccess(OwnCopies(self._disk, self._access.location), "
                            "self._config.cluster_id)\n"
                            "    receipt = yield from own.verify(self._job, base, "
                            "segment.header.previous, end)"
                        ),
                    )
                ),
            ),
        ),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "the archive's copy is verified by its size",
        "I25",
        "A copy of the right length is taken for the right one.",
        (
            Patch(
                "controller.storage.archive_access.ArchiveAccess.verify",
                edited(
                    (
                        "while piece := (yield from self._read(name, position)):",
                        (
                            "while piece := (yield from self._read(name, position)):\n"
                            "            if position == 0:\n"
                            "                size = len((yield from self.ask(lambda place: "
                            "place.read(name, 0, 1 << 30))))\n"
                            "                return Receipt(self._cluster_id, start or end, end, "
                            "size, bytes(32))"
                        ),
                    )
                ),
            ),
        ),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "the log that a start needs leaves the node",
        "1, I25",
        "Checkpoints and the journal's mark don't keep a segment.",
        (Patch("controller.storage.leaving.Leaving._needed", gives("")),),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "no receipt is written",
        "I25",
        "A segment is removed, and nothing says where it is.",
        (
            Patch(
                "controller.storage.archiving.Archiving._pass",
                edited(
                    (
                        "partial(self._archived.store, receipt, self._access.location)",
                        "lambda done: done(None)",
                    )
                ),
            ),
        ),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "the index of archived segments is read one off",
        "I25",
        "An offset at a segment's begin is looked for in the segment before.",
        (
            Patch(
                "controller.storage.history.ReadableHistory._receipt_at",
                edited(
                    (
                        "receipt.base_offset <= offset < receipt.end.log_end",
                        "receipt.base_offset < offset <= receipt.end.log_end",
                    )
                ),
            ),
        ),
        searched_in("cluster", "archive"),
    ),
    Mutant(
        "an empty place is taken for the archive",
        "I25",
        "A mount point without its file system gets the next segments.",
        (Patch("controller.storage.archiving.Archiving._must_be_ours", gives(None)),),
    ),
)
