"""Reads the lock files: exact versions, with the hashes of the files that may be installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from releasing import ReleaseError


class LockedPackage(NamedTuple):
    """One entry of a lock file."""

    name: str
    """In the index's spelling: small letters, and `-` between words."""
    version: str
    marker: str
    """Where it is needed, such as `python_full_version < "3.13"`; empty: everywhere."""
    hashes: tuple[str, ...]
    """SHA-256 of each file of this version, in hexadecimal."""


def read_lock(file: Path) -> list[LockedPackage]:
    """Return the entries of a lock file, in its order. Raises ReleaseError, OSError."""
    found = list(_entries(file))
    for entry in found:
        if not entry.hashes:
            raise ReleaseError(f"{file}: {entry.name} has no hash; run make lock")
    return found


def applies(entry: LockedPackage) -> bool:
    """Tell whether this Python on this machine needs the package."""
    return not entry.marker or Marker(entry.marker).evaluate()


def _entries(file: Path) -> Iterator[LockedPackage]:
    for line in file.read_text().replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        asked, *hashes = line.split("--hash=")
        requirement = Requirement(asked.strip())
        pins = list(requirement.specifier)
        if len(pins) != 1 or pins[0].operator != "==":
            raise ReleaseError(f"{file}: {requirement.name} is not pinned; run make lock")
        yield LockedPackage(
            canonicalize_name(requirement.name),
            pins[0].version,
            str(requirement.marker or ""),
            tuple(one.strip().removeprefix("sha256:") for one in hashes),
        )
