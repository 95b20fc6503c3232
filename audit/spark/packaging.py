"""Writes one file with everything that a Spark cluster's workers need; `logberg.spark` runs it.

Rule: the file holds what is installed here, so driver and workers run the same code. Nothing is
downloaded or built. Spark unpacks the file beside each executor (`--archives`), and PYTHONPATH
points there. The workers need a Python of this version, but nothing of Logberg. The file holds
compiled packages, so driver and workers must be of one platform.
"""

import importlib.metadata
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

SUBMIT_SCRIPT: Final = Path(__file__).with_name("submit.py")
"""The script for spark-submit."""
UNPACKED: Final = "logberg-spark"
"""The folder at each executor into which Spark unpacks the file."""

_OURS: Final = ("audit", "snapshots", "ledger", "metadata", "quorum", "runtime")
"""The folders that lie beside each other in the repository; in the wheel they are in `logberg`."""
_ABOVE: Final = tuple(__name__.split(".")[:-3])
"""The packages that hold those folders: none in the repository, `("logberg",)` in the wheel."""
_PACKAGE_FILE: Final = "__init__.py"
_THEIRS: Final = ("msgspec", "structlog", "google-crc32c", "pyarrow", "pandas", "fsspec")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_LEFT_OUT: Final = {"__pycache__", "tests", "include"}
_QUICK: Final = 1


def write_package(target: Path, *, level: int = _QUICK) -> int:
    """Write the file and return its size in bytes; `level` 0 doesn't compress.

    Raises PackageNotFoundError if `logberg[audit]` is not installed here, OSError.
    """
    method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", method, compresslevel=level or None) as archive:
        for path, inside in _ours():
            archive.write(path, inside)
        for name in sorted(with_requirements(_THEIRS)):
            for path, inside in _distribution(name):
                archive.write(path, inside)
    return target.stat().st_size


def submit_settings(package: Path) -> dict[str, str]:
    """Return the settings with which a job on a cluster finds the package's content."""
    return {
        "spark.archives": f"{package}#{UNPACKED}",
        "spark.executorEnv.PYTHONPATH": UNPACKED,
    }


def with_requirements(names: Iterable[str]) -> set[str]:
    """Return distributions and all installed ones that they need, without extras.

    Raises PackageNotFoundError for one of `names`.
    """
    found: set[str] = set()
    waiting = [_canonical(name) for name in names]
    for name in waiting:
        importlib.metadata.distribution(name)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # only needed on another platform or Python
        found.add(name)
        for requirement in required:
            wanted = _NAME.match(requirement)
            if wanted is not None and "extra ==" not in requirement:
                waiting.append(_canonical(wanted[0]))
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _ours() -> Iterator[tuple[Path, str]]:
    """Yield each file of ours and its path in the package: the same names as here."""
    beside = Path(__file__).parents[2]
    for depth in range(1, len(_ABOVE) + 1):
        inside = Path(*_ABOVE[:depth], _PACKAGE_FILE)
        yield beside.parents[len(_ABOVE) - 1] / inside, inside.as_posix()
    for name in _OURS:
        for path in sorted(beside.joinpath(name).rglob("*")):
            inside = Path(*_ABOVE, path.relative_to(beside))
            if path.is_file() and _LEFT_OUT.isdisjoint(inside.parts):
                yield path, inside.as_posix()


def _distribution(name: str) -> Iterator[tuple[Path, str]]:
    for file in importlib.metadata.files(name) or ():
        path = Path(str(file.locate()))
        parts = file.parts
        if ".." not in parts and _LEFT_OUT.isdisjoint(parts) and path.is_file():
            yield path, file.as_posix()


def main() -> None:
    """Write the file that the only argument names, and print how to use it."""
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".zip"):
        sys.exit("usage: python -m logberg.spark FILE.zip")
    target = Path(sys.argv[1]).absolute()
    size = write_package(target)
    sys.stdout.write(f"{target}: {size / 1e6:.0f} MB. Give spark-submit:\n")
    for name, value in submit_settings(target).items():
        sys.stdout.write(f"  --conf {name}={value}\n")
    sys.stdout.write(f"and the script {SUBMIT_SCRIPT}\n")
