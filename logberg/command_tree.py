"""The commands of `logberg`.

Rule: a subcommand's module is imported when somebody calls it. So `logberg --help` imports no
command, a controller imports no tables, and a table imports no controller.
"""

import gc
import importlib

import click
from click.shell_completion import CompletionItem

from logberg.suggesting_group import SuggestingGroup
from logberg.version import VERSION

_COMMANDS = {
    "demo": ("logberg.commands.demo", "The whole story with real processes, in under a minute."),
    "up": ("logberg.commands.up", "Start a cluster here and show it until Ctrl-C."),
    "status": ("logberg.commands.status", "How the cluster is: controllers, brokers, offsets."),
    "quorum": ("logberg.commands.quorum", "Who votes, who leads, who lags."),
    "brokers": ("logberg.commands.brokers", "List, describe and unregister brokers."),
    "features": ("logberg.commands.features", "Show, raise and lower feature levels."),
    "topics": ("logberg.commands.topics", "Create, list, describe and delete topics."),
    "log": ("logberg.commands.log", "Dump, replay and verify a log on disk."),
    "audit": ("logberg.commands.audit", "Ask the log: who, what, when, why; and was it tampered."),
    "controller": ("logberg.commands.controller", "Run a controller in the foreground."),
    "broker": ("logberg.commands.broker", "Run a broker agent in the foreground."),
    "cluster-id": ("logberg.commands.cluster_id", "Draw an id for a new cluster."),
    "completion": ("logberg.commands.completion", "Print what a shell needs to complete commands."),
}


class _Lazy(SuggestingGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        # Imports make many objects that stay: a search for garbage among them is lost time.
        gc.disable()
        try:
            command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        finally:
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="logberg %(version)s")
def cli() -> None:
    """Logberg: a self-managed metadata quorum in the style of KIP-500."""
