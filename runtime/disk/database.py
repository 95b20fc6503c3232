"""Opens SQLite files: the only door to them.

Rule: a file is readable by its user only, from its first byte on. A file that is being built lies
under another name until it is whole, so a crash never leaves a half-written one under its own name.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

BUILDING: Final = ".building-"
"""In the name of a file that is being built, before the id of the process that builds it."""
_BESIDE: Final = ("", "-wal", "-shm", "-journal")
_WAIT_S: Final = 5.0


def begin_database(path: Path) -> sqlite3.Connection:
    """Create an empty database beside `path`, for one writer that needs no protection.

    `finish_database` puts it in place. Raises OSError, sqlite3.Error.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_abandoned(path)
    building = _building(path)
    os.close(os.open(building, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    database = sqlite3.connect(building, isolation_level=None, check_same_thread=False)
    for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):
        database.execute(f"PRAGMA {setting}")
    return database


def finish_database(path: Path, database: sqlite3.Connection) -> None:
    """Close what `begin_database` opened, and put the file in place. Raises OSError."""
    database.close()
    building = _building(path)
    descriptor = os.open(building, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    for suffix in _BESIDE[1:]:
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
    building.replace(path)


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database for writing, while others read it. Raises OSError, sqlite3.Error."""
    if not path.is_file():
        raise FileNotFoundError(path)
    database = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    return database


def read_database(path: Path) -> sqlite3.Connection:
    """Open a database for one reader. Raises sqlite3.Error."""
    database = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA query_only = ON")
    database.execute("PRAGMA cache_size = -32768")
    return database


def remove_database(path: Path) -> None:
    """Remove a database, and what this process has begun of it. It need not exist."""
    _remove(path)
    _remove(_building(path))


def _building(path: Path) -> Path:
    return path.with_name(f"{path.name}{BUILDING}{os.getpid()}")


def _remove_abandoned(path: Path) -> None:
    """Remove what this process, or one that has ended, began to build."""
    for found in path.parent.glob(f"{path.name}{BUILDING}*"):
        builder = found.name.partition(BUILDING)[2]
        if not builder.isdecimal() or not _runs(int(builder)) or int(builder) == os.getpid():
            _remove(found)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: Path) -> None:
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
