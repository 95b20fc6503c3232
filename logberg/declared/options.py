"""The options of the commands that read a declaration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        required=True,
        type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
        help="A YAML file; - is stdin. Repeatable: all files together are one declaration.",
    ),
    click.option(
        "--prune",
        is_flag=True,
        help="Remove what isn't declared, of the kinds that the files have: configs, quotas, ACLs, "
        "users. Topics stay, but configs of declared topics go.",
    ),
    click.option(
        "--delete-topics",
        is_flag=True,
        help="With --prune: delete the topics that aren't declared, with all their data.",
    ),
    click.option(
        "--rewrite-passwords",
        is_flag=True,
        help="Set all declared credentials, also those that exist.",
    ),
)


def declaration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `-f`, `--prune`, `--delete-topics` and `--rewrite-passwords`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
