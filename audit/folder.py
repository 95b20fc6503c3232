"""A node's folder as an auditor opens it: read-only, whatever runs in it.

Rule: accept what people type. A node's folder, its `log` folder, or the folder of `quorate up`
(then every controller in it) are all understood.
"""

from pathlib import Path

from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from runtime.read_only_disk import ReadOnlyDisk


class NoLogError(Exception):
    """There is no log where one was looked for; the message says what was expected."""


def node_folders(path: Path) -> list[Path]:
    """Return the node folders that a path means. Raises NoLogError."""
    if path.name == "log" and path.is_dir() and not (path / "log").is_dir():
        path = path.parent
    if (path / "log").is_dir():
        return [path]
    nodes = sorted(child.parent for child in path.glob("controller-*/log") if child.is_dir())
    if nodes:
        return nodes
    raise NoLogError(
        f"{path} holds no log: name a controller's folder (it has a folder 'log'), "
        "or the folder of `quorate up`."
    )


def open_reader(folder: Path) -> LedgerReader:
    """Open the ledger in a node's folder. Raises NoLogError, LedgerError, OSError."""
    try:
        return LedgerReader(ReadOnlyDisk(folder))
    except LedgerError as error:
        raise NoLogError(f"{folder}: {error}") from error
