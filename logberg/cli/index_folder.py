"""Where the indexes of logs lie, unless the user names a folder: in the user's cache."""

import os
from pathlib import Path


def index_folder() -> Path:
    """Return the folder. `LOGBERG_AUDIT_INDEX` names it; else it is below `XDG_CACHE_HOME`."""
    named = os.environ.get("LOGBERG_AUDIT_INDEX")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "logberg" / "index"
