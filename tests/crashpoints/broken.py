"""Disks that are broken on purpose. The crash points must find each, or they prove nothing.

    python -m tests.crashpoints.broken

Exit code 1 if one is not found.
"""

import os
import sys

from runtime.disk.real import RealDisk, RealFile
from tests.crashpoints.__main__ import enumerate_role
from tests.simulation.patches import Patch, patched


def _replace_in_place(disk: RealDisk, name: str, data: bytes) -> None:
    fd = os.open(disk._path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)


def _cut_nothing(file: RealFile, size: int) -> None:
    file._size = size


BROKEN: dict[str, tuple[Patch, ...]] = {
    "a replacement is written in place": ((RealDisk, "replace", _replace_in_place),),
    "a torn tail stays": ((RealFile, "truncate", _cut_nothing),),
}


def main() -> int:
    missed = 0
    for what, patches in BROKEN.items():
        with patched(patches):
            failed = list(enumerate_role("leader", every=7, until_one_fails=True).failed)
        print(f"{what}: {f'found at {failed[0]}' if failed else 'NOT FOUND'}", flush=True)
        missed += not failed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
