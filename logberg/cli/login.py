"""Who runs a command on a node's own files, by the operating system's word."""

import os
import pwd


def login_here() -> str:
    """Return this process's user by name. A container's user may have none: then by number."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"
