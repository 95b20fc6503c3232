"""Reports every system call of this process that changes a file in a folder, before it happens.

Rule: no call is missed and none is counted twice. The product changes files only through `os`
(`runtime.disk.real`, and `pathlib`, which calls `os` by attribute), so this module replaces the
functions of `os`. Calls outside the folder are not reported. `test_real_processes.py` compares with
`strace` on a real process to show that no system call is missed.

The receiver of a report may end the process there, or write a part of the bytes first.
"""

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

KINDS = (
    "create",
    "write",
    "truncate",
    "sync",
    "sync_folder",
    "rename",
    "unlink",
    "make_folder",
)


class Step(NamedTuple):
    """One change that is about to be made."""

    number: int
    """From 0, in the order of the calls."""
    kind: str
    path: str
    """Inside the folder."""
    data: bytes = b""
    """What a write writes."""


_REPLACED = ("open", "close", "write", "pwrite", "ftruncate", "fsync", "fdatasync")
_REPLACED += ("replace", "rename", "unlink", "mkdir")
_OURS = {"open": "_open_file"}
"""Where a replacement's name isn't that of the function, with an underscore."""

OnStep = Callable[[Step], None]


class Steps:
    """Watches one folder, from `install` to `remove`."""

    def __init__(self, root: Path, on_step: OnStep) -> None:
        self.root = root
        self.count = 0
        self._on_step = on_step
        self._real: dict[str, Any] = {}
        self._open: dict[int, str] = {}
        """Paths of the open files under the folder, by descriptor."""
        self._left: list[Path] = []
        self._places: dict[int, Path] = {}
        self._turn = threading.RLock()

    def install(self) -> None:
        """Begin to see."""
        for name in _REPLACED:
            self._real[name] = getattr(os, name)
            setattr(os, name, getattr(self, _OURS.get(name, f"_{name}")))

    def remove(self) -> None:
        """See nothing any more."""
        for name, function in self._real.items():
            setattr(os, name, function)

    def left_open(self) -> list[int]:
        """Descriptors that a simulated process left behind when it was killed."""
        return list(self._open)

    def close_left_open(self) -> None:
        """Let the kernel's part of a death happen: descriptors and locks go."""
        for fd in self.left_open():
            self._close(fd)

    def note_places(self) -> None:
        """Note where the open files are now: before a copy is made, to `move` there."""
        self._places.clear()
        for fd in self._open:
            where = Path(f"/proc/self/fd/{fd}").readlink()
            if where.is_relative_to(self.root) and where.exists():
                self._places[fd] = where.relative_to(self.root)

    def move(self, folder: Path) -> None:
        """Watch a copy of the folder; what is open is open there."""
        for fd, place in self._places.items():
            flags = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
            there = self._real["open"](folder / place, flags)
            os.dup2(there, fd)
            self._real["close"](there)
        self._left.append(self.root)
        self.root = folder

    def _here(self, path: Any) -> Any:
        """Where a path leads that was made before the folder was left for its copy."""
        for old in self._left:
            if not isinstance(path, int) and Path(path).is_relative_to(old):
                return self.root / Path(path).relative_to(old)
        return path

    def _step(self, kind: str, path: str, data: bytes = b"") -> None:
        with self._turn:
            number, self.count = self.count, self.count + 1
            self._on_step(Step(number, kind, path, data))

    def _context(self, path: Any) -> str | None:
        """The path relative to the folder; None for what lies elsewhere."""
        if isinstance(path, int):
            return self._open.get(path)
        text, root = os.fspath(path), str(self.root)
        if text == root:
            return "."
        return text[len(root) + 1 :] if text.startswith(root + "/") else None

    # -- the functions of os ---------------------------------------------------------------------

    def _open_kind(self, path: Any, flags: int) -> str:
        if not os.path.lexists(path):
            return "create" if flags & os.O_CREAT else ""
        return "truncate" if flags & os.O_TRUNC else ""

    def _open_file(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        path = self._here(path)
        context = self._context(path)
        if context is not None and (kind := self._open_kind(path, flags)):
            self._step(kind, context)
        fd: int = self._real["open"](path, flags, *more, **named)
        if context is not None:
            self._open[fd] = context
        return fd

    def _close(self, fd: int) -> None:
        self._open.pop(fd, None)
        self._real["close"](fd)

    def _write(self, fd: int, data: Any) -> int:
        if fd in self._open:
            self._step("write", self._open[fd], bytes(data))
        return self._real["write"](fd, data)

    def _pwrite(self, fd: int, data: Any, offset: int) -> int:
        if fd in self._open:
            self._step("write", self._open[fd], bytes(data))
        return self._real["pwrite"](fd, data, offset)

    def _ftruncate(self, fd: int, length: int) -> None:
        if fd in self._open:
            self._step("truncate", self._open[fd])
        self._real["ftruncate"](fd, length)

    def _fsync(self, fd: int) -> None:
        if fd in self._open:
            folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            self._step("sync_folder" if folder else "sync", self._open[fd])
        self._real["fsync"](fd)

    def _fdatasync(self, fd: int) -> None:
        if fd in self._open:
            self._step("sync", self._open[fd])
        self._real["fdatasync"](fd)

    def _replace(self, source: Any, target: Any, **named: Any) -> None:
        self._rename_by("replace", source, target, named)

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        self._rename_by("rename", source, target, named)

    def _rename_by(self, name: str, source: Any, target: Any, named: dict[str, Any]) -> None:
        source, target = self._here(source), self._here(target)
        context = self._context(source) or self._context(target)
        if context is not None:
            self._step("rename", context)
        self._real[name](source, target, **named)

    def _unlink(self, path: Any, **named: Any) -> None:
        path = self._here(path)
        context = self._context(path)
        if context is not None and os.path.lexists(path):
            self._step("unlink", context)
        self._real["unlink"](path, **named)

    def _mkdir(self, path: Any, *more: Any, **named: Any) -> None:
        path = self._here(path)
        context = self._context(path)
        if context is not None and not os.path.lexists(path):
            self._step("make_folder", context)
        self._real["mkdir"](path, *more, **named)


def tear(step: Step, root: Path, share: str) -> None:
    """Write what comes through of a write that is cut short: half of it, or all but a byte."""
    size = {"before": 0, "half": len(step.data) // 2, "most": len(step.data) - 1}[share]
    if step.kind == "write" and size > 0:
        with suppress(FileNotFoundError), (root / step.path).open("ab") as file:
            file.write(step.data[:size])


def shares(step: Step) -> tuple[str, ...]:
    """How far a step can come before the process dies in it."""
    if step.kind != "write" or len(step.data) < 2:
        return ("before",)
    return ("before", "half", "most") if len(step.data) > 3 else ("before", "half")
