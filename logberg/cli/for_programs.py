"""Whether the output of a command is for programs.

Rule: known before the arguments are parsed, so errors of wrong arguments have the right form.
"""

import os
from collections.abc import Sequence

_OUTPUT = "LOGBERG_OUTPUT"


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are for programs; also when the arguments can't be read."""
    said = os.environ.get(_OUTPUT)
    for at, argument in enumerate(arguments):
        if argument in ("-o", "--output") and at + 1 < len(arguments):
            said = arguments[at + 1]
        elif argument.startswith("--output="):
            said = argument.partition("=")[2]
        elif argument.startswith("-o") and not argument.startswith("--"):
            said = argument[2:]
    return said == "json"
