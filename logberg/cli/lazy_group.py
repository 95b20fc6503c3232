"""A group of commands that imports a command when somebody calls it.

Rule: the name and the help line of a command are known without its module. So `--help` of the group
imports no command, and a command does not pay for the libraries of another.
"""

import gc
import importlib
import keyword
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from logberg.cli.suggesting_group import SuggestingGroup


class LazyGroup(SuggestingGroup):
    """A group whose command `some-name` is `command` in the module `package.some_name`.

    A name that is a word of Python's own, such as `import`, gets a `_` behind it.
    """

    def __init__(
        self, *args: Any, package: str, help_lines: Mapping[str, str], **attributes: Any
    ) -> None:
        """`help_lines` gives each command's help line by its name, in the order of `--help`."""
        super().__init__(*args, **attributes)
        self._package = package
        self._help_lines = help_lines

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._help_lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._help_lines:
            return None
        module = cmd_name.replace("-", "_") + "_" * keyword.iskeyword(cmd_name)
        name = f"{self._package}.{module}"
        # Imports make many objects that stay: a search for garbage among them is lost time.
        gc.disable()
        try:
            command = importlib.import_module(name).command
        finally:
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._help_lines.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, text in self._help_lines.items()
            if name.startswith(incomplete)
        ]
