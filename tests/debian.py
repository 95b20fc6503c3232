"""Installs the Debian packages that tests need, once for all workers, where that is allowed.

Rule: it installs only as root on a machine with apt-get, as in CI. Elsewhere it says which packages
are missing. It downloads nothing in other ways.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

INSTALL_S = 240


class NotInstalledError(Exception):
    """A package is missing, and the reason why it was not installed."""


def install(*packages: str, is_there: Callable[[], bool]) -> None:
    """Install what is not there. Raises NotInstalledError."""
    if is_there():
        return
    names = " and ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotInstalledError(f"{names} is not installed")
    with (Path(tempfile.gettempdir()) / "logberg-tests-apt-get.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_there():
            return
        print(f"installing {names} by apt-get for tests", file=sys.stderr)
        _apt_get("update")
        _apt_get("install", "-y", *packages)
    if not is_there():
        raise NotInstalledError(f"apt-get installed {names}, and it is not on the path")


def _apt_get(*arguments: str) -> None:
    try:
        subprocess.run(
            ["apt-get", "-qq", *arguments],
            check=True,
            capture_output=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            timeout=INSTALL_S,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise NotInstalledError(f"apt-get {arguments[0]} failed: {error}") from error
