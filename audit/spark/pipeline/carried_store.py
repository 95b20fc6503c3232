"""What is carried from one micro-batch to the next, in the folder `carried` beside the tables.

Rule: micro-batch N begins with `carried/N` and ends by writing `carried/N+1`, its `state` last. The
plan of a micro-batch (from where to where it reads) is written before it runs, and never again. So
a micro-batch that was killed reads the same records when it runs again, begins with the same state,
and gives the same rows; those that are committed already are not committed twice. Nothing changes a
file later, and the two newest positions are kept.

    carried/N/part-K      the partitions of a part (`folds.partitions`)
    carried/N/state       everything else
    carried/N/plan        the offsets that micro-batch N reads
"""

from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from audit.lake.place import LakeError, LakePlace
from audit.places.remote import is_url
from audit.spark.folds.carried import ClusterCarried, PartitionsCarried

FORMAT: Final = 1
_FOLDER: Final = "carried"
_STATE: Final = "state"
_PLAN: Final = "plan"

T = TypeVar("T")


class PipelineFolderError(Exception):
    """The pipeline can't continue in this folder. The message says why, and what to do."""


class PlannedRange(msgspec.Struct, frozen=True):
    """What a micro-batch reads: whole batches from `start` to before `end`."""

    start: int
    end: int


class Carried(msgspec.Struct, frozen=True):
    """Where the pipeline is, and what it remembers beside the partitions."""

    batch: int
    """The last micro-batch that ended; -1 before the first."""
    offset: int
    """Up to where the log was read."""
    head: str
    """The chain hash there, in hexadecimal."""
    horizon_ms: int
    """The timestamp of the last batch that was read."""
    parts: int
    """Into how many parts partitions are divided. It never changes."""
    open_from: int | None = None
    """The offset of the Begin of a transaction that has not ended."""
    cluster: ClusterCarried = msgspec.field(default_factory=ClusterCarried)
    events: bytes | None = None
    """What the maker of events remembers."""
    watched: bytes | None = None
    """What the watcher of findings remembers."""
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int = 0


class CarriedStore:
    """The folder `carried`. It is a value; tasks get a copy."""

    def __init__(self, place: LakePlace) -> None:
        self._place = place

    def newest(self) -> Carried | None:
        """Return what the last micro-batch left; None if there is none.

        Raises PipelineFolderError, LakeError.
        """
        for position in reversed(self._positions()):
            content = self._read(position, _STATE)
            if content is not None:
                return self._decoded(position, content)
        return None

    def part(self, position: int, part: int) -> PartitionsCarried:
        """Return a part's state before micro-batch `position`."""
        content = self._read(position, _part_name(part))
        if content is None:
            raise PipelineFolderError(
                f"{self._shown(position, _part_name(part))} is missing, and micro-batch {position} "
                "needs it. Give the pipeline an empty folder."
            )
        return msgspec.msgpack.decode(content, type=PartitionsCarried)

    def write_part(self, position: int, carried: PartitionsCarried) -> None:
        """Write a part's state."""
        self._write(position, _part_name(carried.part), msgspec.msgpack.encode(carried))

    def plan(self, position: int) -> PlannedRange | None:
        """Return what micro-batch `position` was to read when it ran before; None: it never did."""
        content = self._read(position, _PLAN)
        return None if content is None else msgspec.json.decode(content, type=PlannedRange)

    def write_plan(self, position: int, plan: PlannedRange) -> None:
        """Fix what a micro-batch reads."""
        self._write(position, _PLAN, msgspec.json.encode(plan))

    def hand_over(self, carried: Carried) -> None:
        """End a micro-batch. This is the last thing that it writes."""
        position = carried.batch + 1
        self._write(position, _STATE, msgspec.msgpack.encode(carried))
        system, root = self._place.files()
        for old in self._positions():
            if old < position - 1:
                with suppress(OSError):
                    system.delete_dir(f"{root}/{_name(old)}")

    def _decoded(self, position: int, content: bytes) -> Carried:
        try:
            known = msgspec.msgpack.decode(content, type=_Format)
            if known.format == FORMAT:
                return msgspec.msgpack.decode(content, type=Carried)
            why = f"has format {known.format}, and this release knows {FORMAT}"
        except msgspec.MsgspecError as error:
            why = f"can't be read ({error})"
        raise PipelineFolderError(
            f"{self._shown(position, _STATE)} {why}. Use the release that wrote it, or give the "
            "pipeline an empty folder."
        )

    def _positions(self) -> list[int]:
        from pyarrow import fs  # noqa: PLC0415 - slow to import

        system, root = self._place.files()
        with self._place.failing(_FOLDER, "read"):
            found = system.get_file_info(fs.FileSelector(f"{root}/{_FOLDER}", allow_not_found=True))
        names = [info.base_name for info in found if info.type == fs.FileType.Directory]
        return sorted(int(name) for name in names if name.isdecimal())

    def _read(self, position: int, name: str) -> bytes | None:
        system, root = self._place.files()
        try:
            with system.open_input_file(f"{root}/{_name(position)}/{name}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LakeError(f"{self._shown(position, name)} can't be read: {error}") from error

    def _write(self, position: int, name: str, content: bytes) -> None:
        """Write a file whole: nobody ever sees a part of it."""
        system, root = self._place.files()
        folder = f"{root}/{_name(position)}"
        written = f"{folder}/{name}"
        with self._place.failing(_name(position), "written"):
            if is_url(self._place.where):
                self._put(system, written, content)
            else:
                system.create_dir(folder)
                self._put(system, f"{written}.part", content)
                system.move(f"{written}.part", written)

    def _put(self, system: object, path: str, content: bytes) -> None:
        with system.open_output_stream(path) as file:  # type: ignore[attr-defined]
            file.write(content)

    def _shown(self, position: int, name: str) -> str:
        return self._place.shown_table(f"{_name(position)}/{name}")


def _name(position: int) -> str:
    return f"{_FOLDER}/{position:010d}"


def _part_name(part: int) -> str:
    return f"part-{part:04d}"
