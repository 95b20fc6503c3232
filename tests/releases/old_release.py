"""An old release, unpacked from its wheel, and how to run it beside this build.

Rule: an old release runs from a folder of its own, which stands first on its import path; only the
libraries that both builds depend on come from the environment of the tests. So a fresh machine
needs no package index and unpacking costs a fraction of a second. The folder's name holds the
digest of the wheel: another wheel is unpacked beside it.
"""

import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = Path(__file__).parent
UNPACKED = WHEELS.parent.parent / ".releases"
OLD = "0.1.0"


def old_release(version: str = OLD) -> Path:
    """Return the folder of an old release, unpacked when it isn't there."""
    wheel = WHEELS / f"quorate-{version}-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:12]
    folder = UNPACKED / f"{version}-{digest}"
    if not folder.exists():
        UNPACKED.mkdir(exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=UNPACKED))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(beside)
        try:
            beside.rename(folder)
        except OSError:
            # Another test process has unpacked it meanwhile.
            shutil.rmtree(beside)
    return folder


def python_of(version: str = OLD) -> list[str]:
    """Return the command that runs Python with an old release first on its import path.

    The safe path keeps the current folder, which may be this build's, off the import path.
    """
    path = f"PYTHONPATH={old_release(version)}"
    return ["/usr/bin/env", path, "PYTHONSAFEPATH=1", sys.executable]


def command_of(version: str = OLD) -> list[str]:
    """Return the `quorate` command of an old release."""
    return [*python_of(version), "-m", "quorate"]
