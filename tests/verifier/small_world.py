"""Small ledgers to tamper with: a few dozen batches in three segments or more, with checkpoints.

They are written by the product's own writers, of which the verifier knows nothing. Files are taken
apart into frames, so that a way to tamper is a change in a list.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from audit.generated import write_history
from ledger.batch import Batch, parse, seal
from ledger.chain import LogMark
from ledger.segments import SegmentHeader

Files = dict[str, list[bytes]]
"""A node's folder: for each name, as `log/00000000000000000000.log`, the frames of the file."""


class Lying(NamedTuple):
    """A batch, and where it lies: frame `index` of `file`."""

    file: str
    index: int
    batch: Batch

    @property
    def base(self) -> int:
        return self.batch.header.base_offset

    @property
    def end(self) -> int:
        return self.batch.header.end_offset


class Small(NamedTuple):
    """A ledger and its checkpoints."""

    cluster: str
    files: Files
    batches: tuple[Lying, ...]

    @property
    def segments(self) -> list[str]:
        return sorted(name for name in self.files if name.startswith("log/"))

    @property
    def checkpoints(self) -> list[str]:
        return sorted(name for name in self.files if name.startswith("checkpoints/"))

    def copy(self) -> Files:
        return {name: list(frames) for name, frames in self.files.items()}

    def head(self, offset: int) -> tuple[int, bytes]:
        """A head that somebody wrote down when the log ended there."""
        if offset == 0:
            return 0, LogMark.beginning(self.cluster).head
        return offset, next(one.batch.hash for one in self.batches if one.end == offset)


@cache
def small(seed: int, cluster: str = "") -> Small:
    """A realistic ledger; the same for the same arguments."""
    named: dict[str, Any] = {"cluster_id": cluster} if cluster else {}
    with TemporaryDirectory() as folder:
        history = write_history(
            Path(folder),
            records=200,
            seed=seed,
            brokers=3,
            topics=3,
            checkpoint_every=60,
            segment_bytes=9_000,
            **named,
        )
        node = history.nodes[0]
        files = {
            str(path.relative_to(node)): frames_of(path.read_bytes())
            for path in sorted(node.glob("*/*"))
            # One at the very end would know what the last batch was.
            if not path.name.startswith(f"{history.log_end:020}-")
        }
    batches = [
        Lying(name, index, parse(frame))
        for name, frames in files.items()
        if name.startswith("log/")
        for index, frame in enumerate(frames)
        if index
    ]
    assert len({one.file for one in batches}) >= 3
    return Small(history.cluster_id, files, tuple(batches))


def frames_of(content: bytes) -> list[bytes]:
    """A file's frames, by their lengths."""
    at, frames = 0, []
    while at < len(content):
        length = int.from_bytes(content[at + 8 : at + 12], "big")
        frames.append(content[at : at + length])
        at += length
    return frames


def forged(world: Small, first: int, changed: Batch) -> list[Batch]:
    """All batches when number `first` becomes another one, and all behind it get right hashes."""
    batches = [one.batch for one in world.batches[:first]]
    for one in (changed, *(one.batch for one in world.batches[first + 1 :])):
        head = batches[-1].hash if batches else LogMark.beginning(world.cluster).head
        batches.append(seal(msgspec.structs.replace(one.header, previous_hash=head), one.records))
    return batches


def laid_out(world: Small, batches: list[Batch]) -> Files:
    """The segments, cut where they are, when they hold these batches (or fewer) instead."""
    mark, files = LogMark.beginning(world.cluster), Files()
    for one, batch in zip(world.batches, batches, strict=False):
        if one.file not in files:
            files[one.file] = [SegmentHeader(world.cluster, mark).encode()]
        files[one.file].append(batch.encoded)
        mark = mark.after(batch)
    return files


def write(files: Files, folder: Path) -> Path:
    """Write a node's folder. Returns it."""
    for name, frames in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"".join(frames))
    return folder
