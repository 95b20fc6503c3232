"""A forgetful file system on a folder, as long as a context lasts.

Rule: in CI, which is root on Debian, what mounts it is installed, as the browser of the report's
tests is; anywhere else who needs it is told why it can't be had. Nothing is left mounted.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOSE_POWER = "user.lose_power"
INSTALL_S = 240
MOUNT_S = 20.0


class NoForgettingError(Exception):
    """Nothing can be mounted here, and the reason."""


def require() -> None:
    """Make sure that a mount can be had. Raises NoForgettingError."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise NoForgettingError("/dev/fuse is not there, or not for us")
    if importlib.util.find_spec("mfusepy") is None:
        raise NoForgettingError("the package mfusepy is not installed")
    if shutil.which("fusermount3") is None:
        _install()


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoForgettingError("fuse3 is not installed")
    with (Path(tempfile.gettempdir()) / "quorate-tests-fuse3.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.which("fusermount3") is not None:
            return
        print("installing fuse3 by apt-get for tests", file=sys.stderr)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "fuse3"]):
            try:
                subprocess.run(
                    ["apt-get", "-qq", *arguments],
                    check=True,
                    capture_output=True,
                    env=environment,
                    timeout=INSTALL_S,
                )
            except (subprocess.SubprocessError, OSError) as error:
                raise NoForgettingError(f"apt-get could not install fuse3: {error}") from error


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
    """Forget what was not synced. Whoever wrote there must be dead by now."""
    os.setxattr(folder, LOSE_POWER, b"")
