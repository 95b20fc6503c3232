"""A copy of this build in which some lines differ: another version, or a defect.

Rule: the copy is made of links to this build's packages. A package in which a file differs is
copied. A process of the copy runs like any other; its import path begins with the copy.
"""

import shutil
import sys
from pathlib import Path

from logberg.local.child import Child
from tests.docs import source


def altered_build(folder: Path, *changes: tuple[str, str, str]) -> list[str]:
    """Return the command of a copy in `folder`; each change is a file, its old and new text."""
    folder.mkdir(parents=True)
    copied = {Path(name).parts[0] for name, _, _ in changes}
    for package in source.PACKAGES:
        if package in copied:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source.ROOT / package, folder / package, ignore=ignored)
        else:
            (folder / package).symlink_to(source.ROOT / package)
    for name, old, new in changes:
        path = folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name} has no or several places of {old!r}"
        path.write_text(text.replace(old, new))
    first = f"PYTHONPATH={folder}"
    return ["/usr/bin/env", first, "PYTHONSAFEPATH=1", sys.executable, "-m", "logberg"]


def run_with(child: Child, command: list[str]) -> None:
    """Run a process of the cluster by another command from its next start on."""
    assert not child.running
    rest = child._arguments[child._arguments.index("-m") + 2 :]
    child._arguments = [*command, *rest]
