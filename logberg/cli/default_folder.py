"""Which folder a command uses when none is named.

Rule: ./logberg-data, or ./quorate-data of release 0.1 if only that exists: an upgrade must not
start a new, empty cluster. A note on stderr says so, except with JSON output, where stderr is one
JSON document. Release 0.3 drops the old folder (ADR 0025).
"""

import sys
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from logberg.cli.for_programs import wants_json
from logberg.cli.output import note

DEFAULT_FOLDER: Final = Path("logberg-data")
OLD_FOLDER: Final = Path("quorate-data")


def or_old_folder(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Return the folder to use: a callback of click where the default is DEFAULT_FOLDER."""
    assert parameter.name is not None
    named = context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    return value if named else default_folder()


def default_folder() -> Path:
    """Return the folder to use when none is named; relative to the current one."""
    if DEFAULT_FOLDER.exists() or not OLD_FOLDER.is_dir():
        return DEFAULT_FOLDER
    if not wants_json(sys.argv[1:]):
        note(
            f"./{OLD_FOLDER} is used, the default folder of release 0.1, because there is no "
            f"./{DEFAULT_FOLDER}"
        )
    return OLD_FOLDER
