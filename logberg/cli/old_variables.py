"""Environment variables by the names that release 0.1 gave them (ADR 0025).

Rule: an old variable counts if the new one is not set. A note on stderr says so, except with JSON
output, where stderr is one JSON document. Release 0.3 drops the old names.
"""

import sys
from collections.abc import MutableMapping, Sequence
from typing import Final

from logberg.cli.for_programs import wants_json

_PREFIX, _OLD_PREFIX = "LOGBERG_", "QUORATE_"
VARIABLES: Final = (
    "CONTROLLERS",
    "DATA",
    "TOKEN_FILE",
    "SEND_TOKEN_IN_CLEAR",
    "CA",
    "CERT",
    "KEY",
    "TIMEOUT",
    "OUTPUT",
)
"""Without their prefix."""


def take_old_variables(environment: MutableMapping[str, str]) -> list[str]:
    """Set each variable that only its old name gives a value. Returns these old names."""
    taken = []
    for name in VARIABLES:
        old = _OLD_PREFIX + name
        if environment.get(old) and not environment.get(_PREFIX + name):
            environment[_PREFIX + name] = environment[old]
            taken.append(old)
    return taken


def note_old_variables(taken: Sequence[str]) -> None:
    """Say which old names were taken."""
    if not taken or wants_json(sys.argv[1:]):
        return
    # Imported here: a controller that starts pays for no tables.
    from logberg.cli.output import note  # noqa: PLC0415

    for old in taken:
        new = _PREFIX + old.removeprefix(_OLD_PREFIX)
        note(f"{old} is the old name of {new}, and release 0.3 will not read it: set {new}")
