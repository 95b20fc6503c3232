"""Mounts a forgetful file system on a folder inside a context.

Rule: `tests.debian` installs what mounting needs. Where that is not possible, the test says why.
Nothing stays mounted.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.debian import NotInstalledError, install

LOSE_POWER = "user.lose_power"
MOUNT_S = 20.0


class NoForgettingError(Exception):
    """Nothing can be mounted here, and the reason."""


def require() -> None:
    """Make sure that a mount can be had. Raises NoForgettingError."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise NoForgettingError("/dev/fuse is not there, or not for us")
    if importlib.util.find_spec("mfusepy") is None:
        raise NoForgettingError("the package mfusepy is not installed")
    try:
        install("fuse3", is_there=lambda: shutil.which("fusermount3") is not None)
    except NotInstalledError as error:
        raise NoForgettingError(str(error)) from error


@contextmanager
def forgetful(folder: Path, seed: int) -> Iterator[None]:
    """Mount one on a folder, which is made. Raises NoForgettingError."""
    require()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.power.forgetful", str(folder), str(seed)]
    serving = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait_for(folder, serving)
        yield
    finally:
        subprocess.run(
            ["fusermount3", "-u", "-z", str(folder)], check=False, capture_output=True, timeout=20
        )
        try:
            serving.wait(5.0)
        except subprocess.TimeoutExpired:
            serving.kill()
            serving.wait()
        assert serving.stderr is not None
        serving.stderr.close()


def _wait_for(folder: Path, serving: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + MOUNT_S
    while not folder.is_mount():
        if serving.poll() is not None or time.monotonic() > until:
            serving.kill()
            assert serving.stderr is not None
            said = serving.stderr.read().decode(errors="replace").strip()
            raise NoForgettingError(f"nothing can be mounted here: {said[-500:]}")
        time.sleep(0.02)


def lose_power(folder: Path) -> None:
    """Forget what was not synced. The processes that wrote there must have ended."""
    os.setxattr(folder, LOSE_POWER, b"")
