"""Replays a node's folder, {name: content} as on its disk, as docs/format.md says.

Rule: in a log with gaps, only what comes after the newest gap counts. A log that does not begin at
0 is replayed from its first checkpoint on.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.reference.folding import loaded
from tests.reference.ledger import (
    Batch,
    Checkpoint,
    Mark,
    RefusedError,
    read_checkpoint,
    read_log,
)
from tests.reference.state import State


class Folder(NamedTuple):
    """What a folder holds of the log."""

    begin: Mark
    batches: list[Batch]
    checkpoints: list[Checkpoint]
    """By offset."""

    @property
    def head(self) -> bytes:
        return self.batches[-1].hash if self.batches else self.begin.head

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else self.begin.end

    def first_state(self) -> State:
        """Return where folding begins."""
        if self.begin.end == 0:
            return State()
        for checkpoint in self.checkpoints:
            if checkpoint.offset >= self.begin.end:
                return loaded(checkpoint)
        raise RefusedError(f"the log begins at {self.begin.end}, and no checkpoint stands in it")


def read_folder(files: Mapping[str, bytes], *, live: bool = False) -> Folder:
    """Return what a node's folder holds; `live`: its last frame may be unfinished."""
    gaps = [re.fullmatch(r"log/(\d{20})-(\d{20})\.gap", name) for name in files]
    behind = max((int(gap[1]) for gap in gaps if gap), default=-1)
    segments = {
        name: data
        for name, data in files.items()
        if (found := re.fullmatch(r"(?:log|archive)/(\d{20})\.log", name))
        and int(found[1]) > behind
    }
    begin, batches = read_log(segments, live=live)
    checkpoints = [
        read_checkpoint(name, files[name])
        for name in sorted(files)
        if re.fullmatch(r"checkpoints/\d{20}-\d{10}\.checkpoint", name)
    ]
    return Folder(begin, batches, checkpoints)
