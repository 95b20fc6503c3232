"""Builds the wheel of a commit so that anybody who builds it again gets the same bytes.

Rule: the wheel holds nothing of the machine. It is built from what the commit holds, not from the
work tree; times are the commit's; hatchling sorts the entries and sets their modes. To show it, the
wheel is built twice, in two folders whose names, umask, time zone, language and hash seed differ.
Wheels that differ are refused.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from releasing import ReleaseError

_BUILD_S: Final = 300
_KEPT: Final = ("PATH", "LD_LIBRARY_PATH")
"""Variables that a build gets from here."""


class Surroundings(NamedTuple):
    """What a wheel must not depend on."""

    folder: str
    umask: int
    variables: dict[str, str]


TWO: Final = (
    Surroundings(
        "a", 0o022, {"TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}
    ),
    Surroundings(
        "another folder/with a longer name",
        0o077,
        {"TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C", "PYTHONHASHSEED": "2"},
    ),
)


class SourceCommit(NamedTuple):
    """What is built."""

    id: str
    time_s: int
    """Seconds since 1970 UTC."""


def commit_of(repository: Path, name: str = "HEAD") -> SourceCommit:
    """Return a commit of the repository. Raises ReleaseError."""
    said = _git(repository, "log", "-1", "--format=%H %ct", name).split()
    return SourceCommit(said[0], int(said[1]))


def changed_files(repository: Path) -> list[str]:
    """Return the files that differ from the commit or are unknown to git. Raises ReleaseError."""
    return _git(repository, "status", "--porcelain").splitlines()


def unpack(repository: Path, commit: SourceCommit, folder: Path, umask: int = 0o022) -> None:
    """Write what a commit holds into an empty folder. Raises ReleaseError."""
    folder.mkdir(parents=True)
    archive = folder.with_name(f"{folder.name}.tar")
    _git(repository, "archive", "--format=tar", f"--output={archive}", commit.id)
    command = ["tar", "--extract", "--no-same-owner", "--no-same-permissions"]
    _run([*command, f"--file={archive}", f"--directory={folder}"], umask=umask)
    archive.unlink()


def build_wheel(repository: Path, commit: SourceCommit, out: Path) -> Path:
    """Build a commit's wheel twice, compare, and put it into a folder; return its path.

    Raises ReleaseError, OSError.
    """
    with tempfile.TemporaryDirectory(prefix="logberg-wheel-") as work:
        built = [_build(repository, commit, Path(work), place) for place in TWO]
        compare(*built)
        out.mkdir(parents=True, exist_ok=True)
        wheel = out / built[0].name
        shutil.copyfile(built[0], wheel)
    return wheel


def compare(one: Path, other: Path) -> None:
    """Raise ReleaseError unless two wheels have the same name and the same bytes."""
    if one.name != other.name:
        raise ReleaseError(f"two builds of one commit have the names {one.name} and {other.name}")
    if one.read_bytes() != other.read_bytes():
        raise ReleaseError(
            f"two builds of one commit differ: {_first_difference(one, other)}. The wheel depends "
            "on something that isn't in the commit; find out what before you publish it"
        )


def _build(repository: Path, commit: SourceCommit, work: Path, place: Surroundings) -> Path:
    source, out = work / place.folder / "source", work / place.folder / "dist"
    unpack(repository, commit, source, place.umask)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= place.variables | {"SOURCE_DATE_EPOCH": str(commit.time_s), "HOME": str(work)}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    _run([*command, "--directory", str(out)], source, environment, place.umask)
    (wheel,) = out.glob("*.whl")
    return wheel


def _first_difference(one: Path, other: Path) -> str:
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        entries, others = first.infolist(), second.infolist()
        for entry, twin in zip(entries, others, strict=False):
            if entry.filename != twin.filename:
                return f"{entry.filename} stands where the other has {twin.filename}"
            if first.read(entry) != second.read(twin):
                return f"the content of {entry.filename}"
            if (entry.date_time, entry.external_attr) != (twin.date_time, twin.external_attr):
                return f"time or mode of {entry.filename}"
    return f"{len(entries)} and {len(others)} entries, or how they are compressed"


def _git(repository: Path, *arguments: str) -> str:
    return _run(["git", "-C", str(repository), *arguments])


def _run(
    command: list[str],
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
    umask: int = -1,
) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            umask=umask,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReleaseError(f"{command[0]} could not be run: {error}") from None
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout)[-2_000:]}")
    return done.stdout
