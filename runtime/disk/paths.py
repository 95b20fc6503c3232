"""Names of files inside a node's folder: which are allowed.

Rule: a name is a relative POSIX path that cannot leave the folder. Both disks, the real and the
simulated one, accept exactly these, so a name that works in a simulation works on a machine.
"""


class BadNameError(ValueError):
    """A name that could mean a file outside the folder."""


def checked(name: str) -> str:
    """Return `name` if it is safe. Raises BadNameError.

    Refused: the empty name, absolute paths, `.` and `..`, doubled slashes, backslashes and
    control characters.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise BadNameError(f"not a plain relative path: {name!r}")
    if "\\" in name or any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise BadNameError(f"a forbidden character in the file name {name!r}")
    return name


def checked_folder(folder: str) -> str:
    """As `checked`; the empty name is the node's folder itself."""
    return folder if folder == "" else checked(folder)
